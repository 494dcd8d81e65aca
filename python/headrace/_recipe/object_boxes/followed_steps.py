"""The boxes of a batch after the steps of their images' recipe, from the samples' draws and the images' sizes.

A step is done for all samples of the batch at once, or for those that it is drawn for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import torch

import headrace._recipe.steps.steps as S
from headrace._base.messages import shorten_text
from headrace._recipe.arithmetic import boxes as arithmetic
from headrace._recipe.arithmetic import drawn_boxes
from headrace._recipe.object_boxes import kernels
from headrace._recipe.object_boxes.object_values import BoxPart, split_objects

Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]

_TRIES = 10  # of RandomResizedCrop, two draws each; the two draws of the position follow


class MovedBoxes:
    """The boxes of n samples, and the sizes of their images at this point of the recipe.

    Args:
        part: the boxes and what is done to them.
        rows: int64 (n,), the samples.
        sizes: int64 (n, 2), (height, width) of their images.
        draws: float64 (n, columns), those of the image's recipe.
    """

    def __init__(self, part: BoxPart, rows: Int64s, sizes: Int64s, draws: Float64s) -> None:
        self.format, self._mode = part.rule.format, part.rule.clamping_mode
        self.values = part.boxes.values[part.boxes.places(rows)]
        self.owner = np.repeat(np.arange(len(rows)), part.boxes.counts(rows))
        self.heights, self.widths = (np.array(edges, dtype=np.int64) for edges in sizes.T)
        self.draws = draws

    def change(self, samples: Int64s, kernel: Callable[..., torch.Tensor], *numbers: Int64s) -> None:
        """Replaces the boxes of some samples by ``kernel(boxes, *numbers)``; `numbers`: one for each sample of them."""
        if len(samples) == len(self.heights):
            self.values = kernel(self.values, *(one[self.owner] for one in numbers))
            return
        place = np.full(len(self.heights), -1)
        place[samples] = np.arange(len(samples))
        at = place[self.owner]
        chosen = np.flatnonzero(at >= 0)
        if len(chosen):
            moved = kernel(self.values[chosen], *(one[at[chosen]] for one in numbers))
            self.values = self.values.index_copy(0, torch.from_numpy(chosen), moved)

    def resize(self, samples: Int64s, heights: Int64s, widths: Int64s) -> None:
        old = self.heights[samples], self.widths[samples]
        self.change(samples, lambda boxes, a, b, c, d: kernels.resize(boxes, (a, b), (c, d)), *old, heights, widths)
        self.heights[samples], self.widths[samples] = heights, widths

    def crop(self, samples: Int64s, tops: Int64s, lefts: Int64s, heights: Int64s, widths: Int64s) -> None:
        self.change(samples, lambda boxes, x, y: kernels.crop(boxes, self.format, x, y), lefts, tops)
        self.heights[samples], self.widths[samples] = heights, widths
        self.clamp(samples)

    def pad(self, samples: Int64s, paddings: Sequence[Sequence[int]]) -> None:
        lefts, tops, rights, bottoms = np.array(paddings, dtype=np.int64).reshape(-1, 4).T
        self.change(samples, lambda boxes, x, y: kernels.shift(boxes, self.format, x, y), lefts, tops)
        self.heights[samples] += tops + bottoms
        self.widths[samples] += lefts + rights
        self.clamp(samples)

    def flip(self, samples: Int64s, axis: int) -> None:
        edges = (self.widths, self.heights)[axis][samples]
        self.change(samples, lambda boxes, edge: kernels.flip(boxes, self.format, edge, axis), edges)

    def clamp(self, samples: Int64s) -> None:
        if self._mode is not None:
            sizes = self.heights[samples], self.widths[samples]
            self.change(samples, lambda boxes, rows, columns: kernels.clamp(boxes, self.format, rows, columns), *sizes)


def move_boxes(part: BoxPart, rows: Int64s, sizes: Int64s, draws: Float64s) -> dict[str, list[torch.Tensor]]:
    """Returns the boxes of a batch and the values that belong to them: one tensor (k, ...) a sample, by field.

    Args:
        part, rows, sizes, draws: as for `MovedBoxes`.
    """
    moved = MovedBoxes(part, rows, sizes, draws)
    every, rule = np.arange(len(rows)), part.rule
    _move(part.steps, moved, every)
    if rule.clamp:
        moved.clamp(every)
    values, counts, places = moved.values, part.boxes.counts(rows), part.boxes.places(rows)
    if rule.sanitize:
        sizes_now = moved.heights[moved.owner], moved.widths[moved.owner]
        valid = kernels.find_valid(values, rule.format, *sizes_now, rule.min_size, rule.min_area)
        values, places = values[valid], places[valid]
        counts = np.bincount(moved.owner[valid.numpy()], minlength=len(rows))
    values = kernels.convert(values, rule.format, rule.out_format)
    made = {part.name: split_objects(values, counts)}
    return made | {name: split_objects(one.values[places], counts) for name, one in part.labels.items()}


def _move(steps: Sequence[Any], boxes: MovedBoxes, samples: Int64s) -> None:
    for step in steps:
        move = _MOVES.get(type(step))
        if move is not None and len(samples):
            move(step, boxes, samples)


def _each(samples: Int64s, value: int) -> Int64s:
    return np.full(len(samples), value)


def _resize_each(boxes: MovedBoxes, samples: Int64s, size_of: Callable[[int, int, Float64s], tuple[int, int]]) -> None:
    """Resizes each sample's boxes to ``size_of(height, width, draws)``."""
    made = [size_of(int(boxes.heights[one]), int(boxes.widths[one]), boxes.draws[one]) for one in samples]
    boxes.resize(samples, *np.array(made, dtype=np.int64).T)


