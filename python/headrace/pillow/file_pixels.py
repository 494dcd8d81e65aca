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
from headrace.pillow.native_plan import NativePlan
from headrace.pillow.opened_images import OpenedImages

_IDENTITY = np.tile(np.arange(256, dtype=np.uint8), (3, 1))
_MANY = 3  # crops: decoding the whole file costs about as much as two of them

Pixels = np.ndarray[Any, Any]


class FilePixels:
    """The pixels of one RGB or gray file. From the third crop on, they are copied from the whole file, decoded once.

    Args:
        data: the file. Its header must be plain: ``jpeg_header(data)["not_plain"]`` is None.
        mode: "RGB" or "L".
        opened: counts the file.
    """

    def __init__(self, data: bytes, size: tuple[int, int], mode: str, opened: OpenedImages) -> None:
        self._data, self._size, self._mode, self._opened = data, size, mode, opened
        self._counted = False
        self._crops = 0  # decoded so far
        self._whole: Pixels | None = None

    def recorded(self, lazy: LazyCore) -> None:
        """Called with each image without pixels that the file has led to."""
        self._opened.track(lazy)

    def make(self, operations: Sequence[Operation]) -> Any:
        """Returns Pillow's native image after the operations."""
        plan = NativePlan(self._size, self._mode, operations)
        try:
            pixels = self._pixels(plan.first["box"])
        except core.NeedsPillow as error:  # damaged
            self._count(str(error))
            made, rest = self._by_pillow(), operations
        else:
            self._count(None)
            made, rest = _image(_fused(pixels, plan), plan.mode), plan.rest
        for name, *arguments in rest:
            made = getattr(made, name)(*arguments)
        return made

    def _count(self, reason: str | None) -> None:
        """Counts the file once; `reason`: why Pillow decodes it."""
        counted, self._counted = self._counted, True
        if not counted:
            self._opened.count(reason)

    def _pixels(self, box: tuple[int, int, int, int]) -> Pixels:
        """Returns the RGBX bytes of a box. Threads that call this at the same time may decode once more."""
        self._crops += 1
        if self._crops < _MANY:
            return self._decoded(box)
        if self._whole is None:
            self._whole = self._decoded((0, 0, *self._size))
        left, top, width, height = box
        return np.ascontiguousarray(self._whole[top : top + height, left : left + width])

    def _decoded(self, box: tuple[int, int, int, int]) -> Pixels:
        return np.frombuffer(core.decode_crop(self._data, *box), np.uint8).reshape(box[3], box[2], 4)

    def _by_pillow(self) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow issued them when the file was opened
            image = JpegImagePlugin.JpegImageFile(io.BytesIO(self._data))
        image.load()
        return image.im


def _fused(pixels: Pixels, plan: NativePlan) -> Pixels:
    """Returns the plan's pixels, (height, width, 3 or 4), of those of its first box."""
    plan.first["box"] = (0, 0, pixels.shape[1], pixels.shape[0])
    if not plan.stages and not any(plan.last.get(name) for name in ("gray", "flip_horizontal", "flip_vertical")):
        return pixels
    _, _, width, height = plan.last["box"]
    out = np.empty((height, width, 3), np.uint8)
    core.fuse(pixels, {"stages": plan.stages, "last": plan.last}, _IDENTITY, out, "channels_last")
    return out


def _image(pixels: Pixels, mode: str) -> Any:
    """Returns Pillow's native image of RGB or RGBX bytes."""
    if mode == "L":
        pixels, raw = np.ascontiguousarray(pixels[..., 0]), "L"
    else:
        raw = "RGBX" if pixels.shape[2] == 4 else "RGB"
    return Image.frombytes(mode, pixels.shape[1::-1], pixels.data, "raw", raw).im
