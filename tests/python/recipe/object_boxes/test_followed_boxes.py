"""Boxes of a whole batch, and the oracle's of one sample, equal those of torchvision v2, run on the same draws."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from headrace._lowering import lower
from headrace._oracle.object_boxes import reference_boxes
from headrace._recipe.draws.draws import Draws
from headrace._recipe.object_boxes import kernels
from headrace._recipe.object_boxes.box_rule import DTYPES, FORMATS, BoxRule
from headrace._recipe.object_boxes.followed_steps import move_boxes, why_not_followed
from headrace._recipe.object_boxes.object_values import BoxPart, ObjectValues
from headrace._recipe.steps import steps as S
from torchvision_feed import Feeder

SAMPLES = 5


def geometry(v2: Any, rng: np.random.Generator, depth: int = 0) -> Any:
    """One of torchvision's transforms that boxes follow."""
    low, high = sorted(rng.integers(8, 90, 2).tolist())
    size = rng.integers(8, 120, 2).tolist()
    padding = [int(rng.integers(12)), rng.integers(0, 12, 2).tolist(), rng.integers(0, 12, 4).tolist()][rng.integers(3)]
    makers = [
        lambda: v2.RandomResizedCrop(size, (0.02, 1.4)),
        lambda: v2.RandomResizedCrop(size, (0.5, 1.0), (0.2, 6.0)),
        lambda: v2.RandomCrop(size, padding, pad_if_needed=True),
        lambda: v2.RandomCrop(size, pad_if_needed=bool(rng.integers(2))),
        lambda: v2.CenterCrop(size),
        lambda: v2.Resize(size),
        lambda: v2.Resize(low),
        lambda: v2.Resize(low, max_size=high + 1),
        lambda: v2.Resize(None, max_size=high),
        lambda: v2.Pad(padding),
        lambda: v2.RandomHorizontalFlip(),
        lambda: v2.RandomVerticalFlip(),
        lambda: v2.RandomZoomOut(side_range=(1.0, 1 + 3 * rng.random())),
        lambda: v2.ScaleJitter((high, low + 20), (0.5, 2.0)),
        lambda: v2.RandomShortestSize([low, high, 40], max_size=high + 9),
        lambda: v2.RandomResize(low, high + 1),
        lambda: v2.RandomInvert(),
        lambda: v2.GaussianBlur(3),
    ]
    if depth < 2 and rng.random() < 0.25:
        inner = [geometry(v2, rng, depth + 1) for _ in range(int(rng.integers(2, 4)))]
        kinds = [lambda: v2.RandomApply(inner, 0.6), lambda: v2.RandomChoice(inner), lambda: v2.RandomOrder(inner)]
        return kinds[rng.integers(3)]()
    return makers[rng.integers(len(makers))]()


