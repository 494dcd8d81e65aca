"""Small tensors of a worker's batches, which the main process copies from memory that both have mapped.

torch makes new shared memory for each tensor of a batch, and sends its descriptor: the main process connects to a
thread of the worker, they prove to each other with hashes that they know a key, the descriptor is sent, and the memory
is mapped. That takes 0.2 to 0.3 ms a tensor, longer than a batch of numbers takes to be made. Here a worker copies the
bytes of small storages to a slot of memory that is mapped since it began; the message names their places. The main
process copies them to new shared memory of its own, as torch's tensors have, while it unpickles the message.

Only storages that nothing but the batch refers to: torch would share others with what the worker has kept.

Note [slots]: a slot's state is the number of storages that the main process has not copied yet. The worker sets it
before it sends the message. The main process counts down after each copy; two rounds of a lock are between, so that no
processor stores the number before it has loaded the bytes. A worker without a free slot leaves the batch to torch; a
slot whose message is never unpickled is not used again.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import mmap
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from multiprocessing.reduction import DupFd, ForkingPickler
from types import ModuleType
from typing import Any

import torch
from torch.multiprocessing import reductions
from torch.utils.data._utils.fetch import _MapDatasetFetcher

from headrace._base.lifetimes.finalizers import Ending
from headrace._base.native import core
from headrace._loading.fallback.worker_wrappers import Carried
from headrace.pillow.memory import sole_tensors

_torchs: ModuleType = reductions  # without type annotations
SLOT = 1 << 18  # bytes, of all small storages of a batch
_ALIGNED = 64  # bytes
_CONTAINERS = (list, tuple, dict)
_MOST = (1 << 16) - 1  # storages of a batch
_MOST_OBJECTS = 4096  # in a batch, or in its samples, that are looked at
_numbers = itertools.count()
_of_main: dict[int, weakref.ref[Slots]] = {}  # by number


class Slots(Ending):
    """Memory of the main process and of the workers of one loader. Pages that no batch has needed do not exist.

    Args:
        number: in messages.
        each: slots of a worker.
        size: bytes of all, and of their states.
        descriptor: of the memory, which this object closes.
    """

    def __init__(self, number: int, each: int, size: int, descriptor: int) -> None:
        self.number, self.each, self._size = number, each, size
        self._descriptor = descriptor
        self.at_end: Callable[[], object] = functools.partial(os.close, descriptor)
        self._memory = mmap.mmap(descriptor, size)
        self._first = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._lock = threading.Lock()
        self.taken = 0  # storages, in this process

    def serve(self) -> None:
        """Called in the main process: from now on messages of workers are read here, while this object lives."""
        for number, reference in _of_main.copy().items():
            if reference() is None:
                _of_main.pop(number, None)
        _of_main[self.number] = weakref.ref(self)

    def __reduce__(self) -> tuple[object, ...]:
        return _attach, (self.number, self.each, self._size, DupFd(self._descriptor))

    def state_at(self, slot: int) -> ctypes.c_uint16:
        """The number of storages in a slot that are not copied yet."""
        return ctypes.c_uint16.from_address(self._first + 2 * slot)

    def address_of(self, slot: int) -> int:
        """Where a slot begins in this process's memory."""
        return self._first + (slot + 1) * SLOT

    def take(self, slot: int, offset: int, size: int) -> torch.UntypedStorage:
        """Returns a copy of bytes in a slot, in new shared memory; in the main process."""
        made: torch.UntypedStorage = torch.UntypedStorage._new_shared(size)  # type: ignore[no-untyped-call]
        ctypes.memmove(made.data_ptr(), self.address_of(slot) + offset, size)
        for _ in range(2):  # see Note [slots]
            with self._lock:
                pass
        self.state_at(slot).value -= 1
        self.taken += 1
        return made


def make_slots(workers: int, ahead: int) -> Slots | None:
    """Returns slots for the workers of a loader; None where there is no memory for them.

    Args:
        workers: number of the processes.
        ahead: number of a worker's batches that are on their way at the same time.
    """
    each = ahead + 2
    if not is_possible() or 2 * workers * each > SLOT:
        return None
    size = (workers * each + 1) * SLOT
    try:
        descriptor = os.memfd_create("headrace-slots", os.MFD_CLOEXEC)
        os.truncate(descriptor, size)
        return Slots(next(_numbers), each, size, descriptor)
    except OSError:  # no descriptor, or no memory
        return None


def is_possible() -> bool:
    """Whether this system has memory without a name, and this torch counts references, and pickles in a known way."""
    return hasattr(os, "memfd_create") and sole_tensors.is_possible() and hasattr(_torchs, "reduce_storage")


