"""Image processors of Hugging Face's transformers, those that work with torch: of a deferred image, a deferred tensor.

Their `process_image` turns an image into a tensor; the resize, crop and normalisation after it are torchvision's.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from headrace._base.types import Function
from headrace._loading.doors.image_to_tensor import defer_tensor
from headrace._loading.doors.tensors.memory_layout import Layout
from headrace.pillow.recording.patches import Replacements, method


def _defer_image(plain: Function) -> Function:
    @functools.wraps(plain)
    def process_image(self: Any, image: Any, *args: Any, **kwargs: Any) -> Any:
        made = None
        # Other modes, and RGB with a transparent colour, are converted; a device is not this machine's memory.
        if not args and kwargs.get("device") is None and is_rgb(image):

            def make(pixels: Any) -> torch.Tensor:
                tensor: torch.Tensor = plain(self, pixels, **kwargs)
                return tensor

            made = defer_tensor(image, Layout.PLANAR, make)
        return plain(self, image, *args, **kwargs) if made is None else made

    return process_image


def is_rgb(image: Any) -> bool:
    return getattr(image, "mode", None) == "RGB" and image.info.get("transparency") is None


STEPS: Replacements = Replacements(
    [method("transformers.image_processing_backends", "TorchvisionBackend", "process_image", _defer_image)]
)
