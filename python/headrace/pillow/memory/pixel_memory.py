"""Memory of finished pixels that is used again, in worker processes, when nothing refers to it any more.

The samples of a batch are allocated and freed together. The C library returns so much memory to the kernel each time,
which clears its pages for the next batch: a fifth of a worker's time. In other processes, whose memory is the user's,
arrays are NumPy's.
"""

from __future__ import annotations

import math
import mmap
import os
import threading
from collections import OrderedDict

import numpy as np

from headrace._base.native import core
from headrace._base.types import Array
from headrace.pillow.memory.batch_memory import SamplePlaces

LEAST = 1 << 17  # bytes; the C library keeps smaller pieces itself
MOST = 1 << 26  # bytes that are kept unused
_MAX_IDLE_BATCHES = 1  # free a block unused for this many batches
_CLASSES = 8  # sizes between two powers of two, so that images of about the same size use the same memory


class _Memory:
    """Mapped memory. Not the C library's, which would keep it when it is freed."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._bytes = np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
        self.address: int = self._bytes.ctypes.data


class _Piece:
    """Lends memory to an array: NumPy refers to this object until nothing refers to the array or to a view of it."""

    def __init__(self, of: PixelMemory, memory: _Memory) -> None:
        self._of, self._memory = of, memory

    def __del__(self) -> None:
        self._of.take_back(self._memory)


class PixelMemory:
    """Makes arrays. Any thread may make and free them.

    Args:
        places: of samples in their batches, which come first.
    """

    def __init__(self, places: SamplePlaces | None = None) -> None:
        self._places = places
        self._process = os.getpid()
        self._lock = threading.RLock()  # the garbage collector may call `take_back` where this thread holds it
        # By size, each with the number of the batch in which it was used; those used last at the end.
        self._unused: OrderedDict[int, list[tuple[_Memory, int]]] = OrderedDict()
        self._bytes = 0  # unused
        self._batch = 0

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
        """Returns an array, as ``numpy.empty``."""
        if self._places is None or self._process != os.getpid():
            return self._allocate_array(shape, dtype, _CLASSES)
        array = self._places.take(shape, dtype)
        if array is None:
            array = self._allocate_array(shape, dtype, _CLASSES)
            self._places.has_other(array)
        return array

    def empty_for_a_while(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
        """The same, for arrays of many sizes that are used one after the other: they share a piece of memory, whose
        pages after an array are not touched."""
        return self._allocate_array(shape, dtype, 1)

    def _allocate_array(self, shape: tuple[int, ...], dtype: np.dtype[np.generic], classes: int) -> Array:
        needed = math.prod(shape) * dtype.itemsize
        if needed < LEAST or self._process != os.getpid():
            return np.empty(shape, dtype)
        step = 1 << (needed - 1).bit_length() - classes.bit_length()
        size = -(-needed // step) * step
        memory = self._take_piece(size) or _Memory(size)  # the pages after `needed` are never touched
        return core.array_over(memory.address, shape, dtype, _Piece(self, memory))

    def take_back(self, memory: _Memory) -> None:
        """Called when nothing refers to an array in `memory` any more."""
        if self._process != os.getpid():  # a child; another thread of its parent may have held the lock
            return
        with self._lock:
            self._unused.setdefault(memory.size, []).append((memory, self._batch))
            self._bytes += memory.size
            while self._bytes > MOST:
                self._free_piece(next(iter(self._unused)))  # not used for the longest time

    def next_batch(self) -> None:
        """Called when all samples of a batch have been made; gives up what the last batches did not need."""
        with self._lock:
            self._batch += 1
            for size in list(self._unused):
                while size in self._unused and self._unused[size][0][1] < self._batch - _MAX_IDLE_BATCHES:
                    self._free_piece(size)

    def count_unused(self) -> dict[int, int]:
        """Returns the number of unused pieces of each size in bytes."""
        with self._lock:
            return {size: len(found) for size, found in self._unused.items()}

    def _free_piece(self, size: int) -> None:
        pieces = self._unused[size]
        del pieces[0]
        self._bytes -= size
        if not pieces:
            del self._unused[size]

    def _take_piece(self, size: int) -> _Memory | None:
        with self._lock:
            found = self._unused.get(size)
            if found is None:
                return None
            memory, _ = found.pop()
            self._bytes -= size
            if found:
                self._unused.move_to_end(size)
            else:
                del self._unused[size]
            return memory


_memory: PixelMemory | None = None


def use_again(places: SamplePlaces | None = None) -> None:
    """Makes `empty` use memory again in this process, and no longer in its parent's memory that a fork has copied."""
    global _memory
    _memory = PixelMemory(places)


def empty(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """Returns an array, as ``numpy.empty``."""
    return np.empty(shape, dtype) if _memory is None else _memory.empty(shape, dtype)


def empty_for_a_while(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """See `PixelMemory.empty_for_a_while`."""
    return np.empty(shape, dtype) if _memory is None else _memory.empty_for_a_while(shape, dtype)


def next_batch() -> None:
    """See `PixelMemory.next_batch`."""
    if _memory is not None:
        _memory.next_batch()
