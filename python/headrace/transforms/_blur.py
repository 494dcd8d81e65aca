"""GaussianBlur of a PIL image, by torch operations."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from PIL import Image

from headrace._recipe.arithmetic import torch_resize_blur
from headrace.transforms._arguments import pair
from headrace.transforms._base import BESIDE_IMAGES, PIL_ALONE, Params, Transform


class GaussianBlur(Transform):
    """Blurs with a Gaussian kernel whose sigma is drawn uniformly.

    Args:
        kernel_size: (width, height) of the kernel in pixels, or one number for both; odd and positive.
        sigma: (smallest, largest) standard deviation in pixels, or one number; positive.

    Raises:
        ValueError: a size or bound is out of range. When called: torchvision does not blur images of this mode.
        TypeError: an argument is neither a number nor a sequence of numbers.
        RuntimeError: when called, if half the kernel, rounded down, is not smaller than the image along an axis.
    """

    _takes = PIL_ALONE
    _passes = BESIDE_IMAGES

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)) -> None:
        super().__init__()
        self.kernel_size: Sequence[int] = pair(kernel_size, "Kernel size should be a tuple/list of two integers")
        if any(size <= 0 or size % 2 == 0 for size in self.kernel_size):
            raise ValueError("Kernel size value should be an odd and positive number.")
        self.sigma: list[float] = _checked_sigma_bounds(sigma)
        if not 0.0 < self.sigma[0] <= self.sigma[1]:
            raise ValueError(f"sigma values should be positive and of the form (min, max). Got {self.sigma}")

    @staticmethod
    def get_params(sigma_min: float, sigma_max: float) -> float:
        """Draws a sigma as torchvision v1's static method does."""
        return torch.empty(1).uniform_(sigma_min, sigma_max).item()

    def make_params(self, flat_inputs: list[object]) -> Params:
        return {"sigma": self.get_params(*self.sigma)}

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        width, height = self.kernel_size
        return torch_resize_blur.gaussian_blur(inpt, width, height, params["sigma"], softmax=True)


def _checked_sigma_bounds(sigma: object) -> list[float]:
    """Returns (smallest, largest) for a number or a sequence of one or two numbers."""
    if isinstance(sigma, (int, float)):
        return [float(sigma), float(sigma)]
    if not isinstance(sigma, Sequence):
        raise TypeError(f"sigma should be a number or a sequence of numbers. Got {type(sigma)}")
    if len(sigma) not in (1, 2):
        raise ValueError(f"If sigma is a sequence its length should be 1 or 2. Got {len(sigma)}")
    for one in sigma:
        if not isinstance(one, (int, float)):
            raise ValueError(f"sigma should be a sequence of numbers. Got {type(one)}")
    return [float(sigma[0]), float(sigma[-1])]
