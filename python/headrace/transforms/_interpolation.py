"""Names of Pillow's six filters, and every way in which torchvision lets one say them."""

from __future__ import annotations

import enum

from headrace.recipe.steps import FILTERS


class InterpolationMode(enum.Enum):
    """torchvision's modes; on PIL images, NEAREST_EXACT is NEAREST."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


#: What an `interpolation` argument may be.
Interpolation = str | int | enum.Enum

_BY_NUMBER = {number: name for name, number in FILTERS.items()}


def filter_name(interpolation: Interpolation) -> str:
    """The recipe's name of a filter.

    Args:
        interpolation: a mode of headrace's or torchvision's enum, its value, or Pillow's number.

    Raises:
        ValueError: none of these.
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
