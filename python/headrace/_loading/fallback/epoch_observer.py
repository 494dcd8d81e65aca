"""Observer of an epoch that torch delivers: counts what was drawn and handed out, and makes the epoch's state."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import IterableDataset

from headrace._base.types import State
from headrace._engine.counters.epoch_timing import EpochTiming, Seen
from headrace._engine.counters.thread_times import NEVER, scheduler_times_of_processes, scheduler_times_of_threads
from headrace._loading.bottleneck.batch_cost import RECORDS
from headrace._loading.epoch.sampler_state import is_stateful, state_of
from headrace._loading.epoch.torch_loader import TorchLoader
from headrace._loading.fallback.checkpoint_format import Fits, Saved, TorchStart
from headrace._loading.fallback.index_batches import IndexBatches, IndexPosition, position_before_epoch
from headrace._loading.fallback.opened_images import FirstImages
from headrace._loading.fallback.randomness import Randomness
from headrace._loading.fallback.seeded_indices import SampleSeeds
from headrace._loading.fallback.worker_states import WorkerStates
from headrace._loading.fallback.worker_wrappers import Task, WorkerPosition
from headrace.pillow.recording.image_counts import ImageCounts

if TYPE_CHECKING:
    from torch.utils.data._utils.fetch import _IterableDatasetFetcher

    from headrace._loading.records.device_batches import DeviceBatches

_OTHER_BOOKS = (AttributeError, KeyError, IndexError, TypeError)  # raised where torch's internals are others


class _Looking:
    """Reads the times of torch's worker processes, and of the threads that make images from their records. It holds no
    reference to the iterator."""

    def __init__(self, pids: tuple[int, ...], device_batches: DeviceBatches | None) -> None:
        self._pids, self._device_batches = pids, device_batches

    def __call__(self) -> Seen:
        workers, stages, making = scheduler_times_of_processes(self._pids), {}, NEVER
        if self._device_batches is not None and self._device_batches.threads:
            counters = self._device_batches.counters()
            making = scheduler_times_of_threads((*counters.workers, *counters.python))
            stages = {RECORDS: sum(making)}
        return Seen(stages, workers=workers, python=making, count=len(self._pids))


class TorchProgress:
    """Observer of one epoch.

    Args:
        loader: torch's loader; its arguments are read, but no reference is kept.
        start: how the epoch begins.
        saved: the state that the epoch resumes from, if any.
        generators: the generators that determine the order.
        workers: the iterator's workers, if they have states.
        fits: values that a loader must have to resume from a state of this epoch.
        seeds: seeds the generators for each sample; None: the samples draw as in torch.
    """

    def __init__(
        self,
        loader: TorchLoader,
        start: TorchStart,
        saved: Saved | None,
        generators: Sequence[torch.Generator],
        workers: WorkerStates | None,
        fits: Fits,
        seeds: SampleSeeds | None = None,
    ) -> None:
        self._seeds = seeds
        self.start, self.workers, self.is_finished = start, workers, False
        self._generators, self._fits = generators, fits
        self._number = loader.num_workers
        self._in_order = loader.in_order
        self._iterable = isinstance(loader.dataset, IterableDataset)
        self._keep = (loader.snapshot_every_n_steps or 0) if self._number else 0
        self._position = IndexPosition() if saved is None or self._iterable else saved.position
        self._ends = saved is not None and saved.finished and not saved.since and not self._iterable
        self._late = None if saved is None else saved.start.late
        self._settled: Randomness | None = None  # generators' states right after the iterator was made
        self._draws: IndexBatches | None = None
        self._count = 0 if saved is None else saved.count_covered(self._iterable)
        self._last = saved.last_worker if saved is not None and self._count else self._number - 1
        self._source: _IterableDatasetFetcher | None = None  # if the dataset in this process has states
        self._more: State = {}
        self._blind: str | None = None  # why the epoch cannot be observed
        self.base_seed = start.base_seed
        self.images = ImageCounts()
        self.device_batches: DeviceBatches | None = None  # brings the batches to a device
        self.first_images: FirstImages | None = None  # judges those of the loader's first batches
        self.pace = EpochTiming(Seen)
        self.when_requested: Callable[[TorchProgress], None] | None = None  # called when the first batch is requested
        self.when_iterated: Callable[[], object] | None = None  # called when the sampler was iterated the first time

    # ---- what torch's iterator tells ---------------------------------------------------------------------------------

    def begins(self, sampler: object) -> Iterator[object]:
        """Returns the iterator over the batches of indices."""
        made = self._make_draws(sampler)
        iterated, self.when_iterated = self.when_iterated, None
        if iterated is not None:
            iterated()
        return made

    def _make_draws(self, sampler: object) -> Iterator[object]:
        if self._ends:
            return iter(())
        keep = self._keep if self._in_order else 1
        me = weakref.ref(self)  # what it draws must not hold the observer, which holds it
        self._draws = IndexBatches(sampler, self._position, keep, lambda: _prepare_draw(me), self._seeds)
        if self.workers is None or self._iterable:
            return self._draws
        return _Tasks(self._draws, self.workers)

    def first_worker(self) -> int:
        """Returns the worker that gets the first batch: the one after the worker of the last batch."""
        if self._iterable:
            handed_out = self._last + 1
        else:
            handed_out = self._position.upto if self._in_order else 0
        return int(handed_out % self._number)

    def began(self, iterator: Any) -> None:
        """Called when the iterator has been made; from now on other code may draw from the generators."""
        self.start = replace(self.start, begun=True)
        pids = tuple(one.pid for one in getattr(iterator, "_workers", ()))
        self.pace = EpochTiming(_Looking(pids, self.device_batches))
        if self._draws is None and not self._ends:
            self._blind = "its iterator is not headrace's subclass of torch's iterator"
            return
        if self.start.random is not None and self._settled is None:
            self._settled = Randomness.now(self._generators, self.start.random.default is not None)
        if self._number:
            self.start = replace(self.start, base_seed=getattr(iterator, "_base_seed", None))
            if self.workers is not None:
                with self._reading_torchs_books():
                    self.workers.note_epoch_begun(iterator)
        elif self._iterable:
            with self._reading_torchs_books():
                fetcher = iterator._dataset_fetcher
                if is_stateful(fetcher.dataset) or is_stateful(fetcher.dataset_iter):
                    self._source = fetcher
        self._more["shared_seed"] = getattr(iterator, "_shared_seed", None)
        self._more["len_called"] = getattr(iterator, "_IterableDataset_len_called", None)

    def draw(self) -> None:
        """Draws the first batch of indices now rather than on request."""
        if self._draws is not None and not self._number:
            self._draws.draw()

    def let_draw(self) -> None:
        """Lets the first batch of indices be drawn on request, from the generators' states at that time."""
        self._late = None

    def prepare_draw(self) -> None:
        """Called before the first batch of indices is drawn."""
        if self._settled is not None and self._late is None:
            now = Randomness.now(self._generators, self._settled.default is not None)
            self._late = None if now.same(self._settled) else now
        elif self._late is not None:
            self._late.restore(self._generators)
        self.start = replace(self.start, late=self._late)

    def note_return(self, iterator: Any) -> None:
        """Called after the iterator has tried to get a batch."""
        asked, self.when_requested = self.when_requested, None
        if asked is not None:
            asked(self)
        try:
            if self._draws is not None:
                self._draws.drop_returned(iterator._task_info if self._number and not self._iterable else ())
            if self.workers is not None and self._iterable:
                self.workers.look(iterator)
        except _OTHER_BOOKS as error:
            self._cannot_read(error)

    @contextmanager
    def _reading_torchs_books(self) -> Iterator[None]:
        """Reads torch's internals. If this version of torch differs, iteration continues without states."""
        try:
            yield
        except _OTHER_BOOKS as error:
            self._cannot_read(error)

    def _cannot_read(self, error: Exception) -> None:
        self._blind = f"the internals of torch {torch.__version__} differ from those that headrace reads: {error!r}"

    def batch(self, data: Any) -> object:
        """Counts a batch and returns the user's part of it."""
        self._count += 1
        if self.first_images is not None:
            self.first_images.note_batch(self.images)
        if self.workers is None:
            return data
        return self.workers.receive_batch(data, self._handed_out())

    def note_end(self) -> None:
        """Called at the end of the epoch."""
        self.is_finished = True
        if self.first_images is not None:
            self.first_images.judge(self.images)

    def _handed_out(self) -> int:
        if self._draws is None and not self._iterable:
            return self._position.handed_out
        return self._count if self._draws is None or self._iterable else self._draws.handed_out

    # ---- state -------------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """Number of the epoch."""
        return self.start.epoch or 0

    @property
    def position(self) -> int:
        """Number of batches handed out, with those before a resumed epoch."""
        return self._count

    @property
    def offset(self) -> int:
        """Number of samples of all ranks before the epoch's first batch, delivered with another number of ranks."""
        return self._position.offset

    @property
    def untouched(self) -> bool:
        """Whether no batch has been requested yet."""
        return self._count == 0

    def save(self, loader: TorchLoader, upcoming: TorchStart) -> Saved:
        """Returns the state; if the epoch has ended, with `upcoming` as the start.

        Raises:
            RuntimeError: no state could be taken.
        """
        if self._blind is not None:
            raise RuntimeError(f"this loader has no state_dict: {self._blind}")
        ended, handed_out = self.is_finished, self._handed_out()
        lives_on = loader.persistent_workers or not ended
        position, step, since = IndexPosition(), handed_out, 0
        more: State = {**self._more, "iterable": self._iterable}
        workers: dict[int, WorkerPosition] = {}
        if self.workers is not None:
            of_workers, more["worker_snapshots"] = self.workers.snapshot()
            if not self._iterable and lives_on:
                step, since = of_workers, handed_out - of_workers
        elif self._number:
            nothing = {"dataset_state": None, "fetcher_state": None}
            more["worker_snapshots"] = {f"worker_{one}": {"worker_id": one, **nothing} for one in range(self._number)}
        else:
            workers[0] = self._states_in_this_process(loader.dataset)
        if not self._iterable and self._draws is not None:
            position = self._draws.position(ended=ended and not since, step=step if since else None)
        elif not self._iterable:
            position = self._position if self._ends else position_before_epoch(loader._index_sampler)
        start = self.start
        if ended:
            start = replace(upcoming, base_seed=start.base_seed, drew_seed=not lives_on)
        elif self._draws is not None and not self._draws.begun and self._settled is not None:
            now = Randomness.now(self._generators, self._settled.default is not None)
            start = replace(start, late=now, drawn=False)
        last = self.workers.last if self.workers is not None and self._iterable else (step - 1) % max(1, self._number)
        return Saved(start, ended, position, step, since, self._number, workers, last, self._fits, more)

    def _states_in_this_process(self, dataset: object) -> WorkerPosition:
        """Returns the states of the dataset in this process and of its iterator."""
        iterator = None if self._source is None else self._source.dataset_iter
        return WorkerPosition(
            None if iterator is dataset else state_of(dataset),
            state_of(iterator),
            self._source is not None and bool(self._source.ended),
        )


def _prepare_draw(progress: weakref.ref[TorchProgress]) -> None:
    one = progress()
    if one is not None:
        one.prepare_draw()


class _Tasks:
    """Iterator over the batches of indices for workers with states."""

    def __init__(self, draws: IndexBatches, workers: WorkerStates) -> None:
        self._draws, self._workers = draws, workers

    def __iter__(self) -> _Tasks:
        return self

    def __next__(self) -> Task:
        indices = next(self._draws)
        return Task(indices, self._workers.epoch, self._workers.keeps(self._draws.number))
