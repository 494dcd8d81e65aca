"""Arguments of worker processes that are pickled once for all of them, where processes are spawned.

torch pickles dataset, collate_fn and worker_init_fn for each worker, and writes the pickle to a pipe that the worker
reads when it has imported what it needs. A pipe holds 64 KiB: with more, the main process waits for each worker before
it starts the next one. Here the first worker's start pickles them into memory without a name. Each worker loads the
pickle from there, and maps the contents of arrays: pages that it writes to become its own.

Note [handles]: while a process is started, objects may pickle descriptors for it (`DupFd`). Those that this pickle has
are duplicated, and given to each worker with its own arguments. What torch pickles in its own way (tensors, storages)
is in each worker's own arguments: torch counts how often it has sent some kinds of shared memory.
"""

from __future__ import annotations

import ctypes
import fcntl
import io
import operator
import os
import pickle
import sys
from array import array
from collections.abc import Iterator, Sequence
from multiprocessing import context, reduction
from typing import Any

from torch.utils.data import IterDataPipe, MapDataPipe

from headrace._base.safe_exceptions import contextmanager
from headrace._base.types import Array, Function
from headrace._loading.epoch.torch_loader import LoaderView, TorchLoader, start_method
from headrace._loading.fallback.shared_memory.arrived_pickle import ALIGNMENT, find_handle, find_outside, load

INLINE = 1 << 15  # bytes of a pickle that a worker gets through its pipe, as those of torch
LEAST = 1 << 14  # bytes of a buffer that has a place of its own
_PROTOCOL = 5
_MOST = 1 << 30  # bytes of one call: Linux moves at most 2 GB
_OF_TORCH = "torch.multiprocessing.reductions"
_METHODS = ("spawn", "forkserver")


def is_possible(start_method: str) -> bool:
    """Whether processes that start so get pickles, by the standard library's pickler, and there is memory for them."""
    pickles = reduction.ForkingPickler.__module__ == reduction.dump.__module__ == reduction.__name__
    return start_method in _METHODS and pickles and hasattr(os, "memfd_create")


@contextmanager
def workers_arguments(
    loader: TorchLoader, others: dict[str, object], collate_fn: Function, init_fn: object
) -> Iterator[LoaderView]:
    """Yields the view of a loader that torch's iterator of worker processes is to be made with, while it starts these.

    Args:
        others: replace attributes of the loader.
        collate_fn, init_fn: replace its collate_fn and worker_init_fn.
    """
    others = {"dataset": loader.dataset, **others, "collate_fn": collate_fn, "worker_init_fn": init_fn}
    view: Any = LoaderView(loader, others)
    # torch looks at data pipes before it starts workers.
    if isinstance(view.dataset, (IterDataPipe, MapDataPipe)) or not is_possible(start_method(view)):
        yield view
        return
    names = ("dataset", "collate_fn", "worker_init_fn")
    sent = SentOnce([others[name] for name in names])
    try:
        yield LoaderView(loader, others | dict(zip(names, sent.parts(), strict=True)))
    finally:
        sent.close()


class SentOnce:
    """Objects on their way to several processes, pickled when the first of these is started.

    An object that pickling meets several times is one object in each process, also if several of these refer to it.

    Args:
        objects: the objects.
    """

    def __init__(self, objects: Sequence[object]) -> None:
        self._objects = tuple(objects)
        self._pickled: _Pickled | None = None
        self._sends_plainly = False

    def parts(self) -> list[Part]:
        """Returns what a process gets in place of each object: there it is the object."""
        return [Part(self, number) for number in range(len(self._objects))]

    def close(self) -> None:
        """Lets go of the memory, when all processes are started: it lasts until these have read it."""
        if self._pickled is not None:
            self._pickled.close()
        self._pickled, self._sends_plainly, self._objects = None, True, ()

    def __reduce__(self) -> tuple[object, ...]:
        if self._pickled is None and not self._sends_plainly:
            made = None if _starting() is None else _Pickled()
            try:
                if made is not None:
                    made.dump(self._objects)
            except _NoMemoryError:
                made = self._close_failed(made)
            except BaseException:
                self._close_failed(made)
                raise
            self._pickled, self._sends_plainly = made, made is None
        return (tuple, (list(self._objects),)) if self._pickled is None else self._pickled.reduce()

    @staticmethod
    def _close_failed(made: _Pickled | None) -> None:
        if made is not None:
            made.close()


class Part:
    """Stands for one of the objects of a `SentOnce` in the main process."""

    def __init__(self, sent: SentOnce, number: int) -> None:
        self._sent, self._number = sent, number

    def __reduce__(self) -> tuple[object, ...]:
        return operator.getitem, (self._sent, self._number)


class _NoMemoryError(Exception):
    """There is no memory for the pickle, or no descriptor."""


