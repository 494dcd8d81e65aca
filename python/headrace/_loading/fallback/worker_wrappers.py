"""Wrappers of the dataset, its collate_fn and worker_init_fn in worker processes; they send states along with batches.

The user's functions are called as torch calls them. A state is pickled immediately in the worker: the objects in it may
change while a batch waits in a queue, and the process may have ended when the parent reads it.
"""

from __future__ import annotations

import contextlib
import itertools
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch.utils.data import get_worker_info

from headrace._base.safe_exceptions import named_message_of
from headrace._base.types import Function, State
from headrace._loading.epoch.sampler_state import is_stateful, restore_state
from headrace._loading.fallback.mailbox import Mailbox

SAME = b""  # sent if the state equals the one sent with the batch before
TOO_LARGE = b"!"  # sent instead of a state that nobody has asked for and that would take longer than the batch
OF_MAIN = b"?"  # sent instead of such a state before the first batch, which is that of the main process's dataset
_MOST = 16_384  # bytes of a state that is sent with each batch though nobody has asked for it
_AN_OBJECT = 512  # bytes that pickling a tensor or array adds


@dataclass(frozen=True)
class Carried:
    """A batch with the worker's state after it.

    Attributes:
        worker: number of the process.
        count: number of the epoch's batches that it has made, including this one.
        state: pickled state; None if none was requested.
        ended: its iterator is exhausted.
    """

    batch: object
    worker: int
    count: int
    state: bytes | None
    ended: bool

    def pin_memory(self) -> Carried:
        """Pins the batch as torch does; called by torch."""
        from torch.utils.data._utils.pin_memory import pin_memory

        batch = pin_memory(self.batch)  # type: ignore[no-untyped-call]
        return Carried(batch, self.worker, self.count, self.state, self.ended)


@dataclass(frozen=True)
class Mail:
    """Where a worker leaves its states that go without a batch; None in place of one: the worker could not begin.

    Attributes:
        first: the state before the epoch's first batch.
        last: the state after its iterator has ended.
    """

    first: Mailbox = field(default_factory=Mailbox)
    last: Mailbox = field(default_factory=Mailbox)


@dataclass(frozen=True)
class Task:
    """A batch of indices for a worker of a map-style dataset with a state.

    Attributes:
        epoch: counted from 1.
        keep: whether to send the state after this batch.
    """

    indices: Any
    epoch: int
    keep: bool


@dataclass(frozen=True)
class WorkerPosition:
    """The position from which a worker resumes.

    Attributes:
        dataset, iterator: states; None for objects without one.
        ended: the worker has no more batches in this epoch.
        count: number of the epoch's batches that it has made.
        skip: number of these made after the states were taken. They are made again, so that random generators advance,
            and discarded.
    """

    dataset: State | None = None
    iterator: State | None = None
    ended: bool = False
    count: int = 0
    skip: int = 0


@dataclass(frozen=True)
class Users:
    """The user's arguments of the loader."""

    dataset: Any
    collate_fn: Function
    init_fn: Callable[[int], object] | None
    batch_size: int | None
    drop_last: bool
    persistent: bool
    asked: bool  # whether states were asked for, by `snapshot_every_n_steps`


@dataclass(frozen=True)
class Failed:
    """Sent instead of a state that could not be taken, so that the batches still arrive."""

    reason: str


class Carrier:
    """Replaces the dataset in each worker; its methods `collate` and `start` replace collate_fn and worker_init_fn.

    Args:
        every: see `Stream`.
        mail: of each worker.
        positions: positions of the workers that resume, by number.
    """

    def __init__(self, users: Users, every: int, mail: Sequence[Mail], positions: dict[int, WorkerPosition]) -> None:
        self.users, self._every, self._mail, self._positions = users, every, mail, positions
        self._worker = self._epoch = self._count = 0
        self._ended = False
        self._sent: bytes | None = None
        self._too_large = False

    def start(self, worker: int) -> None:
        """Called by torch as worker_init_fn."""
        self._worker = worker
        # torch's WorkerInfo refuses changes, but the user's code must see the user's dataset in it.
        object.__setattr__(get_worker_info(), "dataset", self.users.dataset)
        try:
            if self.users.init_fn is not None:
                self.users.init_fn(worker)
            self._start_worker(self._positions.get(worker))
        except BaseException:
            self._send_failure()
            raise

    def collate(self, data: object) -> object:
        """Called by torch as collate_fn."""
        raise NotImplementedError

    def _start_worker(self, position: WorkerPosition | None) -> None:
        raise NotImplementedError

    def _state(self) -> State:
        raise NotImplementedError

    def _pickle_state(self) -> bytes:
        try:
            return pickle.dumps({"worker_id": self._worker, **self._state()})
        except Exception as error:
            return pickle.dumps(Failed(named_message_of(error)))

    def _send_state(self, *, ended: bool = False, of_main: bool = False) -> None:
        """Sends the state without a batch. `of_main`: it is that of the main process's dataset."""
        self._sent = None
        state = OF_MAIN if of_main and self._is_large() else self._pickle_state()
        self._too_large = self._too_large or (not self.users.asked and len(state) > _MOST)
        mail = self._mail[self._worker]
        box = mail.last if ended else mail.first
        try:
            box.put(self._epoch, state)
        except OSError as error:  # no memory
            box.put(self._epoch, pickle.dumps(Failed(named_message_of(error))))

    def _is_large(self) -> bool:
        """Whether the state is too large to be sent unasked; says so without copying it."""
        if not self._too_large and not self.users.asked:
            with contextlib.suppress(Exception):  # raised again when it is pickled
                self._too_large = bytes_of(self._state()) > _MOST
        return self._too_large

    def _send_failure(self) -> None:
        mail = self._mail[self._worker]
        for box in (mail.first, mail.last):
            box.put(max(1, self._epoch), None)

    def _pack_batch_with_state(self, batch: object, *, keep: bool) -> Carried:
        if keep and self._too_large:
            return Carried(batch, self._worker, self._count, TOO_LARGE, self._ended)
        state = self._pickle_state() if keep else None
        if state is not None:
            self._too_large = not self.users.asked and len(state) > _MOST
            state, self._sent = SAME if state == self._sent else state, state
        return Carried(batch, self._worker, self._count, state, self._ended)


