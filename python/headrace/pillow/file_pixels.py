"""Makes the pixels of a JPEG file after recorded operations: decodes the crop and resizes it natively."""

from __future__ import annotations

import contextlib
import io
import warnings
import weakref
from collections.abc import Sequence

import numpy as np
from PIL import Image, JpegImagePlugin

from headrace._base.native import core
from headrace._base.types import Array
from headrace.pillow import pixel_memory
from headrace.pillow.image_counts import PILLOW, Door, ImageCounts
from headrace.pillow.lazy_core import LazyCore, Operation
from headrace.pillow.native_plan import NativePlan
from headrace.pillow.recorded_effects import apply_effect
from headrace.pillow.surviving_images import files

BYTES = np.tile(np.arange(256, dtype=np.uint8), (3, 1))
_MANY = 3  # crops: decoding the whole file costs about as much as two of them
_SEVERAL = 2  # crops, if they are expected
_LONG = 63  # references to images; those to images that are gone are removed now and then


class FilePixels:
    """The pixels of one RGB or gray file. From the third crop on, they are copied from the whole file, decoded once;
    from the first crop on, if the file before was cropped more than once.

    Args:
        file: its bytes, and what its markers say.
        mode: "RGB" or "L".
        counts: counts the file.
        door: how the program got it.

    Attributes:
        nbytes, purpose, is_old: as of `surviving_images.ReadFile`.
    """

    purpose: object

    def __init__(
        self, file: core.JpegFile, size: tuple[int, int], mode: str, counts: ImageCounts, door: Door = PILLOW
    ) -> None:
        self._file, self._size, self._mode, self._counts, self._door = file, size, mode, counts, door
        self._counted = False
        self._crops = 0  # decoded so far
        self._whole: Array | None = None
        self._images: list[weakref.ref[LazyCore]] = []
        self.nbytes: int = len(file.data)
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
            pixels = self._run_plan(plan, BYTES[: len(plan.mode)], "channels_last")
        except core.NeedsPillow as error:  # damaged
            self._count(str(error))
            made, rest = self._decode_by_pillow(), operations
        else:
            made = Image.frombytes(plan.mode, pixels.shape[1::-1], pixels.data, "raw", plan.mode).im
            rest = plan.rest
        for name, *arguments in rest:
            made = apply_effect(made, *arguments) if name == "effect" else getattr(made, name)(*arguments)
        return made

    def map_pixels(self, operations: Sequence[Operation], table: Array, layout: str) -> Array | None:
        """Returns the values that a table gives for the pixels after the operations, made in one pass.

        Args:
            table: values of the 256 bytes, (channels, 256), contiguous.
            layout: "planar", for a result (channels, height, width), or "channels_last", for (height, width, channels).

        Returns:
            None if not all operations are native, or the file is damaged.
        """
        plan = NativePlan(self._size, self._mode, operations)
        if plan.rest or len(plan.mode) != len(table):
            return None
        try:
            return self._run_plan(plan, table, layout)
        except core.NeedsPillow as error:
            if self._door is not PILLOW:  # of a tensor, which its own library makes now
                self._count(str(error))
            return None

    def _count(self, reason: str | None) -> None:
        """Counts the file once; `reason`: why Pillow decodes it."""
        counted, self._counted = self._counted, True
        if not counted:
            self._counts.count(reason, self._door)

    def _run_plan(self, plan: NativePlan, table: Array, layout: str) -> Array:
        """Runs a plan. Threads that call this at the same time may decode once more."""
        _, _, width, height = plan.last["box"]
        channels = len(table)
        shape = (channels, height, width) if layout == "planar" else (height, width, channels)
        out = pixel_memory.empty(shape, table.dtype)
        steps = {"stages": plan.stages, "last": plan.last}
        self._crops += 1
        self._counts.crop(self._crops)
        if self._crops < _MANY and self._counts.crops_expected < _SEVERAL:
            core.decode_fuse(self._file, steps, table, out, layout)
        else:
            if self._whole is None:
                width, height = self._size
                whole = pixel_memory.empty_for_a_while((height, width, 4), np.dtype(np.uint8))
                core.decode_whole(self._file, whole)
                self._whole = whole
                self.nbytes += whole.nbytes
                files.grow(whole.nbytes)
            core.fuse(self._whole, steps, table, out, layout)
        self._count(None)
        return out

    def _decode_by_pillow(self) -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow issued them when the file was opened
            image = JpegImagePlugin.JpegImageFile(io.BytesIO(self._file.data))
        image.load()
        return image.im
