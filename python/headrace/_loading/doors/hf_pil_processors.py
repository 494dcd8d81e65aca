"""Image processors of Hugging Face's transformers, those that work with Pillow and NumPy: of a deferred image.

They turn the image into an array, resize that by way of Pillow's image of it, and scale and normalise the values in
several passes, which have three values in their inner loops. Here the image itself is resized, if nothing else would
look at the array: the class has transformers' own methods. Scaling bytes is a table of 256 values, which transformers'
own function makes; normalising has rows in its loops.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Collection
from typing import Any

import numpy as np

from headrace._base.lifetimes.bounded_table import BoundedTable
from headrace._base.types import Array, Function
from headrace._loading.doors.code_replacement import CodeReplacement
from headrace._loading.doors.hf_processors import is_rgb
from headrace._loading.doors.normalised_arrays import map_bytes
from headrace.pillow.deferred_image import is_deferred
from headrace.pillow.recording.image_counts import in_force
from headrace.pillow.recording.patches import Replacements, Untouched, method

_BACKENDS, _TRANSFORMS = "transformers.image_processing_backends", "transformers.image_transforms"
#: Methods between an image and the array of its resized pixels.
_METHODS = ("process_image", "resize", "_preprocess", "_prepare_image_like_inputs", "_preprocess_image_like_inputs")
_LEAST = 4096  # values of an array: a smaller one costs less than the look for its table
_LEAST_STD = 1e-6  # a smaller one might overflow, of which NumPy warns
_CHANNELS = 3


class _Unread(np.ndarray):
    """Stands for the array of an image, of its shape and type, on the way to `resize`.

    Attributes:
        image: Pillow's.
    """

    image: Any


def _leave_image(plain: Function) -> Function:
    @functools.wraps(plain)
    def process_image(self: Any, image: Any, *args: Any, **kwargs: Any) -> Any:
        if args or not kwargs.get("do_resize") or not is_deferred(image) or not is_rgb(image):
            return plain(self, image, *args, **kwargs)
        if in_force.here() is None or not _has_own_methods(self):
            return plain(self, image, **kwargs)
        unread = np.broadcast_to(np.uint8(0), (_CHANNELS, image.height, image.width)).view(_Unread)
        unread.image = image
        return unread

    return process_image


def _has_own_methods(processor: Any) -> bool:
    """Whether nothing of a model's or a program's own gets the array."""
    backends, transforms = sys.modules[_BACKENDS], sys.modules[_TRANSFORMS]
    kind, base = type(processor), backends.PilBackend
    return (
        all(getattr(kind, name, None) is getattr(base, name) for name in _METHODS)
        and vars(processor).keys().isdisjoint(_METHODS)
        and bool(_methods())
        and backends.np_resize is transforms.resize
    )


@functools.cache
def _methods() -> Untouched:
    base = sys.modules["transformers.image_processing_utils"].BaseImageProcessor
    backend = sys.modules[_BACKENDS].PilBackend
    return Untouched(*((backend, name) for name in _METHODS[1:3]), *((base, name) for name in _METHODS[3:]))


def _resize(plain: Function) -> Function:
    @functools.wraps(plain)
    def resize(image: Any, *args: Any) -> Any:
        return plain(image.image if type(image) is _Unread else image, *args)

    return resize


def _rescale(plain: Function) -> Function:
    @functools.wraps(plain)
    def rescale(image: Any, scale: Any, data_format: Any, dtype: Any, input_data_format: Any) -> Any:
        pixels = _pixels_of(image, np.uint8, data_format, input_data_format)
        table = None if pixels is None or dtype is not np.float32 else _find_table(plain, scale)
        if pixels is None or table is None:
            return plain(image, scale, data_format, dtype, input_data_format)
        made: Array = np.empty_like(image, np.float32)
        map_bytes(np.ascontiguousarray(pixels), table, made.transpose(1, 2, 0))
        return made

    return rescale


def _normalize(plain: Function) -> Function:
    @functools.wraps(plain)
    def normalize(image: Any, mean: Any, std: Any, data_format: Any, input_data_format: Any) -> Any:
        pixels = _pixels_of(image, np.float32, data_format, input_data_format)
        known = (
            pixels is not None and pixels.flags.c_contiguous and _are_numbers(mean) and _are_numbers(std, _LEAST_STD)
        )
        if pixels is None or not known:
            return plain(image, mean, std, data_format, input_data_format)
        height, width, _ = pixels.shape
        made: Array = np.empty_like(image.T)
        rows = made.T.transpose(1, 2, 0).reshape(height, -1)
        np.subtract(pixels.reshape(height, -1), np.tile(np.array(mean, np.float32), width), out=rows)
        np.divide(rows, np.tile(np.array(std, np.float32), width), out=rows)
        return made.T

    return normalize


def _pixels_of(image: Any, dtype: Any, *formats: Any) -> Array | None:
    """Returns the array (3, H, W) of an image as (H, W, 3), of which each row is next to each other in memory; None
    if it is none, or has another format."""
    if in_force.here() is None or type(image) is not np.ndarray or image.dtype != dtype or image.ndim != 3:
        return None
    if len(image) != _CHANNELS or image.size < _LEAST or any(getattr(one, "name", "") != "FIRST" for one in formats):
        return None
    size = image.itemsize
    is_by_pixel = image.strides[0] == size and image.strides[2] == _CHANNELS * size
    # Rows in their order, so that a new array has them in the same.
    return image.transpose(1, 2, 0) if is_by_pixel and image.strides[1] >= image.shape[2] * _CHANNELS * size else None


def _are_numbers(values: Any, least: float = 0.0) -> bool:
    return (
        isinstance(values, Collection)
        and len(values) == _CHANNELS
        and all(type(one) in (int, float) and least <= abs(one) < math.inf and abs(one) < 1e6 for one in values)
    )


_tables: BoundedTable[float, Array] = BoundedTable(64)  # by the scale


def _find_table(plain: Function, scale: Any) -> Array | None:
    """Returns what the function makes of the 256 bytes; None for what is no number."""
    if type(scale) is not float:
        return None

    def make() -> Array:
        values = plain(np.arange(256, dtype=np.uint8).reshape(1, 16, 16), scale).reshape(1, 256)
        return np.ascontiguousarray(np.repeat(values, _CHANNELS, axis=0))

    return _tables.find_or_make(scale, make)


class PilSteps:
    """The replacements: methods by their name, functions by their code, because modules import them under others."""

    def __init__(self) -> None:
        self._methods = Replacements([method(_BACKENDS, "PilBackend", "process_image", _leave_image)])
        self._functions = [
            CodeReplacement(_TRANSFORMS, name, version)
            for name, version in (("resize", _resize), ("rescale", _rescale), ("normalize", _normalize))
        ]

    def replace(self) -> bool:
        """See `Replacements.replace`."""
        done = [one.replace() for one in self._functions]
        # The method last: what it returns needs the functions.
        return all(done) and self._methods.replace()

    def put_back(self) -> None:
        """See `Replacements.put_back`."""
        self._methods.put_back()
        for one in self._functions:
            one.put_back()


STEPS: PilSteps = PilSteps()
