"""Shared memory of worker processes that is used again: for batches whose predecessors the main process has freed.

torch collates each batch of a worker into new shared memory. The kernel has to clear its pages, and a fault for each of
them costs more than writing it: 0.5 ms for an image of 224 x 224 on a virtual machine. So a worker keeps the storages
that its collate_fn was given, and gives them out again when nothing in the worker refers to one any more, and the main
process has said that nothing there does. The main process looks at its storages each time it gets a batch. A tensor
that collate_fn has made in other memory is copied to such a storage, where torch would copy it to new shared memory.

Note [parts]: where the sizes of batches differ, the first bytes of a larger block are mapped once more, as a storage of
the size that torch's would have. Values are written through the first mapping, whose pages are there already.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from ctypes import Array, c_ubyte
from multiprocessing.sharedctypes import RawArray
from types import ModuleType
from typing import Any, TypeAlias, TypeVar

import torch
from PIL import Image
from torch.multiprocessing import reductions

from headrace._base.lifetimes.weak_list import Living
from headrace._loading.fallback.worker_wrappers import Carried
from headrace._loading.records.record_batch import RecordedBatch

T = TypeVar("T")
Leaf: TypeAlias = "torch.Tensor | Image.Image"
Flags: TypeAlias = "Array[c_ubyte]"

_torchs: ModuleType = reductions  # without type annotations
LEAST = 1 << 18  # bytes; below this, reuse saves nothing
_MOST = 64  # blocks of a worker
_MAX_IDLE_BATCHES = 8  # a worker frees a block that is unused for this many batches
_MOST_UNUSED = 2  # the largest ratio of a block to what is stored in it
NUMBERS = 4096  # for these; a block that the main process never gives back costs one


def leaves(batch: object, seen: set[int] | None = None) -> Iterator[Leaf]:
    """Yields the tensors and images in a batch: in lists, tuples and mappings, also one that carries a state.

    Args:
        seen: ids of the containers that were looked through, which a batch may have in several places, or in itself.
    """
    if isinstance(batch, (torch.Tensor, Image.Image)):
        yield batch
    elif isinstance(batch, (Mapping, list, tuple)):
        seen = set() if seen is None else seen
        if id(batch) not in seen:
            seen.add(id(batch))
            for one in batch.values() if isinstance(batch, Mapping) else batch:
                yield from leaves(one, seen)
    elif isinstance(batch, Carried):
        yield from leaves(batch.batch, seen)
    elif isinstance(batch, RecordedBatch):
        yield batch.files
        yield from leaves(batch.batch, seen)


def storage_of(leaf: object) -> torch.UntypedStorage | None:
    """The storage of a tensor in this machine's memory; None for other leaves."""
    if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided and leaf.device.type == "cpu":
        return leaf.untyped_storage()
    return None


def _is_large(leaf: object) -> bool:
    return type(leaf) is torch.Tensor and leaf.numel() * leaf.itemsize >= LEAST


def make_flags(workers: int) -> Flags:
    """Returns a byte for each block of each worker, in shared memory: whether the main process uses the block."""
    return RawArray(c_ubyte, workers * NUMBERS)


class _Block:
    def __init__(self, number: int, storage: torch.UntypedStorage) -> None:
        self.number, self.storage = number, storage
        self._whole: torch.UntypedStorage | None = None  # of which `storage` is a part
        self.last = 0  # number of the batch that it was used for last
        self._entry: object = None  # in torch's table of shared storages, which gets a new one when the storage is sent

    @property
    def memory(self) -> torch.UntypedStorage:
        """All bytes of the block: `storage`, or a larger one that begins with the same."""
        return self.storage if self._whole is None else self._whole

    def fits(self, size: int) -> bool:
        """Whether a part of this size is worth its block."""
        return size <= self.memory.nbytes() <= size * _MOST_UNUSED

    def become(self, size: int) -> None:
        """Makes `storage`, which nothing refers to, one of `size` bytes: see Note [parts]."""
        if size != self.storage.nbytes():
            whole = self.memory
            is_part = size != whole.nbytes()
            self._whole = whole if is_part else None
            # The file stays open: torch duplicates its descriptor.
            self.storage = _new_part(whole._share_fd_cpu_()[0], size) if is_part else whole

    def note_given_out(self, batch: int) -> None:
        """Called before collate_fn gets the storage for the batch of this number."""
        self.last = batch
        self._entry = _entry_of(self.storage)

    def was_dropped(self) -> bool:
        """Whether collate_fn has sent the storage nowhere, and kept nothing that refers to it."""
        return self.is_idle() and _entry_of(self.storage) is self._entry

    def references(self) -> int:
        """Number of the references to the Python object of the storage."""
        return sys.getrefcount(self.storage)

    def is_idle(self) -> bool:
        """Whether nothing else in this process refers to the storage."""
        return self.references() == _OWN_REFERENCES and torch._C._storage_Use_Count(self.storage._cdata) == 1