def _random_resized_crop(step: S.RandomResizedCrop, boxes: MovedBoxes, samples: Int64s) -> None:
    found, end = [], step.draw + 2 * _TRIES
    for one in samples:
        draws = boxes.draws[one, step.draw : end + 2].tolist()
        top, left = (arithmetic.position_from(uniform) for uniform in draws[-2:])
        tries = zip(draws[:-2:2], draws[1:-2:2], strict=True)
        size = int(boxes.heights[one]), int(boxes.widths[one])
        found.append(arithmetic.random_resized_crop(*size, step.ratio, tries, top, left))
    boxes.crop(samples, *np.array(found, dtype=np.int64).T)
    boxes.resize(samples, _each(samples, step.height), _each(samples, step.width))


def _center_crop(step: S.CenterCrop, boxes: MovedBoxes, samples: Int64s) -> None:
    # torchvision pads the image, but not the boxes, whose corner is negative then: it may be another by a pixel.
    tops, lefts = (
        np.rint((edge[samples] - size) / 2.0).astype(np.int64)
        for edge, size in ((boxes.heights, step.height), (boxes.widths, step.width))
    )
    boxes.crop(samples, tops, lefts, _each(samples, step.height), _each(samples, step.width))


def _random_crop(step: S.RandomCrop, boxes: MovedBoxes, samples: Int64s) -> None:
    paddings, found = [], []
    for one in samples:
        top, left = (arithmetic.position_from(float(u)) for u in boxes.draws[one, step.draw : step.draw + 2])
        size = int(boxes.heights[one]), int(boxes.widths[one])
        padding, box = arithmetic.random_crop(
            *size, step.height, step.width, step.padding, step.pad_if_needed, top, left
        )
        paddings.append(padding)
        found.append(box)
    padded = np.any(paddings, axis=1)
    boxes.pad(samples[padded], [one for one in paddings if any(one)])
    # No crop, and no clamping either, where the size is there already.
    cropped = (boxes.heights[samples] != step.height) | (boxes.widths[samples] != step.width)
    boxes.crop(samples[cropped], *np.array(found, dtype=np.int64)[cropped].T)


def _scale_jitter(step: S.ScaleJitter, boxes: MovedBoxes, samples: Int64s) -> None:
    target = step.height, step.width
    _resize_each(
        boxes, samples, lambda height, width, draws: drawn_boxes.jitter_size(height, width, target, draws[step.draw])
    )


def _random_resize(step: S.RandomResize, boxes: MovedBoxes, samples: Int64s) -> None:
    def size_of(height: int, width: int, draws: Float64s) -> tuple[int, int]:
        edge = step.low + arithmetic.position_from(draws[step.draw])(step.high - step.low)
        return arithmetic.resize_by_edge(height, width, edge, None)

    _resize_each(boxes, samples, size_of)


def _resize_shorter(step: S.ResizeShorter, boxes: MovedBoxes, samples: Int64s) -> None:
    _resize_each(boxes, samples, lambda h, w, _: arithmetic.resize_by_edge(h, w, step.size or None, step.max_size))


def _scale_shorter(step: S.ScaleShorter, boxes: MovedBoxes, samples: Int64s) -> None:
    _resize_each(boxes, samples, lambda h, w, _: drawn_boxes.scaled_shorter(h, w, step.size, step.max_size))


