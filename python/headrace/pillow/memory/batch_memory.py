"""Places of samples in the batch that they are going to be part of: a worker process makes their values there.

torch's default_collate copies the samples to a batch in shared memory. If the allocations of a batch turn out to be
those of the next one, too, a sample's memory is its place in a block of shared memory that nothing uses, and the batch
is that block. A block may become free in the middle of a batch: then the samples before are copied to their places.

Nothing may notice the difference. So a sample stays where it is only if the list that default_collate gets is the only
object that refers to it, by the counts of all references; else all samples are copied to other memory, as torch does.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from headrace._base.lifetimes.weak_list import Living
from headrace._base.native import core
from headrace._base.types import Array
from headrace.pillow.memory.sole_tensors import find_sole_tensors

_ALIGNED = 64  # bytes; places of other sizes would not be aligned as memory of torch's is
_MOST_MISSES = 3  # batches that were not made as expected, until samples get memory of their own for good


class _Block:
    """A block that samples are written to."""

    def __init__(self, storage: torch.UntypedStorage, size: int) -> None:
        self.storage, self.size = storage, size
        self.address, self.bytes = storage.data_ptr(), storage.nbytes()
        self.lent: set[int] = set()  # places whose arrays live

    def holds(self, address: int) -> bool:
        return bool(self.address <= address < self.address + self.bytes)


class _Place:
    """Lends a place to an array: NumPy refers to this object until nothing refers to the array or to a view of it."""

    def __init__(self, block: _Block, number: int) -> None:
        self._block, self._number = block, number

    def __del__(self) -> None:
        self._block.lent.discard(self._number)


class SamplePlaces:
    """The places of one worker. Any thread may allocate; the samples of a batch must be allocated in order.

    Args:
        unused: returns the storage of a block of this number of bytes that nothing uses, or None.
        least: bytes of the smallest block.
    """

    def __init__(self, unused: Callable[[int], torch.UntypedStorage | None], least: int) -> None:
        self._unused, self._least = unused, least
        self._lock = threading.RLock()
        self._count = 0  # samples of a batch
        self._ranks: dict[int, dict[int, bool]] = {}  # by size: of each of a sample's allocations, whether it is used
        self._made: Counter[int] = Counter()  # allocations for this batch, by size
        self._addresses: dict[int, list[int]] = {}  # theirs, until `_ranks` are known
        self._blocks: dict[tuple[int, int], _Block] = {}  # of this batch, by size and rank
        self._misses = 0
        self._collating = False
        self._sole: set[int] = set()  # the tensors that only the samples refer to
        self._list_references = 0  # to a list of samples that only torch's fetcher refers to
        _all.add(self)

    # ---- while samples are made --------------------------------------------------------------------------------------

    def take(self, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array | None:
        """Returns an array at the next place; None if it has none."""
        size = math.prod(shape) * dtype.itemsize
        with self._lock:
            ranks = self._ranks.get(size)
            if ranks is None or self._collating:
                return None
            number, rank = divmod(self._made[size], len(ranks))
            self._made[size] += 1
            block = self._blocks.get((size, rank))
            if number >= self._count or not ranks[rank]:
                return None
            if block is None:
                storage = self._unused(size * self._count)
                if storage is None:
                    return None
                block = self._blocks[size, rank] = _Block(storage, size)
            if number in block.lent:
                return None
            block.lent.add(number)
            return core.array_over(block.address + number * size, shape, dtype, _Place(block, number))

    def has_other(self, array: Array) -> None:
        """Must be called with an array for which `take` has returned None."""
        with self._lock:
            if not self._ranks and self._misses < _MOST_MISSES and not self._collating:
                self._addresses.setdefault(array.nbytes, []).append(array.ctypes.data)

    # ---- while they are collated -------------------------------------------------------------------------------------

    def begin(self, samples: object, references: int) -> None:
        """Called with what default_collate is going to get, and the number of the references to it.

        The first call, with samples to which nothing else refers, shows how many references these are.
        """
        with self._lock:
            self._collating = True
            if not self._list_references:
                self._list_references = references
            elif type(samples) is list and self._misses < _MOST_MISSES:
                if not self._ranks:
                    self._find_allocations(samples)
                elif len(samples) == self._count and references == self._list_references:
                    self._sole = set(map(id, find_sole_tensors(samples)))

    def are_used(self) -> bool:
        """Whether some samples of this batch are in their places."""
        return bool(self._blocks)

    def batch_of(self, samples: Sequence[Any]) -> torch.Tensor | None:
        """Returns the block that holds the samples, as their batch, after copying those outside of it to their places;
        None: torch must copy all of them."""
        addresses = [one.data_ptr() if type(one) is torch.Tensor and not one.is_sparse else 0 for one in samples]
        with self._lock:
            found = [key for key, block in self._blocks.items() if any(map(block.holds, addresses))]
            if len(found) != 1:
                return None
            block, first = self._blocks[found[0]], samples[0]
            outside = []
            for number, (one, address) in enumerate(zip(samples, addresses, strict=True)):
                if type(one) is not torch.Tensor or one.dtype is not first.dtype or one.shape != first.shape:
                    return None
                if one.requires_grad or one.nbytes != block.size or len(samples) != self._count:
                    return None
                if address != block.address + number * block.size:
                    outside.append(number)
                elif id(one) not in self._sole or not one.is_contiguous():
                    return None
            if any(block.holds(addresses[number]) or number in block.lent for number in outside):
                return None
            del self._blocks[found[0]]
        empty: Any = torch.empty(0, dtype=first.dtype)
        batch: torch.Tensor = empty.set_(block.storage, 0, (len(samples), *first.shape))
        for number in outside:
            batch[number].copy_(samples[number])
        return batch

    def finish(self, samples: int) -> None:
        """Called with the number of the samples when their batch has been made, and before others are."""
        with self._lock:
            self._collating = False
            if self._ranks and samples == self._count:
                self._misses = self._misses + 1 if self._blocks else 0
            if self._misses >= _MOST_MISSES:
                self._ranks = {}
            self._blocks.clear()
            self._made.clear()
            self._addresses.clear()
            self._sole = set()

    def _find_allocations(self, samples: list[object]) -> None:
        """Finds the allocations whose memory is that of a tensor in each sample."""
        tensors = [list(_tensors(one)) for one in samples]
        if len(samples) < 2 or any(len(one) != len(tensors[0]) for one in tensors):
            return
        self._misses += 1  # until allocations are found
        for several in zip(*tensors, strict=True):
            size = several[0].nbytes
            addresses = self._addresses.get(size, [])
            every = len(addresses) // len(samples)
            if size % _ALIGNED or size * len(samples) < self._least or every * len(samples) != len(addresses):
                continue
            found = [one.data_ptr() for one in several if one.nbytes == size and one.is_contiguous()]
            for rank in range(every):
                if addresses[rank::every] == found:
                    self._ranks.setdefault(size, dict.fromkeys(range(every), False))[rank] = True
                    self._misses = 0
        self._count = len(samples)

    def _leave_to_child(self) -> None:
        """In a child process, which has to have a copy of the samples that this process is making."""
        for block in self._blocks.values():
            _make_private(block)
        self._blocks, self._ranks, self._misses = {}, {}, _MOST_MISSES
        self._lock = threading.RLock()  # another thread may have held it


def _tensors(sample: object) -> Iterator[torch.Tensor]:
    if type(sample) is torch.Tensor:
        if sample.layout is torch.strided and sample.device.type == "cpu":
            yield sample
    elif type(sample) is dict:
        for one in sample.values():
            yield from _tensors(one)
    elif type(sample) is list or type(sample) is tuple:
        for one in sample:
            yield from _tensors(one)


def _make_private(block: _Block) -> None:
    """Puts a copy of a block's memory in its place, which no other process sees."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    copy = ctypes.string_at(block.address, block.bytes)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10  # MAP_FIXED
    libc.mmap(block.address, block.bytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    ctypes.memmove(block.address, copy, block.bytes)


_all: Living[SamplePlaces] = Living()


def _after_fork() -> None:
    for one in _all:
        one._leave_to_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
