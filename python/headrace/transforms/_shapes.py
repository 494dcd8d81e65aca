"""Checks the arguments `size`, `padding` and `fill`, and stores them as torchvision v2 does."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, cast

from headrace._recipe.arithmetic import pillow_ops

Size = int | Sequence[int]
#: One number or one per channel; None means 0.
Fill = float | Sequence[float] | None
Fills = Fill | dict[type | str, Fill]

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


def check_padding(padding: Any) -> None:
    """Raises ValueError unless `padding` is an int, or a tuple or list of 1, 2 or 4 ints."""
    several = isinstance(padding, (tuple, list))
    if not (
        len(padding) in (1, 2, 4) and all(isinstance(one, int) for one in padding)
        if several
        else isinstance(padding, int)
    ):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element of tuple or list, got {padding}.")


def check_padding_mode(mode: str) -> None:
    """Raises ValueError unless `mode` is one of torchvision's four."""
    if mode not in pillow_ops.PADDING_MODES:
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")


def fills_by_class(fill: Fills) -> dict[type | str, Fill]:
    """Returns a `fill` argument as a dict of class to fill, with "others" for all classes that it does not name.

    Raises:
        TypeError: a fill is not a number, tuple, list or None.
    """
    given: dict[type | str, Any] = fill if isinstance(fill, dict) else {"others": fill}
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
