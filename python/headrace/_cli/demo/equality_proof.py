"""Proves that the batches equal the oracle's bit for bit: every file, several recipes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from headrace import transforms
from headrace._cli import recipes
from headrace._reports.loader.verification import Report
from headrace.datasets.sources import ImageFolder
from headrace.loader import DataLoader

_LABEL = 58


def prove_equality(root: Path, workers: int) -> None:
    """Verifies all recipes and prints a line for each.

    Raises:
        VerificationError: a batch differs.
    """
    print(f"   {'recipe':<{_LABEL}}{'images':>7}{'bytes compared':>17}{'differ':>8}")
    total = 0
    for name, transform, options in _list_cases():
        report = _verify(root, transform, workers, options)
        total += report.bytes
        print(f"   {name:<{_LABEL}}{report.samples:>7}{report.bytes:>17,}{0:>8}", flush=True)
    print(f"   {total:,} bytes compared with Pillow and torch: 0 differ.")


def _list_cases() -> Iterator[tuple[str, transforms.Compose, dict[str, Any]]]:
    yield "train: RandomResizedCrop(224), flip, Normalize; float32", recipes.train(), {}
    channels_last = {"memory_format": torch.channels_last, "dtype": torch.bfloat16}
    yield "train, the next epoch's crops; bfloat16, channels_last", recipes.train(), {**channels_last, "epoch": 1}
    yield "evaluation: Resize(256), CenterCrop(224); float32", recipes.evaluation(), {}
    crop = transforms.RandomCrop(160, padding=16, pad_if_needed=True, fill=(124, 116, 104))
    padded = transforms.Compose([crop, transforms.Grayscale(3), transforms.ToTensor()])
    yield "RandomCrop(160, padding=16), Grayscale; float32", padded, {}


def _verify(root: Path, transform: transforms.Compose, workers: int, options: dict[str, Any]) -> Report:
    options = dict(options)
    epoch = options.pop("epoch", 0)
    dataset = ImageFolder(root, transform)
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=workers, seed=0, **options)
    loader.set_epoch(epoch)
    return loader.verify(len(loader))


def count_same_batches(first: Iterable[Sequence[torch.Tensor]], second: Iterable[Sequence[torch.Tensor]]) -> int:
    """Compares the batches of two loaders and returns their number.

    Raises:
        AssertionError: the batches differ; the message names the first that does.
    """
    count = 0
    for a, b in itertools.zip_longest(first, second):
        if a is None or b is None or not all(torch.equal(x, y) for x, y in zip(a, b, strict=True)):
            raise AssertionError(f"batch {count} differs")
        count += 1
    return count
