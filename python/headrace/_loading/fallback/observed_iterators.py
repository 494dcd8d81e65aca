"""Subclasses of torch's two iterators that report what they draw and hand out to an observer.

Note [collected iterators]: an error in a worker leaves a cycle: traceback, iterator, error. The garbage collector calls
the finalizers of the objects in a cycle in any order, and torch's iterator ends its workers in one. Where the queues'
come first, they have closed their descriptors: the message that ends a worker is not sent, so torch waits five seconds
for it, or goes to a file that has got the descriptor's number since. So we refer to what is needed until it has ended.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import operator
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.utils.data import dataloader, default_collate
from torch.utils.data.dataloader import _DatasetKind

from headrace._engine.counters.epoch_timing import EpochTiming
from headrace._loading.collate.small_batches import collate_plainly
from headrace._loading.collate.tensor_rows import RowFetcher, takes_rows
from headrace._loading.epoch.advice import advise_on_batch, advise_on_collate_fn
from headrace._loading.epoch.profiling import QUICK_RECORDER, unprofiled
from headrace._loading.epoch.torch_loader import LoaderView, TorchLoader, missing_hook
from headrace._loading.fallback.deferred_workers import CountedBatch, DeferringCalls, InWorkers
from headrace._loading.fallback.device_delivery import RequestedSamples, deliver, recorded_in, recording_of
from headrace._loading.fallback.seeded_indices import SeededCall, SeededSamples
from headrace._loading.fallback.shared_memory.returned_blocks import BlocksInUse, blocks_of
from headrace._loading.fallback.shared_memory.sent_once import workers_arguments
from headrace._loading.fallback.worker_states import WorkerStates
from headrace._loading.records.begun_batches import BegunBatches, Refused
from headrace._loading.records.record_batch import AHEAD
from headrace._loading.records.record_collation import RecordingCall
from headrace._loading.records.record_makers import RecordTrial
from headrace._recipe.draws.python_randomness import preserve_process_generators
from headrace.pillow.recording.image_counts import ImageCounts

if TYPE_CHECKING:
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    from headrace._loading.records.device_batches import DeviceBatches


class Watch(Protocol):
    """Interface through which an iterator reports on an epoch; `epoch_observer` implements it."""

    workers: WorkerStates | None
    base_seed: int | None
    images: ImageCounts
    pace: EpochTiming
    device_batches: DeviceBatches | None

    def begins(self, sampler: object) -> Iterator[object]:
        """Returns the iterator over the batches of indices."""

    def first_worker(self) -> int:
        """Returns the number of the worker that gets the first batch."""

    def note_return(self, iterator: object) -> None:
        """Called after torch's iterator has tried to get a batch."""

    def batch(self, data: object) -> object:
        """Returns the user's batch from the data that the iterator received."""

    def note_end(self) -> None:
        """Called at the end of the epoch."""


class ObserverHolder:
    """Holds an iterator's observer, which is replaced in each epoch."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch


class _Sampler:
    """The loader's index sampler as its iterator sees it: iteration goes through the observer."""

    def __init__(self, sampler: Any, held: ObserverHolder) -> None:
        self._sampler, self._held = sampler, held

    def __iter__(self) -> Iterator[object]:
        return self._held.watch.begins(self._sampler)

    def __len__(self) -> int:
        return len(self._sampler)


