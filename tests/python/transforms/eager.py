"""Results of headrace's and torchvision v2's transforms for the same sample and seed, in comparable form."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import torch
from PIL import Image

import headrace.transforms as H

MODES = ("RGB", "L", "RGBA", "LA", "1", "I;16", "P", "I", "F", "CMYK", "YCbCr", "HSV", "PA", "La", "RGBX", "LAB")


def image_of(mode: str, width: int = 23, height: int = 17, seed: int = 0) -> Image.Image:
    """Noise in a mode of Pillow; P and PA get a random palette."""
    numbers = np.random.default_rng(seed)
    if mode == "I;16":
        return Image.fromarray(numbers.integers(0, 65536, (height, width), dtype=np.uint16))
    if mode == "I":
        return Image.fromarray(numbers.integers(-(2**31), 2**31, (height, width), dtype=np.int32))
    if mode == "F":
        return Image.fromarray(numbers.random((height, width), dtype=np.float32) * 300 - 20)
    if mode == "1":
        return Image.fromarray(numbers.integers(0, 2, (height, width), dtype=np.uint8) > 0)
    channels = {"P": 1, "L": 1, "LA": 2, "PA": 2, "La": 2, "RGBA": 4, "CMYK": 4, "RGBX": 4}.get(mode, 3)
    image = Image.frombytes(mode, (width, height), numbers.bytes(width * height * channels))
    if mode in ("P", "PA"):
        image.putpalette(numbers.bytes(768))
    return image


def both(torchvision: ModuleType, call: str, **names: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """headrace's transform and torchvision v2's, made by the same expression."""
    tv = torchvision.tv_tensors
    homes = (H, torchvision.transforms.v2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ToTensor is deprecated in v2
        ours, theirs = (eval(call, {**vars(home), "torch": torch, "tv": tv, "PIL": Image, **names}) for home in homes)
    return ours, theirs


def made(transform: Callable[..., Any], *sample: Any, seed: int = 0) -> tuple[Any, Any]:
    """(result, state of torch's generator afterwards), or (type of the exception, None)."""
    torch.manual_seed(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = plain(transform(*sample))
    except Exception as error:
        return type(error), None
    return result, torch.get_rng_state().tolist()


def plain(value: Any) -> Any:
    """A sample in comparable form: containers keep their types, images become mode, size, palette and bytes."""
    if isinstance(value, Image.Image):
        return "image", value.mode, value.size, value.getpalette() if value.mode == "P" else None, value.tobytes()
    if isinstance(value, torch.Tensor):
        kind = type(value).__name__.replace("Image", "Tensor")  # headrace's images are plain tensors
        tensor = value.as_subclass(torch.Tensor)
        numbers = tensor.contiguous().view(torch.uint8) if tensor.ndim else tensor
        return "tensor", kind, tensor.dtype, tuple(tensor.shape), tensor.stride(), numbers.tolist()
    if isinstance(value, np.ndarray):
        return "array", value.dtype, value.tolist()
    if isinstance(value, dict):
        return type(value), [(key, plain(one)) for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [plain(one) for one in value]
    return value
