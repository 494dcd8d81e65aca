"""The oracle of boxes that follow an image: one sample's boxes, step by step, with the calls that torchvision makes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

import headrace._recipe.steps.steps as S
from headrace._oracle.choice_steps import decode_permutation
from headrace._recipe.arithmetic import boxes, drawn_boxes
from headrace._recipe.object_boxes.box_rule import BoxRule
from headrace._recipe.object_boxes.kernels import convert
from headrace._recipe.object_boxes.object_values import BoxPart, ObjectTensor

_TRIES = 10  # of RandomResizedCrop, two draws each; the two draws of the position follow


class SampleBoxes:
    """The boxes of one sample, and the size of its image at this point of the recipe.

    Args:
        values: (k, 4).
        rule: their format, and whether steps cut them at the border.
        height, width: of the image in pixels.
    """

    def __init__(self, values: torch.Tensor, rule: BoxRule, height: int, width: int) -> None:
        self.values, self._rule, self.height, self.width = values, rule, height, width

    def crop(self, top: int, left: int, height: int, width: int) -> None:
        self.values = self.values - self._offsets(left, top)
        self.height, self.width = height, width
        self.clamp()

    def pad(self, padding: Sequence[int]) -> None:
        left, top, right, bottom = padding
        self.values = self.values + self._offsets(left, top)
        self.height, self.width = self.height + top + bottom, self.width + left + right
        self.clamp()

    def _offsets(self, left: int, top: int) -> torch.Tensor:
        corners = [left, top, left, top] if self._rule.format == "XYXY" else [left, top, 0, 0]
        return torch.tensor(corners, dtype=self.values.dtype, device="cpu")

    def resize(self, height: int, width: int) -> None:
        if (height, width) != (self.height, self.width):
            columns, rows = width / self.width, height / self.height
            factors = torch.tensor([columns, rows, columns, rows], device="cpu")
            self.values = self.values.mul(factors).to(self.values.dtype)
        self.height, self.width = height, width

    def flip(self, axis: int) -> None:
        edge, given, flipped = (self.width, self.height)[axis], self.values, self.values.clone()
        if self._rule.format == "XYXY":
            flipped[:, [axis, axis + 2]] = given[:, [axis + 2, axis]].sub(edge).neg()
        elif self._rule.format == "XYWH":
            flipped[:, axis] = given[:, axis].add(given[:, axis + 2]).sub(edge).neg()
        else:
            flipped[:, axis] = given[:, axis].sub(edge).neg()
        self.values = flipped

    def clamp(self) -> None:
        if self._rule.clamping_mode is None:
            return
        given, format = self.values, self._rule.format
        corners = convert(given if given.is_floating_point() else given.float(), format, "XYXY").clone()
        corners[:, 0::2].clamp_(min=0, max=self.width)
        corners[:, 1::2].clamp_(min=0, max=self.height)
        self.values = convert(corners, "XYXY", format).to(given.dtype)


def reference_boxes(
    values: torch.Tensor, rule: BoxRule, steps: Sequence[S.Step], draws: Sequence[float], size: tuple[int, int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the boxes of a sample, and which of the given ones they are.

    Args:
        values: (k, 4), not changed.
        steps, draws: of the image that they follow.
        size: (height, width) of this image.

    Returns:
        Boxes (m, 4), and a mask, bool (k,), of which m are True.
    """
    moved = SampleBoxes(values.clone(), rule, *size)
    _move(steps, moved, draws)
    if rule.clamp:
        moved.clamp()
    kept = torch.ones(len(values), dtype=torch.bool, device="cpu")
    if rule.sanitize:
        x1, y1, x2, y2 = convert(moved.values, rule.format, "XYXY").unbind(1)
        columns, rows = x2 - x1, y2 - y1
        kept &= (columns >= rule.min_size) & (rows >= rule.min_size) & (columns * rows >= rule.min_area)
        for one, edge in ((x1, moved.width), (x2, moved.width), (y1, moved.height), (y2, moved.height)):
            kept &= (one >= 0) & (one <= edge)
    return convert(moved.values[kept], rule.format, rule.out_format), kept


def reference_objects(
    part: BoxPart, row: int, steps: Sequence[S.Step], draws: Sequence[float], size: tuple[int, int]
) -> dict[str, torch.Tensor]:
    """Returns the boxes of a sample, and the values that belong to them, by field.

    Args:
        row: number of the sample.
        steps, draws, size: of the image that the boxes follow, as for `reference_boxes`.
    """
    boxes, kept = reference_boxes(part.boxes.sample(row), part.rule, steps, draws, size)
    made = {part.name: boxes} | {name: one.sample(row)[kept] for name, one in part.labels.items()}
    return {name: one.as_subclass(ObjectTensor) for name, one in made.items()}