class _Watched:
    """Mix-in that reports each batch to the observer."""

    held: ObserverHolder
    _collate_fn: Any
    _dataset_kind: int  # set by torch
    _dataset: Any
    _drawn_seed: int
    _sampler_iter: object
    _profile_name: str
    _num_yielded: int
    _IterableDataset_len_called: int | None
    _returned: BlocksInUse | None = None
    _interrupted: Any = None  # a batch that is received and not delivered, as with Ctrl-C

    def __next__(self) -> Any:
        # torch records each call for its profiler in 8 us; where that is not running, its quick recorder does.
        warns = self._dataset_kind == _DatasetKind.Iterable and self._IterableDataset_len_called is not None
        if self._sampler_iter is None or warns or not unprofiled():
            return super().__next__()  # type: ignore[misc]
        with QUICK_RECORDER(self._profile_name):
            data = self._next_data()
            self._num_yielded += 1
            return data

    def _next_data(self) -> object:
        begin, data, end = time.perf_counter_ns(), self._receive_batch(), time.perf_counter_ns()
        # With fewer batches on their way than workers, some of these have nothing to do: the epoch ends.
        steady = getattr(self, "_tasks_outstanding", 0) >= getattr(self, "_num_workers", 0)
        self.held.watch.pace.handed_out(begin, end, end - begin, steady=steady)
        return data

    def _receive_batch(self) -> object:
        data, self._interrupted = self._interrupted, None
        data = self._receive_data() if data is None else data
        try:
            return self.held.watch.batch(deliver(self.held.watch.device_batches, data))
        except Exception:
            raise
        except BaseException:
            self._interrupted = data
            raise

    def _receive_data(self) -> Any:
        if self._returned is not None:
            self._returned.look()
        try:
            data = super()._next_data()  # type: ignore[misc]
        except Exception as error:
            self._note_error(error)
            raise
        self.held.watch.note_return(self)
        images = self.held.watch.images
        if isinstance(data, CountedBatch):
            images.add(data.counts)
            if self._returned is not None:
                used = data.used
                self._returned.add(blocks_of(data.batch, data.worker, data.sent) if used is None else used)
            data = data.batch
        if self._returned is not None:
            self._returned.count_in(images)
        return data

    def _note_error(self, error: Exception) -> None:
        """Called with what came instead of a batch: the epoch's end, or an error."""
        self.held.watch.note_return(self)
        if isinstance(error, StopIteration):
            self.held.watch.note_end()
        else:
            advise_on_batch(error, self._dataset)
            advise_on_collate_fn(error, self._collate_fn)

    @property
    def _base_seed(self) -> int:
        """The workers' base seed: the observer's if it has one, otherwise the one that torch drew."""
        seed = self.held.watch.base_seed
        return self._drawn_seed if seed is None else seed

    @_base_seed.setter
    def _base_seed(self, drawn: int) -> None:
        self._drawn_seed = drawn


def begin_observed_iterator(
    loader: TorchLoader, watch: Watch, generator: torch.Generator | None
) -> _BaseDataLoaderIter:
    """Returns torch's iterator for a loader, observed by `watch` if this version of torch has the methods for it.

    Args:
        generator: replaces the loader's.
    """
    others: dict[str, object] = {"generator": generator}
    if missing_hook() is not None:
        view: Any = LoaderView(loader, others)
        several = dataloader._MultiProcessingDataLoaderIter
        return several(view) if loader.num_workers else dataloader._SingleProcessDataLoaderIter(view)
    held = ObserverHolder(watch)
    if watch.device_batches is not None and watch.device_batches.destination.way != "memory":
        others["pin_memory"] = False
    others["_index_sampler"] = _Sampler(loader._index_sampler, held)
    if loader.num_workers == 0:
        return _single_process_class()(LoaderView(loader, others), held, loader._defers)
    collate_fn, init_fn, returned = loader.collate_fn, loader.worker_init_fn, None
    if watch.workers is not None:
        carrier = watch.workers.carrier
        others["dataset"], collate_fn, init_fn = carrier, carrier.collate, carrier.start
    if loader._defers:
        ahead, points, makers = loader.prefetch_factor or 0, watch.images.entry_points, watch.device_batches
        deferring = InWorkers(
            collate_fn,
            init_fn,
            workers=loader.num_workers,
            ahead=ahead,
            entry_points=points,
            indexes=watch.images.indexes,
            records=None if makers is None else recording_of(loader),
            trial=RecordTrial() if makers is not None and makers.destination.way == "memory" else None,
        )
        collate_fn, init_fn, returned = deferring.collate, deferring.start, deferring.watch_blocks()
    with workers_arguments(loader, others, collate_fn, init_fn) as view:
        return _multiprocessing_class()(view, held, returned)


