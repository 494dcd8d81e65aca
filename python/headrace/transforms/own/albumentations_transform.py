"""A Compose of albumentations as a transform of PIL images."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

from headrace.transforms._base import PIL_ALONE, Params, Transform


class AlbumentationsTransform(Transform):
    """Makes of a PIL image what a Compose of albumentations makes of its array; `from_albumentations` returns one.

    Called on an image (mode RGB or L), it returns ``compose(image=numpy.array(image))["image"]``: a tensor (C, H, W) if
    the Compose ends with ToTensorV2, otherwise an array (H, W, C).

    Args:
        compose: the Compose. Its transforms are read again for each epoch.

    Raises:
        TypeError: as `from_albumentations`.
    """

    _takes = PIL_ALONE
    _in_torchvision = False

    def __init__(self, compose: Any) -> None:
        super().__init__()
        if not type(compose).__module__.startswith("albumentations.") or not callable(compose):
            raise TypeError(f"compose must be a Compose of albumentations, not {type(compose).__name__}")
        self.compose = compose

    def transform(self, inpt: Image.Image, params: Params) -> Any:
        return self.compose(image=np.array(inpt))["image"]

    def extra_repr(self) -> str:
        return " ".join(repr(self.compose).split())


def from_albumentations(compose: Any) -> AlbumentationsTransform:
    """Returns a Compose of albumentations as a transform of PIL images, which a loader runs natively where it can.

    Native are Compose objects of RandomResizedCrop, Resize, SmallestMaxSize, LongestMaxSize, CenterCrop, RandomCrop,
    PadIfNeeded, HorizontalFlip, VerticalFlip and Normalize that end with ToTensorV2, with the arguments that
    docs/transforms.md lists: pixels are those of the installed OpenCV to the bit, and draws are headrace's, with
    albumentations' distributions. Any other Compose is called in Python; ``loader.explain()`` says why.

    Args:
        compose: ``albumentations.Compose([...])``, which is called as ``compose(image=array)["image"]``.

    Returns:
        A transform of PIL images of mode RGB or L.

    Raises:
        TypeError: it is not an object of albumentations.
    """
    return AlbumentationsTransform(compose)
