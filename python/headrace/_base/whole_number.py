"""Checks arguments that must be integers."""

from __future__ import annotations

import operator
from typing import Any


def whole_number(name: str, value: Any, smallest: int | None = None) -> int:
    """Returns `value` as an int.

    Args:
        name: the argument's name, for messages.
        value: the argument; any type with ``__index__``, except bool.
        smallest: the smallest allowed value; None: no limit.

    Raises:
        TypeError: `value` is not an integer.
        ValueError: `value` is below `smallest`.
    """
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    number = operator.index(value)
    if smallest is not None and number < smallest:
        raise ValueError(f"{name} must be {smallest} or more, not {number}")
    return number
