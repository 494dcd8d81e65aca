"""Collects the states of a loader's worker processes in the main process."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING

from torch.utils.data import IterableDataset, IterDataPipe, MapDataPipe

from headrace._base.checks import Unasked
from headrace._base.types import State
from headrace._loading.epoch.sampler_state import is_stateful
from headrace._loading.epoch.torch_loader import TorchLoader
from headrace._loading.fallback.worker_wrappers import (
    OF_MAIN,
    SAME,
    TOO_LARGE,
    Carried,
    Carrier,
    Failed,
    Indexed,
    Mail,
    Stream,
    Users,
    WorkerPosition,
)

if TYPE_CHECKING:
    from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

_LOOK_S = 0.002  # between two looks for what a worker has not left yet


def have_states(loader: TorchLoader) -> bool:
    """Returns whether a loader's workers may have states: of a stateful dataset, or of an iterable one."""
    if loader.num_workers == 0 or isinstance(loader.dataset, (IterDataPipe, MapDataPipe)):
        return False  # torch changes data pipes in place, and would not recognise a wrapper
    return isinstance(loader.dataset, IterableDataset) or is_stateful(loader.dataset)


@dataclass
class _Known:
    """What is known of one worker in this epoch, up to its last batch that was handed out.

    Attributes:
        count: number of its batches that were handed out.
        state: pickled state after `at` of them; None: unknown, or the worker has no state.
        at: number of batches before `state`; -1: unknown.
        ended: the worker delivers no more batches.
        final: `state` was taken after the worker's iterator had ended.
    """

    count: int = 0
    state: bytes | None = None
    at: int = -1
    ended: bool = False
    final: bool = False


