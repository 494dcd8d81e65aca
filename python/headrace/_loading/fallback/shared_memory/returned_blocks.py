"""The main process's part of the reuse of shared memory: says which blocks of the workers it has freed.

The blocks are looked at when a batch is asked for and when it is here. Not when a tensor dies: that would be a line of
Python in which Python ignores exceptions, Ctrl-C's among them.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

from torch.multiprocessing import reductions

from headrace._base.lifetimes.weak_list import Living
from headrace._loading.fallback.shared_memory.blocks import NUMBERS, Flags, Leaf, leaves, storage_of
from headrace._loading.fallback.shared_memory.small_tensors import Slots
from headrace.pillow.recording.image_counts import ImageCounts

_torchs: ModuleType = reductions  # without type annotations


class Received:
    """A block in a batch that the main process has received.

    Args:
        leaf: the tensor in the block.
        number: of the block, among all flags.
    """

    def __init__(self, leaf: Leaf, number: int) -> None:
        self.number = number
        storage: Any = storage_of(leaf)
        self._key = _torchs.fd_id(storage._share_fd_cpu_()[0])
        self._entry = _torchs.shared_cache.get(self._key)
        # torch's own reference where there is one: the end of each is a line of Python in a `__del__` of torch's.
        self._reference = _torchs.StorageWeakRef(storage) if self._entry is None else self._entry
        self._flags: Flags | None = None

    def give_back_to(self, flags: Flags) -> None:
        """From now on the flag is cleared once nothing refers to the memory."""
        self._flags = flags

    def is_given_back(self) -> bool:
        """Whether the flag has been cleared, or will never be; clears it if nothing refers to the memory any more."""
        if self._flags is None:
            return True
        if not self._reference.expired():
            return False
        if not self.was_sent_on():
            self._flags[self.number] = 0
        self._flags = None
        return True

    def was_sent_on(self) -> bool:
        """Whether this process may have sent the storage to another one, which can use it after this one has freed it.
        torch then makes a new entry in its table of shared storages."""
        return _torchs.shared_cache.get(self._key) is not self._entry


class BlocksInUse:
    """The blocks of workers that the main process still uses.

    Args:
        flags: see `make_flags`.
        slots: by which small tensors come, kept while batches arrive; None: these come as torch sends them.
    """

    def __init__(self, flags: Flags, slots: Slots | None = None) -> None:
        self._flags, self._slots = flags, slots
        self._used: list[Received] = []
        self.is_used = False  # whether there was a block
        _all.add(self)

    def add(self, used: list[Received]) -> None:
        """Adds the blocks of a batch that has arrived, and gives back the earlier blocks that have been freed since."""
        for one in used:
            one.give_back_to(self._flags)
        self._used += used
        self.is_used = self.is_used or bool(used)
        self.look()

    def look(self) -> None:
        """Gives back the blocks that have been freed."""
        if self._used:
            self._used = [one for one in self._used if not one.is_given_back()]

    def count_in(self, images: ImageCounts) -> None:
        """Notes there what has come by slots, and whether anything has come by blocks."""
        images.small_tensors = 0 if self._slots is None else self._slots.taken
        images.has_large_tensors = self.is_used

    def give_up(self) -> None:
        """Never gives back the blocks that are in use."""
        self._used = []


_all: Living[BlocksInUse] = Living()


def _before_fork() -> None:
    """The child refers to what this process refers to, and this process does not learn when it ceases to."""
    for one in _all:
        one.give_up()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)


def blocks_of(batch: object, worker: int, sent: list[tuple[int, int]]) -> list[Received]:
    """Returns the blocks of a worker in a received batch.

    Args:
        sent: what `SharedBlocks.finish` returned.
    """
    found = list(leaves(batch)) if sent else []
    return [Received(found[leaf], worker * NUMBERS + number) for leaf, number in sent]