class _Memory:
    """Memory without a name that is written from its beginning; up to `inline` bytes stay in this process."""

    def __init__(self, inline: int) -> None:
        self._inline: io.BytesIO | None = io.BytesIO()
        self._most, self.size, self.descriptor = inline, 0, -1

    def write(self, data: Any) -> int:
        """Adds bytes; what a pickler calls. Raises _NoMemoryError."""
        view = memoryview(data).cast("B")
        self.size += len(view)
        if self._inline is not None and self.size > self._most:
            with _no_memory():
                self.descriptor = os.memfd_create("headrace-start", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            before, self._inline = self._inline, None
            self._write_out(before.getbuffer())
        if self._inline is None:
            self._write_out(view)
        else:
            self._inline.write(view)
        return len(view)

    def _write_out(self, rest: memoryview) -> None:
        with _no_memory():
            while rest:
                rest = rest[os.write(self.descriptor, rest[:_MOST]) :]

    def sent(self) -> object:
        """What a process gets: the bytes, or a descriptor of memory that nobody changes any more; None if empty."""
        if self._inline is not None:
            return self._inline.getvalue() or None
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK)
        return reduction.DupFd(self.descriptor)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


class _Pickled:
    """A pickle, and what it refers to."""

    def __init__(self) -> None:
        self._stream, self._buffers = _Memory(INLINE), _Memory(0)
        self._lengths = array("q")  # of the buffers
        self._handles = _Handles()
        self._outside: list[object] = []  # pickled for each process
        self._pickle_size = 0

    def dump(self, objects: object) -> None:
        """Pickles objects for a process that is being started."""
        pickler = pickle.Pickler(self._stream, _PROTOCOL, buffer_callback=self._take_buffer)
        pickler.dispatch_table = self._reducers()
        starting = _starting()
        _set_starting(self._handles)
        try:
            pickler.dump(objects)
        finally:
            _set_starting(starting)
        self._pickle_size = self._stream.size
        self._stream.write(self._lengths)

    def reduce(self) -> tuple[object, ...]:
        """What a process that is being started gets."""
        sent = self._stream.sent(), self._pickle_size, self._buffers.sent(), self._handles.sent(), self._outside
        return load, sent

    def close(self) -> None:
        for one in (self._stream, self._buffers, self._handles):
            one.close()

    def _reducers(self) -> dict[type, Any]:
        """multiprocessing's, with others for what is not in the stream."""
        table: dict[type, Any] = dict(reduction.ForkingPickler(io.BytesIO()).dispatch_table)
        table |= {kind: self._put_outside for kind, made in table.items() if made.__module__ == _OF_TORCH}
        numpy: Any = sys.modules.get("numpy")
        if numpy is not None and pickle.DEFAULT_PROTOCOL < _PROTOCOL:
            table.setdefault(numpy.ndarray, _reduce_array)
        return table

    def _put_outside(self, one: object) -> tuple[object, ...]:
        self._outside.append(one)
        return find_outside, (len(self._outside) - 1,)

    def _take_buffer(self, buffer: pickle.PickleBuffer) -> bool:
        """Called with a buffer; returns whether it is to be in the stream."""
        view = buffer.raw()
        if len(view) < LEAST:
            return True
        self._buffers.write(view)
        self._buffers.write(bytes(-len(view) % ALIGNMENT))
        self._lengths.append(len(view))
        return False


class _Handles:
    """The descriptors of a pickle; stands for the process that is being started while it is made."""

    def __init__(self) -> None:
        self._descriptors: list[int] = []

    def duplicate_for_child(self, descriptor: int) -> int:
        """Keeps a descriptor, which may be closed after that; called by multiprocessing."""
        self._descriptors.append(os.dup(descriptor))
        return len(self._descriptors) - 1

    class DupFd:
        """What the pickle has in place of a descriptor."""

        def __init__(self, number: int) -> None:
            self._number = number

        def __reduce__(self) -> tuple[object, ...]:
            return find_handle, (self._number,)

    def sent(self) -> list[object]:
        return [reduction.DupFd(one) for one in self._descriptors]

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


@contextmanager
def _no_memory() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _NoMemoryError from error


def _starting() -> Any:
    """The process that is being started, as multiprocessing calls it; None: there is none."""
    return getattr(context, "get_spawning_popen")()  # noqa: B009 - not in typeshed


def _set_starting(process: Any) -> None:
    getattr(context, "set_spawning_popen")(process)  # noqa: B009 - not in typeshed


def _reduce_array(one: Array) -> Any:
    """For Python before 3.14, whose own protocol has no buffers. Of one with buffers, an array that cannot be written
    to would arrive as such a one, and axes and bytes in another order would arrive so."""
    flags = one.flags
    is_plain = one.dtype.isnative and (flags.c_contiguous or flags.f_contiguous)
    reduced: Any = one.__reduce_ex__(_PROTOCOL if is_plain and one.nbytes >= LEAST else pickle.DEFAULT_PROTOCOL)
    if flags.writeable or not isinstance(reduced[1][0], pickle.PickleBuffer):
        return reduced
    writable = (ctypes.c_ubyte * one.nbytes).from_address(one.ctypes.data)
    return reduced[0], (pickle.PickleBuffer(writable), *reduced[1][1:])
