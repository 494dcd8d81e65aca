"""PIL images as tensors of their bytes, and back."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image


def pil_to_tensor(image: Image.Image) -> torch.Tensor:
    """A copy of the image's values (C, H, W), which lie as torchvision's do: the channels of a pixel side by side."""
    pixels = np.array(image, copy=True).reshape(image.height, image.width, len(image.getbands()))
    return torch.from_numpy(pixels).permute(2, 0, 1)


_ONE_CHANNEL = {torch.uint8: "L", torch.int16: "I;16", torch.int32: "I", torch.float32: "F"}
_SEVERAL_CHANNELS = {2: ("LA",), 3: ("RGB", "YCbCr", "HSV"), 4: ("RGBA", "CMYK", "RGBX")}


def to_pil_image(tensor: torch.Tensor, mode: str | None = None) -> Image.Image:
    """An image of a tensor (C, H, W) of Pillow's values.

    Args:
        mode: of the image; None: RGB, or L for one channel, of uint8.

    Raises:
        ValueError: a mode that torchvision makes no image of, as P, 1 and I;16 of uint16.
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
