"""The arguments of size, padding and fill, checked and kept as torchvision v2 keeps them."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, cast

from headrace.pixels import pillow_ops

Size = int | Sequence[int]
#: One number, or one a channel; None is 0.
Fill = float | Sequence[float] | None
Fills = Fill | dict[type | str, Fill]

_TWO = "Please provide only two dimensions (h, w) for size."


def pair(size: Size, refusal: str = _TWO) -> Sequence[int]:
    """A transform's `size` as two numbers; two that were given are kept as they are.

    Raises:
        ValueError: `refusal`, where there are more. TypeError: neither a number nor a sequence.
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
    """Raises ValueError for what is neither a whole number nor 1, 2 or 4 of them in a tuple or list."""
    several = isinstance(padding, (tuple, list))
    if not (
        len(padding) in (1, 2, 4) and all(isinstance(one, int) for one in padding)
        if several
        else isinstance(padding, int)
    ):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element of tuple or list, got {padding}.")


def check_padding_mode(mode: str) -> None:
    """Raises ValueError for another mode than torchvision's four."""
    if mode not in pillow_ops.PADDING_MODES:
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")


def fills_by_class(fill: Fills) -> dict[type | str, Fill]:
    """A `fill` argument as a dict by class, of which "others" is all that it does not name.

    Raises:
        TypeError: a fill that is none.
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
    """The fill of an image of this very class; None where the dict has none."""
    return fills.get(cls, fills.get("others"))
