"""The header of a tar member: whether a block is one, and of which member."""

from __future__ import annotations

import os

BLOCK = 512


def is_header_of(file: int, offset: int, length: int, name: str) -> bool:
    """Whether the header of a member lies in front of its bytes, and has its name where this header holds it. The case
    of letters is not compared."""
    return is_header_named(os.pread(file, BLOCK, offset - BLOCK), length, name)


def is_header_named(block: bytes, length: int, name: str) -> bool:
    """As `is_header_of`, of the bytes of a header. Raises ValueError where it holds no numbers."""
    if not is_header(block, length):
        return False
    whole = os.fsencode(name)
    own = block[:100].split(b"\0")[0]
    # Longer names, and in some formats those that are not ASCII, lie in headers of their own.
    return len(whole) >= 100 or not whole.isascii() or whole.lower().endswith(own.lower())


def is_header(block: bytes, length: int) -> bool:
    """Whether a block is the header of a member of so many bytes. Raises ValueError where it holds no numbers."""
    if len(block) != BLOCK or _octal(block[148:156]) != sum(block[:148]) + sum(block[156:]) + 8 * 32:
        return False
    return bool(block[124] & 0x80) or _octal(block[124:136]) == length


def _octal(field: bytes) -> int:
    return int(field.split(b"\0")[0].strip() or b"0", 8)