_new_part: Callable[[int, int], torch.UntypedStorage] = getattr(torch.UntypedStorage, "_new_shared_fd_cpu")  # noqa: B009 - not annotated


def _entry_of(storage: Any) -> object:
    return _torchs.shared_cache.get(_torchs.fd_id(storage._share_fd_cpu_()[0]))


_OWN_REFERENCES = _Block(0, torch.UntypedStorage(0)).references()  # type: ignore[no-untyped-call]


class SharedBlocks:
    """The blocks of one worker.

    Args:
        flags: see `make_flags`.
        worker: number of the worker.
        ahead: number of its batches that are on their way at the same time.
    """

    def __init__(self, flags: Flags, worker: int, ahead: int) -> None:
        self._flags, self._first, self._ahead = flags, worker * NUMBERS, ahead
        self._blocks: list[_Block] = []  # the one used last at the end
        self._batch = 0  # number of the batch that is collated
        self._given: list[_Block] | None = None  # to the collate_fn that runs; None: none runs
        self._copies_small = False
        self._plain: Callable[..., torch.UntypedStorage] = torch.UntypedStorage._new_shared
        _all.add(self)

    def install(self, *, small: bool = False) -> None:
        """Replaces torch's function for new shared memory in this process.

        Args:
            small: whether small tensors are copied when they are sent: those of a batch get memory of this process.
        """
        self._copies_small = small
        torch.UntypedStorage._new_shared = self._new_shared  # type: ignore[method-assign]

    def give_up(self) -> None:
        """Leaves all blocks to torch."""
        self._blocks = []

    def begin(self, data: T) -> T:
        """Called before collate_fn; returns its argument."""
        self._batch += 1
        self._given = []
        return data

    def finish(self, found: list[Leaf]) -> list[tuple[int, int]]:
        """Called with the leaves of the batch that collate_fn has returned.

        Returns:
            For each block that was given out for this batch and is in it: the number of a leaf stored in it, and the
            number of the block. These are used until the main process frees them. A block that is not found in the
            batch is free if collate_fn has dropped it, and torch's from now on otherwise.
        """
        if not self._given and not self._blocks and not any(map(_is_large, found)):
            self._given = None
            return []
        if is_possible():
            for leaf in found:
                self._share(leaf)
        given, self._given = self._given or [], None
        numbers = {block.storage._cdata: block for block in self._blocks}
        places: dict[int, int] = {}
        for number, leaf in enumerate(found):
            block = numbers.get(getattr(storage_of(leaf), "_cdata", None))
            if block is not None:
                places.setdefault(block.number, number)
        fresh = {block.number for block in given}
        dropped = {block.number for block in given if block.number not in places and block.was_dropped()}
        stays = dropped | places.keys()
        # Kept: blocks given out now that are sent or were dropped, and older ones that are not in this batch: one that
        # is, collate_fn has kept.
        self._blocks = [one for one in self._blocks if (one.number in fresh) is (one.number in stays)]
        # Enough for the batches on their way and three more; dropped blocks are needed once.
        most = min(_MOST, (self._ahead + 3) * max(1, len(fresh) - len(dropped)) + len(dropped))
        del self._blocks[: max(0, len(self._blocks) - most)]
        self._blocks = [one for one in self._blocks if one.last > self._batch - _MAX_IDLE_BATCHES or self._is_used(one)]
        sent = [(leaf, number) for number, leaf in places.items() if number in fresh]
        for _, number in sent:
            self._flags[self._first + number] = 1
        return sent

    def empty_like(self, batch: torch.Tensor) -> torch.Tensor | None:
        """Returns a contiguous tensor in a block, while collate_fn runs; None if there is none for it."""
        made = self.empty(batch.shape, batch.dtype)
        return None if made is None else made[0]

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The same, of a shape and a type; with it, another tensor with the same memory, to write the values to."""
        size = math.prod(shape) * dtype.itemsize
        if self._given is None or size < LEAST or not is_possible():
            return None
        storage = self._new_shared(size)
        is_of_block = bool(self._given) and self._given[-1].storage is storage
        memory = self._given[-1].memory if is_of_block else storage
        made, written = (_over(one, shape, dtype) for one in (storage, memory))
        return made, written

    def take_unused(self, size: int) -> torch.UntypedStorage | None:
        """Returns the storage of a block of `size` bytes that nothing uses; None if there is none."""
        block = self._find_idle_block(size) if is_possible() else None
        return None if block is None else block.storage

    def note_collated_batch(self, batch: torch.Tensor) -> bool:
        """Called while collate_fn runs with the batch that it is going to return, in a block from `take_unused`.

        Returns:
            Whether the block is still one of these.
        """
        address = batch.data_ptr()
        block = next((one for one in self._blocks if one.storage.data_ptr() == address), None)
        if block is None or self._given is None or not is_possible():
            return False
        block.note_given_out(self._batch)
        self._given.append(block)
        return True

    def _share(self, leaf: Leaf) -> None:
        """Moves a tensor into a block if torch would move it into new shared memory, and nothing but the tensor refers
        to its memory."""
        if type(leaf) is not torch.Tensor or leaf.requires_grad or leaf.is_inference() or leaf.is_quantized:
            return
        storage = storage_of(leaf)
        if storage is None or storage.is_shared() or storage.nbytes() != leaf.numel() * leaf.itemsize:
            return
        if leaf.is_neg() or leaf.is_conj() or not leaf.is_contiguous():
            return
        if torch._C._storage_Use_Count(storage._cdata) != 2:  # the tensor's, and that of the object `storage`
            return
        block = self.empty(leaf.shape, leaf.dtype)
        if block is not None:
            made, written = block
            written.copy_(leaf)
            leaf.data = made

    def _new_shared(self, size: int, *, device: torch.device | str = "cpu") -> torch.UntypedStorage:
        given = self._given
        if self._copies_small and given is not None and 0 < size < LEAST and torch.device(device).type == "cpu":
            return torch.UntypedStorage(size)  # type: ignore[no-untyped-call]
        if given is None or size < LEAST or torch.device(device).type != "cpu" or not is_possible():
            return self._plain(size, device=device)
        block = self._find_idle_block(size) or self._find_larger_block(size)
        if block is None:
            used = {one.number for one in self._blocks}
            free = (n for n in range(NUMBERS) if n not in used and not self._flags[self._first + n])
            number = next(free, None)
            storage = self._plain(size, device=device)
            if number is None:
                return storage
            block = _Block(number, storage)
        else:
            self._blocks.remove(block)
        self._blocks.append(block)
        block.note_given_out(self._batch)
        given.append(block)
        return block.storage

    def _find_idle_block(self, size: int) -> _Block | None:
        # The one used last, so that those beyond what a batch needs grow old, and are given up.
        for block in reversed(self._blocks):
            if block.storage.nbytes() == size and not self._is_used(block):
                return block
        return None

    def _find_larger_block(self, size: int) -> _Block | None:
        """Returns a block of this size that was a larger one; None if there is none that nothing uses."""
        for block in reversed(self._blocks):
            if block.fits(size) and not self._is_used(block):
                block.become(size)
                return block
        return None

    def _is_used(self, block: _Block) -> bool:
        return bool(self._flags[self._first + block.number]) or not block.is_idle()


def _over(storage: torch.UntypedStorage, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    made: torch.Tensor = torch.empty(0, dtype=dtype)
    return made.set_(storage, 0, shape)  # type: ignore[no-any-return, call-overload]


_all: Living[SharedBlocks] = Living()


def _before_fork() -> None:
    """A child of this worker refers to what the worker refers to, and the worker does not learn when it ceases to."""
    for one in _all:
        one.give_up()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)


def is_possible() -> bool:
    """Whether this version of torch, and the way in which it shares memory, allow to use blocks again."""
    has = hasattr(torch._C, "_storage_Use_Count") and hasattr(reductions, "shared_cache")
    return has and torch.multiprocessing.get_sharing_strategy() == "file_descriptor"  # type: ignore[no-untyped-call]