class WorkerStates:
    """The workers of one of torch's iterators.

    Args:
        loader: the loader.
        positions: the state that each worker resumes from.
        step: number of batches before the states in `positions`.
    """

    def __init__(self, loader: TorchLoader, positions: dict[int, WorkerPosition], step: int) -> None:
        self._number, self._persistent = loader.num_workers, loader.persistent_workers
        self._every = loader.snapshot_every_n_steps or 0
        self._in_order = loader.in_order
        self.iterable = isinstance(loader.dataset, IterableDataset)
        users = Users(
            loader.dataset,
            loader.collate_fn,
            loader.worker_init_fn,
            loader.batch_size,
            loader.drop_last,
            loader.persistent_workers,
            not isinstance(loader.snapshot_every_n_steps, Unasked) or not loader.in_order,
        )
        self._mail = [Mail() for _ in range(self._number)]
        kind = Stream if self.iterable else Indexed
        self.carrier: Carrier = kind(users, -(-self._every // self._number), self._mail, positions)
        self._processes: Sequence[BaseProcess] = []
        self._epoch, self.last = 1, self._number - 1
        self._large = False  # whether a worker's state is too large to be sent with each batch
        self._messages: dict[tuple[int, bool], bytes | None] = {}
        self._assigned: set[int] = set()
        self._left: list[bytes | None] = []
        self._known = [self._resume_worker(number, positions.get(number)) for number in range(self._number)]
        self._snapshot = step, [one.state for one in self._known]

    def _resume_worker(self, worker: int, position: WorkerPosition | None) -> _Known:
        if position is None:
            return _Known()
        has_state = position.dataset is not None or position.iterator is not None
        if not self.iterable and not has_state:
            return _Known()
        fetcher = {"dataset_iter_state": position.iterator, "fetcher_ended": position.ended} if self.iterable else None
        state = pickle.dumps({"worker_id": worker, "dataset_state": position.dataset, "fetcher_state": fetcher})
        at = position.count - position.skip if has_state else 0
        return _Known(position.count, state, at, position.ended, final=position.ended)

    def renew(self) -> None:
        """Called when the next epoch begins in all workers."""
        self._epoch += 1
        self._left = [one.state for one in self._known]
        self._known = [_Known() for _ in range(self._number)]
        self._snapshot = 0, [None] * self._number
        self._messages.clear()
        self.last = self._number - 1

    @property
    def epoch(self) -> int:
        """Number of the iterator's epoch, counted from 1."""
        return self._epoch

    def keeps(self, number: int) -> bool:
        """Returns whether the worker has to send its state with the batch of this number in its epoch.

        Before each step whose states are kept, every worker sends one.
        """
        if not self._in_order:
            return True
        return self._every > 0 and number % self._every + self._number >= self._every

    # ---- what comes back ---------------------------------------------------------------------------------------------

    def note_epoch_begun(self, iterator: _MultiProcessingDataLoaderIter) -> None:
        """Must be called with torch's iterator when it has begun an epoch."""
        self._processes = iterator._workers
        self._assigned = {task[0] for task in iterator._task_info.values()}  # there are more tasks than workers, or all

    def receive_batch(self, carried: Carried, handed_out: int) -> object:
        """Records the state that came with a batch, and returns the user's batch.

        Args:
            handed_out: number of the epoch's batches that were handed out, including this one.
        """
        known = self._known[carried.worker]
        self.last = carried.worker
        known.count, known.ended = carried.count, carried.ended
        known.final = carried.ended and carried.state not in (None, TOO_LARGE)
        if carried.state == TOO_LARGE:
            self._large = True
        elif carried.state is not None:
            known.state = known.state if carried.state == SAME else carried.state
            known.at = carried.count
        if (
            not self.iterable
            and not self._large
            and (not self._in_order or (self._every and handed_out % self._every == 0))
        ):
            self._snapshot = handed_out, [one.state for one in self._known]
        return carried.batch

    def look(self, iterator: _MultiProcessingDataLoaderIter) -> None:
        """Marks the workers that have ended and whose batches have all been handed out."""
        waiting = {task[0] for task in iterator._task_info.values() if len(task) > 1}
        for worker, active in enumerate(iterator._workers_status):
            if not active and worker not in waiting:
                self._known[worker].ended = True

    # ---- states ------------------------------------------------------------------------------------------------------

    def snapshot(self) -> tuple[int, State]:
        """Returns a step and torchdata's ``_worker_snapshots`` of that step. Resuming repeats the batches after it.

        For an iterable dataset the step is -1, because each worker's state holds its own count.

        Raises:
            RuntimeError: a worker could not give its state.
        """
        step, states = self._snapshot
        if self.iterable:
            return -1, {f"worker_{worker}": self._state_of_stream(worker) for worker in range(self._number)}
        first = [state or self._first_state(worker) for worker, state in enumerate(states)]
        return step, {f"worker_{worker}": self._load_state(worker, state) for worker, state in enumerate(first)}

    def _state_of_stream(self, worker: int) -> State:
        known = self._known[worker]
        if known.at < 0:
            known.state, known.at = self._first_state(worker), 0
        if known.ended and not known.final and self._persistent:
            end = self._await_message(worker, ended=True)
            if end is not None:
                known.state, known.at, known.final = end, known.count, True
        found = self._load_state(worker, known.state)
        fetcher = found["fetcher_state"] or {"dataset_iter_state": None}
        found["fetcher_state"] = {**fetcher, "fetcher_ended": known.ended}
        return {**found, "_num_yielded": known.count, "_steps_since_state": known.count - known.at}

    def _first_state(self, worker: int) -> bytes | None:
        """Returns the state before the worker's first batch; None if the process has ended without a message."""
        if self._epoch > 1 and not self.iterable and worker not in self._assigned:
            return self._left[worker]  # the worker has no batch in this epoch
        return self._await_message(worker, ended=False)

    def _await_message(self, worker: int, *, ended: bool) -> bytes | None:
        """Returns what a worker has left; None if it could not begin, or has ended without."""
        mail = self._mail[worker].last if ended else self._mail[worker].first
        while (worker, ended) not in self._messages:
            alive = bool(self._processes) and self._processes[worker].is_alive()
            here, state = mail.get(self._epoch)
            if here:
                self._messages[worker, ended] = self._dump_main(worker) if state == OF_MAIN else state
            elif alive:
                time.sleep(_LOOK_S)
            else:
                return None
        return self._messages[worker, ended]

    def _dump_main(self, worker: int) -> bytes:
        state = {"worker_id": worker, "dataset_state": self.carrier.users.dataset.state_dict(), "fetcher_state": None}
        return pickle.dumps(state)

    def _load_state(self, worker: int, state: bytes | None) -> State:
        if state is None:
            return {"worker_id": worker, "dataset_state": None, "fetcher_state": None}
        loaded = pickle.loads(state)
        if isinstance(loaded, Failed):
            raise RuntimeError(f"worker {worker} could not give the state of its dataset: {loaded.reason}")
        return dict(loaded)
