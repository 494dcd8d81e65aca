"""Begins, numbers and resumes the epochs of a loader whose batches torch delivers."""

from __future__ import annotations

import copy
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import IterableDataset

from headrace._base import messages
from headrace._base.checks import length_or_none
from headrace._base.messages import PerformanceWarning
from headrace._base.types import State
from headrace._engine.counters.counters import Counters
from headrace._engine.counters.epoch_timing import EpochTiming
from headrace._engine.destination import Destination
from headrace._loading.autotune.budget import rank_memory
from headrace._loading.epoch.sampler_setup import (
    headrace_samplers,
    late_epoch,
    requested_epoch,
    samplers_of,
    set_begun_epoch,
)
from headrace._loading.epoch.sampler_state import is_stateful
from headrace._loading.epoch.torch_loader import TorchLoader, missing_hook, start_method
from headrace._loading.fallback.checkpoint_format import Saved, format_state, parse_state
from headrace._loading.fallback.device_delivery import recording_of
from headrace._loading.fallback.epoch_observer import TorchProgress
from headrace._loading.fallback.iterator_factory import Making
from headrace._loading.fallback.opened_images import FirstImages
from headrace._loading.fallback.tolerance.attempts import EpochFaults
from headrace._loading.fallback.tolerance.tolerating import tolerating
from headrace._loading.fallback.worker_states import have_states
from headrace._loading.records.record_makers import find_makers
from headrace._recipe.draws.seeded_sampler import Seeded, set_epoch_of_samplers
from headrace._storage.entry_points.entry_points import AUTO, Entries, EntryPoints
from headrace._storage.entry_points.process_table import name_of_dataset, shared_by_process
from headrace.pillow.recording.image_counts import ImageCounts

if TYPE_CHECKING:
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    from headrace._loading.records.device_batches import DeviceBatches


