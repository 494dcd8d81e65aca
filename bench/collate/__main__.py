"""Times the native path with a collate_fn against the same loader without one, and against torch's DataLoader.

    python -m bench.collate [--images DIR] [--rounds N] [--cores 1 2] [--only ROW ...] [--out FILE]

The loaders take turns, with as many threads or worker processes as cores; a figure is the median and the range of the
ratios of whole epochs. Before that, the batches are compared with those of the loader's oracle.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import default_collate

import headrace
from bench.code import table
from bench.code.programs import CLASSES, TRAIN, T, v2
from bench.contenders._common import MEAN, STD
from bench.views.__main__ import seconds

MIX = v2.RandomChoice([v2.MixUp(num_classes=CLASSES), v2.CutMix(num_classes=CLASSES)])
WHOLE = T.Compose([T.Resize(480), T.ToTensor(), T.Normalize(MEAN, STD)])
# Of torchvision's own recipe for ResNet-50: --train-crop-size 176 --auto-augment ta_wide --random-erase 0.1
# --mixup-alpha 0.2 --cutmix-alpha 1.0 --batch-size 128.
REFERENCE = T.Compose(
    [
        *(T.RandomResizedCrop(176), T.RandomHorizontalFlip(), T.TrivialAugmentWide()),
        *(T.PILToTensor(), T.ConvertImageDtype(torch.float), T.Normalize(MEAN, STD), T.RandomErasing(0.1)),
    ]
)
REFERENCE_MIX = v2.RandomChoice([v2.MixUp(alpha=0.2, num_classes=CLASSES), v2.CutMix(num_classes=CLASSES)])


def mixed(batch: list[Any]) -> Any:
    """The collate_fn of torchvision's page on MixUp and CutMix."""
    return MIX(*default_collate(batch))


def mixed_as_reference(batch: list[Any]) -> Any:
    """The collate_fn of torchvision's reference training."""
    return REFERENCE_MIX(*default_collate(batch))


def as_dict(batch: list[Any]) -> Any:
    """As programs for transformers have it."""
    return {"pixel_values": torch.stack([image for image, _ in batch]), "labels": torch.tensor([n for _, n in batch])}


def as_lists(batch: list[Any]) -> Any:
    """As torchvision's detection references have it."""
    return tuple(zip(*batch, strict=True))


@dataclass(frozen=True)
class Row:
    """A transform, a batch size, and a collate_fn."""

    transform: Any
    batch_size: int
    collate_fn: Callable[[list[Any]], Any] | None


ROWS = {
    "MixUp, CutMix": Row(TRAIN, 64, mixed),
    "torchvision's reference training": Row(REFERENCE, 128, mixed_as_reference),
    "a dict": Row(TRAIN, 64, as_dict),
    "whole images in lists": Row(WHOLE, 8, as_lists),
    "whole images, one by one": Row(WHOLE, 1, None),
}


def same(a: Any, b: Any) -> bool:
    """Equal to the bit."""
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def measure(row: Row, paths: list[Path], cores: int, rounds: int) -> dict[str, Any]:
    """Seconds of each round: torch's loader, headrace's without the collate_fn (if it can do without), and with it."""
    data = headrace.ImageFiles(paths, [number % CLASSES for number in range(len(paths))], row.transform)
    options: dict[str, Any] = {"shuffle": True, "num_workers": cores, "persistent_workers": True}
    ours = headrace.DataLoader(data, row.batch_size, collate_fn=row.collate_fn, **options)
    if not ours.native:
        sys.exit(str(ours.explain()))
    for batch, expected, _ in zip(ours, ours.reference(), range(3), strict=False):
        if not same(batch, expected):
            sys.exit("the batches differ from the oracle's")
    ours.close()
    loaders = {"torch": TorchDataLoader(data, row.batch_size, collate_fn=row.collate_fn, **options)}
    if row.transform in (TRAIN, REFERENCE):
        loaders["without"] = headrace.DataLoader(data, row.batch_size, **options)
    loaders["with"] = ours
    for loader in loaders.values():
        seconds(loader)  # starts the workers, and maps the memory
    made = [{name: seconds(loader) for name, loader in loaders.items()} for _ in range(rounds)]
    ours.close()
    return {"images": len(paths), "seconds": made}


def ratio(figures: dict[str, Any], than: str) -> str:
    """Speed with the collate_fn relative to another loader."""
    found = [one[than] / one["with"] for one in figures["seconds"] if than in one]
    return f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})" if found else ""


def shown(name: str, cores: int, figures: dict[str, Any]) -> str:
    """One line of the table."""
    return f"| {name} | {cores} | {ratio(figures, 'without')} | {ratio(figures, 'torch')} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.collate", description=__doc__.splitlines()[0])
    columns = "| collate_fn | cores | relative to no collate_fn | relative to torch's DataLoader |"
    table.add_options(parser, ROWS)
    table.run(parser.parse_args(), ROWS, measure, shown, columns=columns, key="rows")


if __name__ == "__main__":
    main()