def _move(steps: Sequence[S.Step], moved: SampleBoxes, draws: Sequence[float]) -> None:
    for step in steps:
        _move_by(step, moved, draws)


@functools.singledispatch
def _move_by(step: Any, moved: SampleBoxes, draws: Sequence[float]) -> None:
    """Moves boxes as a step does; most steps change colours alone."""


@_move_by.register
def _(step: S.RandomResizedCrop, moved: SampleBoxes, draws: Sequence[float]) -> None:
    position = step.draw + 2 * _TRIES
    tries = [(draws[i], draws[i + 1]) for i in range(step.draw, position, 2)]
    top, left = (boxes.position_from(u) for u in draws[position : position + 2])
    moved.crop(*boxes.random_resized_crop(moved.height, moved.width, step.ratio, tries, top, left))
    moved.resize(step.height, step.width)


@_move_by.register
def _(step: S.Resize, moved: SampleBoxes, draws: Sequence[float]) -> None:
    moved.resize(step.height, step.width)


@_move_by.register
def _(step: S.ResizeShorter, moved: SampleBoxes, draws: Sequence[float]) -> None:
    moved.resize(*boxes.resize_by_edge(moved.height, moved.width, step.size or None, step.max_size))


@_move_by.register
def _(step: S.RandomResize, moved: SampleBoxes, draws: Sequence[float]) -> None:
    edge = step.low + boxes.position_from(draws[step.draw])(step.high - step.low)
    moved.resize(*boxes.resize_by_edge(moved.height, moved.width, edge, None))


@_move_by.register
def _(step: S.ScaleShorter, moved: SampleBoxes, draws: Sequence[float]) -> None:
    moved.resize(*drawn_boxes.scaled_shorter(moved.height, moved.width, step.size, step.max_size))


@_move_by.register
def _(step: S.ScaleJitter, moved: SampleBoxes, draws: Sequence[float]) -> None:
    target = step.height, step.width
    moved.resize(*drawn_boxes.jitter_size(moved.height, moved.width, target, draws[step.draw]))


@_move_by.register
def _(step: S.CenterCrop, moved: SampleBoxes, draws: Sequence[float]) -> None:
    top, left = round((moved.height - step.height) / 2.0), round((moved.width - step.width) / 2.0)
    moved.crop(top, left, step.height, step.width)


@_move_by.register
def _(step: S.RandomCrop, moved: SampleBoxes, draws: Sequence[float]) -> None:
    top, left = (boxes.position_from(u) for u in draws[step.draw : step.draw + 2])
    padding, box = boxes.random_crop(
        moved.height, moved.width, step.height, step.width, step.padding, step.pad_if_needed, top, left
    )
    if any(padding):
        moved.pad(padding)
    if (moved.height, moved.width) != (step.height, step.width):
        moved.crop(*box)


@_move_by.register
def _(step: S.Pad, moved: SampleBoxes, draws: Sequence[float]) -> None:
    moved.pad(step.padding)


@_move_by.register
def _(step: S.ZoomOut, moved: SampleBoxes, draws: Sequence[float]) -> None:
    moved.pad(drawn_boxes.zoomed_out(moved.height, moved.width, *draws[step.draw : step.draw + 3]))


@_move_by.register
def _(step: S.HorizontalFlip, moved: SampleBoxes, draws: Sequence[float]) -> None:
    if draws[step.draw] < step.p:
        moved.flip(0)


@_move_by.register
def _(step: S.VerticalFlip, moved: SampleBoxes, draws: Sequence[float]) -> None:
    if draws[step.draw] < step.p:
        moved.flip(1)


@_move_by.register
def _(step: S.When, moved: SampleBoxes, draws: Sequence[float]) -> None:
    if draws[step.draw] < step.p:
        _move(step.steps, moved, draws)


@_move_by.register
def _(step: S.OneOf, moved: SampleBoxes, draws: Sequence[float]) -> None:
    ways = zip(step.branches, step.bounds, strict=True)
    _move(next(way for way, bound in ways if bound > draws[step.draw]), moved, draws)


@_move_by.register
def _(step: S.Shuffled, moved: SampleBoxes, draws: Sequence[float]) -> None:
    for number in decode_permutation(len(step.branches), draws[step.draw]):
        _move(step.branches[number], moved, draws)
