"""The transforms of a soak, each with the loader's arguments that belong to it."""

from __future__ import annotations

from typing import Any

import torch

from headrace import transforms as T

SEED = 20  # of all loaders: order and augmentation depend on it, the epoch and the sample alone


def _gamma(image: Any) -> Any:
    """A step that headrace calls in Python."""
    return image.point([255 - value for value in range(256)] * 3)


def recipe(name: str) -> tuple[Any, dict[str, Any]]:
    """Returns the transform and the arguments of a recipe."""
    crop, flip = T.RandomResizedCrop(16), T.RandomHorizontalFlip()
    values = [T.ToTensor(), T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
    if name == "train":
        return T.Compose([crop, flip, *values]), {}
    if name == "evaluate":
        return T.Compose([T.Resize(20), T.CenterCrop(16), *values]), {}
    if name == "colours":
        jitter = T.ColorJitter(0.4, 0.4, 0.4, 0.1)
        return T.Compose([crop, flip, jitter, *values, T.RandomErasing(0.3)]), {"dtype": torch.bfloat16}
    if name == "policy":
        return T.Compose([crop, T.TrivialAugmentWide(), *values]), {"memory_format": torch.channels_last}
    if name == "python":
        return T.Compose([T.RandomResizedCrop(20), _gamma, T.CenterCrop(16), T.ToTensor()]), {}
    if name == "views":
        blurred = T.Compose([T.RandomResizedCrop(12), T.GaussianBlur(3), T.ToTensor()])
        return T.Views([T.Compose([crop, flip, T.ToTensor()]), blurred]), {}
    raise ValueError(f"there is no recipe {name!r}")


RECIPES = ("train", "evaluate", "colours", "policy", "python", "views")
