"""Makes the pixels of a JPEG file after recorded operations: decodes the crop and resizes it natively."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image, JpegImagePlugin

from headrace.base.native import core
from headrace.pillow.lazy_core import LazyCore, Operation
from headrace.pillow.opened_images import OpenedImages
from headrace.pixels import pillow_rule

_IDENTITY = np.tile(np.arange(256, dtype=np.uint8), (3, 1))
_NEAREST = 0
_MANY = 3  # crops: decoding the whole file costs about as much as two of them


class FilePixels:
    """The pixels of one RGB file. From the third crop on, they are copied from the whole file, decoded once.

    Args:
        data: the file. Its header must be plain: ``jpeg_header(data)["not_plain"]`` is None.
        opened: counts the file.
    """

    def __init__(self, data: bytes, size: tuple[int, int], opened: OpenedImages) -> None:
        self._data, self._size, self._opened = data, size, opened
        self._counted = False
        self._crops = 0  # decoded so far
        self._whole: np.ndarray[Any, Any] | None = None

    def recorded(self, lazy: LazyCore) -> None:
        self._opened.track(lazy)

    def make(self, operations: Sequence[Operation]) -> Any:
        """Returns Pillow's native image after the operations.

        Raises:
            OSError: the file is damaged; Pillow's error.
        """
        box, rest = _crop(self._size, operations)
        try:
            pixels = self._pixels(box)
        except core.NeedsPillow as error:
            self._count(str(error))
            made, rest = self._by_pillow(), operations
        else:
            self._count(None)
            if rest and rest[0][0] == "resize" and rest[0][2] != _NEAREST:
                pixels, rest = _resized(pixels, rest[0][1], int(rest[0][2])), rest[1:]
            mode = "RGBX" if pixels.shape[2] == 4 else "RGB"
            made = Image.frombytes("RGB", pixels.shape[1::-1], pixels.data, "raw", mode).im
        for name, *arguments in rest:
            made = getattr(made, name)(*arguments)
        return made

    def _count(self, reason: str | None) -> None:
        """Counts the file once; `reason`: why Pillow decodes it."""
        counted, self._counted = self._counted, True
        if not counted:
            self._opened.count(reason)

    def _pixels(self, box: tuple[int, int, int, int]) -> np.ndarray[Any, Any]:
        """Returns the RGBX bytes of a box. Threads that call this at the same time may decode once more."""
        self._crops += 1
        if self._crops < _MANY:
            return self._decoded(box)
        if self._whole is None:
            self._whole = self._decoded((0, 0, *self._size))
        left, top, right, bottom = box
        return np.ascontiguousarray(self._whole[top:bottom, left:right])

    def _decoded(self, box: tuple[int, int, int, int]) -> np.ndarray[Any, Any]:
        left, top, right, bottom = box
        shape = bottom - top, right - left, 4
        return np.frombuffer(core.decode_crop(self._data, left, top, shape[1], shape[0]), np.uint8).reshape(shape)

    def _by_pillow(self) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow issued them when the file was opened
            image = JpegImagePlugin.JpegImageFile(io.BytesIO(self._data))
        image.load()
        return image.im


def _crop(
    size: tuple[int, int], operations: Sequence[Operation]
) -> tuple[tuple[int, int, int, int], Sequence[Operation]]:
    """Returns the box of the file that the first operations crop, and the operations after them."""
    left, top, right, bottom = 0, 0, *size
    for number, (name, *arguments) in enumerate(operations):
        if name != "crop":
            return (left, top, right, bottom), operations[number:]
        x0, y0, x1, y1 = arguments[0]
        inside = 0 <= x0 < x1 <= right - left and 0 <= y0 < y1 <= bottom - top
        if not inside:  # Pillow pads with black
            return (left, top, right, bottom), operations[number:]
        left, top, right, bottom = left + x0, top + y0, left + x1, top + y1
    return (left, top, right, bottom), ()


def _resized(pixels: np.ndarray[Any, Any], size: tuple[int, int], resample: int) -> np.ndarray[Any, Any]:
    """Returns (height, width, 3) bytes, resized by Pillow's filter number `resample`."""
    (height, width), (out_width, out_height) = pixels.shape[:2], size
    first = pillow_rule.vertical_first(height, width, out_height, out_width)
    stage = {"box": (0, 0, width, height), "resize": size, "filter": resample, "vertical_first": first}
    out = np.empty((out_height, out_width, 3), np.uint8)
    core.fuse(pixels, {"stages": [stage], "last": {"box": (0, 0, *size)}}, _IDENTITY, out, "channels_last")
    return out