_to_shut_down: dict[int, object] = {}  # by the id of an iterator; see Note [collected iterators]


# The subclasses keep the names of their base classes, because torch's profiler labels events with the class name.
@functools.cache
def _single_process_class() -> Callable[[LoaderView, ObserverHolder, bool], _BaseDataLoaderIter]:
    class _SingleProcessDataLoaderIter(_Watched, dataloader._SingleProcessDataLoaderIter):  # type: ignore[misc]
        def __init__(self, loader: LoaderView, held: ObserverHolder, defers: bool) -> None:
            self.held = held
            self._while_seeded: contextlib.ExitStack | None = None
            self._deferring: DeferringCalls | None = None
            self._requested = RequestedSamples()
            super().__init__(loader)
            if defers:
                is_map = self._dataset_kind == _DatasetKind.Map  # an iterator keeps its last sample until asked again
                self._deferring = DeferringCalls(held.watch.images, samples_are_gone=is_map)
            if takes_rows(self._dataset_fetcher):
                self._dataset_fetcher: Any = RowFetcher(self._dataset_fetcher)
            elif held.watch.device_batches is not None:
                held.watch.images.keeps_records = True
                recording = recording_of(loader)
                if recording is not None:
                    collation = recording(held.watch.images, in_worker=False)
                    self._dataset_fetcher.collate_fn = RecordingCall(self._dataset_fetcher.collate_fn, collation)
            elif self._auto_collation and self._dataset_fetcher.collate_fn is default_collate:
                self._dataset_fetcher.collate_fn = collate_plainly

        def _next_data(self) -> Any:
            """The same as of other iterators, in few calls: small batches are made as quickly as this runs."""
            begin = time.perf_counter_ns()
            watch, deferring = self.held.watch, self._deferring
            try:
                make: Callable[[], Any] = super(_Watched, self)._next_data
                data = make() if deferring is None or deferring.rests() else deferring.call(make)
            except Exception as error:
                self._note_error(error)
                raise
            finally:
                if self._while_seeded is not None:
                    self._while_seeded.close()
                    self._while_seeded = None
            watch.note_return(self)
            if watch.device_batches is not None:
                self._requested.give(0, data)
                watch.device_batches.begin(data)
                data = deliver(watch.device_batches, data)
            data = watch.batch(data)
            end = time.perf_counter_ns()
            watch.pace.handed_out(begin, end, end - begin)
            return data

        def _next_index(self) -> object:
            item = super()._next_index()  # type: ignore[no-untyped-call]
            if self.held.watch.device_batches is not None and self._dataset_kind == _DatasetKind.Map:
                self._requested.note(0, item)
            if not isinstance(item, (SeededSamples, SeededCall)):
                return item
            # Only now: what the sampler drew from the process's generators stays drawn.
            self._while_seeded = contextlib.ExitStack()
            self._while_seeded.enter_context(preserve_process_generators())
            return item.seed_and_return()

    return _SingleProcessDataLoaderIter


