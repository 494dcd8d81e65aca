"""Runs a loader's epochs on native threads: makes the iterators, and keeps what several epochs share."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from headrace._base.errors import SampleError
from headrace._base.lifetimes.weak_list import Living
from headrace._base.native import core
from headrace._base.types import Function, State
from headrace._engine.engine import Engine
from headrace._engine.lanes.worker_info import WorkerValues
from headrace._loading.autotune.budget import rank_memory
from headrace._loading.collate import collate_call
from headrace._loading.epoch.checkpoint import Progress
from headrace._loading.epoch.epochs import Epochs
from headrace._loading.native.arguments import can_pin, check_iterable
from headrace._loading.native.batch_queue import BatchOrder, BatchQueue
from headrace._loading.native.iterator import NativeIterator
from headrace._loading.native.out_transform import seed_batches
from headrace._loading.native.sample_errors import warn_of_dropped
from headrace._loading.native.settings import Settings
from headrace._loading.native.single_torch_batches import holds_of, naming_of
from headrace._loading.routes.route import AnySource, NativeRoute
from headrace._lowering.python_steps.short_steps import is_short
from headrace._recipe.draws.draws import Draws
from headrace._storage.entry_points.entry_points import AUTO, Entries, EntryPoints
from headrace._storage.entry_points.process_table import shared_by_process
from headrace._storage.remote.announcements import Announced
from headrace.datasets.fields.fields_source import Tables
from headrace.datasets.sources import BlobDataset, checked_table

Renew = Callable[[Progress], BatchOrder | None]


class PersistentIterator:
    """Iterator over the newest epoch of a loader with ``persistent_workers=True``.

    torch's loader has one iterator then, which ``iter(loader)`` sets to the beginning of the next epoch. Whoever holds
    it goes on with that epoch.
    """

    _current: NativeIterator

    def begin(self, epoch: NativeIterator) -> None:
        """Goes on with another epoch."""
        self._current = epoch

    def __iter__(self) -> PersistentIterator:
        return self

    def __next__(self) -> Any:
        return self._current.__next__()

    def __len__(self) -> int:
        return len(self._current)

    def close(self) -> None:
        """Discards the batches in flight; a later ``next()`` raises RuntimeError. Idempotent."""
        self._current.close()

    @property
    def loader(self) -> object:
        """See NativeIterator."""
        return self._current.loader

    def __reduce__(self) -> Any:
        return self._current.__reduce__()


class Runner:
    """Begins the epochs of one loader. It holds no reference to the loader, whose threads end with its last reference.

    Attributes:
        engine, progress: engine and progress of the newest epoch.
    """

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self.progress: Progress | None = None
        self._iterators: Living[NativeIterator] = Living()
        self._queue: tuple[weakref.ref[NativeIterator], BatchQueue] | None = None  # of the newest, if engines last
        self._persistent: weakref.ref[PersistentIterator] | None = None
        self._table: tuple[object, core.BlobTable | Tables] | None = None
        self._frozen: AnySource | None = None  # with the newest epoch's labels, as torch's workers have them
        self._keeps = False
        self._collate_fn: Function | None = None  # of the newest epoch
        self._entry_points: EntryPoints | None = None
        self._entries: Entries | None = None  # of a loader that was closed
        self._memory: core.SlotKeeper | None = None

    def begin(
        self, settings: Settings, route: NativeRoute, epochs: Epochs, loader: object = None
    ) -> NativeIterator | PersistentIterator:
        """Returns the iterator of the next epoch; with `persistent_workers` the same one in each epoch, as torch does.

        Args:
            loader: the loader, if the iterator is to keep it alive.
        """
        if self.keeps_datasets:  # torch's workers have the function of the first epoch
            settings = replace(settings, collate_fn=self._collate_fn)
        self._collate_fn = settings.collate_fn
        shared = None if self._persistent is None or not settings.persists else self._persistent()
        if shared is not None:
            shared.close()
        iterator = self._begin(settings, route, epochs)
        iterator.loader = loader
        if not settings.persists:
            return iterator
        if shared is None:
            shared = PersistentIterator()
            self._persistent = weakref.ref(shared)
        shared.begin(iterator)
        return shared

    def _begin(self, settings: Settings, route: NativeRoute, epochs: Epochs) -> NativeIterator:
        check_iterable(settings.num_workers, settings.timeout, settings.prefetch_factor)
        workers, read_ahead = settings.num_workers, settings.read_ahead
        settings = settings_in_order(settings, route)
        pin = settings.destination.way == "memory" and can_pin(settings.pin_memory)
        # A device's pinned memory and decoders are too expensive to make for each epoch.
        keeps_engine = settings.persistent_workers or settings.destination.way == "fused"
        engine = self.engine if keeps_engine else None
        if self._memory is None:
            self._memory = core.SlotKeeper()
        if engine is not None and not engine.makes(route.product):
            engine = None
        if engine is None or not (settings.persists or engine.has_current_limit()):  # persistent workers keep theirs
            # `depth` batches in flight, the one just returned, and the one before it, which the caller drops next.
            engine = route.new_engine(settings, slots_kept=settings.most_depth + 2, pin=pin)
        elif self._queue is not None and self._queue[0]() is None:
            self._queue[1].cancel()  # the batches of an iterator that was dropped
        try:
            return self._begin_with(engine, settings, route, epochs, workers, read_ahead, keeps_engine=keeps_engine)
        except BaseException:  # of a sampler, for example: the traceback may keep the engine
            if engine is not self.engine:
                engine.close()
            raise

    def _begin_with(
        self,
        engine: Engine,
        settings: Settings,
        route: NativeRoute,
        epochs: Epochs,
        workers: int,
        read_ahead: int,
        *,
        keeps_engine: bool,
    ) -> NativeIterator:
        """Returns the iterator of the next epoch, whose batches the engine makes.

        Args:
            workers: the loader's number of workers, which that of `settings` may differ from.
            read_ahead: number of batches that the sampler is read ahead.
            keeps_engine: whether the engine outlives the epoch.
        """
        source = route.source
        far = source.ahead_bytes > 0  # its table has connections of this process, which may be a forked one
        self._entry_points, self._entries = _entry_points_of(source, settings), None
        identity = self._table[0] if self._table is not None and self.keeps_datasets else source.storage_identity
        if self._table is None or self._table[0] != identity or far:
            self._table = identity, _table_of(source, self._entry_points)
        epochs.naming = naming = naming_of(settings)
        if settings.num_workers > 0 and not self.keeps_datasets:
            self._frozen = source.frozen(self._frozen)
        # The dataset whose labels are used.
        labels_of = source if settings.num_workers == 0 or self._frozen is None else self._frozen
        self._keeps = settings.persists
        if self._entry_points is not None:
            self._entry_points.save()  # what the epoch before has learned
        progress, own_order = epochs.begin(read_ahead)
        order: BatchOrder = Announced(own_order, source) if far else own_order
        if settings.overtakes:
            progress.of_rank = epochs.rank
        progress.before = engine.counters()
        if settings.cores:
            engine.bind_threads(settings.cores)
        if workers > 0:
            engine.work_as(WorkerValues(workers, progress.seed, settings.dataset))
        made = self._collation(settings, route, labels_of, progress)
        called = route.python_effects(settings.collate_fn, batched=settings.batched)
        iterator = NativeIterator(
            labels_of,
            self._table[1],
            engine,
            order,
            Draws(route.draws, progress.seed),
            progress,
            settings,
            owns_engine=not keeps_engine,
            renew=_announcing(epochs.renew, source) if far else epochs.renew,
            collation=made,
            collate_threads=collate_threads(settings, route),
            holds=holds_of(settings, source, naming, route.relied, called.steps),
            out=seed_batches(settings.out_transform, settings.destination.device, progress, owned=made is None),
        )
        if progress.pace is not None and self.progress is not None and self.progress.pace is not None:
            progress.pace.follow(self.progress.pace)
        self.progress, self.engine = progress, engine
        self._iterators.add(iterator)
        self._queue = (weakref.ref(iterator), iterator.queue) if keeps_engine else None
        return iterator

    @staticmethod
    def _collation(
        settings: Settings, route: NativeRoute, source: AnySource, progress: Progress
    ) -> collate_call.Collation | None:
        function = settings.collate_fn
        if function is None or collate_call.is_default(function, settings.batched):
            return None
        return collate_call.Collation(function, source, route.kinds, settings.batched, progress)

    @property
    def entries(self) -> Entries | None:
        """What the newest epoch's table knows of the rows of JPEGs; None without one, or if no JPEG was decoded."""
        counts = self._entries if self._entry_points is None else self._entry_points.counts()
        return counts if counts is not None and counts.decodes else None

    @property
    def errors(self) -> list[SampleError]:
        """Errors of the samples that the newest epoch skipped or replaced."""
        return [] if self.progress is None else self.progress.errors

    def close(self) -> None:
        """Ends the threads of all iterators, discards their batches in flight, and returns kept memory."""
        for iterator in self._iterators:
            iterator.close()
        if self.engine is not None:
            self.engine.close()
        self._memory = self._queue = None
        warn_of_dropped()
        if self._entry_points is not None:
            self._entry_points.save()
            self._entries = self.entries
        self._table = self._entry_points = None
        self._keeps = False

    @property
    def keeps_datasets(self) -> bool:
        """Whether torch's workers of the next epoch would be the ones of earlier epochs, with their copies of the
        dataset."""
        return self._keeps

    def __getstate__(self) -> State:
        # Threads and memory are not copied: a copy makes its own.
        return {"progress": self.progress}

    def __setstate__(self, kept: State) -> None:
        vars(self).update(vars(Runner()), **kept)


