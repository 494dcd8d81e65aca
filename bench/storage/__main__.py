"""Times the same images in several forms of storage: headrace, beside its files and the format's own loader.

    python -m bench.storage --images DIR [--rounds N] [--cores 1 2] [--only STORE ...] [--out FILE]

Training: RandomResizedCrop(224), flip, normalise, shuffled, whole epochs, files in the page cache. First headrace's
batches of the storage must equal those of the files (in the order of the archive for zip). Images with an EXIF
orientation, which Hugging Face's datasets turn, are left out. Then all take turns. The figures are ratios of images a
second: the median and the range over the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from PIL import ExifTags, Image

import headrace
from bench.code import table
from bench.contenders._common import import_torchvision, torchvision_transform
from bench.storage.stores import BATCH, STORES, Files, Store, label


def loader(dataset: Any, cores: int) -> headrace.DataLoader:
    return headrace.DataLoader(dataset, BATCH, True, num_workers=cores, seed=0, drop_last=True)


def rate(batches: Iterable[Any]) -> tuple[float, float]:
    """Images a second of two epochs, and CPU seconds of this process (not of workers that are processes) an image."""
    count = 0
    start, spent = time.perf_counter(), time.process_time()
    for _ in range(2):
        for batch in batches:
            count += len(batch["image"] if isinstance(batch, dict) else batch[0])
    return count / (time.perf_counter() - start), (time.process_time() - spent) / count


def upright(path: Path) -> bool:
    """Whether an image has no EXIF orientation that turns it."""
    with Image.open(path) as image:
        return image.getexif().get(ExifTags.Base.Orientation, 1) in (0, 1)


def check_equal(ours: headrace.DataLoader, files: headrace.DataLoader) -> None:
    """Ends the program if an epoch differs."""
    for (a, its), (b, theirs) in zip(ours, files, strict=True):
        if not (torch.equal(a, b) and torch.equal(its, theirs)):
            sys.exit("the batches differ")


def turn(contenders: list[Iterable[Any]], first: int) -> list[tuple[float, float]]:
    """The figures of each contender, beginning with another one in each round."""
    rates = [(0.0, 0.0)] * len(contenders)
    for i in range(len(contenders)):
        now = (first + i) % len(contenders)
        rates[now] = rate(contenders[now])
    return rates


def measure(store: Store, paths: list[Path], cores: int, rounds: int) -> dict[str, Any]:
    """The figures of one form of storage on `cores` cores."""
    import_torchvision()
    transform = torchvision_transform("train")
    paths = [path for path in paths if upright(path)]
    with tempfile.TemporaryDirectory() as folder:
        store.write(paths, Path(folder))
        order = sorted(range(len(paths)), key=label) if store is STORES["zip"] else range(len(paths))
        files = headrace.ImageFiles([paths[i] for i in order], [label(i) for i in order], transform)
        mine = [loader(files, cores), loader(store.ours(Path(folder), transform), cores)]
        check_equal(mine[1], mine[0])
        theirs: Iterable[Any] = torch.utils.data.DataLoader(
            Files(paths, transform),
            BATCH,
            shuffle=True,
            num_workers=cores,
            drop_last=True,
            persistent_workers=True,
        )
        contenders = [*mine, theirs]
        missing = None
        try:
            contenders += [store.theirs(Path(folder), transform, cores)] if store.theirs else []
        except ImportError as error:
            missing = str(error)
        for one in contenders:
            rate(one)  # starts workers
        turns = [turn(contenders, first) for first in range(rounds)]
        rates = [[one[0] for one in each] for each in turns]
        spent = [[one[1] for one in each[:2]] for each in turns]
        for one in mine:
            one.close()
        return {"rates": rates, "cpu_seconds": spent, "missing": missing}


def shown(name: str, cores: int, figures: dict[str, Any]) -> str:
    """One line of the table."""

    def ratio(a: int, b: int) -> str:
        ratios = [one[a] / one[b] for one in figures["rates"]]
        return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"

    middle = [statistics.median(column) for column in zip(*figures["rates"], strict=True)]
    own = f"{middle[3]:.0f} | {ratio(1, 3)}" if len(middle) > 3 else f"{figures['missing'] or 'none'} | none"
    shares = [files / mine for files, mine in figures["cpu_seconds"]]
    spent = f"{statistics.median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f})"
    return f"| {name} | {cores} | {middle[1]:.0f} | {ratio(1, 0)} | {spent} | {middle[2]:.0f} | {own} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.storage", description=__doc__.splitlines()[0])
    columns = (
        "| storage | cores | headrace, images/s | / its files | the same by CPU time | torch, files | its own loader "
        "| headrace / it |"
    )
    table.add_options(parser, STORES)
    table.run(parser.parse_args(), STORES, measure, shown, columns=columns, key="stores")


if __name__ == "__main__":
    main()