def _state_of(one: object) -> State | None:
    """Returns the object's own state, which is pickled at once; None if it has none."""
    return one.state_dict() if is_stateful(one) else None


def bytes_of(state: object) -> int:
    """Returns about how many bytes a state has when it is pickled, without copying its tensors and arrays."""
    found, waiting = 0, [state]
    while waiting and found <= _MOST:
        one = waiting.pop()
        if isinstance(one, Mapping):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, (list, tuple, set, frozenset)):
            waiting += one
        elif isinstance(one, (str, bytes, bytearray)):
            found += len(one)
        else:
            found += 8
            nbytes = getattr(one, "nbytes", None)
            found += nbytes + _AN_OBJECT if isinstance(nbytes, int) else 0
    return found


class Indexed(Carrier):
    """Replaces a map-style dataset with a state; its indices are `Task`s."""

    _keep = False

    def _start_worker(self, position: WorkerPosition | None) -> None:
        self._epoch = 1
        if position is not None:
            restore_state(self.users.dataset, position.dataset, "dataset")
        self._send_state(of_main=position is None and self.users.init_fn is None)

    def __getitem__(self, task: Task) -> object:
        self._note_task(task)
        return self.users.dataset[task.indices]

    def __getitems__(self, task: Task) -> object:
        self._note_task(task)
        dataset = self.users.dataset
        if getattr(dataset, "__getitems__", None):
            return dataset.__getitems__(task.indices)
        return [dataset[index] for index in task.indices]

    def _note_task(self, task: Task) -> None:
        if task.epoch != self._epoch:
            self._epoch = task.epoch
            self._send_state()
        self._keep = task.keep

    def collate(self, data: object) -> object:
        """Called by torch as collate_fn."""
        return self._pack_batch_with_state(self.users.collate_fn(data), keep=self._keep)

    def _state(self) -> State:
        return {"dataset_state": _state_of(self.users.dataset), "fetcher_state": None}


class Stream(Carrier):
    """Replaces an iterable dataset and its iterators.

    Args:
        every: number of a worker's batches between two states that it sends; 0: it sends none.
    """

    _skip = 0
    _stateful = False
    _iterator: Iterator[object] = iter(())

    def _start_worker(self, position: WorkerPosition | None) -> None:
        pass  # torch calls __iter__ next, which sends the state

    def __iter__(self) -> Stream:
        self._epoch += 1
        self._count, self._ended = 0, False
        position = self._positions.pop(self._worker, None)
        try:
            self._iterator = iter(self.users.dataset) if position is None else self._resume_iterator(position)
        except BaseException:
            self._send_failure()
            raise
        self._stateful = is_stateful(self.users.dataset) or is_stateful(self._iterator)
        if position is None:
            self._send_state()
        return self

    def _resume_iterator(self, position: WorkerPosition) -> Iterator[object]:
        dataset = self.users.dataset
        restore_state(dataset, position.dataset, "dataset")
        self._skip, self._ended = 0 if position.ended else position.skip, position.ended
        self._count = position.count - self._skip
        if position.ended and position.iterator is None:
            return iter(())  # iter() would start an exhausted dataset again
        iterator = iter(dataset)
        restore_state(iterator, position.iterator, "dataset's iterator")
        return iter(()) if position.ended else iterator

    def __next__(self) -> object:
        while self._skip:
            self._skip -= 1
            self.users.collate_fn(self._fetch_samples())
            self._count += 1
        if self._ended:
            raise StopIteration
        try:
            return next(self._iterator)
        except StopIteration:
            if not self._ended:
                self._ended = True
                if self.users.persistent:
                    self._send_state(ended=True)
            raise

    def _fetch_samples(self) -> object:
        """Returns the samples that torch would fetch for a batch."""
        size = self.users.batch_size
        found = list(itertools.islice(self._iterator, 1 if size is None else size))
        if not found or (size is not None and self.users.drop_last and len(found) < size):
            raise RuntimeError(
                f"the state says worker {self._worker} had made {self._count + self._skip + 1} batches of this epoch, "
                f"but its iterator has only {self._count}: the dataset is not the one of the state"
            )
        return found[0] if size is None else found

    def collate(self, data: object) -> object:
        """Called by torch as collate_fn."""
        self._count += 1
        batch = self.users.collate_fn(data)
        return self._pack_batch_with_state(
            batch, keep=self._stateful and self._every > 0 and self._count % self._every == 0
        )

    def _state(self) -> State:
        dataset, iterator = self.users.dataset, self._iterator
        of_dataset = None if iterator is dataset else _state_of(dataset)
        fetcher = {"dataset_iter_state": _state_of(iterator), "fetcher_ended": self._ended}
        return {"dataset_state": of_dataset, "fetcher_state": fetcher}
