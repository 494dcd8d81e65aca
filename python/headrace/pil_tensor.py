"""PIL images as tensors of their bytes, and back."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image


def pil_to_tensor(image: Image.Image) -> torch.Tensor:
    """A copy of the image's values (C, H, W), which lie as torchvision's do: the channels of a pixel side by side."""
    pixels = np.array(image, copy=True).reshape(image.height, image.width, len(image.getbands()))
    return torch.from_numpy(pixels).permute(2, 0, 1)


def to_pil_image(tensor: torch.Tensor) -> Image.Image:
    """An image of mode RGB, or L for one channel, of uint8 (C, H, W)."""
    pixels = tensor.permute(1, 2, 0).contiguous().numpy()
    return Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[..., 0])