def _entry_points_of(source: AnySource, settings: Settings) -> EntryPoints | None:
    """Returns the table of entry points of an epoch."""
    given = settings.entry_points
    return shared_by_process(len(source), rank_memory, source.fingerprint) if given == AUTO else given


def _table_of(source: AnySource, points: EntryPoints | None) -> core.BlobTable | Tables:
    """Returns the source's table; of images, with what is known of the rows of JPEGs."""
    if isinstance(source, BlobDataset):
        table = checked_table(source)
        return table if points is None else table.entered_by(points.native)
    made = source.blob_table()
    if points is None or not isinstance(made, Tables):
        return made
    return Tables({name: one.entered_by(points.native) for name, one in made.parts.items()}, made.rows)


def _announcing(renew: Renew, source: AnySource) -> Renew:
    """Returns `renew`, with the orders that it returns announced to the source."""

    def renew_announced(progress: Progress) -> BatchOrder | None:
        order = renew(progress)
        return None if order is None else Announced(order, source)

    return renew_announced


def settings_in_order(settings: Settings, route: NativeRoute) -> Settings:
    """Returns the settings with which the caller's thread makes each sample, in order, if a Python step keeps a state;
    otherwise `settings`."""
    if settings.num_workers == 0 or not route.python_effects(settings.collate_fn, batched=settings.batched).in_order:
        return settings
    return replace(settings, num_workers=0, prefetch_factor=None, tuner=None)


def collate_threads(settings: Settings, route: NativeRoute) -> int:
    """Returns the number of threads that collate ahead, or call long functions of labels; 0 where the caller's thread
    has to do so."""
    function = settings.collate_fn
    found = route.python_effects(function, batched=settings.batched)
    if found.process_wide or found.in_order or settings.destination.way != "memory":
        return 0
    if function is None or collate_call.is_default(function, settings.batched):
        return 0 if all(map(is_short, found.labels)) else min(settings.num_workers, settings.depth)
    return (
        0 if found.collated or collate_call.may_change_itself(function) else min(settings.num_workers, settings.depth)
    )