def _attach(number: int, each: int, size: int, sent: Any) -> Slots:
    return Slots(number, each, size, sent.detach())


def receive(number: int, slot: int, offset: int, size: int) -> torch.UntypedStorage:
    """What a message has in place of a storage; called while it is unpickled."""
    slots = _of_main[number]()
    if slots is None:
        raise RuntimeError("a batch arrived after its loader's iterator was dropped")
    return slots.take(slot, offset, size)


class SmallTensors:
    """Sends the small storages of one worker's batches by slots.

    Args:
        slots: those of all workers.
        worker: number of the worker.
    """

    def __init__(self, slots: Slots, worker: int) -> None:
        self._slots = slots
        self._own = range(worker * slots.each, (worker + 1) * slots.each)
        self._sent: dict[int, tuple[torch.UntypedStorage, tuple[int, int, int]]] = {}  # until they are pickled
        # Numbers of the references to a batch and to samples that only torch refers to, or to what is both.
        self._as_batch = self._as_samples = self._as_both = 0
        self._samples: object = None  # of the batch

    def install(self) -> bool:
        """Replaces what pickles storages in this process; False: a program has done so before."""
        if getattr(ForkingPickler, "_extra_reducers", {}).get(torch.UntypedStorage) is not _torchs.reduce_storage:
            return False
        ForkingPickler.register(torch.UntypedStorage, self._reduce)
        for collate_fn in (list, lambda samples: samples):
            counted = core.Composed(
                core.Composed(self.begin, collate_fn), lambda batch: self._count(batch, sys.getrefcount(batch))
            )
            _MapDatasetFetcher([0], True, counted, False).fetch([0])  # type: ignore[no-untyped-call]
        return True

    def begin(self, samples: object) -> object:
        """Called with samples whose tensors may be in the batch; returns its argument."""
        self._samples = samples if type(samples) in (*_CONTAINERS, torch.Tensor) else None
        return samples

    def _count(self, batch: object, references: int) -> None:
        """Called in place of `prepare` with a batch that only torch refers to."""
        if batch is self._samples:
            self._as_both = references
        else:
            self._as_batch, self._as_samples = references, sys.getrefcount(self._samples)

    def prepare(self, batch: object, references: int) -> None:
        """Copies what is small to a slot, before the batch is sent.

        Args:
            references: number of the references to the batch.
        """
        if references == (self._as_both if batch is self._samples else self._as_batch):
            slot = next((one for one in self._own if not self._slots.state_at(one).value), None)
            if slot is not None:
                self._fill(slot, filter(None, map(_small_storage, self._find_tensors(batch))))
        self._samples = None

    def _find_tensors(self, batch: object) -> Iterable[torch.Tensor]:
        """Returns the tensors that only the batch and its samples refer to."""
        if type(batch) is Carried:
            return self._find_tensors(batch.batch) if sys.getrefcount(batch.batch) == _CARRIED_REFERENCES else []
        if type(batch) is torch.Tensor:
            return [batch] if sole_tensors.has_sole_memory(batch) else []
        held = sole_tensors.dict_of(batch)
        if type(held) not in _CONTAINERS:
            return []
        has_samples = type(self._samples) in _CONTAINERS and batch is not self._samples
        if has_samples and sys.getrefcount(self._samples) == self._as_samples:
            return sole_tensors.find_sole_tensors(held, self._samples, _MOST_OBJECTS)
        return sole_tensors.find_sole_tensors(held, None, _MOST_OBJECTS)

    def _fill(self, slot: int, storages: Iterable[torch.UntypedStorage]) -> None:
        address, offset, count = self._slots.address_of(slot), 0, 0
        for storage in storages:
            size = storage.nbytes()
            if offset + size > SLOT or count == _MOST:
                break
            ctypes.memmove(address + offset, storage.data_ptr(), size)
            self._sent[storage._cdata] = storage, (slot, offset, size)
            offset += -(-size // _ALIGNED) * _ALIGNED
            count += 1
        self._slots.state_at(slot).value = count

    def _reduce(self, storage: torch.UntypedStorage) -> tuple[Any, ...]:
        found = self._sent.pop(storage._cdata, None)
        if found is None:
            return _torchs.reduce_storage(storage)  # type: ignore[no-any-return]
        return receive, (self._slots.number, *found[1])


_CARRIED = Carried([], 0, 0, None, False)
_CARRIED_REFERENCES = sys.getrefcount(_CARRIED.batch)


def _small_storage(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    if tensor.device.type != "cpu" or tensor.is_quantized or tensor.is_inference():
        return None
    if tensor.is_conj() or tensor.is_neg():
        return None
    storage = tensor.untyped_storage()
    return storage if 0 < storage.nbytes() < SLOT and not storage.is_shared() else None
