"""Size of an image after some steps, if it is known without the image."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import headrace._recipe.steps.steps as S
from headrace._recipe.arithmetic import boxes, drawn_boxes, patch_grids

#: (height, width) in pixels; None if it varies.
Size = tuple[int, int] | None

#: The size after them is their own.
_FIXED = (S.RandomResizedCrop, S.Resize, S.CenterCrop, S.CornerCrop, S.RandomCrop, S.RandomCropOrPad)
#: The size after them is drawn.
_DRAWN = (S.RandomResize, S.ScaleJitter, S.ZoomOut, S.RandomKeepRatio)
#: The size after them follows from the size before.
_COMPUTED = (S.ResizeShorter, S.ResizeKeepRatio, S.ScaleShorter, S.ScaleEdge, S.FitPatches, S.Pad, S.RandomPad)
_SIZING = (*_FIXED, *_DRAWN, *_COMPUTED)
_MOST_ORDERED = 6  # largest number of size-changing branches whose orders are all tried: 720 orders


def size_after(steps: Sequence[S.Step], size: Size) -> Size:
    """Returns the size after `steps`; None unless all random choices give the same size.

    Raises:
        ValueError: an image would have no pixels.
    """
    before: S.Step | None = None
    for step in steps:
        size = _pad_size(before, step) if size is None and isinstance(step, S.RandomPad) else _update_size(step, size)
        before = step
    return size


def _pad_size(before: S.Step | None, step: S.RandomPad) -> Size:
    """Returns the size after a padding to a least size, if no image can be larger after the step before it."""
    most = before.max_size if isinstance(before, S.ResizeShorter) else None
    if isinstance(before, S.ScaleEdge) and before.of_longer:
        most = before.size
    return None if most is None or most > min(step.height, step.width) else (step.height, step.width)


def one_size_after(steps: Sequence[S.Step], size: tuple[int, int]) -> tuple[int, int]:
    """Returns one possible size after `steps`: the size for the first branch of each random choice."""
    for step in steps:
        if isinstance(step, S.When):
            size = one_size_after(step.steps, size)
        elif isinstance(step, S.OneOf):
            size = one_size_after(step.branches[0], size)
        elif isinstance(step, S.Shuffled):
            size = one_size_after(list(itertools.chain(*step.branches)), size)
        else:
            size = _update_size(step, size) or size
    return size


def _update_size(step: S.Step, size: Size) -> Size:
    if isinstance(step, _FIXED):
        return step.height, step.width
    if isinstance(step, _DRAWN):
        return None
    if isinstance(step, S.ResizeShorter):
        if size is not None and min(size) < 1:
            raise ValueError("the image has no pixels here")
        return size and boxes.resize_by_edge(*size, step.size or None, step.max_size)
    if isinstance(step, S.ResizeKeepRatio):
        return size and boxes.resize_keep_ratio(*size, (step.height, step.width), step.longest)
    if isinstance(step, S.ScaleShorter):
        return size and drawn_boxes.scaled_shorter(*size, step.size, step.max_size)
    if isinstance(step, S.ScaleEdge):
        return size and drawn_boxes.scaled_edge(*size, step.size, of_longer=step.of_longer)
    if isinstance(step, S.FitPatches):
        if size is None:
            return (step.patch, step.patch) if step.most == 1 else None
        rows, columns = patch_grids.fit(*size, step.patch, step.least, step.most)
        return rows * step.patch, columns * step.patch
    if isinstance(step, S.RandomPad):
        return size and (max(size[0], step.height), max(size[1], step.width))
    if isinstance(step, S.Pad):
        left, top, right, bottom = step.padding
        return size and (size[0] + top + bottom, size[1] + left + right)
    if isinstance(step, S.RandomRotate) and step.expand:
        return None
    if isinstance(step, S.Call):
        return step.size
    if isinstance(step, S.When):
        return _common_size([size, size_after(step.steps, size)])
    if isinstance(step, S.OneOf):
        return _common_size(size_after(branch, size) for branch in step.branches)
    if isinstance(step, S.Shuffled):
        sizing = [branch for branch in step.branches if not all(_keeps_size(one) for one in branch)]
        if len(sizing) > _MOST_ORDERED:
            return None
        orders = itertools.permutations(sizing)
        return _common_size(size_after(list(itertools.chain(*order)), size) for order in orders)
    return size


def _keeps_size(step: S.Step) -> bool:
    """Whether a step keeps the size of every image."""
    if isinstance(step, S.When):
        return all(_keeps_size(one) for one in step.steps)
    if isinstance(step, (S.OneOf, S.Shuffled)):
        return all(_keeps_size(one) for branch in step.branches for one in branch)
    return not isinstance(step, _SIZING) and not (isinstance(step, S.RandomRotate) and step.expand)


def _common_size(found: Iterable[Size]) -> Size:
    sizes = set(found)
    return sizes.pop() if len(sizes) == 1 else None
