"""Shared memory of worker processes that is used again: for batches whose predecessors the main process has freed.

torch collates each batch of a worker into new shared memory. The kernel has to clear its pages, and a fault for each of
them costs more than writing it: 0.5 ms for an image of 224 x 224 on a virtual machine. So a worker keeps the storages
that its collate_fn was given, and gives them out again when nothing in the worker refers to one any more, and the main
process has said that nothing there does. The main process looks at its storages each time it gets a batch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from multiprocessing.sharedctypes import RawArray
from typing import Any

import torch
from PIL import Image
from torch.multiprocessing import reductions

from headrace.fallback.carried import Carried

_LEAST = 1 << 18  # bytes; below this, reuse saves nothing
_MOST = 64  # blocks of a worker
NUMBERS = 4096  # for these; a block that the main process never gives back costs one


def leaves(batch: Any) -> Iterator[Any]:
    """Yields the tensors and images in a batch: in lists, tuples and mappings, also one that carries a state."""
    if isinstance(batch, (torch.Tensor, Image.Image)):
        yield batch
    elif isinstance(batch, Mapping):
        for one in batch.values():
            yield from leaves(one)
    elif isinstance(batch, (list, tuple)):
        for one in batch:
            yield from leaves(one)
    elif isinstance(batch, Carried):
        yield from leaves(batch.batch)


def storage_of(leaf: Any) -> Any:
    """The storage of a tensor in this machine's memory; None for other leaves."""
    plain = isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided and leaf.device.type == "cpu"
    return leaf.untyped_storage() if plain else None


def make_flags(workers: int) -> Any:
    """Returns a byte for each block of each worker, in shared memory: whether the main process uses the block."""
    return RawArray("B", workers * NUMBERS)


class _Block:
    def __init__(self, number: int, storage: Any) -> None:
        self.number, self.storage = number, storage

    def references(self) -> int:
        """Number of the references to the Python object of the storage."""
        return sys.getrefcount(self.storage)

    def is_idle(self) -> bool:
        """Whether nothing else in this process refers to the storage."""
        return self.references() == _OWN_REFERENCES and torch._C._storage_Use_Count(self.storage._cdata) == 1


_OWN_REFERENCES = _Block(0, torch.UntypedStorage(0)).references()  # type: ignore[no-untyped-call]


class SharedBlocks:
    """The blocks of one worker.

    Args:
        flags: see `make_flags`.
        worker: number of the worker.
        ahead: number of its batches that are on their way at the same time.
    """

    def __init__(self, flags: Any, worker: int, ahead: int) -> None:
        self._flags, self._first, self._ahead = flags, worker * NUMBERS, ahead
        self._blocks: list[_Block] = []  # the one used last at the end
        self._given: list[_Block] | None = None  # to the collate_fn that runs; None: none runs
        self._plain: Any = torch.UntypedStorage._new_shared

    def install(self) -> None:
        """Replaces torch's function for new shared memory in this process."""
        torch.UntypedStorage._new_shared = self._new_shared  # type: ignore[method-assign]

    def begin(self, data: Any) -> Any:
        """Called before collate_fn; returns its argument."""
        self._given = []
        return data

    def finish(self, batch: Any) -> list[tuple[int, int]]:
        """Called with the batch that collate_fn has returned.

        Returns:
            For each block in the batch, the number of a leaf that lies in it, and the number of the block. These are
            used until the main process frees them. A block that is not found in the batch is torch's from now on.
        """
        given, self._given = self._given or [], None
        numbers = {block.storage._cdata: block for block in self._blocks}
        found: dict[int, int] = {}
        for number, leaf in enumerate(leaves(batch)):
            block = numbers.get(getattr(storage_of(leaf), "_cdata", None))
            if block is not None:
                found.setdefault(block.number, number)
        fresh = {block.number for block in given}
        self._blocks = [block for block in self._blocks if (block.number in fresh) is (block.number in found)]
        most = min(_MOST, (self._ahead + 3) * max(1, len(fresh)))
        del self._blocks[: max(0, len(self._blocks) - most)]
        sent = [(leaf, number) for number, leaf in found.items() if number in fresh]
        for _, number in sent:
            self._flags[self._first + number] = 1
        return sent

    def _new_shared(self, size: int, *, device: Any = "cpu") -> Any:
        given = self._given
        if given is None or size < _LEAST or torch.device(device).type != "cpu" or not is_possible():
            return self._plain(size, device=device)
        block = self._idle(size)
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
        given.append(block)
        return block.storage

    def _idle(self, size: int) -> _Block | None:
        for block in self._blocks:
            fits = block.storage.nbytes() == size and not self._flags[self._first + block.number]
            if fits and block.is_idle():
                return block
        return None


def is_possible() -> bool:
    """Whether this version of torch, and the way in which it shares memory, allow to use blocks again."""
    has = hasattr(torch._C, "_storage_Use_Count") and hasattr(reductions, "shared_cache")
    return has and torch.multiprocessing.get_sharing_strategy() == "file_descriptor"  # type: ignore[no-untyped-call]
