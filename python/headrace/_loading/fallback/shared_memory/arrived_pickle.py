"""A pickle of `SentOnce` in a process that it was sent to, which needs nothing else of headrace's for it."""

from __future__ import annotations

import mmap
import os
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

ALIGNMENT = 64  # bytes, of the place of a buffer

_arriving: list[tuple[list[Any], list[object]]] = []  # handles, and what is outside, of the pickles that are loaded


def find_handle(number: int) -> Any:
    """What a pickle has in place of a descriptor: returns the object that gives it."""
    return _arriving[-1][0][number]


def find_outside(number: int) -> object:
    """What a pickle has in place of an object that came beside it."""
    return _arriving[-1][1][number]


def load(stream: Any, size: int, buffers: Any, handles: list[Any], outside: list[object]) -> Any:
    """Returns the objects.

    Args:
        stream: the pickle, with the lengths of the buffers after it: bytes, or what gives a descriptor.
        size: of the pickle, in bytes.
        buffers: what gives a descriptor of the buffers' memory; None: there are none.
        handles: what gives the descriptors that the pickle refers to.
        outside: the objects that it refers to.
    """
    _arriving.append((handles, outside))
    memory = None if isinstance(stream, bytes) else _map(stream.detach(), mmap.PROT_READ)
    try:
        with memoryview(stream if memory is None else memory) as whole, whole[:size] as pickled, whole[size:] as rest:
            with rest.cast("q") as lengths:
                found = () if buffers is None else _cut(buffers.detach(), list(lengths))
            return pickle.loads(pickled, buffers=found)
    finally:
        _arriving.pop()
        if memory is not None:
            memory.close()


def _cut(descriptor: int, lengths: Sequence[int]) -> Iterator[memoryview]:
    """Yields the buffers, in memory that lasts as long as one of them."""
    whole, at = memoryview(_map(descriptor, mmap.PROT_READ | mmap.PROT_WRITE)), 0
    for length in lengths:
        yield whole[at : at + length]
        at += length + -length % ALIGNMENT


def _map(descriptor: int, access: int) -> mmap.mmap:
    """Maps a file, so that what this process writes remains its own; closes the descriptor."""
    try:
        return mmap.mmap(descriptor, 0, flags=mmap.MAP_PRIVATE, prot=access)
    finally:
        os.close(descriptor)
