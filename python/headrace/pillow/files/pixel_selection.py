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


def select_pixels(samples: Array, operations: Sequence[Operation]) -> tuple[Array, int]:
    """Returns the pixels after the first of the operations, as far as these only choose pixels, and their number.

    Args:
        samples: (height, width, 1 or 2 bytes of a pixel), uint8, contiguous.
    """
    selection = _Selection(*samples.shape)
    for count, (name, *arguments) in enumerate(operations):
        add: Callable[..., bool] | None = getattr(selection, name, None)
        if add is None or not add(*arguments):
            return selection.take(samples), count
    return selection.take(samples), len(operations)


class _Selection:
    """The lines and columns of an image that make up the result, in order; ``turned``: its lines are columns there."""

    def __init__(self, height: int, width: int, pixel: int) -> None:
        self._pixel = pixel
        self.down: Numbers = np.arange(height)
        self.right: Numbers = np.arange(width)
        self.turned = False

    def crop(self, box: tuple[int, int, int, int]) -> bool:
        left, top, right, bottom = box
        if not (0 <= left < right <= len(self.right) and 0 <= top < bottom <= len(self.down)):
            return False
        self.down, self.right = self.down[top:bottom], self.right[left:right]
        return True

    def resize(self, size: tuple[int, int], resample: int, _: object) -> bool:
        if resample != Image.Resampling.NEAREST:
            return False
        down = nearest(self._pixel, len(self.down), size[1], upright=True)
        right = nearest(self._pixel, len(self.right), size[0], upright=False)
        if down is None or right is None:
            return False
        self.down, self.right = self.down[down], self.right[right]
        return True

    def transpose(self, method: int) -> bool:
        if method in (Image.Transpose.TRANSPOSE, Image.Transpose.TRANSVERSE, *_QUARTERS):
            self.down, self.right, self.turned = self.right, self.down, not self.turned
        if method in _UPSIDE_DOWN:
            self.down = self.down[::-1]
        if method in _MIRRORED:
            self.right = self.right[::-1]
        return True

    def take(self, samples: Array) -> Array:
        height, width, pixel = samples.shape
        values: Any = samples.view(_VALUES[pixel]).reshape(height, width)
        if self.turned:
            values = values.T
        taken = np.ascontiguousarray(_take(_take(values, self.down, 0), self.right, 1))
        return taken.view(np.uint8).reshape(*taken.shape, pixel)


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
