"""The main process's part of the reuse of shared memory: says which blocks of the workers it has freed.

A block is given back when its tensor dies, so that the worker finds it for its next batch. Where something else refers
to the memory then, or a thread of the process receives batches, the block is looked at with each later batch.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.multiprocessing import reductions

from headrace.base.living import Living
from headrace.fallback.shared_blocks import NUMBERS, is_possible, leaves, storage_of

_torchs: Any = reductions  # without type annotations


def _dies(received: Received | None, ends: Callable[[], bool] = sys.is_finalizing) -> None:
    if received is not None and not ends():  # then there are no modules any more
        received.dies()


class Received:
    """A block in a batch that the main process has received.

    Args:
        leaf: the tensor in the block.
        number: of the block, among all flags.
    """

    def __init__(self, leaf: torch.Tensor, number: int) -> None:
        self.number = number
        storage = storage_of(leaf)
        self._reference = _torchs.StorageWeakRef(storage)
        self._key = _torchs.fd_id(storage._share_fd_cpu_()[0])
        self._entry = _torchs.shared_cache.get(self._key)
        self._flags: Any = None
        # Called only when torch's tensor dies with the Python object: a graph or a capsule that needs it keeps both.
        me = weakref.ref(self)

        def died(_: object, dies: Any = _dies) -> None:
            dies(me())

        self._leaf = weakref.ref(leaf, died)

    def give_back_to(self, flags: Any) -> None:
        """From now on the flag is cleared when the tensor dies, if nothing else refers to its memory."""
        self._flags = flags

    def dies(self) -> None:
        """Called while the tensor dies."""
        if self._flags is not None and _users(self._reference) == _USERS_OF_NONE and not self.was_sent_on():
            self._flags[self.number] = 0
            self._flags = None

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


def _users(reference: Any) -> tuple[int, int]:
    """Numbers of the users of a storage: of those that torch counts, and of those of its Python object."""
    storage: Any = torch.UntypedStorage._new_with_weak_ptr(reference.cdata)
    return torch._C._storage_Use_Count(reference.cdata), sys.getrefcount(storage)


def _users_of_none() -> tuple[int, int]:
    """What `_users` returns while the last tensor dies; versions of torch differ in it."""
    found = []
    tensor = torch.empty(0)
    reference = _torchs.StorageWeakRef(tensor.untyped_storage())
    watch = weakref.ref(tensor, lambda _: found.append(_users(reference)))
    del tensor
    return found[0] if watch() is None and found else (0, 0)


_USERS_OF_NONE = _users_of_none() if is_possible() else (0, 0)


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
        for one in used:
            one.give_back_to(self._flags)
        self._used = [one for one in (*self._used, *used) if not one.is_given_back()]

    def give_up(self) -> None:
        """Never gives back the blocks that are in use."""
        self._used = []


_all: Living[ReturnedBlocks] = Living()


def _before_fork() -> None:
    """The child refers to what this process refers to, and this process does not learn when it ceases to."""
    for one in _all:
        one.give_up()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)


def blocks_of(batch: Any, worker: int, sent: list[tuple[int, int]]) -> list[Received]:
    """Returns the blocks of a worker in a received batch.

    Args:
        sent: what `SharedBlocks.finish` returned.
    """
    found = list(leaves(batch)) if sent else []
    return [Received(found[leaf], worker * NUMBERS + number) for leaf, number in sent]
