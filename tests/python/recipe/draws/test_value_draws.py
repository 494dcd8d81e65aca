"""The draws of colour changes and of erased boxes are distributed as torchvision's parameters are."""

from __future__ import annotations

import itertools
from collections import Counter
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from buffered_torch import DRAWS, buffer_torchvision

from headrace import transforms as T
from headrace._lowering import lower
from headrace._recipe.arithmetic import boxes
from headrace._recipe.draws.draws import Draws
from headrace._recipe.steps import steps as S

#: Above it, two samples of DRAWS numbers of one distribution have a Kolmogorov-Smirnov distance once in 10,000 times.
MOST = 2.23 * (2 / DRAWS) ** 0.5
SIZE = (40, 60)

pytestmark = pytest.mark.slow


def lowered(transform: Any, *before: Any) -> tuple[tuple[Any, ...], np.ndarray]:
    """The steps of a transform, and draws of many samples."""
    steps = [*before, transform] if before else [transform, T.PILToTensor()]
    recipe = lower(T.Compose(steps), size=SIZE, native_only=True)
    return recipe.steps, Draws(recipe.columns, 7).batch(0, np.arange(DRAWS), np.zeros(DRAWS, np.int64))


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference between the distribution functions of two samples, which may differ in length."""
    at = np.sort(np.concatenate([a, b]))
    below = [np.searchsorted(np.sort(one), at, side="right") / len(one) for one in (a, b)]
    return float(np.abs(below[0] - below[1]).max())


def differs(ours: Counter[Any], theirs: Counter[Any]) -> float:
    """The statistic of two tables of counts, in standard deviations above its mean."""
    keys = [key for key in ours | theirs if ours[key] + theirs[key] > 20]
    square = sum((ours[key] - theirs[key]) ** 2 / (ours[key] + theirs[key]) for key in keys)
    return (square - len(keys)) / (2 * len(keys)) ** 0.5


BOUNDS = {"brightness": (0.5, 2.0), "contrast": (0.0, 3.0), "saturation": (0.2, 3.0), "hue": (-0.5, 0.1)}


def distortions(p: float) -> tuple[Counter[Any], dict[str, np.ndarray]]:
    """What the steps of a RandomPhotometricDistort do, as flags and an order of channels, and their factors."""
    steps, draws = lowered(T.RandomPhotometricDistort(**BOUNDS, p=p))
    made: dict[str, np.ndarray] = {}
    flags = []
    for step in steps:
        (inner,) = step.steps
        done = draws[:, step.draw] < step.p
        if isinstance(inner, S.When):  # contrast, if early
            early, inner = draws[:, inner.draw] < inner.p, inner.steps[0]
            flags += [done & early]
        elif isinstance(inner, S.OneOf) and len(inner.branches) == 2:  # contrast, if not early
            flags += [done & (draws[:, inner.draw] >= inner.bounds[0])]
            continue
        elif isinstance(inner, S.OneOf):  # channels
            order = np.searchsorted(np.array(inner.bounds), draws[:, inner.draw], side="right")
            flags += [np.where(done, order, -1)]
            continue
        else:
            flags += [done]
        made[type(inner).__name__.lower()] = draws[done, inner.draw]
    return Counter(zip(*(flag.tolist() for flag in flags), strict=True)), made


def test_photometric_distortion(torchvision: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which changes are done together, in which order, and by how much."""
    buffer_torchvision(monkeypatch)
    v2 = torchvision.transforms.v2
    monkeypatch.setattr("torchvision.transforms.v2._color.query_chw", lambda inputs: (3, *SIZE))
    distort, orders = v2.RandomPhotometricDistort(*BOUNDS.values(), 0.4), list(itertools.permutations(range(3)))
    theirs: Counter[Any] = Counter()
    drawn: dict[str, list[float]] = {name: [] for name in BOUNDS}
    for _ in range(DRAWS):
        params = distort.make_params([])
        for name in BOUNDS:
            if (factor := params[f"{name}_factor"]) is not None:
                drawn[name].append(factor)
        bright, contrast, saturated, hued = (params[f"{name}_factor"] is not None for name in BOUNDS)
        early, order = params["contrast_before"], params["channel_permutation"]
        number = -1 if order is None else orders.index(tuple(order.tolist()))
        theirs[(bright, contrast and early, saturated, hued, contrast and not early, number)] += 1
    ours, factors = distortions(0.4)
    assert len(theirs) == 2**3 * 3 * 7 and differs(ours, theirs) < 4
    assert differs(distortions(0.46)[0], theirs) > 10
    for name, found in drawn.items():
        assert distance(factors[name], np.array(found)) < MOST * 1.6  # of two fifths of the samples
    assert distance(factors["hue"], np.array(drawn["hue"]) + 0.05) > MOST * 1.6


def erased(transform: Any) -> np.ndarray:
    """The boxes (top, left, height, width) that are erased, of the samples that have one."""
    (step,), draws = lowered(transform, T.ToTensor())
    assert isinstance(step, S.Erase)
    found = []
    for row in draws[draws[:, step.draw] < step.p, step.draw :].tolist():
        tries = list(zip(row[1:21:2], row[2:21:2], strict=True))
        box = boxes.random_erase(*SIZE, tries, boxes.position_from(row[21]), boxes.position_from(row[22]))
        if box is not None:
            found.append((box.top, box.left, box.height, box.width))
    return np.array(found)


def test_boxes_that_are_erased(torchvision: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """With bounds that make some tries fail."""
    buffer_torchvision(monkeypatch)
    scale, ratio, image = (0.05, 0.9), (0.2, 4.0), torch.zeros(3, *SIZE)
    get_params = torchvision.transforms.RandomErasing.get_params
    theirs = np.array([get_params(image, scale, ratio, [0.0])[:4] for _ in range(DRAWS)])
    theirs = theirs[theirs[:, 2] < SIZE[0]]  # otherwise no try fitted: nothing is erased
    ours = erased(T.RandomErasing(1.0, scale, ratio))
    assert abs(len(ours) - len(theirs)) < 4 * (DRAWS - len(theirs)) ** 0.5 + 40
    for column in range(4):
        assert distance(ours[:, column], theirs[:, column]) < MOST
    other = erased(T.RandomErasing(1.0, (0.05, 0.7), ratio))
    assert max(distance(other[:, column], theirs[:, column]) for column in range(4)) > MOST


def test_how_often_boxes_are_erased() -> None:
    for p in (0.1, 0.5):
        made = len(erased(T.RandomErasing(p, (0.02, 0.33), (0.3, 3.3))))
        assert made == pytest.approx(p * DRAWS, abs=4 * (p * (1 - p) * DRAWS) ** 0.5)
