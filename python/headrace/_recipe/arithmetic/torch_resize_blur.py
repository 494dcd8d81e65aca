"""Resizes and blurs PIL images as tensors, by the torch calls that torchvision makes."""

from __future__ import annotations

import math
import sys

import torch
from PIL import Image
from torch.nn.functional import conv2d, interpolate, pad

from headrace._recipe.images.pil_tensor import pil_to_tensor, to_pil_image


def resize(image: Image.Image, height: int, width: int, mode: str) -> Image.Image:
    """Resizes as torchvision v2 resizes a uint8 tensor: antialiased, `mode` bilinear or bicubic."""
    if (image.height, image.width) == (height, width):
        return image
    resized = interpolate(pil_to_tensor(image)[None], (height, width), mode=mode, antialias=True)
    return to_pil_image(resized[0])


def resize_in_floats(image: Image.Image, height: int, width: int, mode: str) -> Image.Image:
    """Resizes as torchvision v1 resizes a uint8 tensor, and v2 one that it does not resize as bytes."""
    if (image.height, image.width) == (height, width):
        return image
    values = pil_to_tensor(image)[None].to(torch.float32)
    resized = interpolate(values, (height, width), mode=mode, align_corners=False, antialias=True)
    return to_pil_image(resized.clamp(0, 255).round().to(torch.uint8)[0])


def resizes_bytes(mode: str) -> bool:
    """Whether torchvision v2 resizes uint8 tensors as bytes on this processor, not in floating point.

    Args:
        mode: bilinear or bicubic.
    """
    module = sys.modules.get("torchvision.transforms.v2.functional._geometry")
    decides = getattr(module, "_do_native_uint8_resize_on_cpu", None)
    if decides is not None:
        return bool(decides(sys.modules["torchvision.transforms"].InterpolationMode(mode)))
    return mode == "bicubic" or has_kernel_for_bytes()


def has_kernel_for_bytes() -> bool:
    """Whether torch resizes bytes by vectors here; without, to one column, it repeats the first row."""
    return torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


def gaussian_blur(image: Image.Image, width: int, height: int, sigma: float, *, softmax: bool) -> Image.Image:
    """Blurs with a Gaussian kernel.

    Args:
        image: the image.
        width, height: size of the kernel in pixels, odd.
        sigma: standard deviation in pixels.
        softmax: whether to compute the weights as torchvision v2 does, otherwise as v1 does.

    Raises:
        RuntimeError: half the kernel, rounded down, is not smaller than the image along an axis, so the border cannot
            be mirrored.
        ValueError: torchvision does not support the image's mode, such as P.
    """
    kernel = gaussian_kernel(height, sigma, softmax)[:, None] * gaussian_kernel(width, sigma, softmax)
    values = pil_to_tensor(image)
    channels = len(values)
    around = pad(values[None].to(torch.float32), [width // 2, width // 2, height // 2, height // 2], mode="reflect")
    blurred = conv2d(around, kernel.expand(channels, 1, height, width), groups=channels)[0]
    if not values.is_floating_point():
        blurred = blurred.round().to(values.dtype)
    return to_pil_image(blurred, image.mode)


def gaussian_kernel(size: int, sigma: float, softmax: bool) -> torch.Tensor:
    """Returns the weights along one axis, float32 (size,), as torchvision v2 computes them, or v1 without `softmax`."""
    if softmax:
        reach = (size - 1) / (2.0 * math.sqrt(2.0))
        return torch.softmax(torch.linspace(-reach, reach, steps=size, device="cpu").div(sigma).pow(2).neg(), dim=0)
    reach = (size - 1) * 0.5
    density = torch.exp(-0.5 * (torch.linspace(-reach, reach, steps=size, device="cpu") / sigma).pow(2))
    return density / density.sum()
