"""Makes the pixels of a file after recorded operations: from its samples, which are decoded when it is loaded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from PIL import Image

from headrace._base.native import core
from headrace._base.types import Array
from headrace.pillow.files.pixel_selection import PixelSelection
from headrace.pillow.files.pixels import FilePixels, shape_of
from headrace.pillow.memory import pixel_memory
from headrace.pillow.recording.image_counts import NO_JPEGS, PILLOW, Door, ImageCounts
from headrace.pillow.recording.lazy_core import MODES, SELECTED, Operation
from headrace.pillow.recording.native_plan import NativePlan

#: Mode of Pillow's image -> how its raw decoder names the samples as `core.decode_png` writes them.
RAW_MODES = {"1": "1;8", "L": "L", "P": "P", "LA": "LA", "RGB": "RGB", "RGBA": "RGBA", "I;16": "I;16", "I": "I"}
_AS_THEY_ARE = ("L", "P", "LA", "RGB", "RGBA", "I;16")  # modes whose bytes Pillow's tobytes() gives as they are


class DecodedPixels(FilePixels):
    """The pixels of one file that is decoded whole: a PNG or a WebP.

    Args:
        samples: (height, width, bytes of a pixel), uint8, as `core.decode_png` writes them; pixels of mode RGB may have
            a fourth byte, which is ignored.
        mode: of Pillow's image of the file.
        counts, door: as of `FilePixels`.
        counted: whether it is counted already.
    """

    why_here = NO_JPEGS

    def __init__(
        self, samples: Array, mode: str, counts: ImageCounts, door: Door = PILLOW, *, counted: bool = False
    ) -> None:
        height, width, _ = samples.shape
        super().__init__((width, height), mode, samples.nbytes, counts, door)
        self._samples, self._counted = samples, counted
        self._colours: DecodedPixels | None = None
        self._count(None)

    def bytes_of(self, operations: Sequence[Operation]) -> bytes | None:
        if self._mode not in _AS_THEY_ARE or self._has_fourth_byte() or sys.byteorder != "little":
            return None
        _, operations = _split_palette(operations)
        selection = self._find_selection(operations)
        if selection is None:
            return None if operations else self._samples.tobytes()
        return selection.take(self._samples).tobytes() if selection.count == len(operations) else None

    def make(self, operations: Sequence[Operation]) -> object:
        palette, operations = _split_palette(operations)
        pixels, rest = self._select(operations)
        if palette is None:
            return super(DecodedPixels, pixels).make(rest)
        if rest:
            return pixels._coloured(palette).make(rest)
        made: Any = super(DecodedPixels, pixels).make(())
        made.putpalette(*palette)
        return made

    def map_pixels(
        self, operations: Sequence[Operation], table: Array, layout: str, out: Array | None = None
    ) -> Array | None:
        palette, operations = _split_palette(operations)
        pixels, rest = self._select(operations)
        if palette is None:
            return super(DecodedPixels, pixels).map_pixels(rest, table, layout, out)
        return pixels._coloured(palette).map_pixels(rest, table, layout, out) if rest else None

    def get_colours(self) -> Array | None:
        """Returns the pixels themselves if these are of mode RGB: (height, width, 3 or 4), not to be changed."""
        return self._samples if self._mode == "RGB" else None

    def _select(self, operations: Sequence[Operation]) -> tuple[DecodedPixels, Sequence[Operation]]:
        """Returns the pixels after operations that only choose some, and the operations after these."""
        selection = self._find_selection(operations)
        if selection is None:
            return self, operations
        pixels = DecodedPixels(selection.take(self._samples), self._mode, self._counts, counted=True)
        return pixels, operations[selection.count :]

    def _find_selection(self, operations: Sequence[Operation]) -> PixelSelection | None:
        """Returns what the first operations choose; None if they choose nothing."""
        if not operations or self._mode not in SELECTED:
            return None
        selection = PixelSelection(self._samples.shape, operations)
        return selection if selection.count else None

    def _coloured(self, palette: Sequence[Any]) -> DecodedPixels:
        """Returns the RGB pixels of palette indices."""
        if self._colours is None:
            ramp = Image.new("P", (256, 1))
            ramp.putdata(range(256))
            ramp.im.putpalette(*palette)
            table = np.frombuffer(ramp._new(ramp.im.convert("RGB", 0)).tobytes("raw", "RGBX"), np.uint8)
            samples = look_up_colours(self._samples, table.reshape(256, 4))
            self._colours = DecodedPixels(samples, "RGB", self._counts, counted=True)
        return self._colours

    def _make_planned(self, plan: NativePlan) -> object:
        if plan.mode in MODES and not _is_whole(plan, self._size, self._mode):
            return super()._make_planned(plan)
        raw = "RGBX" if self._has_fourth_byte() else RAW_MODES[self._mode]
        samples = self._samples
        if self._mode == "I":  # of 16 bits, before Pillow 11
            samples = samples.view("<u2").astype(np.int32)
        return Image.frombytes(self._mode, self._size, samples.data, "raw", raw).im

    def _has_fourth_byte(self) -> bool:
        """Whether the pixels are of mode RGB and have one byte more."""
        return self._mode == "RGB" and self._samples.shape[2] == 4

    def _run_plan(self, plan: NativePlan, table: Array, layout: str, out: Array | None = None) -> Array:
        out = pixel_memory.empty(shape_of(plan, table, layout), table.dtype) if out is None else out
        core.fuse(self._samples, {"stages": plan.stages, "last": plan.last}, table, out, layout)
        return out

    def _decode_by_pillow(self) -> NoReturn:
        raise AssertionError("a file is decoded before there are pixels of it")


def look_up_colours(indices: Array, table: Array) -> Array:
    """Returns the colours (height, width, 4) of palette indices (height, width, 1), given those of all (256, 4)."""
    height, width, _ = indices.shape
    colours: Array = table.view(np.uint32)[indices[:, :, 0], 0]  # a pixel at a time
    return colours.view(np.uint8).reshape(height, width, 4)


def _split_palette(operations: Sequence[Operation]) -> tuple[Sequence[Any] | None, Sequence[Operation]]:
    """Returns the palette that the first operation gives, None if it gives none, and the operations after it."""
    if operations and operations[0][0] == "putpalette":
        return operations[0][1:], operations[1:]
    return None, operations


def _is_whole(plan: NativePlan, size: tuple[int, int], mode: str) -> bool:
    """Whether a plan takes the file as it is."""
    return plan.mode == mode and not plan.stages and plan.last == {"box": (0, 0, *size)}
