"""Iterator over one epoch's batches: hands them out to any number of threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import default_convert
from torch.utils.data._utils.pin_memory import pin_memory

from headrace._base.errors import SampleError
from headrace._base.lifetimes.finalizers import Ending, call_all
from headrace._base.lifetimes.weak_list import Living
from headrace._base.native import core, span
from headrace._engine.counters.epoch_timing import EpochTiming, Spending
from headrace._engine.engine import Engine
from headrace._loading.collate.collate_call import Collation
from headrace._loading.collate.collate_threads import CollateThreads
from headrace._loading.epoch.checkpoint import Progress
from headrace._loading.native import sample_errors
from headrace._loading.native.arguments import can_pin
from headrace._loading.native.batch_queue import BatchOrder, BatchQueue
from headrace._loading.native.batch_waits import BatchWaits
from headrace._loading.native.pending_batch import Begun, Collated, Results
from headrace._loading.native.settings import Settings
from headrace._loading.native.single_torch_batches import Holds, made_as_torch
from headrace._loading.native.thread_probe import Looking
from headrace._recipe.draws.draws import Draws
from headrace._recipe.draws.step_generators import leave_unseeded
from headrace.datasets.sources.labels import as_in_workers

if TYPE_CHECKING:
    from headrace._loading.autotune.thread_tuner import Tuning

_FOREVER_S = 1e9
_PUT_OFF_S = 0.001
_NONE_LEFT = object()  # stands for a batch of which all samples failed and are skipped
_CLOSED = "this iterator was closed before its end; iter(loader) makes a new one"


class NativeIterator(Ending):
    """Iterator over ``images``, ``[images, targets]`` or dicts of columns.

    `close`, or dropping it, discards the batches in flight.

    Args:
        table: where the samples are; what the engine's `submit` takes.
        owns_engine: whether closing the iterator closes the engine.
        renew: restarts the epoch if a sampler was set to another one before the first batch; see `Epochs.renew`.
        collation: calls the user's collate_fn; None without one.
        collate_threads: number of threads that call it ahead; 0: the caller's thread does.
        out: called with each batch and its number in the epoch.
        holds: tells whether the dataset still has the samples of a batch; see `BatchQueue`.
        for_comparison: the batches are compared with the oracle's: no timeout, no warnings, no other ranks.

    A failed sample or `out_transform` raises when its batch is due; iteration can continue with the next batch, as in
    torch. After Ctrl-C, a timeout or an out-of-memory error, ``next()`` delivers the same batch again. An interrupt in
    the sampler's own code, or too many errors, closes the iterator.

    Any number of threads may call ``next()``; each batch is handed out once. If a Python step calls ``next()`` while
    its own batch is being made in the waiting thread, it gets the following batch. A state counts the batches that
    ``next()`` has returned.

    Attributes:
        loader: the loader, which lives as long as this iterator where its figures are published; otherwise None.
    """

    loader: object = None

    def __init__(
        self,
        source: sample_errors.Source,
        table: Any,
        engine: Engine,
        order: BatchOrder,
        draws: Draws,
        progress: Progress,
        settings: Settings,
        *,
        owns_engine: bool,
        renew: Callable[[Progress], BatchOrder | None] | None = None,
        collation: Collation | None = None,
        collate_threads: int = 0,
        out: Callable[[Any, int], Any] | None = None,
        holds: Holds | None = None,
        for_comparison: bool = False,
    ) -> None:
        self._source, self._table, self._engine = source, table, engine
        self._progress, self._settings, self._out = progress, settings, out
        self._for_comparison, self._owns_engine = for_comparison, owns_engine
        self._pins = settings.pin_memory and settings.destination.way == "memory"
        self._renew = renew  # reset to None by the first next()
        self._turn = threading.RLock()  # one next() at a time; reentrant, since a Python step may call next() itself
        engine.set_metadata_reader(source.metadata)
        self._collation = collation
        self._collating = CollateThreads(self._collate_in_thread, collate_threads)
        self._overtakes = settings.overtakes and not for_comparison
        most = settings.most_in_flight if self._overtakes else 0
        self._queue = BatchQueue(
            table, engine, order, draws, progress, settings.depth, self._collating.expect, holds, most
        )
        self._queue.most_bytes = settings.prefetch_bytes
        # Without `owns_engine` the loader cancels the queue's batches when it begins another epoch.
        self.at_end = call_all(self._collating.endings, engine.endings if owns_engine else ())
        sample_errors.warn_of_dropped()
        owner = None if for_comparison else self
        self._faults = sample_errors.FaultLog(settings.on_error, settings.max_errors, progress, owner)
        own = settings.num_workers or settings.seed is not None or for_comparison
        drawing = nullcontext if own else leave_unseeded  # for the generators that steps in this thread hold
        self._waits = BatchWaits(engine, 0 if for_comparison else settings.timeout, drawing)
        self._exhausted = self._closed = False
        progress.pace = self._pace = EpochTiming(Looking(engine, self._collating, progress.before))
        self._blocked_ns = 0  # of the current next()
        self._tuning = None if for_comparison else self._tuning_of_epoch(collate_threads)
        self._waits.by, self._waits.collates = self._tuning or engine, collate_threads > 0
        _live.add(self)
        if settings.depth > 0:
            self._queue.fill()

    def _tuning_of_epoch(self, collate_threads: int) -> Tuning | None:
        """What changes threads and prefetch during this epoch; None if their numbers are given."""
        tuner = self._settings.tuner
        if tuner is None:
            return None
        from headrace._loading.autotune.thread_tuner import Tuning

        return Tuning(tuner, self._pace, self._engine, self._queue, collate_threads)

    def __iter__(self) -> NativeIterator:
        return self

    def __next__(self) -> Any:
        taker = object()
        try:
            if self._engine.serves_in_this_thread():
                raise RuntimeError(
                    "a Python step requests a batch from its own loader, in one of the loader's threads: this would "
                    "deadlock; call next() outside the step, or use num_workers=0"
                )
            with self._turn:
                begun, batch = self._next(taker)
            begun.delivery.returned = True  # no call follows, so no interrupt can come before the batch is returned
            return batch
        except BaseException as error:
            self._queue.leave(taker, error)
            if not isinstance(error, Exception) and self._queue.asking:  # the batch that the sampler yielded is lost
                self.close()
            raise

    def _next(self, taker: object) -> tuple[Begun, Any]:
        begin, self._blocked_ns = time.perf_counter_ns(), 0
        self._engine.check_stream()
        self._restart_requested_epoch()
        batch = _NONE_LEFT
        while batch is _NONE_LEFT:
            begun, results = self._await_batch(taker)
            if results is None:
                batch, count = self._make_batch_as_torch(begun), len(begun.ordered.indices)
                break
            batch, count = self._deliver(begun, results), len(results.indices)
            self._queue.note_size(batch if self._collation is None else [results.images, batch])
            begun.forget()
        if self._out is not None:
            with span("out_transform"), Spending(self._pace, "out_transform"):
                batch = self._out(batch, self._progress.number(begun.delivery.number))
        end = time.perf_counter_ns()
        core.add_span("__next__", begin, end)
        self._pace.handed_out(begin, end, self._blocked_ns, steady=not self._queue.ended, samples=count)
        if self._tuning is not None:
            self._tuning.handed_out(batch, end)
        return begun, batch

    def _restart_requested_epoch(self) -> None:
        """On the first call, restarts the epoch if a sampler has been set to another one."""
        renew, self._renew = self._renew, None
        if renew is None or self._closed:
            return
        try:
            order = renew(self._progress)
            if order is not None:
                self._queue.restart(order)
        except BaseException:
            self.close()  # it is unknown which of the two epochs the order belongs to
            raise

    def _pinned(self, batch: Any) -> Any:
        """Brings all tensors of a batch into pinned memory, as torch does; those that are there stay."""
        return pin_memory(batch) if self._pins and torch.accelerator.is_available() else batch  # type: ignore[no-untyped-call]

    def _make_batch_as_torch(self, begun: Begun) -> Any:
        """Returns a batch that is made as torch makes it."""
        with self._settings.default_device(), begun.failing():
            pin = can_pin(self._settings.pin_memory)
            return made_as_torch(self._settings, self._progress, begun.ordered, begun.delivery.number, pin=pin)

    def _await_batch(self, taker: object) -> tuple[Begun, Results | None]:
        """Waits for the next batch and returns it with its results; others are in flight. Without results it is to be
        made as torch makes it."""
        if self._closed and not self._exhausted:
            raise RuntimeError(_CLOSED)
        if not self._exhausted:
            with Spending(self._pace, "submit"):
                self._queue.fill()
        before = time.perf_counter_ns()
        chosen = self._waits.choose(self._queue.waiting) if self._overtakes else None
        self._blocked_ns += time.perf_counter_ns() - before
        begun = self._queue.take(taker, chosen)
        if begun is None:
            if not self._queue.busy:  # otherwise a Python step called next() while the last batch is being made
                self._end_epoch()
            raise StopIteration
        if begun.error is not None:
            raise begun.error
        if begun.as_torch:
            begun.complete = True
            return begun, None
        results = begun.results or self._queue.submit(begun)
        before = time.perf_counter_ns()
        if self._settings.num_workers == 0 and self._source.ahead_bytes:
            self._source.expect(results.indices, wait=True)  # Ctrl-C cannot interrupt native reads in this thread
        self._waits.wait(results.flight)
        self._waits.claim(results)
        self._blocked_ns += time.perf_counter_ns() - before
        begun.complete = True
        return begun, results

    def _collate_in_thread(self, results: Results) -> None:
        """Collates a batch without failed samples once it is complete. Called by the threads that collate. One that is
        not complete is put off, if later ones may overtake it."""
        if not self._engine.wait(results.flight, _PUT_OFF_S if self._overtakes else _FOREVER_S):
            if self._overtakes and results.claim.open:
                self._collating.expect(results)
            return
        if not results.claim.ahead():
            return
        try:
            results.failures = self._engine.failures(results.flight)
            if not results.failures:
                results.images = self._engine.tensor(results.flight)
                results.collated = self._collate(results, ahead=True)
        except Exception as error:
            results.collated = Collated(None, error)
        finally:
            results.claim.end()

    def _collate(self, results: Results, *, ahead: bool) -> Collated:
        """Calls the collate_fn on a batch, or the functions of labels."""
        try:
            if self._collation is None:
                return Collated(self._pinned(self._add_targets(results)))
            with span("collate_fn"), Spending(self._pace, "collate_fn"), self._settings.default_device():
                made = self._collation(results.images, results.indices, results.number, ahead=ahead)
            return Collated(self._pinned(made))
        except BaseException as error:
            return Collated(None, sample_errors.error_of_collate_fn(error, self._settings.num_workers))

    def _deliver(self, begun: Begun, results: Results) -> Any:
        """Returns the batch, or `_NONE_LEFT`. A collate_fn may return None."""
        if results.collated is None and not self._take_images(begun, results):
            return _NONE_LEFT
        if self._collation is None and results.collated is None:
            return self._pinned(self._add_targets(results, begun.failing()))
        made, results.collated = results.collated or self._collate(results, ahead=False), None
        if made.error is not None:
            begun.error = made.error
            raise begun.error
        return made.batch

    def _add_targets(self, results: Results, calling: AbstractContextManager[None] = nullcontext()) -> Any:  # noqa: B008
        """Returns the batch of images with their targets, whose functions are called within `calling`."""
        made = results.images if self._settings.batched else self._engine.single(results.images)
        if self._source.has_targets:
            with calling:
                targets = self._targets(results.indices)
            made = self._source.batch_of(made, self._engine.move_targets(targets))
        return made

    def _take_images(self, begun: Begun, results: Results) -> bool:
        """Takes the images from the engine; returns False if all samples of the batch failed and are skipped."""
        if results.images is None:
            places: list[int] | None = None
            if self._has_failed(begun, results) and self._faults.skips:
                places = sorted(set(range(len(begun.ordered.indices))) - set(results.failed))
                if not places:
                    self._skip_batch(begun)
                    return False
                results.indices = begun.ordered.indices[places]
            elif results.failed:
                results.indices = self._replace_failed_samples(begun, results)
            results.images = self._engine.tensor(results.flight, places)  # once
        return True

    def _targets(self, indices: npt.NDArray[np.int64]) -> Any:
        """Returns the targets, collated in the caller's thread."""
        with self._settings.default_device():
            if self._settings.batched:
                with as_in_workers() if self._settings.depth > 0 else nullcontext():
                    return self._source.targets_of(indices)
            return default_convert(self._source.target(int(indices[0])))  # type: ignore[no-untyped-call]

    def _has_failed(self, begun: Begun, results: Results) -> bool:
        """Returns whether samples failed and are skipped or replaced. Failures are read and recorded once."""
        if results.errors is None:
            if results.failures is None:
                results.failures = self._engine.failures(results.flight)
            indices = results.indices
            results.errors = sample_errors.describe_failures(results.failures, indices, self._source)
            results.failed = [one.sample for one in results.failures]
            if results.errors and self._faults.raises:
                with begun.failing():
                    sample_errors.call_labels(self._source, indices[: min(results.failed)])
                begun.error = sample_errors.choose_exception_to_raise(results.errors[0])
                raise begun.error
            if results.errors:
                self._log_errors(results.errors)
        return bool(results.failed)

    def _replace_failed_samples(self, begun: Begun, results: Results) -> npt.NDArray[np.int64]:
        """Replaces failed samples by the next samples of the dataset, made with the failed samples' draws."""
        assert begun.draws is not None
        indices, places = begun.ordered.indices.copy(), results.failed
        for _ in range(len(self._source)):
            indices[places] = (indices[places] + 1) % len(self._source)
            flight = self._engine.repair(results.flight, places, self._table, indices[places], begun.draws[places])
            self._waits.wait(flight)
            failures = self._engine.failures(flight)
            self._log_errors(sample_errors.describe_failures(failures, indices[places], self._source))
            places = [places[one.sample] for one in failures]
            if not places:
                return indices
        self._faults.give_up_dataset()

    def _skip_batch(self, begun: Begun) -> None:
        if self._settings.ranks > 1 and not self._for_comparison:
            try:
                self._faults.give_up_batch()
            finally:
                self.close()
        begun.delivery.passed = True

    def _log_errors(self, errors: list[SampleError]) -> None:
        try:
            self._faults.add(errors)
        except RuntimeError:  # too many
            self.close()
            raise

    def _end_epoch(self) -> None:
        self._exhausted = True
        if not self._queue.torn:
            self._progress.finish()
        self.close()

    def __len__(self) -> int:
        if self._progress.batches < 0:
            raise TypeError("the sampler has no length, so the number of batches is not known")
        return self._progress.batches

    @property
    def queue(self) -> BatchQueue:
        """The batches that are begun. It does not refer to the iterator."""
        return self._queue

    def close(self) -> None:
        """Discards the batches in flight; a later ``next()`` raises RuntimeError. Idempotent."""
        if self._closed:
            return
        self._closed = self._waits.closed = True
        self._pace.end()
        self._collating.close()
        try:
            self._queue.cancel()  # wakes a thread that holds the lock and waits for a batch
            if self._owns_engine:
                self._engine.close()
        finally:
            with self._turn:
                self._queue.cancel()  # batches that this thread has begun since
        if not self._for_comparison:
            self._faults.warn()

    def __reduce__(self) -> Any:
        raise TypeError("an iterator over batches cannot be pickled; pickle the loader, or its state_dict()")


_live: Living[NativeIterator] = Living()


def _forget_the_parents_threads() -> None:
    for one in _live:
        one._turn = threading.RLock()  # a thread that does not exist in the child may have held it


os.register_at_fork(after_in_child=_forget_the_parents_threads)
