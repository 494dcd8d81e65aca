"""Times several views of an image: torch's worker processes against native threads that decode once for all views.

    python -m bench.views [--images DIR] [--rounds N] [--cores 1 2] [--only PIPELINE ...] [--out FILE]

Both loaders take the same torchvision transforms and take turns, with as many workers or threads as cores. First
`verify` must find headrace's batches of an epoch equal to those of torchvision, Pillow and torch. The figure is the
ratio of the images (not views) a second of whole epochs: the median and the range over the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader as TorchDataLoader

import headrace
from bench.code import table
from bench.code.programs import DINO, END, OwnDataset, T
from bench.contenders._common import SIZE
from headrace.transforms import Views

BATCH = 32

FLIP = T.RandomHorizontalFlip()
COLOURS = [T.RandomApply([T.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8), T.RandomGrayscale(0.2)]


def _simclr() -> Any:
    blur = T.RandomApply([T.GaussianBlur(23, (0.1, 2.0))], 0.5)
    return T.Compose([T.RandomResizedCrop(SIZE, (0.2, 1.0)), FLIP, *COLOURS, blur, *END])


def _dino(size: int, scale: tuple[float, float], blur: float, solarize: float) -> Any:
    crop = T.RandomResizedCrop(size, scale, interpolation=T.InterpolationMode.BICUBIC)
    blurred = T.RandomApply([T.GaussianBlur(9, (0.1, 2.0))], blur)
    return T.Compose([crop, FLIP, *COLOURS, blurred, T.RandomSolarize(128, solarize), *END])


GLOBAL, LOCAL = (0.4, 1.0), (0.05, 0.4)
PIPELINES = {
    "two views": [T.Compose([T.RandomResizedCrop(SIZE, (0.2, 1.0)), FLIP, *END])] * 2,
    "DINO's ten views": DINO,
    "SimCLR's two, with colours and blur": [_simclr(), _simclr()],
    "DINO's ten, with colours and blur": [
        _dino(224, GLOBAL, 1.0, 0.0),
        _dino(224, GLOBAL, 0.1, 0.2),
        *[_dino(96, LOCAL, 0.5, 0.0)] * 8,
    ],
}


def seconds(loader: Any) -> float:
    """How long an epoch takes; each batch is dropped when the next one is requested."""
    start = time.perf_counter()
    for _ in loader:
        pass
    return time.perf_counter() - start


def measure(views: list[Any], paths: list[Path], cores: int, rounds: int) -> dict[str, Any]:
    """The figures of one pipeline on `cores` cores."""
    options: dict[str, Any] = {"shuffle": True, "num_workers": cores, "persistent_workers": True}
    theirs = TorchDataLoader(OwnDataset(paths, Views(views)), BATCH, **options)
    ours = headrace.DataLoader(headrace.ImageFiles(paths, range(len(paths)), Views(views)), BATCH, **options)
    if not ours.native:
        sys.exit(str(ours.explain()))
    report = str(ours.verify(4))
    batch, made = next(iter(theirs))[0], next(iter(ours))[0]
    if [(one.shape, one.dtype) for one in made] != [(one.shape, one.dtype) for one in batch]:
        sys.exit("the batches differ in shape")
    for loader in (theirs, ours):
        seconds(loader)  # starts the workers, and maps the memory
    figures = {"images": len(paths), "verified": report}
    figures["seconds"] = [[seconds(loader) for loader in (theirs, ours)] for _ in range(rounds)]
    ours.close()
    return figures


def shown(name: str, cores: int, figures: dict[str, Any]) -> str:
    """One line of the table."""
    ratios = [a / b for a, b in figures["seconds"]]
    rates = [figures["images"] / statistics.median(column) for column in zip(*figures["seconds"], strict=True)]
    spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return f"| {name} | {cores} | {rates[0]:.0f} | {rates[1]:.0f} | {spread} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.views", description=__doc__.splitlines()[0])
    columns = "| pipeline | cores | torch, images/s | headrace | ratio |"
    table.add_options(parser, PIPELINES)
    table.run(parser.parse_args(), PIPELINES, measure, shown, columns=columns, key="pipelines")


if __name__ == "__main__":
    main()
