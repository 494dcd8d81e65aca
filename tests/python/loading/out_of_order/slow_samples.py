"""Loaders whose samples are kept until a test lets them go, or take long."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from headrace import DataLoader, ImageArray
from headrace import transforms as T
from support import WATCHDOG_S

COUNT, BATCH = 44, 4


class Gate:
    """A step that keeps some samples, named by their first pixel, until it is opened; at the end of a test it is."""

    made: ClassVar[list[Gate]] = []

    def __init__(self, *held: int) -> None:
        self.held, self.go = set(held), threading.Event()
        self.made.append(self)

    def __deepcopy__(self, memo: object) -> Gate:  # all threads share one
        return self

    def __call__(self, image: Any) -> Any:
        if image.getpixel((0, 0))[0] in self.held:
            assert self.go.wait(WATCHDOG_S)
        return image


class Slow(Gate):
    """A step that takes long for some samples."""

    def __init__(self, seconds: float, *held: int) -> None:
        super().__init__(*held)
        self.seconds = seconds

    def __call__(self, image: Any) -> Any:
        if image.getpixel((0, 0))[0] in self.held:
            time.sleep(self.seconds)
        return image


def dataset(*steps: Any) -> ImageArray:
    pixels = np.arange(COUNT, dtype=np.uint8)[:, None, None, None] + np.zeros((COUNT, 6, 6, 3), np.uint8)
    return ImageArray(pixels, list(range(COUNT)), transform=T.Compose([*steps, T.RandomHorizontalFlip(), T.ToTensor()]))


def loader(*steps: Any, **options: Any) -> DataLoader[Any]:
    given: dict[str, Any] = {"num_workers": 2, "in_order": False, "seed": 3, **options}
    return DataLoader(dataset(*steps), BATCH, **given)


def numbers(batches: Any) -> list[int]:
    """The numbers, in the dataset's order, of batches without a shuffle."""
    return [int(labels[0]) // BATCH for _, labels in batches]


def sorted_batches(batches: list[Any]) -> list[Any]:
    return sorted(batches, key=lambda batch: int(batch[1].min()))


def taken(iterator: Iterator[Any], count: int) -> list[Any]:
    return [next(iterator) for _ in range(count)]
