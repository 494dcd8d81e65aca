"""A sequence of paths packed into one bytes object: one Python object per path would take three times the memory."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt


class PackedPaths(Sequence[str]):
    """An immutable sequence of paths, stored zero-terminated in one bytes object.

    Raises:
        ValueError: a path contains a zero byte.
    """

    def __init__(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        packed, offsets = bytearray(), array("Q")
        for path in paths:
            encoded = os.fsencode(path)
            if b"\0" in encoded:
                raise ValueError(f"a path holds a zero byte: {path!r}")
            offsets.append(len(packed))
            packed += encoded
            packed.append(0)
        self.packed: bytes = bytes(packed)
        self.offsets: npt.NDArray[np.uint64] = np.frombuffer(offsets, dtype=np.uint64).copy()

    @classmethod
    def of_packed(cls, packed: bytes, offsets: npt.NDArray[np.uint64]) -> PackedPaths:
        """Returns the paths that begin at `offsets` in `packed` and end before its next zero byte."""
        made = cls(())
        made.packed, made.offsets = packed, offsets
        return made

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        begin = int(self.offsets[index])
        return os.fsdecode(self.packed[begin : self.packed.index(0, begin)])
