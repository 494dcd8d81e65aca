"""Frames of a video as a deferred tensor: what the program makes of a clip is made in one pass over its frames.

See Note [deferred tensors]. The frames are decoded, and in memory; so nothing that a video library says is late.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import torch

from headrace._base.native import core
from headrace._base.types import Array
from headrace._loading.doors.tensors import pixel_snapshots
from headrace._loading.doors.tensors.arrangements import View
from headrace._loading.doors.tensors.deferred_tensor import defer
from headrace._loading.doors.tensors.geometries import Geometry
from headrace._loading.doors.tensors.memory_layout import FEWEST, Layout
from headrace._loading.doors.tensors.recording import Origin, Recording, State, table_of
from headrace.pillow.files.pixels import BYTES, FilePixels, shape_of
from headrace.pillow.memory import pixel_memory
from headrace.pillow.recording.image_counts import Door, ImageCounts
from headrace.pillow.recording.lazy_core import MOST_PIXELS, Operation
from headrace.pillow.recording.native_plan import NativePlan

_CHANNELS = 3


class ClipPixels(FilePixels):
    """The pixels of some frames of one size.

    Args:
        frames: uint8 (number, height, width, 3), contiguous. Nothing else may write to it.
        counts, door: as of `FilePixels`. The frames are counted by what decodes them.
    """

    def __init__(self, frames: Array, counts: ImageCounts, door: Door) -> None:
        _, height, width, _ = frames.shape
        super().__init__((width, height), "RGB", frames.nbytes, counts, door)
        self._frames, self._counted = frames, True

    def choose(self, frames: range) -> ChosenFrames:
        """Returns some of the frames, next to each other."""
        return ChosenFrames(self, self._frames[frames.start : frames.stop])

    def hand_over(self, frames: Array) -> bool:
        """Whether an array may be the memory of a tensor: of all frames, which only one tensor needs."""
        return len(frames) == len(self._frames) and sum(one() is not None for one in list(self._images)) <= 1

    def _run_plan(self, plan: NativePlan, table: Array, layout: str, out: Array | None = None) -> NoReturn:
        raise AssertionError("frames are made by ChosenFrames")

    def _decode_by_pillow(self) -> NoReturn:
        raise AssertionError("frames are decoded before there are pixels of them")


class ChosenFrames:
    """Some frames of a clip."""

    def __init__(self, clip: ClipPixels, frames: Array) -> None:
        self._clip, self._frames = clip, frames

    def hold(self, lazy: object) -> None:
        raise AssertionError("tensors are held by ClipPixels")

    def map_pixels(
        self, operations: Sequence[Operation], table: Array, layout: str, out: Array | None = None
    ) -> Array | None:
        """As of `FilePixels`, for arrays with a first dimension of the frames."""
        count, height, width, _ = self._frames.shape
        plan = NativePlan((width, height), "RGB", operations)
        if plan.rest or len(plan.mode) != len(table):
            return None
        is_same = not operations and layout == "channels_last" and table.dtype == np.uint8
        if out is None and is_same and np.array_equal(table, BYTES):
            return self._frames if self._clip.hand_over(self._frames) else self._frames.copy()
        made = pixel_memory.empty((count, *shape_of(plan, table, layout)), table.dtype) if out is None else out
        steps = {"stages": plan.stages, "last": plan.last}
        for frame, place in zip(self._frames, made, strict=True):
            core.fuse(frame, steps, table, place, layout)
        return made


def defer_frames(made: torch.Tensor, order: str, door: Door) -> torch.Tensor:
    """Returns a deferred tensor in place of one that nothing else refers to; or this.

    Args:
        made: uint8 frames (N, H, W, 3) that are contiguous, or (N, 3, H, W) with the same memory.
        order: of the dimensions, "NHWC" or "NCHW".
        door: by which the program gets them.
    """
    if made.dtype != torch.uint8 or made.dim() != 4 or made.device.type != "cpu" or type(made) is not torch.Tensor:
        return made
    pixels = made.permute(0, 2, 3, 1) if order == "NCHW" else made
    count, height, width, channels = pixels.shape
    if channels != _CHANNELS or not pixels.is_contiguous() or min(height, width) < FEWEST:
        return made
    if height * width > MOST_PIXELS or count * height * width < pixel_snapshots.LEAST:
        return made
    counts = pixel_snapshots.find_counts()
    if counts is None:
        return made
    frames = pixels.numpy()
    layout = Layout.CHANNELS_LAST
    state = State(
        channels, height, width, layout, torch.uint8, (), table_of(channels, ()), lead=(count,), frames=range(count)
    )

    def make() -> torch.Tensor:
        return torch.from_numpy(frames.copy()).permute(0, 3, 1, 2)

    recording = Recording(Origin(ClipPixels(frames, counts, door), make), state)
    if order == "NCHW":
        return defer(recording)
    return defer(View(recording, Geometry(tuple(pixels.shape), pixels.stride(), 0)))