def boxes(rng: np.random.Generator, count: int, dtype: torch.dtype) -> torch.Tensor:
    """Boxes of which some are empty, degenerate or outside of the image; not a number and -0.0 among them."""
    values = torch.from_numpy(rng.normal(40, 60, (count, 4)))
    values = values.round() if rng.random() < 0.4 else values
    made = values.to(dtype)
    if dtype.is_floating_point and count and rng.random() < 0.1:
        made[0] = torch.tensor([-0.0, 0.0, float("nan"), 30.0])
    elif count and rng.random() < 0.2:
        made[0] = torch.tensor([-5, 0, 900, 0])
    return made


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether both have the same bits, where they are numbers."""
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    if a.is_floating_point():
        if not torch.equal(a.isnan(), b.isnan()):
            return False
        a, b = a.masked_fill(a.isnan(), 0), b.masked_fill(b.isnan(), 0)
    return a.numel() == 0 or bytes(a.numpy()) == bytes(b.numpy())


def crops(steps: Sequence[Any]) -> Iterator[S.RandomCrop]:
    for step in steps:
        if isinstance(step, S.RandomCrop):
            yield step
        for inner in (getattr(step, "steps", ()), *getattr(step, "branches", ())):
            yield from crops(inner)


def rule_of(rng: np.random.Generator) -> BoxRule:
    first, last = (FORMATS[i] for i in rng.integers(0, 3, 2))
    sanitize, large = bool(rng.integers(2)), rng.random() < 0.3
    limits = (float(rng.uniform(1, 9)), float(rng.uniform(1, 90))) if sanitize and large else (1.0, 1.0)
    mode = ["soft", "hard", None][rng.integers(3)]
    return BoxRule(first, last if rng.random() < 0.5 else first, mode, bool(rng.integers(2)), sanitize, *limits)


def finished(v2: Any, moved: Any, labels: torch.Tensor, rule: BoxRule) -> tuple[torch.Tensor, torch.Tensor]:
    """A sample's boxes and labels after torchvision's transforms of boxes alone."""
    if rule.clamp:
        moved = v2.ClampBoundingBoxes()(moved)
    if rule.sanitize:
        limits = {"min_size": rule.min_size, "min_area": rule.min_area}
        moved, labels = v2.SanitizeBoundingBoxes(**limits, labels_getter=lambda sample: sample[1])((moved, labels))
    if rule.out_format != rule.format:
        moved = v2.ConvertBoundingBoxFormat(rule.out_format)(moved)
    return moved.as_subclass(torch.Tensor), labels


def compare_program(torchvision: ModuleType, feeder: Feeder, rng: np.random.Generator) -> int:
    """Compares one random program with torchvision; returns the number of samples that it can be run on."""
    v2, tv_tensors = torchvision.transforms.v2, torchvision.tv_tensors
    transform = v2.Compose([*(geometry(v2, rng) for _ in range(int(rng.integers(1, 5)))), v2.ToImage()])
    recipe, rule, dtype = lower(transform, may_vary=True), rule_of(rng), DTYPES[rng.integers(4)]
    assert why_not_followed(recipe.steps) == ""
    sizes = rng.integers(16, 200, (SAMPLES, 2))
    objects = [boxes(rng, int(rng.integers(0, 5)), dtype) for _ in range(SAMPLES)]
    labels = [torch.from_numpy(rng.integers(0, 99, len(one))) for one in objects]
    drawn = Draws(recipe.columns, int(rng.integers(2**40))).batch(1, np.arange(SAMPLES), np.zeros(SAMPLES, np.int64))
    for crop in crops(recipe.steps):  # torchvision draws one number where only one edge has a choice
        drawn[:, crop.draw + 1] = drawn[:, crop.draw]
    expected: dict[int, Any] = {}
    for row, values in enumerate(objects):
        canvas = {"canvas_size": tuple(sizes[row].tolist()), "clamping_mode": rule.clamping_mode}
        given = tv_tensors.BoundingBoxes(values.clone(), format=rule.format, **canvas)
        draws = drawn[row].tolist()
        try:
            moved = feeder.run(transform, given, recipe, draws)
        except ValueError as error:  # the image is too small for a crop
            assert "larger than" in str(error), (transform, error)
            continue
        theirs = finished(v2, moved, labels[row], rule)
        made, kept = reference_boxes(values, rule, recipe.steps, draws, given.canvas_size)
        assert same(made, theirs[0]) and torch.equal(labels[row][kept], theirs[1]), (transform, rule, values)
        expected[row] = theirs
    if not expected:
        return 0
    part = BoxPart("boxes", "image", rule, ObjectValues.of(objects), {"labels": ObjectValues.of(labels)}, recipe.steps)
    rows = rng.permutation([*expected])
    batch = move_boxes(part, rows, sizes[rows], drawn[rows])
    for row, ours, its in zip(rows.tolist(), batch["boxes"], batch["labels"], strict=True):
        assert same(ours, expected[row][0]), (transform, rule, objects[row], ours, expected[row][0])
        assert same(its, expected[row][1]) and ours.is_contiguous()
    return len(expected)


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed: int, torchvision: ModuleType, feeder: Feeder) -> None:
    rng = np.random.default_rng(seed)
    assert sum(compare_program(torchvision, feeder, rng) for _ in range(120)) > 450


def test_conversions_of_every_pair_of_formats(torchvision: ModuleType) -> None:
    convert = torchvision.transforms.v2.functional.convert_bounding_box_format
    rng = np.random.default_rng(0)
    for old in FORMATS:
        for new in FORMATS:
            for dtype in DTYPES:
                given = boxes(rng, 50, dtype)
                before = given.clone()
                assert same(kernels.convert(given, old, new), convert(given, old_format=old, new_format=new))
                assert same(given, before)


def test_an_older_torchvision_converts_centres_itself(monkeypatch: pytest.MonkeyPatch, torchvision: ModuleType) -> None:
    given = torch.tensor([[3, 4, 5, 7]])
    functional = torchvision.transforms.v2.functional
    monkeypatch.setattr(functional, "convert_bounding_box_format", lambda boxes, old, new: boxes + 1)
    monkeypatch.setattr(kernels, "version", lambda name: "0.26.0+cpu")
    kernels._conversion_of_other_versions.cache_clear()
    try:
        assert kernels.convert(given, "CXCYWH", "XYXY").tolist() == [[4, 5, 6, 8]]
        assert kernels.convert(given, "XYWH", "XYXY").tolist() == [[3, 4, 8, 11]]
    finally:
        kernels._conversion_of_other_versions.cache_clear()


REFUSED = {
    "rotation": (lambda v2: v2.RandomRotation(10), "RandomRotate.*crops, resizes, flips and pads of torchvision v2"),
    "affine": (lambda v2: v2.RandomAffine(10), "RandomAffine"),
    "perspective": (lambda v2: v2.RandomPerspective(), "RandomPerspective"),
    "elastic": (lambda v2: v2.ElasticTransform(), "ElasticTransform.* runs in Python and may move pixels"),
    "a function": (lambda v2: v2.Lambda(lambda image: image), "runs in Python and may move pixels"),
    "a policy": (lambda v2: v2.TrivialAugmentWide(), "boxes cannot follow"),
    "a mirrored border": (lambda v2: v2.Pad(3, padding_mode="reflect"), "with padding_mode='constant' alone"),
    "another inside": (
        lambda v2: v2.RandomOrder([v2.RandomApply([v2.RandomRotation(9)]), v2.RandomVerticalFlip()]),
        "RandomRotate",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_boxes_cannot_follow(case: str, torchvision: ModuleType) -> None:
    v2 = torchvision.transforms.v2
    make, words = REFUSED[case]
    recipe = lower(v2.Compose([v2.RandomHorizontalFlip(), make(v2), v2.Resize((9, 9)), v2.ToImage()]))
    assert re.search(words, why_not_followed(recipe.steps))


def test_colours_and_erasing_leave_boxes_alone(torchvision: ModuleType) -> None:
    v2 = torchvision.transforms.v2
    steps = [v2.RandomPhotometricDistort(), v2.GaussianBlur(3), v2.RandomAdjustSharpness(2), v2.RandomEqualize()]
    end = [v2.ToImage(), v2.ColorJitter(0.1), v2.ToDtype(torch.float32, scale=True), v2.RandomErasing()]
    recipe = lower(v2.Compose([*steps, v2.Resize((20, 30)), *end]))
    assert why_not_followed(recipe.steps) == ""
    values = ObjectValues.of([torch.tensor([[1.0, 2, 3, 4]])])
    part = BoxPart("b", "i", BoxRule("XYXY", "XYXY"), values, {}, recipe.steps)
    drawn = Draws(recipe.columns, 0).batch(0, [0], [0])
    made = move_boxes(part, np.array([0]), np.array([[10, 10]]), drawn)
    assert made["b"][0].tolist() == [[3.0, 4.0, 9.0, 8.0]]
