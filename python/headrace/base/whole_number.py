"""Arguments that are whole numbers."""

from __future__ import annotations

import operator
from typing import Any


def whole_number(name: str, value: Any, smallest: int | None = None) -> int:
    """`value` as an int.

    Raises:
        TypeError: it is none. ValueError: it is below `smallest`.
    """
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    number = operator.index(value)
    if smallest is not None and number < smallest:
        raise ValueError(f"{name} must be {smallest} or more, not {number}")
    return number
