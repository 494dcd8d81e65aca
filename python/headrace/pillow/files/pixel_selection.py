"""Crops, turns and nearest resizes of pixels that have no arithmetic: palette indices and values of 16 bits.

Such operations choose, for each pixel of the result, one of the image: a row of numbers for the lines and one for the
columns. Pillow's own resize of a row of numbers says which ones a nearest resize takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image

from headrace._base.types import Array
from headrace.pillow.recording.lazy_core import Operation

Numbers: TypeAlias = npt.NDArray[np.intp]

_VALUES = {1: np.uint8, 2: np.uint16}  # bytes of a pixel -> a value that holds them
# The same -> a mode that Pillow resizes in the same way, its NumPy type, and its largest value.
_RAMPS = {1: ("I", "i4", 2**31 - 1), 2: ("I;16", "<u2", 2**16 - 1)}


class PixelSelection:
    """The lines and columns of an image that make up the result of operations, in order.

    Args:
        shape: (height, width, bytes of a pixel), 1 or 2, of the samples.
        operations: from the first one on, as far as they only choose pixels.

    Attributes:
        count: how many of the operations these are.
    """

    def __init__(self, shape: tuple[int, ...], operations: Sequence[Operation]) -> None:
        height, width, self._pixel = shape
        self._down: Numbers = np.arange(height)
        self._right: Numbers = np.arange(width)
        self._turned = False  # whether lines of the result are columns of the image
        self.count: int = 0
        for name, *arguments in operations:
            add: Callable[..., bool] | None = _OPERATIONS.get(name)
            if add is None or not add(self, *arguments):
                break
            self.count += 1

    def _crop(self, box: tuple[int, int, int, int]) -> bool:
        left, top, right, bottom = box
        if not (0 <= left < right <= len(self._right) and 0 <= top < bottom <= len(self._down)):
            return False
        self._down, self._right = self._down[top:bottom], self._right[left:right]
        return True

    def _resize(self, size: tuple[int, int], resample: int, _: object) -> bool:
        if resample != Image.Resampling.NEAREST:
            return False
        down = nearest(self._pixel, len(self._down), size[1], upright=True)
        right = nearest(self._pixel, len(self._right), size[0], upright=False)
        if down is None or right is None:
            return False
        self._down, self._right = self._down[down], self._right[right]
        return True

    def _transpose(self, method: int) -> bool:
        if method in (Image.Transpose.TRANSPOSE, Image.Transpose.TRANSVERSE, *_QUARTERS):
            self._down, self._right, self._turned = self._right, self._down, not self._turned
        if method in _UPSIDE_DOWN:
            self._down = self._down[::-1]
        if method in _MIRRORED:
            self._right = self._right[::-1]
        return True

    def take(self, samples: Array) -> Array:
        """Returns the pixels of the result, uint8 as the samples, contiguous."""
        height, width, pixel = samples.shape
        values: Any = samples.view(_VALUES[pixel]).reshape(height, width)
        if self._turned:
            values = values.T
        taken = np.ascontiguousarray(_take(_take(values, self._down, 0), self._right, 1))
        return taken.view(np.uint8).reshape(*taken.shape, pixel)


_OPERATIONS: dict[str, Callable[..., bool]] = {
    "crop": PixelSelection._crop,
    "resize": PixelSelection._resize,
    "transpose": PixelSelection._transpose,
}

_QUARTERS = (Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_270)
# What is mirrored after lines and columns have changed places, where they do: quarter turns are against the clock.
_UPSIDE_DOWN = (
    Image.Transpose.FLIP_TOP_BOTTOM,
    Image.Transpose.ROTATE_180,
    Image.Transpose.ROTATE_90,
    Image.Transpose.TRANSVERSE,
)
_MIRRORED = (
    Image.Transpose.FLIP_LEFT_RIGHT,
    Image.Transpose.ROTATE_180,
    Image.Transpose.ROTATE_270,
    Image.Transpose.TRANSVERSE,
)


def _take(values: Array, numbers: Numbers, axis: int) -> Array:
    first, last, count = int(numbers[0]), int(numbers[-1]), len(numbers)
    if last - first == count - 1 and bool((np.diff(numbers) == 1).all()):  # a crop: a view
        return values[first : last + 1] if axis == 0 else values[:, first : last + 1]
    return values.take(numbers, axis)


@lru_cache(maxsize=4096)
def nearest(pixel: int, length: int, made: int, *, upright: bool) -> Numbers | None:
    """Returns which of `length` pixels Pillow's nearest resize takes for each of `made` ones; None if that cannot be
    found out.

    Args:
        pixel: bytes of a pixel. Pillow computes the places of 16-bit pixels in another way.
        upright: of a column of pixels, else of a row.
    """
    mode, kind, largest = _RAMPS[pixel]
    if length > largest:
        return None
    size, new = ((1, length), (1, made)) if upright else ((length, 1), (made, 1))
    ramp = Image.frombytes(mode, size, np.arange(1, length + 1, dtype=kind).tobytes())
    resized = ramp._new(ramp.im.resize(new, Image.Resampling.NEAREST, (0, 0, *size)))
    numbers = np.frombuffer(resized.tobytes(), kind).astype(np.intp) - 1
    return None if bool((numbers < 0).any()) else numbers  # 0: a pixel outside the image, which is black
