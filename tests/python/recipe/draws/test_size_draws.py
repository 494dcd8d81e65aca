"""The sizes and paddings that steps draw are distributed as torchvision's and timm's parameters are."""

from __future__ import annotations

import importlib
import random
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from drawn import COUNT, MOST, distance, rows_of
from PIL import Image

from headrace import transforms as T
from headrace._lowering import lower
from headrace._oracle.reference import reference_sample

HEIGHT, WIDTH = 6, 9
PAINT = 200  # of the image: what is padded is 0


def measured(made: np.ndarray) -> tuple[int, int, int, int]:
    """(height, width) of an image with a black border, and the place (top, left) of what is not black."""
    rows, columns = np.flatnonzero(made.any(axis=1)), np.flatnonzero(made.any(axis=0))
    return *made.shape, int(rows[0]), int(columns[0])


def ours(transform: Any) -> np.ndarray:
    """Sizes and places from the draws of a loader, (COUNT, 4)."""
    recipe = lower(T.Compose([transform, T.PILToTensor()]), native_only=True, may_vary=True)
    image = Image.new("L", (WIDTH, HEIGHT), PAINT)
    rows = rows_of(recipe)
    return np.array([measured(reference_sample(image, recipe, row)[0].numpy()) for row in rows])


def theirs(transform: Any) -> np.ndarray:
    """The same from the original's own generator."""
    image = Image.new("L", (WIDTH, HEIGHT), PAINT)
    torch.manual_seed(1)
    random.seed(1)
    return np.array([measured(np.asarray(transform(image))) for _ in range(COUNT)])


#: A transform, and one with another distribution.
TORCHVISIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "resize": (lambda v2: v2.RandomResize(5, 25), lambda v2: v2.RandomResize(5, 27)),
    "shortest": (lambda v2: v2.RandomShortestSize([5, 8, 9], 12), lambda v2: v2.RandomShortestSize([5, 8, 8, 9], 12)),
    "jitter": (lambda v2: v2.ScaleJitter((40, 30), (0.5, 2)), lambda v2: v2.ScaleJitter((30, 40), (0.5, 2))),
    "zoom": (lambda v2: v2.RandomZoomOut(0, (1, 5), 0.7), lambda v2: v2.RandomZoomOut(0, (1, 5), 0.6)),
}


@pytest.mark.parametrize("name", TORCHVISIONS)
def test_sizes_are_torchvisions(torchvision: ModuleType, name: str) -> None:
    v2 = torchvision.transforms.v2
    right, wrong = TORCHVISIONS[name]
    mine = ours(right(v2))
    assert distance(mine, theirs(right(v2))) < MOST
    assert distance(mine, theirs(wrong(v2))) > MOST


TIMMS = {
    "crop or pad": ("RandomCropOrPad((14, 20))", "RandomCropOrPad((14, 21))"),
    "pad": ("RandomPad((20, 12))", "RandomPad((19, 12))"),
    "scale": (
        "ResizeKeepRatio(30, random_scale_prob=0.5, random_scale_range=(0.4, 1.6))",
        "ResizeKeepRatio(30, random_scale_prob=0.3, random_scale_range=(0.4, 1.6))",
    ),
    "ratio": (
        "ResizeKeepRatio(30, 1, random_aspect_prob=1, random_aspect_range=(0.5, 2), random_scale_prob=1)",
        "ResizeKeepRatio(30, 1, random_aspect_prob=1, random_aspect_range=(0.4, 2), random_scale_prob=1)",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TIMMS)
def test_sizes_are_timms(torchvision: ModuleType, name: str) -> None:
    pytest.importorskip("timm", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        timm = importlib.import_module("timm.data.transforms")
    right, wrong = (eval(one, vars(timm)) for one in TIMMS[name])
    mine = ours(right)
    assert distance(mine, theirs(right)) < MOST
    assert distance(mine, theirs(wrong)) > MOST
