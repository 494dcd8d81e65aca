"""Names of Pillow's six resampling filters, and the conversion from torchvision's `interpolation` arguments."""

from __future__ import annotations

import enum

from headrace._recipe.steps.steps import FILTERS


class InterpolationMode(enum.Enum):
    """torchvision's interpolation modes. On PIL images NEAREST_EXACT equals NEAREST."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


#: Types of an `interpolation` argument.
Interpolation = str | int | enum.Enum

_BY_NUMBER = {number: name for name, number in FILTERS.items()}


def filter_name(interpolation: Interpolation) -> str:
    """Returns the recipe's name of a filter.

    Args:
        interpolation: a member of headrace's or torchvision's enum, its value, or Pillow's number.

    Raises:
        ValueError: `interpolation` is none of these.
    """
    value = interpolation.value if isinstance(interpolation, enum.Enum) else interpolation
    if isinstance(value, int) and not isinstance(value, bool) and value in _BY_NUMBER:
        return _BY_NUMBER[value]
    if value == "nearest-exact":
        return "nearest"
    if isinstance(value, str) and value in FILTERS:
        return value
    if isinstance(value, str):
        names = [mode.value for mode in InterpolationMode]
        raise ValueError(f"Invalid interpolation mode: '{value}'. Supported string values are: {names}.")
    raise ValueError(
        "Argument interpolation should be an `InterpolationMode` or a corresponding Pillow integer constant, "
        f"but got {interpolation}."
    )
