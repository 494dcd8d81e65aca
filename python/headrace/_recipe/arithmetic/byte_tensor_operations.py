"""torchvision's colour operations and affine maps of byte tensors (1, C, H, W), as AugMix and others call them.

They are the torch calls that torchvision's functions make. `api_version`: 1 of ``torchvision.transforms``, 2 of
``torchvision.transforms.v2``.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import conv2d, grid_sample

#: Brightness of red, green and blue.
_GRAY = (0.2989, 0.587, 0.114)


def rgb_to_grayscale(values: Tensor, api_version: int) -> Tensor:
    """Returns the gray values without fractions, float32 (1, 1, H, W)."""
    red, green, blue = (values[:, channel : channel + 1] for channel in range(3))
    if api_version == 1:
        return (_GRAY[0] * red + _GRAY[1] * green + _GRAY[2] * blue).to(torch.uint8).to(torch.float32)
    return red.mul(_GRAY[0]).add_(green, alpha=_GRAY[1]).add_(blue, alpha=_GRAY[2]).floor_()


def blend(values: Tensor, other: Tensor, factor: float, api_version: int) -> Tensor:
    """Returns `factor` times the values plus ``1 - factor`` times others, as bytes."""
    if api_version == 1:
        return (factor * values + (1.0 - factor) * other).clamp(0, 255).to(torch.uint8)
    return values.mul(factor).add_(other, alpha=1.0 - factor).clamp_(0, 255).to(torch.uint8)


def saturation(values: Tensor, factor: float, api_version: int) -> Tensor:
    """``adjust_saturation`` of three channels."""
    return blend(values, rgb_to_grayscale(values, api_version), factor, api_version)


def contrast(values: Tensor, factor: float, api_version: int) -> Tensor:
    """``adjust_contrast``."""
    gray = rgb_to_grayscale(values, api_version) if values.shape[1] == 3 else values.to(torch.float32)
    return blend(values, gray.mean(dim=(1, 2, 3), keepdim=True), factor, api_version)


def sharpness(values: Tensor, factor: float, api_version: int) -> Tensor:
    """``adjust_sharpness``."""
    if min(values.shape[-2:]) < 3:
        return values
    channels = values.shape[1]
    kernel = torch.ones((3, 3), device="cpu")
    kernel[1, 1] = 5.0
    floats = values.to(torch.float32, copy=True)
    smooth = conv2d(floats, (kernel / 13.0).expand(channels, 1, 3, 3), groups=channels).round_()
    if api_version == 1:
        whole = values.clone()
        whole[..., 1:-1, 1:-1] = smooth.to(torch.uint8)
        return blend(values, whole, factor, api_version)
    inside = floats[..., 1:-1, 1:-1]
    inside.add_(smooth.sub_(inside), alpha=1.0 - factor)
    return floats.clamp_(0, 255).to(torch.uint8)


def autocontrast(values: Tensor, api_version: int) -> Tensor:
    """``autocontrast``."""
    floats = values.to(torch.float32)
    low, high = (one(dim=(-2, -1), keepdim=True) for one in (floats.amin, floats.amax))
    flat = low == high
    low = low.masked_fill(flat, 0.0)
    if api_version == 1:
        scaled = (floats - low) * (255 / (high - low)).masked_fill(flat, 1.0)
    else:
        scaled = (floats - low) / ((high - low) * (1.0 / 255)).masked_fill(flat, 1.0)
    return scaled.clamp(0, 255).to(torch.uint8)


def affine_grid(matrix: Sequence[float], height: int, width: int) -> Tensor:
    """Returns the positions that ``affine`` samples, float32 (1, H, W, 2), in halves of the image from its centre."""
    theta = torch.tensor(matrix, dtype=torch.float32, device="cpu").reshape(1, 2, 3)
    base = torch.ones(1, height, width, 3, device="cpu")
    for axis, length in ((0, width), (1, height)):
        line = torch.linspace((1.0 - length) * 0.5, (length - 1.0) * 0.5, steps=length, device="cpu")
        base[..., axis] = line if axis == 0 else line[:, None]
    halves = torch.tensor([0.5 * width, 0.5 * height], device="cpu")
    return base.view(1, height * width, 3).bmm(theta.transpose(1, 2) / halves).view(1, height, width, 2)


def sample_grid(values: Tensor, positions: Tensor, filter: str) -> Tensor:
    """``grid_sample`` as torchvision calls it."""
    return grid_sample(values, positions, mode=filter, padding_mode="zeros", align_corners=False)


def affine(
    values: Tensor, matrix: Sequence[float], filter: str, fill: Sequence[float] | None, api_version: int
) -> Tensor:
    """``affine`` to an image of the same size."""
    channels, height, width = values.shape[1:]
    positions, floats = affine_grid(matrix, height, width), values.to(torch.float32)
    if fill is None:
        return sample_grid(floats, positions, filter).round_().to(torch.uint8)
    inside = torch.ones((1, 1, height, width), device="cpu")
    mixed = sample_grid(torch.cat((floats, inside), dim=1), positions, filter)
    made, share = mixed[:, :-1], mixed[:, -1:]
    ground = torch.tensor(fill[:channels], dtype=torch.float32, device="cpu").view(1, -1, 1, 1)
    if filter == "nearest":
        made = torch.where(share < 0.5, ground, made)
    elif api_version == 1:
        made = made * share + (1.0 - share) * ground
    else:
        made = (made - ground) * share + ground
    return made.round().to(torch.uint8)