class TorchEpochs:
    """Begins the epochs of one loader with torch's iterators.

    Args:
        seed: determines order, worker seeds and the seeds of samples together with the epoch; None: everything is drawn
            as torch does it.
        rank: rank of this process; makes the workers' seeds differ between ranks.
        destination: where the batches go.
    """

    def __init__(self, seed: int | None, rank: int, destination: Destination) -> None:
        self._seed, self._rank, self._destination = seed, rank, destination
        self._device_batches: DeviceBatches | None = None
        self._making_threads = 0
        self._made_before = Counters()  # from records, when the newest epoch began
        self._made: Counters | None = None  # by a loader that was closed
        self._next = 0
        self._loaded: tuple[State, Saved] | None = None
        self._progress: TorchProgress | None = None  # of the newest epoch, until another one is requested
        self._newest: tuple[int, EpochTiming, ImageCounts] | None = None  # also while another one is requested
        self._begun: _BaseDataLoaderIter | None = None  # by state_dict(), before the caller's iter(loader)
        self._fresh: Any = None  # keeps an iterator without a requested batch alive: its workers' first states may come
        self._making: Making | None = None
        self._first_images: FirstImages | None = None
        self.faults = EpochFaults(0)  # of the newest epoch
        self._reason: str | None = None  # why torch delivers the newest epoch
        self._entry_points: EntryPoints | None = None
        self._entries: Entries | None = None  # of a loader that was closed

    # ---- which epoch -------------------------------------------------------------------------------------------------

    def upcoming(self, loader: TorchLoader) -> int:
        """Returns the number of the epoch that `begin` would begin."""
        asked = requested_epoch(_headrace_samplers_of(loader))
        if asked is None and self._begun is not None and self._progress is not None:
            return self._progress.epoch
        return self._next if asked is None else asked

    def set(self, loader: TorchLoader, epoch: int) -> None:
        """Sets the next epoch, also on the samplers."""
        self._next = epoch
        if self._loaded is not None and self._loaded[1].start.epoch not in (None, epoch):
            self._loaded = None
        self._progress = self._begun = self._fresh = None
        set_begun_epoch(_samplers_of_loader(loader), epoch)

    def continue_at(self, epoch: int) -> None:
        """Sets the next epoch, which the samplers know already."""
        self._next = epoch

    def resumes(self, loader: TorchLoader) -> bool:
        """Returns whether `begin` would resume the epoch of a loaded state."""
        return self._find_saved(loader) is not None

    def goes_on(self, loader: TorchLoader) -> bool:
        """Returns whether an epoch is under way, or the next one is that of a state."""
        under_way = self._progress is not None and not self._progress.is_finished
        return under_way or self._begun is not None or self.resumes(loader)

    def _find_saved(self, loader: TorchLoader) -> Saved | None:
        saved = None if self._loaded is None else self._loaded[1]
        return saved if saved is not None and saved.start.epoch in (None, self.upcoming(loader)) else None

    @property
    def images(self) -> ImageCounts:
        """The images of the newest epoch's batches so far."""
        return ImageCounts() if self._newest is None else self._newest[2]

    @property
    def entries(self) -> Entries | None:
        """What the newest epoch's table knows of the rows of JPEGs; None without one, or if no JPEG was decoded."""
        counts = self._entries if self._entry_points is None else self._entry_points.counts()
        return counts if counts is not None and counts.decodes else None

    @property
    def made_from_records(self) -> Counters | None:
        """What the main process and the device have counted in the newest epoch; None: they make no records."""
        now = self._made if self._device_batches is None else self._device_batches.counters()
        return None if now is None else now.since(self._made_before)

    @property
    def making(self) -> int:
        """Number of the main process's threads that make images from records in the newest epoch."""
        return self._making_threads

    @property
    def pace(self) -> EpochTiming | None:
        """The pace of the newest epoch; None before the first."""
        return None if self._newest is None else self._newest[1]

    @property
    def newest_position(self) -> tuple[int, int, bool]:
        """Number of the newest epoch, batches handed out, and whether it has ended; zeros before the first."""
        if self._progress is not None:
            return self._progress.epoch, self._progress.position, self._progress.is_finished
        return (0, 0, False) if self._newest is None else (self._newest[0], self._newest[1].batches, True)

    @property
    def newest_offset(self) -> int:
        """Number of samples of all ranks that the newest epoch had with another number of ranks."""
        return 0 if self._progress is None else self._progress.offset

    # ---- beginning it ------------------------------------------------------------------------------------------------

    def begin(self, loader: TorchLoader, start: Callable[[], Any]) -> Iterator[object]:
        """Returns the next epoch's iterator, made by `start`, which is torch's ``__iter__`` for the loader."""
        begun, self._begun = self._begun, None
        followers = _headrace_samplers_of(loader)
        iterator = self._begin(loader, start) if begun is None or requested_epoch(followers) is not None else begun
        if not followers:
            return iterator
        return _FollowingSamplers(iterator, followers, lambda: self._begin(loader, start))

    def is_news(self, reason: str) -> bool:
        """Returns whether torch delivered no epoch of this loader before, or the last one for another reason."""
        before, self._reason = self._reason, reason
        return before != reason

    def judge_images(self, loader: TorchLoader) -> None:
        """Has the images of the loader's first batches judged, in the epoch that was begun last."""
        if self._first_images is None:
            self._first_images = FirstImages(loader)
        if self._progress is not None:
            self._progress.first_images = self._first_images

    def begin_faults(self) -> EpochFaults:
        """Returns where the failed samples of the epoch are noted that was begun last."""
        self.faults = EpochFaults(0 if self._newest is None else self._newest[0])
        return self.faults

    def get_iterator(self, stock: Callable[[], _BaseDataLoaderIter]) -> _BaseDataLoaderIter:
        """Returns the iterator that torch's ``__iter__`` requests from the loader.

        While `_begin` runs, that is one which reports to headrace, if this version of torch allows that. Otherwise
        `stock`, torch's own ``_get_iterator``, makes it.
        """
        return stock() if self._making is None else self._making.get_iterator()

    def _begin(self, loader: TorchLoader, start: Callable[[], _BaseDataLoaderIter]) -> _BaseDataLoaderIter:
        epoch, saved = self.upcoming(loader), self._find_saved(loader)
        followers = _headrace_samplers_of(loader)
        for one in followers:
            one.adopt(epoch)
        points = self.find_entry_points(loader)
        if points is not None:
            points.save()  # what the epoch before has learned
        self._making = making = Making(
            tolerating(loader), start, self._seed, self._rank, points, self._find_device_batches(loader, points)
        )
        try:
            iterator, progress = making.begin_epoch(epoch) if saved is None else making.going_on(saved, epoch)
        finally:
            self._making = None
        if followers:
            progress.draw()  # now, since two epochs may be begun before a batch of either is requested
        self._next, self._loaded, self._progress = epoch + 1, None, progress  # only now: a refused state is kept
        if self._newest is not None:
            progress.pace.follow(self._newest[1])
        self._newest = epoch, progress.pace, progress.images
        if have_states(loader) and is_stateful(loader.dataset):
            self._fresh, ours = iterator, weakref.ref(self)
            progress.when_requested = lambda asked: _drop_fresh_iterator(ours(), asked)
        return iterator

    def find_entry_points(self, loader: TorchLoader) -> EntryPoints | None:
        """Returns the table of the loader's workers, which all its epochs use until it is closed."""
        given = loader.entry_points if loader._defers else None
        if given == AUTO:
            given = self._entry_points
            if given is None and not isinstance(loader.dataset, IterableDataset):
                samples = length_or_none(loader.dataset)  # a stream has none, as a TarStream in native threads
                if samples is not None:
                    given = shared_by_process(samples, rank_memory, lambda: name_of_dataset(loader.dataset, samples))
                if given is not None and _forks(loader):
                    given.wait()
        self._entry_points, self._entries = given, None
        return given

    def _find_device_batches(self, loader: TorchLoader, points: EntryPoints | None) -> DeviceBatches | None:
        """Returns what makes the loader's batches from records, and brings them to its device; None if they stay where
        torch makes them. Workers that persist keep what they began with."""
        found = self._device_batches
        if loader._iterator is None:
            threads, helpers = None, loader.helpers
            if loader._defers:
                helped = bool(helpers)
                makers = find_makers(
                    loader.num_workers,
                    self._destination,
                    is_given=loader._active_tuner is None,
                    collates=recording_of(loader) is None,
                    helped=helped,
                    tolerates=loader.on_error != "raise",
                )
                threads = makers.threads
                if helped and makers.why_no_helpers:
                    helpers = ()
                    messages.warn(f"helpers have no effect: {makers.why_no_helpers}", PerformanceWarning)
            if found is not None and found.threads != threads:
                found.close()
                found = None
            if found is None and threads is not None:
                from headrace._loading.records.device_batches import DeviceBatches

                found = DeviceBatches(self._destination, threads, helpers, loader.timeout)
            self._device_batches, self._made = found, None
        self._making_threads = 0 if found is None else found.threads
        if found is None:
            return None
        self._made_before = found.counters()
        found.entry_points = None if points is None else points.native
        return found

    # ---- state -------------------------------------------------------------------------------------------------------

    def state_dict(self, loader: Any) -> State:
        """Returns the state of the newest epoch; if that has ended, of the next one.

        Raises:
            RuntimeError: this version of torch cannot be observed, or a state could not be taken.
        """
        lacks = missing_hook()
        if lacks is not None:
            raise RuntimeError(f"this loader has no state_dict: it needs {lacks}, which this version of torch lacks")
        if self._loaded is not None and self._find_saved(loader) is not None:
            return copy.deepcopy(self._loaded[0])
        start, progress = functools.partial(TorchDataLoader.__iter__, loader), self._progress
        if (
            progress is not None
            and requested_epoch(_headrace_samplers_of(loader)) is not None
            and (progress.is_finished or progress.untouched)
        ):
            progress = None
        if progress is None and have_states(loader):
            self._begun = self._begin(loader, start)
            progress = self._progress
        making = Making(tolerating(loader), start, self._seed, self._rank)
        upcoming = making.upcoming(self.upcoming(loader))
        if progress is not None:
            return format_state(progress.save(loader, upcoming))
        return format_state(TorchProgress(loader, upcoming, None, (), None, making.fits).save(loader, upcoming))

    def load_state_dict(self, loader: TorchLoader, state: State) -> None:
        """Makes the next epoch resume from `state`.

        Raises:
            ValueError: `state` is not a state, or is damaged.
        """
        saved = None
        if state:
            state = copy.deepcopy(state)
            saved = parse_state(state)
        self._progress = self._begun = self._fresh = None
        loader._iterator = None  # persistent workers would not know the state
        self._loaded = None if saved is None else (state, saved)
        if saved is None or saved.start.epoch is None:
            return
        self._next = saved.start.epoch
        samplers = _samplers_of_loader(loader)
        for one in headrace_samplers(samplers):
            one.adopt(self._next)
        if saved.start.sampler_epoch is not None:
            set_epoch_of_samplers((one for one in samplers if not isinstance(one, Seeded)), saved.start.sampler_epoch)

    def close(self) -> None:
        """Discards an iterator that was begun for a state and not used since, and lets go of what was learned."""
        if self._entry_points is not None:
            self._entry_points.save()
            self._entries, self._entry_points = self.entries, None
        self.images.entry_points = self.images.indexes = None
        if self._device_batches is not None:
            self._made = self._device_batches.counters()
            self._device_batches.close()
            self._device_batches = None
        self._fresh = None
        if self._begun is not None and self._progress is not None:
            self._next = self._progress.epoch
            self._begun = self._progress = None

    def __getstate__(self) -> State:
        # A copy gets no iterators: each of the two counts its own progress.
        upcoming = self._next if self._begun is None or self._progress is None else self._progress.epoch
        of_epochs = ("_progress", "_newest", "_begun", "_fresh", "_making", "_first_images")
        gone = dict.fromkeys((*of_epochs, "_entry_points", "_entries", "_device_batches", "_made"))
        return {**vars(self), "_next": upcoming, "faults": EpochFaults(0), **gone}


