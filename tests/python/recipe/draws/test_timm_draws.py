"""timm's RandomErasing and RandomResizedCropAndInterpolation: boxes, values and filters are distributed as timm's."""

from __future__ import annotations

import random
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
from headrace._recipe.arithmetic import boxes
from headrace._recipe.steps import steps as S

pytestmark = pytest.mark.slow


def erased(made: torch.Tensor) -> tuple[float, ...]:
    """The numbers of changed pixels and of rows with one, the first row and column of them, the first value there."""
    changed = (made != 0).any(dim=0).numpy()
    rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
    if not len(rows):
        return 0, 0, -1, -1, 0
    first = made[0, rows[0], np.flatnonzero(changed[rows[0]])[0]]
    return int(changed.sum()), len(rows), int(rows[0]), int(columns[0]), float(first)


def ours_erased(erasing: Any) -> np.ndarray:
    recipe = lower(T.Compose([T.ToTensor(), erasing]), size=(12, 16), native_only=True)
    black = Image.new("RGB", (16, 12))
    return np.array([erased(reference_sample(black, recipe, row)) for row in rows_of(recipe)])


def theirs_erased(erasing: Any) -> np.ndarray:
    random.seed(1)
    torch.manual_seed(1)
    return np.array([erased(erasing(torch.zeros(3, 12, 16))) for _ in range(COUNT)])


#: What makes another distribution of the boxes.
WRONG: list[dict[str, Any]] = [
    {"probability": 0.6},
    {"min_area": 0.06},
    {"max_area": 0.25},
    {"min_aspect": 0.8},
    {"max_count": 3},
]


@pytest.mark.parametrize("mode", ["rand", "pixel"])
def test_erased_boxes_and_values(timm: ModuleType, mode: str) -> None:
    usual = {"probability": 0.7, "max_count": 2, "mode": mode, "device": "cpu"}
    mine = ours_erased(timm.random_erasing.RandomErasing(**usual))
    assert distance(mine, theirs_erased(timm.random_erasing.RandomErasing(**usual))) < MOST
    for wrong in WRONG:
        assert distance(mine, theirs_erased(timm.random_erasing.RandomErasing(**{**usual, **wrong}))) > MOST, wrong


FILTERS = ("bilinear", "bicubic")


def ours_cropped(crop: Any) -> np.ndarray:
    """(top, left, height, width, filter) of each sample."""
    recipe = lower(T.Compose([crop, T.PILToTensor()]), native_only=True)
    (choice,) = recipe.steps
    assert isinstance(choice, S.OneOf)
    made = []
    for row in rows_of(recipe).tolist():
        ((step,),) = [
            next(one for one, bound in zip(choice.branches, choice.bounds, strict=True) if row[choice.draw] < bound)
        ]
        assert isinstance(step, S.RandomResizedCrop)
        drawn = row[step.draw : step.draw + 22]
        places = (boxes.position_from(u) for u in drawn[20:])
        tries = list(zip(drawn[:20:2], drawn[1:20:2], strict=True))
        made.append((*boxes.random_resized_crop(48, 64, step.ratio, tries, *places), FILTERS.index(step.filter)))
    return np.array(made)


def theirs_cropped(crop: Any) -> np.ndarray:
    random.seed(1)
    image, made = Image.new("RGB", (64, 48)), []
    for _ in range(COUNT):
        box = crop.get_params(image, crop.scale, crop.ratio)
        filter = random.choice(crop.interpolation)  # as its forward does
        made.append((*box, FILTERS.index(str(filter.value))))
    return np.array(made)


@pytest.mark.parametrize("wrong", [{"scale": (0.3, 1.0)}, {"scale": (0.2, 0.7)}, {"ratio": (0.6, 1.5)}], ids=str)
def test_crops_and_filters(timm: ModuleType, wrong: dict[str, Any]) -> None:
    usual = {"size": 8, "scale": (0.2, 1.0), "ratio": (0.5, 1.5), "interpolation": "random"}
    of = timm.transforms.RandomResizedCropAndInterpolation
    mine = ours_cropped(of(**usual))
    assert distance(mine, theirs_cropped(of(**usual))) < MOST
    assert distance(mine, theirs_cropped(of(**{**usual, **wrong}))) > MOST
    one_filter = np.column_stack([theirs_cropped(of(**usual))[:, :4], np.zeros(COUNT)])
    assert distance(mine, one_filter) > MOST
