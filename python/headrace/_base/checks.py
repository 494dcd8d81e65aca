"""Arguments that must be integers, or sizes in bytes: their checks, and defaults that differ from an equal value."""

from __future__ import annotations

import operator
import re
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


class Unasked(int):
    """A default of an argument that acts in another way than the same number given."""


_UNITS = {"": 1, "b": 1} | {
    letter.lower() + suffix: base**power
    for power, letter in enumerate("KMGTP", 1)
    for suffix, base in (("", 1000), ("b", 1000), ("ib", 1024))
}


def checked_size(size: int | str, name: str) -> int:
    """Returns a number of bytes. ``"100 GB"`` is 100 * 1000**3, ``"100 GiB"`` is 100 * 1024**3.

    Raises:
        ValueError: it is no size, or not positive.
    """
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", size) if isinstance(size, str) else None
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None or int(float(match[1]) * unit) <= 0:
        raise ValueError(f"{name} must be a number of bytes, or a text such as '100 GB' or '8 GiB', not {size!r}")
    return int(float(match[1]) * unit)