@functools.cache
def _multiprocessing_class() -> Callable[[LoaderView, ObserverHolder, BlocksInUse | None], _BaseDataLoaderIter]:
    class _MultiProcessingDataLoaderIter(_Watched, dataloader._MultiProcessingDataLoaderIter):  # type: ignore[misc]
        # Workers that get no index first, so that the first batch is made by the worker whose turn it is.
        _passed_by = 0

        def __init__(self, loader: LoaderView, held: ObserverHolder, returned: BlocksInUse | None) -> None:
            self.held, self._returned = held, returned
            self._arrived: collections.deque[Any] = collections.deque()  # from the workers, before torch asks for it
            self._begun, self._discards = BegunBatches(), False
            self._made: list[object] = []  # a batch that an interrupt kept from the caller
            self._requested = RequestedSamples()
            super().__init__(loader)
            if held.watch.device_batches is not None:
                held.watch.device_batches.serve(self._begun, pins=self._pin_memory)
            self._number = id(self)
            _to_shut_down[self._number] = self._index_queues, self._workers, self._worker_result_queue
            # In this process torch uses these only in messages.
            self._dataset, self._collate_fn = loader._loader.dataset, loader._loader.collate_fn

        def _reset(self, loader: object, first_iter: bool = False) -> None:
            """Begins an epoch: torch calls this from the constructor and, with persistent workers, for later epochs.

            torch's part wakes persistent workers, waits for their answers, and assigns the first batches. It discards
            the batches of the epoch before.
            """
            self._drop_arrived()
            self._requested.clear()
            self._passed_by = self.held.watch.first_worker()
            if not first_iter and self.held.watch.workers is not None:
                self.held.watch.workers.renew()  # forgets their states; sends them nothing
            self._discards = True
            super()._reset(loader, first_iter)
            self._discards = False

        def _get_data(self) -> Any:
            """Returns what has arrived next: (number of the batch, its data)."""
            if self._arrived:
                found = self._arrived.popleft()
                if isinstance(found, Refused):
                    self._workers_status = [*map(operator.and_, self._workers_status, found.workers_status)]
                    raise found.error
            else:
                found = super()._get_data()  # type: ignore[no-untyped-call]
            if not self._discards and self.held.watch.device_batches is not None:
                self._arrived.appendleft(found)  # for an interrupt here
                self._requested.give(*found)
                is_due = found[0] == self._rcvd_idx or not getattr(self, "_in_order", True)
                self._begun.begin(self.held.watch.device_batches, recorded_in(found[1]), is_due=is_due)
                self._arrived.popleft()
            return found

        def _receive_batch(self) -> object:
            if self._made:
                return self._made.pop()
            try:
                data = super()._receive_batch()
            finally:
                self._begun.keep(self._waiting())
            try:
                self._look_ahead()
            except BaseException:
                self._made.append(data)
                raise
            return data

        def _look_ahead(self) -> None:
            """Begins to make the records of batches that have arrived, which inference mode would mark as its own."""
            device_batches = None if torch.is_inference_mode_enabled() else self.held.watch.device_batches
            if device_batches is None or self._shutdown or (self._arrived and isinstance(self._arrived[-1], Refused)):
                return
            while len(self._arrived) < AHEAD and not self._data_queue.empty():
                status = list(self._workers_status)
                try:
                    is_here, found = self._try_get_data(0)  # type: ignore[no-untyped-call]
                except Exception as error:  # kept for the place where torch would get it
                    # torch passes over the batches of workers that have ended. Some may have arrived before the error.
                    self._arrived.append(Refused(error, self._workers_status))
                    self._workers_status = status
                    break
                if not is_here:
                    break
                self._arrived.append(found)
            for data in self._waiting():
                self._begun.begin(device_batches, data)

        def _waiting(self) -> list[object]:
            """Returns the batches that have arrived and that are not due yet, the next one first."""
            here = {number: one[1] for number, one in self._task_info.items() if len(one) == 2}
            here |= dict(one for one in self._arrived if not isinstance(one, Refused))
            return [recorded_in(here[number]) for number in sorted(here)]

        def _drop_arrived(self) -> None:
            self._interrupted, self._made = None, []
            self._arrived.clear()
            self._begun.drop()

        def _try_put_index(self) -> None:
            passed_by, self._passed_by = self._passed_by, 0
            for _ in range(passed_by):
                next(self._worker_queue_idx_cycle)
            super()._try_put_index()

        def _next_index(self) -> object:
            item = super()._next_index()  # type: ignore[no-untyped-call]
            if self.held.watch.device_batches is not None and self._dataset_kind == _DatasetKind.Map:
                self._requested.note(self._send_idx, item)
            return item

        # The default, because the globals may be gone when the interpreter ends.
        def _shutdown_workers(self, forget: Callable[[int, None], object] = _to_shut_down.pop) -> None:
            try:
                super()._shutdown_workers()
            finally:
                self._drop_arrived()
                self._begun.rest(self.held.watch.device_batches)
                forget(getattr(self, "_number", 0), None)

    return _MultiProcessingDataLoaderIter
