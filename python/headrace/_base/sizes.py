"""Sizes in bytes, as people write them."""

from __future__ import annotations

import re

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
