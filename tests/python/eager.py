"""What headrace's and torchvision v2's transforms make of the same sample under the same seed, to be compared."""

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
    """Noise of a mode of Pillow; of P with a palette of its own."""
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
    """headrace's transform and torchvision v2's, of the same words."""
    tv = torchvision.tv_tensors
    homes = (H, torchvision.transforms.v2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ToTensor is deprecated in v2
        ours, theirs = (eval(call, {**vars(home), "torch": torch, "tv": tv, "PIL": Image, **names}) for home in homes)
    return ours, theirs


def made(transform: Callable[..., Any], *sample: Any, seed: int = 0) -> tuple[Any, Any]:
    """(what it makes, torch's generator afterwards), or (the type of what it raises, None)."""
    torch.manual_seed(seed)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = plain(transform(*sample))
    except Exception as error:
        return type(error), None
    return result, torch.get_rng_state().tolist()


def plain(value: Any) -> Any:
    """A sample as what compares: containers keep their types, images become their mode, size, palette and bytes."""
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
