"""The transforms that make a tensor of an image and map its values one by one, by torchvision's very operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from headrace.transforms._base import Transform


def _to_chw(pixels: npt.NDArray[Any]) -> torch.Tensor:
    tensor = torch.from_numpy(pixels)
    return (tensor[:, :, None] if tensor.ndim == 2 else tensor).permute(2, 0, 1).contiguous()


class ToTensor(Transform):
    """A PIL image or array (H, W, C) as a tensor (C, H, W); bytes become floats in [0, 1], divided by 255.

    torchvision v1's semantics, which v2 keeps under the same name. v2's ToImage and ToDtype multiply by 1 / 255
    instead: the last bit can differ.
    """

    def forward(self, image: Any) -> torch.Tensor:
        if isinstance(image, Image.Image):
            pixels = np.array(image, copy=True)
            image = pixels.astype(np.uint8) * 255 if image.mode == "1" else pixels
        if not isinstance(image, np.ndarray):
            raise TypeError(f"pic should be PIL Image or ndarray. Got {type(image)}")
        tensor = _to_chw(image)
        return tensor.to(torch.get_default_dtype()).div(255) if tensor.dtype == torch.uint8 else tensor


class PILToTensor(Transform):
    """A PIL image as a tensor (C, H, W) of the same values; anything else passes."""

    def forward(self, image: Any) -> Any:
        return _to_chw(np.array(image, copy=True)) if isinstance(image, Image.Image) else image


class ToImage(Transform):
    """A PIL image or array (H, W, C) as a tensor (C, H, W) of the same values; anything else passes.

    The tensor is a plain one, not a tv_tensor.
    """

    def forward(self, image: Any) -> Any:
        return _to_chw(np.array(image, copy=True)) if isinstance(image, (Image.Image, np.ndarray)) else image


class ToPureTensor(Transform):
    """Does nothing: headrace's tensors are plain."""

    def forward(self, image: Any) -> Any:
        return image


class ToDtype(Transform):
    """Converts a tensor to `dtype`; with `scale`, bytes map to [0, 1] and back. Anything else passes.

    Raises:
        RuntimeError: a scaled conversion that the float type cannot make safely, such as float32 to int64.
    """

    def __init__(self, dtype: torch.dtype, scale: bool = False) -> None:
        super().__init__()
        if not isinstance(dtype, torch.dtype):
            raise ValueError(f"dtype must be a torch.dtype, got {type(dtype)} instead")
        self.dtype = dtype
        self.scale = scale

    def forward(self, image: Any) -> Any:
        if not isinstance(image, torch.Tensor) or image.dtype == self.dtype:
            return image
        source, target = image.dtype, self.dtype
        if not self.scale or (source.is_floating_point and target.is_floating_point):
            return image.to(target)
        if source.is_floating_point:
            if (source, target) in ((torch.float32, torch.int32), (torch.float32, torch.int64)) or (
                (source, target) == (torch.float64, torch.int64)
            ):
                raise RuntimeError(f"The conversion from {source} to {target} cannot be performed safely.")
            # 1 - 1e-3: each integer gets an equally long interval of floats, and 1.0 still the largest.
            return image.mul(float(torch.iinfo(target).max) + 1.0 - 1e-3).to(target)
        if target.is_floating_point:
            return image.to(target).mul_(1.0 / torch.iinfo(source).max)
        shift = torch.iinfo(target).max.bit_length() - torch.iinfo(source).max.bit_length()
        if shift < 0:
            return image.bitwise_right_shift(-shift).to(target)
        return image.to(target).bitwise_left_shift_(shift)


class Normalize(Transform):
    """``(image - mean) / std`` a channel, on a float tensor (..., C, H, W), in the units of that tensor: [0, 1].

    Raises:
        TypeError: a PIL image or an integer tensor. ValueError: fewer than three dimensions, or a zero in std.
    """

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean = list(mean)
        self.std = list(std)
        self.inplace = inplace

    def forward(self, image: Any) -> torch.Tensor:
        if not isinstance(image, torch.Tensor):
            raise TypeError(f"{type(self).__name__}() does not support PIL images.")
        if not image.is_floating_point():
            raise TypeError(f"Input tensor should be a float tensor. Got {image.dtype}.")
        if image.ndim < 3:
            raise ValueError(f"Expected tensor to be a tensor image of size (..., C, H, W). Got {image.shape}.")
        if not all(self.std):
            raise ValueError("std evaluated to zero, leading to division by zero.")
        mean = torch.as_tensor(self.mean, dtype=image.dtype, device=image.device).view(-1, 1, 1)
        std = torch.as_tensor(self.std, dtype=image.dtype, device=image.device).view(-1, 1, 1)
        return (image.sub_(mean) if self.inplace else image.sub(mean)).div_(std)
