"""Checks that torch's convolution on this machine adds its terms in the same order as the native blur."""

from __future__ import annotations

import functools

import numpy as np
import torch

from headrace._base.native import core

_SIZES = ((3, 3), (5, 9), (23, 23))  # sizes of kernels, because torch has different loops for different sizes


@functools.cache
def is_native_blur_exact() -> bool:
    """Whether the native blur equals torch's on this machine. Compares all floats before rounding, on noise, once."""
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (41, 57, 4), dtype=np.uint8)
    planes = torch.from_numpy(pixels[..., :3].copy()).permute(2, 0, 1)[None].float()
    for width, height in _SIZES:
        row, column = (random.random(size, dtype=np.float32) / np.float32(size) for size in (width, height))
        kernel = torch.from_numpy(column)[:, None] * torch.from_numpy(row)
        border = [width // 2, width // 2, height // 2, height // 2]
        expected = torch.nn.functional.conv2d(
            torch.nn.functional.pad(planes, border, mode="reflect"), kernel.expand(3, 1, height, width), groups=3
        )
        made = core.blur(pixels, row, column)[..., :3]
        if not np.array_equal(made, expected[0].permute(1, 2, 0).numpy()):
            return False
    return True
