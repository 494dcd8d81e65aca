"""Pixels of files after recorded operations, and the images that are going to have them."""

from __future__ import annotations

import contextlib
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from PIL import Image

from headrace._base.native import core
from headrace._base.types import Array
from headrace.pillow.memory.surviving_images import files
from headrace.pillow.recording.image_counts import LOOKED_AT, PILLOW, Door, ImageCounts
from headrace.pillow.recording.lazy_core import LazyCore, Operation
from headrace.pillow.recording.native_plan import NativePlan
from headrace.pillow.recording.recorded_effects import apply_effect

BYTES = np.tile(np.arange(256, dtype=np.uint8), (3, 1))
_LONG = 63  # references to images; those to images that are gone are removed now and then


class FilePixels(ABC):
    """The pixels of one file.

    Args:
        size: (width, height).
        mode: of Pillow's image of the file.
        nbytes: what this keeps in memory.
        counts: counts the file.
        door: how the program got it.

    Attributes:
        nbytes, purpose, is_old: as of `surviving_images.ReadFile`.
        why_here: see `ImageCounts.count`.
    """

    purpose: object
    why_here: str = LOOKED_AT

    def __init__(self, size: tuple[int, int], mode: str, nbytes: int, counts: ImageCounts, door: Door = PILLOW) -> None:
        self._size, self._mode, self._counts, self._door = size, mode, counts, door
        self._counted = False
        self._images: list[weakref.ref[LazyCore]] = []
        self.nbytes: int = nbytes
        self.purpose = counts
        self.is_old: bool = False
        files.add(self)

    def hold(self, lazy: LazyCore) -> None:
        """Called with each image that is going to have pixels of this file."""
        self._images.append(weakref.ref(lazy))
        if len(self._images) > _LONG and len(self._images) & _LONG == 0:
            self._images = [one for one in self._images if one() is not None]

    def make_images(self) -> None:
        """Makes the pixels of all images that still have none, after which nothing refers to this file.

        The newest first: a tensor refers to those that it was made of until it has its values.
        """
        for one in reversed(list(self._images)):
            lazy = one()
            if lazy is not None:
                with contextlib.suppress(Exception):  # raised again where the pixels are read
                    lazy.make_native()

    def make(self, operations: Sequence[Operation]) -> object:
        """Returns Pillow's native image after the operations."""
        plan = NativePlan(self._size, self._mode, operations)
        try:
            made = self._make_planned(plan)
        except core.NeedsPillow as error:  # damaged
            self._count(str(error))
            made, rest = self._decode_by_pillow(), operations
        else:
            rest = plan.rest
        for name, *arguments in rest:
            made = apply_effect(made, *arguments) if name == "effect" else getattr(made, name)(*arguments)
        return made

    def map_pixels(
        self, operations: Sequence[Operation], table: Array, layout: str, out: Array | None = None
    ) -> Array | None:
        """Returns the values that a table gives for the pixels after the operations, made in one pass.

        Args:
            table: values of the 256 bytes, (channels, 256), contiguous.
            layout: "planar", for a result (channels, height, width), or "channels_last", for (height, width, channels).
            out: an array of this shape, to write the values into. None: a new one.

        Returns:
            None if not all operations are native, or the file is damaged.
        """
        plan = self.plan(operations, len(table))
        if plan is None:
            return None
        try:
            return self._run_plan(plan, table, layout, out)
        except core.NeedsPillow as error:
            if self._door is not PILLOW:  # of a tensor, which its own library makes now
                self._count(str(error))
            return None

    def plan(self, operations: Sequence[Operation], channels: int) -> NativePlan | None:
        """Returns the plan of the operations; None if not all of them are native, or they make other channels."""
        plan = NativePlan(self._size, self._mode, operations)
        return None if plan.rest or len(plan.mode) != channels else plan

    def bytes_of(self, operations: Sequence[Operation]) -> bytes | None:
        """Returns what Pillow's ``tobytes`` gives after the operations, if that is at hand; None if not."""
        return None

    def _make_planned(self, plan: NativePlan) -> object:
        """Returns Pillow's native image after the operations of a plan. Raises NeedsPillow for a damaged file."""
        pixels = self._run_plan(plan, BYTES[: len(plan.mode)], "channels_last")
        return Image.frombytes(plan.mode, pixels.shape[1::-1], pixels.data, "raw", plan.mode).im

    def _grow(self, nbytes: int) -> None:
        """Called with the bytes that are kept from now on, too."""
        self.nbytes += nbytes
        files.grow(nbytes)

    def _count(self, reason: str | None) -> None:
        """Counts the file once; `reason`: why Pillow decodes it."""
        counted, self._counted = self._counted, True
        if not counted:
            self._counts.count(reason, self._door, self.why_here)

    def count_record(self) -> None:
        """Counts the file, whose pixels another process makes, once."""
        counted, self._counted = self._counted, True
        if not counted:
            self._counts.recorded[self._door.name] += 1

    @abstractmethod
    def _run_plan(self, plan: NativePlan, table: Array, layout: str, out: Array | None = None) -> Array:
        """Returns the values that a table gives for the pixels of a plan, in `out` if it is given. Raises NeedsPillow
        for a damaged file."""

    @abstractmethod
    def _decode_by_pillow(self) -> object:
        """Returns Pillow's native image of the file."""


def shape_of(plan: NativePlan, table: Array, layout: str) -> tuple[int, int, int]:
    """Returns the shape of the values that a plan makes."""
    _, _, width, height = plan.last["box"]
    channels = len(table)
    return (channels, height, width) if layout == "planar" else (height, width, channels)
