"""Checks the arguments `size`, `padding`, `fill` and `interpolation`, and stores them as torchvision v2 does."""

from __future__ import annotations

import enum
import numbers
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from headrace._recipe.arithmetic import functional_pil
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


Size = int | Sequence[int]
#: One number or one per channel; None means 0.
Fill = float | Sequence[float] | None
Fills = Fill | dict[type | str, Fill]
#: A transform of an image, or of an image and one more value. With `...` in place of their types, a type checker would
#: not know the parameters of a lambda.
Step: TypeAlias = Callable[[Any], object] | Callable[[Any, Any], object]

_TWO = "Please provide only two dimensions (h, w) for size."


def pair(size: Size, refusal: str = _TWO) -> Sequence[int]:
    """Returns a `size` argument as two numbers; a sequence of two is returned unchanged.

    Raises:
        ValueError: with the message `refusal`, if the sequence has another length.
        TypeError: `size` is neither a number nor a sequence.
    """
    if isinstance(size, numbers.Number):
        return int(cast(int, size)), int(cast(int, size))
    size = cast(Sequence[int], size)
    if isinstance(size, Sequence) and len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError(refusal)
    return size


def check_padding(padding: object) -> None:
    """Raises ValueError unless `padding` is an int, or a tuple or list of 1, 2 or 4 ints."""
    ones = padding if isinstance(padding, (tuple, list)) and len(padding) in (1, 2, 4) else (padding,)
    if not all(isinstance(one, int) for one in ones):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element of tuple or list, got {padding}.")


def check_padding_mode(mode: str) -> None:
    """Raises ValueError unless `mode` is one of torchvision's four."""
    if mode not in functional_pil.PADDING_MODES:
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")


def fills_by_class(fill: Fills) -> dict[type | str, Fill]:
    """Returns a `fill` argument as a dict of class to fill, with "others" for all classes that it does not name.

    Raises:
        TypeError: a fill is not a number, tuple, list or None.
    """
    given: dict[type | str, Fill] = fill if isinstance(fill, dict) else {"others": fill}
    for value in given.values():
        if value is not None and not isinstance(value, (numbers.Number, tuple, list)):
            raise TypeError("Got inappropriate fill arg, only Numbers, tuples, lists and dicts are allowed.")
    return {
        cls: value if value is None or isinstance(value, (int, float)) else [float(one) for one in value]
        for cls, value in given.items()
    }


def fill_of(fills: dict[type | str, Fill], cls: type) -> Fill:
    """Returns the fill of an image of exactly this class; None if the dict has no entry for it."""
    return fills.get(cls, fills.get("others"))
