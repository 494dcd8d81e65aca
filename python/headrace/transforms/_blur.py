"""GaussianBlur, run by torch on a PIL image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image

from headrace import tensor_ops
from headrace.transforms._base import Transform, pil_image


class GaussianBlur(Transform):
    """Blurs with a kernel of `kernel_size` pixels, (width, height) or one number, and a random sigma.

    Args:
        kernel_size: odd and positive.
        sigma: (smallest, largest) of the uniform distribution, or one number; in pixels, positive.

    Raises:
        ValueError: other sizes or bounds. TypeError: neither a number nor two.
    """

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)) -> None:
        super().__init__()
        sizes = [kernel_size] if isinstance(kernel_size, int) else list(kernel_size)
        if len(sizes) not in (1, 2):
            raise ValueError("Kernel size should be a tuple/list of two integers")
        if any(size <= 0 or size % 2 == 0 for size in sizes):
            raise ValueError("Kernel size value should be an odd and positive number.")
        bounds = [sigma] if isinstance(sigma, (int, float)) else list(sigma)
        if len(bounds) not in (1, 2):
            raise ValueError(f"If sigma is a sequence its length should be 1 or 2. Got {len(bounds)}")
        self.kernel_size = (sizes[0], sizes[-1])
        self.sigma = [float(bounds[0]), float(bounds[-1])]
        if not 0.0 < self.sigma[0] <= self.sigma[1]:
            raise ValueError(f"sigma values should be positive and of the form (min, max). Got {self.sigma}")

    def forward(self, image: Any) -> Image.Image:
        sigma = torch.empty(1).uniform_(*self.sigma).item()
        return tensor_ops.gaussian_blur(pil_image(image, self), *self.kernel_size, sigma, softmax=True)
