"""Makes the pixels of a JPEG file after recorded operations: decodes the crop and resizes it natively."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
from PIL import JpegImagePlugin

from headrace._base.native import core
from headrace._base.types import Array
from headrace.pillow.files.pixels import FilePixels, shape_of
from headrace.pillow.memory import pixel_memory
from headrace.pillow.recording.image_counts import PILLOW, Door, ImageCounts
from headrace.pillow.recording.native_plan import NativePlan

_MANY = 3  # crops: decoding the whole file costs about as much as two of them
_SEVERAL = 2  # crops, if they are expected


class JpegPixels(FilePixels):
    """The pixels of one RGB or gray JPEG. From the third crop on, they are copied from the whole file, decoded once;
    from the first crop on, if the file before was cropped more than once.

    Args:
        file: its bytes, and what its markers say.
        mode: "RGB" or "L".
        size, counts, door: as of `FilePixels`.

    Attributes:
        door: how the program got it.
        arguments: of the door's function, beside the bytes.
        name: the file's, for messages; empty if it has none.
    """

    def __init__(
        self, file: core.JpegFile, size: tuple[int, int], mode: str, counts: ImageCounts, door: Door = PILLOW
    ) -> None:
        super().__init__(size, mode, len(file.data), counts, door)
        self._file = file
        self.door: Door = door
        self.arguments: tuple[Any, ...] = ()
        self.name: str = ""
        self._crops = 0  # decoded so far
        self._whole: Array | None = None

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        return self._file.data

    @property
    def size(self) -> tuple[int, int]:
        """(width, height)."""
        return self._size

    def _run_plan(self, plan: NativePlan, table: Array, layout: str, out: Array | None = None) -> Array:
        """Threads that call this at the same time may decode once more."""
        out = pixel_memory.empty(shape_of(plan, table, layout), table.dtype) if out is None else out
        steps = {"stages": plan.stages, "last": plan.last}
        self._crops += 1
        self._counts.crop(self._crops)
        if self._crops < _MANY and self._counts.crops_expected < _SEVERAL:
            core.decode_fuse(self._file, steps, table, out, layout, self._counts.entry_points)
        else:
            if self._whole is None:
                width, height = self._size
                whole = pixel_memory.empty_for_a_while((height, width, 4), np.dtype(np.uint8))
                core.decode_whole(self._file, whole, self._counts.entry_points)
                self._whole = whole
                self._grow(whole.nbytes)
            core.fuse(self._whole, steps, table, out, layout)
        self._count(None)
        return out

    def _decode_by_pillow(self) -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow issued them when the file was opened
            image = JpegImagePlugin.JpegImageFile(io.BytesIO(self._file.data))
        image.load()
        return image.im
