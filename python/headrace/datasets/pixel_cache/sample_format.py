"""Samples as bytes, and back: arrays, tensors, Pillow's images and plain values, in tuples, lists and dicts.

No pickles: the bytes are in memory that other processes write.
"""

from __future__ import annotations

import importlib
import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

_HEAD = struct.Struct("<I")
_PLAIN = (bool, int, float, str, type(None))
_DTYPES = {str(dtype): dtype for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)}
_DTYPES |= {str(dtype): dtype for dtype in (torch.float16, torch.float32, torch.float64, torch.bool)}
#: Classes of tensors: torchvision's by their names there.
_TENSORS = {
    "torch.Tensor": "",
    "torchvision.tv_tensors._image.Image": "Image",
    "torchvision.tv_tensors._mask.Mask": "Mask",
    "torchvision.tv_tensors._video.Video": "Video",
}
_MODES = ("1", "L", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "HSV", "LA", "I", "F", "I;16")


class NotKept(TypeError):
    """A sample holds something that is not kept. The message says what."""


def encoded_sample(sample: object) -> Sequence[bytes | memoryview]:
    """Returns the parts of the bytes.

    Raises:
        NotKept: the sample holds something else.
    """
    parts: list[bytes | memoryview] = []
    text = json.dumps(_outline(sample, parts), separators=(",", ":")).encode()
    return [_HEAD.pack(len(text)), text, *parts]


def decoded_sample(data: memoryview) -> Any:
    """Returns the sample: equal to the one that was encoded, with memory of its own."""
    (length,) = _HEAD.unpack_from(data, 0)
    return _Reading(data, _HEAD.size + length).value(json.loads(bytes(data[_HEAD.size : _HEAD.size + length])))


def _outline(value: Any, parts: list[bytes | memoryview]) -> Any:
    """Returns what JSON holds of a value, and adds its bytes to the parts."""
    kind = type(value)
    if kind in _PLAIN:
        return ["v", value] if kind is not float else ["f", value.hex()]
    if kind is bytes:
        parts.append(value)
        return ["b", len(value)]
    if kind is np.ndarray and value.dtype.kind in "biufc":
        parts.append(_bytes_of_array(value))
        return ["a", value.dtype.str, value.shape]
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        parts.append(value.tobytes())
        return ["n", value.dtype.str]
    if isinstance(value, torch.Tensor):
        return _outline_of_tensor(value, parts)
    if isinstance(value, Image.Image):
        return _outline_of_image(value, parts)
    if kind in (tuple, list):
        return ["(" if kind is tuple else "[", [_outline(one, parts) for one in value]]
    if kind is dict and all(type(key) is str for key in value):
        return ["{", [[key, _outline(one, parts)] for key, one in value.items()]]
    raise NotKept(f"{kind.__module__}.{kind.__qualname__}")


def _outline_of_tensor(tensor: torch.Tensor, parts: list[bytes | memoryview]) -> Any:
    kind = type(tensor)
    name = f"{kind.__module__}.{kind.__qualname__}"  # those of a deferred tensor are of what it stands for
    if name not in _TENSORS or tensor.device.type != "cpu" or str(tensor.dtype) not in _DTYPES:
        raise NotKept(name)
    if tensor.requires_grad or tensor.layout is not torch.strided:
        raise NotKept("a tensor that is not plain")
    parts.append(_bytes_of_array(tensor.numpy()))  # makes its values
    return ["t", str(tensor.dtype), list(tensor.shape), _TENSORS[name]]


def _bytes_of_array(array: npt.NDArray[Any]) -> bytes | memoryview:
    held: Any = np.ascontiguousarray(array)
    return memoryview(held).cast("B") if array.size else b""


def _outline_of_image(image: Image.Image, parts: list[bytes | memoryview]) -> Any:
    if image.mode not in _MODES:
        raise NotKept(f"an image of mode {image.mode}")
    if image.format is not None:
        raise NotKept("an image as it was opened: convert it, or return an array")
    parts.append(image.tobytes())  # makes the pixels
    return ["i", image.mode, image.size, _outline(image.info, parts)]


class _Reading:
    """Makes the values of an outline, whose bytes follow each other from `at` on."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data, self._at = data, at

    def _next(self, length: int) -> memoryview:
        begin, self._at = self._at, self._at + length
        return self._data[begin : self._at]

    def value(self, outline: Any) -> Any:
        kind, what, *more = outline
        if kind == "v":
            return what
        if kind == "f":
            return float.fromhex(what)
        if kind == "b":
            return bytes(self._next(what))
        if kind in "an":
            dtype, shape = np.dtype(what), more[0] if more else ()
            made = np.empty(shape, dtype)
            made.reshape(-1).view(np.uint8)[:] = self._next(made.nbytes)
            return made if kind == "a" else made[()]
        if kind == "t":
            tensor = torch.empty(more[0], dtype=_DTYPES[what], device="cpu")
            if tensor.numel():
                tensor.view(-1).view(torch.uint8).numpy()[:] = self._next(tensor.nbytes)
            return (
                tensor if not more[1] else getattr(importlib.import_module("torchvision.tv_tensors"), more[1])(tensor)
            )
        if kind == "i":
            return self._image(what, *more)
        if kind == "{":
            return {key: self.value(one) for key, one in what}
        made_of = [self.value(one) for one in what]
        return tuple(made_of) if kind == "(" else made_of

    def _image(self, mode: str, size: list[int], info: Any) -> Image.Image:
        width, height = size
        blank = Image.new(mode, (1, 1))
        row = (width + 7) // 8 if mode == "1" else width * len(blank.tobytes())
        made = Image.frombytes(mode, (width, height), bytes(self._next(row * height)))
        made.info = self.value(info)
        return made
