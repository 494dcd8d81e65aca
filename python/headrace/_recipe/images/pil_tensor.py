"""Converts PIL images to tensors of the same values, and back."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image


def pil_to_tensor(image: Image.Image) -> torch.Tensor:
    """Returns a copy of the image's values (C, H, W), in torchvision's memory layout: channels last."""
    pixels = np.array(image, copy=True).reshape(image.height, image.width, len(image.getbands()))
    return torch.from_numpy(pixels).permute(2, 0, 1)


_ONE_CHANNEL = {torch.uint8: "L", torch.int16: "I;16", torch.int32: "I", torch.float32: "F"}
_SEVERAL_CHANNELS = {2: ("LA",), 3: ("RGB", "YCbCr", "HSV"), 4: ("RGBA", "CMYK", "RGBX")}


def to_pil_image(tensor: torch.Tensor, mode: str | None = None) -> Image.Image:
    """Returns an image of the values of a tensor (C, H, W).

    Args:
        tensor: the values, in a dtype of Pillow's.
        mode: mode of the image. None: for one channel the mode of its dtype (L for uint8), otherwise LA, RGB or RGBA.

    Raises:
        ValueError: torchvision does not support the mode for this tensor, such as P, 1, or I;16 for uint16.
    """
    channels, height, width = tensor.shape
    permitted = _SEVERAL_CHANNELS.get(channels) or (_ONE_CHANNEL.get(tensor.dtype),)
    if mode is None:
        mode = permitted[0]
    if mode is None or mode not in permitted:
        raise ValueError(
            f"Incorrect mode ({mode}) supplied for {channels} channels of {tensor.dtype}; convert the "
            f"image to RGB or L first, by image.convert"
        )
    pixels = tensor.permute(1, 2, 0).contiguous().numpy()
    return Image.frombytes(mode, (width, height), pixels.data)