def _forks(loader: TorchLoader) -> bool:
    """Whether the loader's workers are forked: a thread that works in this process is not in theirs."""
    return loader.num_workers > 0 and start_method(loader) == "fork"


def _drop_fresh_iterator(epochs: TorchEpochs | None, asked: TorchProgress) -> None:
    """Drops the reference to an iterator when its first batch is requested."""
    if epochs is not None and epochs._fresh is not None and epochs._fresh.held.watch is asked:
        epochs._fresh = None


def _samplers_of_loader(loader: TorchLoader) -> list[object]:
    return samplers_of(loader.sampler, loader.batch_sampler)


def _headrace_samplers_of(loader: TorchLoader) -> list[Seeded]:
    return headrace_samplers(_samplers_of_loader(loader))


class _FollowingSamplers:
    """torch's iterator, made again if a sampler is set to another epoch before the first batch is requested."""

    def __init__(
        self, iterator: _BaseDataLoaderIter, samplers: list[Seeded], begin_again: Callable[[], _BaseDataLoaderIter]
    ) -> None:
        self._iterator, self._followers, self._epoch = iterator, samplers, samplers[0].epoch
        self._begin_again: Callable[[], _BaseDataLoaderIter] | None = begin_again

    def __iter__(self) -> Iterator[object]:
        return self

    def __next__(self) -> object:
        begin_again, self._begin_again = self._begin_again, None
        if begin_again is not None and late_epoch(self._followers, self._epoch) is not None:
            self._iterator = begin_again()
        return next(self._iterator)

    def __len__(self) -> int:
        return len(self._iterator)

    def __getattr__(self, name: str) -> object:
        if name == "_iterator":  # not set yet, while a copy is made
            raise AttributeError(name)
        return getattr(self._iterator, name)
