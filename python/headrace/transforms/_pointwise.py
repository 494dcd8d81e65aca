"""Transforms that convert an image to a tensor or map its values one by one, with torchvision's operations."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image

from headrace._base.types import Array
from headrace._recipe.images.part_kinds import Kind, as_image, as_pure, is_pure_tensor, kind_of, map_values
from headrace._recipe.images.pil_tensor import pil_to_tensor
from headrace.transforms._base import BESIDE_IMAGES, Params, Transform

#: numpy dtype in which ToTensor reads the pixels, by Pillow mode; uint8 for all other modes.
_TO_TENSOR = {"I": np.int32, "I;16" if sys.byteorder == "little" else "I;16B": np.int16, "F": np.float32}


class ToTensor(Transform):
    """Converts PIL images and arrays (H, W, C) to tensors (C, H, W); all other parts pass unchanged.

    Bytes are divided by 255 and become floats in [0, 1]. This is torchvision v1's ToTensor, which v2 keeps. v2's
    ToImage followed by ToDtype multiplies by 1 / 255 instead, which can change the last bit.

    Raises:
        ValueError: when called, if an array has neither 2 nor 3 dimensions.
    """

    _transformed_types = (Image.Image, np.ndarray)

    def transform(self, inpt: Image.Image | Array, params: Params) -> torch.Tensor:
        if isinstance(inpt, np.ndarray):
            if inpt.ndim not in (2, 3):
                raise ValueError(f"pic should be 2/3 dimensional. Got {inpt.ndim} dimensions.")
            tensor = torch.from_numpy((inpt[:, :, None] if inpt.ndim == 2 else inpt).transpose(2, 0, 1)).contiguous()
        else:
            pixels = np.array(inpt, _TO_TENSOR.get(inpt.mode, np.uint8), copy=True)
            pixels = pixels.reshape(inpt.height, inpt.width, len(inpt.getbands()))
            tensor = torch.from_numpy(pixels * 255 if inpt.mode == "1" else pixels).permute(2, 0, 1).contiguous()
        return tensor.to(torch.get_default_dtype()).div(255) if tensor.dtype == torch.uint8 else tensor


class PILToTensor(Transform):
    """Converts PIL images to tensors (C, H, W) of the same values; all other parts pass unchanged."""

    _transformed_types = (Image.Image,)

    def transform(self, inpt: Image.Image, params: Params) -> torch.Tensor:
        return pil_to_tensor(inpt)


class ToImage(Transform):
    """Converts PIL images and arrays (H, W, C) to tensors (C, H, W) of the same values.

    The results are plain tensors, not tv_tensors, but are marked so that later transforms treat them as images. In a
    sample without an image the first tensor is marked. All other parts pass unchanged.

    Raises:
        ValueError: when called, if that tensor has fewer than two dimensions.
    """

    _transformed_types = (is_pure_tensor, Image.Image, np.ndarray)

    def transform(self, inpt: torch.Tensor | Image.Image | Array, params: Params) -> torch.Tensor:
        if isinstance(inpt, np.ndarray):
            inpt = torch.from_numpy(np.atleast_3d(inpt)).permute(2, 0, 1).contiguous()
        return as_image(pil_to_tensor(inpt) if isinstance(inpt, Image.Image) else inpt)


def _is_no_pure_tensor(part: object) -> bool:
    return kind_of(part) not in (Kind.PURE, Kind.PIL, Kind.OTHER)


class ToPureTensor(Transform):
    """Converts tv_tensors and tensors made by ToImage to plain, unmarked tensors.

    Later transforms treat such a tensor as an image only if the sample has no other image.
    """

    _transformed_types = (_is_no_pure_tensor,)

    def transform(self, inpt: torch.Tensor, params: Params) -> torch.Tensor:
        return as_pure(inpt)


class Normalize(Transform):
    """Computes ``(image - mean) / std`` per channel, on float tensors (..., C, H, W).

    Args:
        mean, std: one number per channel, in the units of the tensor ([0, 1] after ToTensor).
        inplace: whether to write into the input tensor.

    Raises:
        TypeError: when called on a PIL image or an integer tensor.
        ValueError: when called, if a tensor has fewer than three dimensions, or `std` contains 0.
    """

    _takes = frozenset({Kind.PURE, Kind.IMAGE, Kind.VIDEO})
    _passes = BESIDE_IMAGES

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean: list[float] = list(mean)
        self.std: list[float] = list(std)
        self.inplace = inplace

    def check_inputs(self, flat_inputs: list[object]) -> None:
        if any(isinstance(part, Image.Image) for part in flat_inputs):
            raise TypeError(f"{type(self).__name__}() does not support PIL images.")

    def transform(self, inpt: torch.Tensor, params: Params) -> torch.Tensor:
        return map_values(self._normalize_image, inpt)

    def _normalize_image(self, image: torch.Tensor) -> torch.Tensor:
        if not image.is_floating_point():
            raise TypeError(f"Input tensor should be a float tensor. Got {image.dtype}.")
        if image.ndim < 3:
            raise ValueError(f"Expected tensor to be a tensor image of size (..., C, H, W). Got {image.shape}.")
        if not all(self.std):
            raise ValueError("std evaluated to zero, leading to division by zero.")
        mean, std = (self._constant(values, image) for values in (self.mean, self.std))
        return (image.sub_(mean) if self.inplace else image.sub(mean)).div_(std)

    @staticmethod
    def _constant(values: list[float], image: torch.Tensor) -> torch.Tensor:
        constant = torch.as_tensor(values, dtype=image.dtype, device=image.device)
        return constant.view(-1, 1, 1) if constant.ndim == 1 else constant
