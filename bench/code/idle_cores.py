"""Times programs whose workers leave cores idle: in torch's DataLoader, and in headrace's with and without records.

    python -m bench.code.idle_cores [--workers N] [--images DIR] [--rounds N] [--cores 1 2] [--only PROGRAM ...]

The three loaders take turns: torch's; headrace's whose workers make the values of deferred tensors; and headrace's
whose main process makes them from records, where `making_threads` allows that (decision 0108; `--always`: in any case,
with a thread for each worker). The figures are those of `bench.code`: first the batches of an epoch must be equal, and
epochs are the third and later ones of loaders with persistent workers.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from bench.code import table
from bench.code.__main__ import begin, equal, images, seconds
from bench.code.programs import PROGRAMS, Program
from headrace._loading.fallback import torch_epochs
from headrace._loading.records.record_makers import Makers

_ROWS = ("train", "eval", "ToImage, v2", "two views", "DINO's ten views", "image and mask", "PNG", "RandAugment")


@contextmanager
def _made_by(threads: int | None) -> Iterator[None]:
    """Workers that begin meanwhile make records for this number of threads; None: they make the values."""
    with mock.patch.object(torch_epochs, "find_makers", lambda *_, **__: Makers(threads, "of the benchmark")):
        yield


def measure(
    program: Program, paths: list[Path], cores: int, rounds: int, *, workers: int, always: bool
) -> dict[str, Any]:
    """The figures of one program."""
    with tempfile.TemporaryDirectory() as folder:
        dataset = program.dataset(paths, Path(folder))
        options: dict[str, Any] = {"shuffle": program.shuffle} if hasattr(dataset, "__len__") else {}
        options |= {"num_workers": workers, "persistent_workers": True, "collate_fn": program.collate_fn}
        theirs: Any = TorchDataLoader(dataset, program.batch, **options)
        values, records = (headrace.DataLoader(dataset, program.batch, **options) for _ in range(2))
        loaders = theirs, values, records
        expected = list(begin(theirs))
        with _made_by(None):
            before = list(begin(values))
        if always:
            with _made_by(workers):
                now = list(begin(records))
        else:
            now = list(begin(records))
        if not (equal(before, expected) and equal(now, expected)):
            sys.exit("the batches differ")
        count = images(expected)
        del expected, before, now
        for loader in loaders:
            seconds(loader)
        made = [[seconds(loader) for loader in loaders] for _ in range(rounds)]
        figures = {"images": count, "workers": workers, "seconds": made, "records": records.stats().records}
        for loader in (values, records):
            loader.close()
        return figures


def line(name: str, cores: int, found: dict[str, Any]) -> str:
    """One line of the table."""
    columns = list(zip(*found["seconds"], strict=True))
    rates = [f"{found['images'] / statistics.median(one):.0f}" for one in columns]
    ratios = []
    for other in columns[:2]:
        each = [a / b for a, b in zip(other, columns[2], strict=True)]
        ratios.append(f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})")
    from_records = sum(found["records"].values())
    cells = (name, str(cores), str(found["workers"]), *rates, *ratios, str(from_records))
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.code.idle_cores", description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=1, help="worker processes of each loader")
    parser.add_argument("--always", action="store_true", help="makes records also where the rule does not")
    table.add_options(parser, PROGRAMS)
    parser.set_defaults(only=[name for name in _ROWS if name in PROGRAMS])
    options = parser.parse_args()
    warnings.filterwarnings("ignore", "torch's DataLoader delivers")
    columns = (
        "| program | cores | workers | torch, images/s | values by workers | records | to torch | to values by workers "
        "| images from records |"
    )
    made = functools.partial(measure, workers=options.workers, always=options.always)
    table.run(options, PROGRAMS, made, line, columns=columns, key="programs")


if __name__ == "__main__":
    main()