def _zoom_out(step: S.ZoomOut, boxes: MovedBoxes, samples: Int64s) -> None:
    drawn = boxes.draws[:, step.draw : step.draw + 3]
    sizes = zip(boxes.heights[samples].tolist(), boxes.widths[samples].tolist(), strict=True)
    zipped = zip(sizes, drawn[samples].tolist(), strict=True)
    boxes.pad(samples, [drawn_boxes.zoomed_out(*size, *numbers) for size, numbers in zipped])


def _flip(step: S.HorizontalFlip | S.VerticalFlip, boxes: MovedBoxes, samples: Int64s) -> None:
    chosen = samples[boxes.draws[samples, step.draw] < step.p]
    boxes.flip(chosen, 0 if isinstance(step, S.HorizontalFlip) else 1)


def _when(step: S.When, boxes: MovedBoxes, samples: Int64s) -> None:
    _move(step.steps, boxes, samples[boxes.draws[samples, step.draw] < step.p])


def _one_of(step: S.OneOf, boxes: MovedBoxes, samples: Int64s) -> None:
    chosen = np.searchsorted(step.bounds, boxes.draws[samples, step.draw], side="right")
    for number, branch in enumerate(step.branches):
        _move(branch, boxes, samples[chosen == number])


def _shuffled(step: S.Shuffled, boxes: MovedBoxes, samples: Int64s) -> None:
    numbers = (boxes.draws[samples, step.draw] * math.factorial(len(step.branches))).astype(np.int64)
    for number in np.unique(numbers).tolist():
        left, rest = list(step.branches), number
        while left:  # the digits of the permutation's number
            place, rest = divmod(rest, math.factorial(len(left) - 1))
            _move(left.pop(place), boxes, samples[numbers == number])


#: What each step that moves pixels does to boxes.
_MOVES: dict[type, Callable[[Any, MovedBoxes, Int64s], None]] = {
    S.RandomResizedCrop: _random_resized_crop,
    S.Resize: lambda step, boxes, samples: boxes.resize(
        samples, _each(samples, step.height), _each(samples, step.width)
    ),
    S.ResizeShorter: _resize_shorter,
    S.ScaleShorter: _scale_shorter,
    S.ScaleJitter: _scale_jitter,
    S.RandomResize: _random_resize,
    S.CenterCrop: _center_crop,
    S.RandomCrop: _random_crop,
    S.Pad: lambda step, boxes, samples: boxes.pad(samples, [step.padding] * len(samples)),
    S.ZoomOut: _zoom_out,
    S.HorizontalFlip: _flip,
    S.VerticalFlip: _flip,
    S.When: _when,
    S.OneOf: _one_of,
    S.Shuffled: _shuffled,
}

#: Steps that leave each pixel where it is.
_STILL = (
    *get_args(S.EffectStep),
    *(kind for kind in get_args(S.TensorStep) if kind is not S.TensorWarp),
    *(S.Grayscale, S.GaussianBlur, S.PillowBlur, S.Erase, S.EraseBoxes, S.Texture),
)


def why_not_followed(steps: Sequence[Any]) -> str:
    """Returns a sentence about the first step that boxes cannot follow; "" if there is none."""
    for step in steps:
        if isinstance(step, S.When):
            inner: Sequence[Any] = step.steps
        elif isinstance(step, (S.OneOf, S.Shuffled)):
            inner = [one for branch in step.branches for one in branch]
        elif isinstance(step, (S.MixChains, S.SumChains)):
            inner = [one for chain in step.chains for one in chain]
        else:
            inner = []
        if said := why_not_followed(inner) or _why_not_step(step):
            return said
    return ""


def _why_not_step(step: Any) -> str:
    name = shorten_text(repr(step), 120)
    if isinstance(step, S.Call):
        return (
            f"boxes cannot follow {step.name}, which runs in Python and may move pixels; torch's DataLoader calls it "
            "on images and tv_tensors.BoundingBoxes together"
        )
    if getattr(step, "padding_mode", "constant") != "constant":
        return f"boxes cannot follow {name}: torchvision moves them with padding_mode='constant' alone"
    rounds = isinstance(step, S.CenterCrop) and step.rounding != "even"
    if rounds or getattr(step, "filter", "") == S.OPENCV_FILTER:
        return f"boxes cannot follow {name}, which is another library's; use torchvision's or headrace's transform"
    if type(step) in _MOVES or isinstance(step, (*_STILL, S.MixChains, S.SumChains)):
        return ""
    return (
        f"boxes cannot follow {name}; they follow crops, resizes, flips and pads of torchvision v2, and what leaves "
        "pixels where they are"
    )
