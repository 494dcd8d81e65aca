"""The main process's part of the reuse of shared memory: says which blocks of the workers it has freed."""

from __future__ import annotations

import os
import weakref
from typing import Any

from torch.multiprocessing import reductions

from headrace.fallback.shared_blocks import NUMBERS, leaves, storage_of

_torchs: Any = reductions  # without type annotations


class Received:
    """A block in a batch that the main process has received.

    Args:
        storage: the block's.
        number: of the block, among all flags.
    """

    def __init__(self, storage: Any, number: int) -> None:
        self.number = number
        self._reference = _torchs.StorageWeakRef(storage)
        self._key = _torchs.fd_id(storage._share_fd_cpu_()[0])
        self._entry = _torchs.shared_cache.get(self._key)

    def is_freed(self) -> bool:
        """Whether nothing in this process refers to the storage any more."""
        return bool(self._reference.expired())

    def was_sent_on(self) -> bool:
        """Whether this process may have sent the storage to another one, which can use it after this one has freed it.
        torch then makes a new entry in its table of shared storages."""
        return _torchs.shared_cache.get(self._key) is not self._entry


class ReturnedBlocks:
    """The blocks that the main process uses.

    Args:
        flags: see `make_flags`.
    """

    def __init__(self, flags: Any) -> None:
        self._flags = flags
        self._used: list[Received] = []
        _all.add(self)

    def received(self, used: list[Received]) -> None:
        """Called with the blocks of a batch; gives back those that have been freed."""
        still = []
        for one in (*self._used, *used):
            if not one.is_freed():
                still.append(one)
            elif not one.was_sent_on():
                self._flags[one.number] = 0
        self._used = still

    def give_up(self) -> None:
        """Never gives back the blocks that are in use."""
        self._used = []


_all: weakref.WeakSet[ReturnedBlocks] = weakref.WeakSet()


def _before_fork() -> None:
    """The child refers to what this process refers to, and this process does not learn when it ceases to."""
    for one in list(_all):
        one.give_up()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)


def blocks_of(batch: Any, worker: int, sent: list[tuple[int, int]]) -> list[Received]:
    """Returns the blocks of a worker in a received batch.

    Args:
        sent: what `SharedBlocks.finish` returned.
    """
    found = list(leaves(batch)) if sent else []
    return [Received(storage_of(found[leaf]), worker * NUMBERS + number) for leaf, number in sent]
