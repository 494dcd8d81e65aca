"""Changes nested plain values, and the bytes of files."""

from __future__ import annotations

import copy
import random
from typing import Any

import torch

ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    3,
    2**31,
    2**63,
    2**70,
    -(2**70),
    1.5,
    float("nan"),
    "",
    "x",
    b"\x80\x04.",
    [],
    [None],
    {},
    {"version": 3},
    torch.zeros(0),
    torch.zeros(3, dtype=torch.uint8),
    torch.zeros((2, 2), dtype=torch.uint8),
    torch.zeros(5056, dtype=torch.uint8),
    torch.full((5056,), 255, dtype=torch.uint8),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns the paths to all values inside dicts and lists."""
    found: list[tuple[Any, ...]] = [path] if path else []
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], (*path, key))
    elif isinstance(value, (list, tuple)):
        for number, one in enumerate(value):
            found += places(one, (*path, number))
    return found


def changed(draw: random.Random, state: Any, others: list[Any]) -> Any:
    """Returns a copy with one to three changes: values replaced, removed, moved, or taken from another state."""
    state = copy.deepcopy(state)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        found = places(state)
        if not found:
            return state
        *path, last = draw.choice(found)
        inside = state
        for key in path:
            inside = inside[key]
        if isinstance(inside, tuple):
            continue
        how = draw.random()
        if how < 0.12:
            del inside[last]
        elif how < 0.2 and isinstance(inside, dict):
            inside[draw.choice(("more", "version", 7))] = draw.choice(ODD)
        elif how < 0.35:
            other = draw.choice(others)
            *there, key = draw.choice(places(other))
            for one in there:
                other = other[one]
            inside[last] = copy.deepcopy(other[key])
        else:
            inside[last] = _other(draw, inside[last])
    return state


def _other(draw: random.Random, value: Any) -> Any:
    if isinstance(value, bool) or draw.random() < 0.5:
        return draw.choice(ODD)
    if isinstance(value, int):
        return value + draw.choice((-(2**32), -100, -1, 1, 2, 7, 1000, 2**40))
    if isinstance(value, torch.Tensor) and value.numel() and value.dtype == torch.uint8:
        return draw.choice((value[:-1], value.int(), value.reshape(1, -1), value.flip(0), value + 1))
    if isinstance(value, str):
        return value[: draw.randrange(len(value) + 1)] + draw.choice(("", "0", "\0", "é"))
    return draw.choice(ODD)


def damaged(draw: random.Random, data: bytes) -> bytes:
    """Returns the bytes of a file with one to four of them changed, cut, doubled, or overwritten by those of others."""
    for _ in range(draw.choice((1, 1, 2, 4))):
        at, size = draw.randrange(len(data) + 1), draw.choice((1, 1, 2, 4, 8, 100))
        how = draw.randrange(6)
        if how == 0:
            data = data[:at]
        elif how == 1:
            data = data[:at] + data[at + size :]
        elif how == 2:
            data = data[:at] + data[at : at + size] + data[at:]
        elif how == 3:
            there = draw.randrange(len(data) + 1)
            data = data[:at] + data[there : there + size] + data[at + size :]
        else:
            data = data[:at] + bytes(draw.randrange(256) for _ in range(size)) + data[at + size :]
        data = data or b"\0"
    return data
