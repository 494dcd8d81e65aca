"""Times each transform of docs/transforms.md's table in torch's DataLoader and in headrace's, on one core.

    python -m bench.transforms [--images DIR] [--rounds N] [--only NAME ...] [--out FILE]
    python -m bench.transforms.page          # then: fills the page's column

Both loaders have one worker and take turns; the figure is the ratio of the seconds of whole epochs. Before that,
`verify` must find headrace's batches equal to the oracle's, unless torch's loader delivers them, too. The table goes
to a .md file beside the JSON file. With `--only`, the other rows of an existing file are kept. All rows take less than
20 minutes on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import PIL
import torch
from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from bench.code.programs import OwnDataset
from bench.datasets import PHOTOS, data_folder
from bench.machine import describe, pick_cpus
from bench.transforms.page import FIGURES, shown
from bench.transforms.rows import ROWS, Row

BATCH = 32
VERIFIED = 2  # batches


def seconds(loader: Any) -> float:
    """How long an epoch takes; each batch is dropped when the next one is requested."""
    start = time.perf_counter()
    for _ in loader:
        pass
    return time.perf_counter() - start


def measure(row: Row, paths: list[Path], rounds: int) -> dict[str, Any]:
    """The figures of one row."""
    paths = (paths * -(-row.images // len(paths)))[: row.images]
    theirs, ours = row.transforms()
    options: dict[str, Any] = {"shuffle": True, "num_workers": 1, "persistent_workers": True}
    loaders = (
        TorchDataLoader(OwnDataset(paths, theirs), BATCH, **options),
        headrace.DataLoader(headrace.ImageFiles(paths, transform=ours), BATCH, **options),
    )
    if loaders[1].native:
        loaders[1].verify(VERIFIED)
    for loader in loaders:
        seconds(loader)  # workers and threads start
    route = loaders[1].route
    made = {"route": route, "images": len(paths), "seconds": [[seconds(one) for one in loaders] for _ in range(rounds)]}
    loaders[1].close()
    return made


def line(heading: str, name: str, found: dict[str, Any]) -> str:
    """A line of the table."""
    ratios = [a / b for a, b in found["seconds"]]
    rates = [found["images"] / statistics.median(column) for column in zip(*found["seconds"], strict=True)]
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    return f"| {heading} | `{name}` | {rates[0]:.0f} | {rates[1]:.0f} | {shown(found)} | {spread} |"


def verdict(rows: dict[str, Any]) -> str:
    """The sentence above the table."""
    ratios = [
        statistics.median(a / b for a, b in found["seconds"]) for some in rows.values() for found in some.values()
    ]
    return (
        f"Of {len(ratios)} transforms, the middle one runs at {statistics.median(ratios):.1f} times the speed of "
        f"torch's DataLoader; the least is {min(ratios):.1f}, the greatest {max(ratios):.1f}."
    )


def written(out: Path, machine: dict[str, Any], rows: dict[str, Any]) -> None:
    """Writes the figures as JSON, and as a table."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")
    about = ", ".join(f"{name} {value}" for name, value in machine.items())
    head = "| library | transform | torch, images/s | headrace | ratio | range |\n|---|---|---|---|---|---|"
    table = [line(heading, name, found) for heading, some in rows.items() for name, found in some.items()]
    text = ["# Each transform on one core", "", verdict(rows), "", "`python -m bench.transforms`:", "", f"{about}.", ""]
    out.with_suffix(".md").write_text("\n".join([*text, head, *table, ""]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.transforms", description=__doc__.splitlines()[0])
    real = data_folder() / "imagenet_dev"
    names = sorted({name for some in ROWS.values() for name in some})
    parser.add_argument("--images", type=Path, default=real if real.is_dir() else PHOTOS, metavar="DIR")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME")
    parser.add_argument("--out", type=Path, default=FIGURES)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", "torch's DataLoader delivers")
    torch.set_num_threads(1)
    os.sched_setaffinity(0, pick_cpus(1))
    paths = sorted(path for path in options.images.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    if not paths:
        sys.exit(f"no JPEG files in {options.images}")
    machine = {**describe(), "torch": torch.__version__, "Pillow": PIL.__version__, "images": options.images.name}
    rows: dict[str, Any] = {heading: {} for heading in ROWS}
    if options.only and options.out.exists():
        rows |= json.loads(options.out.read_text())["rows"]
    for heading, some in ROWS.items():
        for name, row in some.items():
            if options.only and name not in options.only:
                continue
            try:
                rows[heading][name] = measure(row, paths, options.rounds)
            except Exception as error:
                print(f"{heading} {name} was not timed: {type(error).__name__}: {error}", flush=True)
                continue
            print(line(heading, name, rows[heading][name]), flush=True)
            written(options.out, machine, rows)


if __name__ == "__main__":
    main()
