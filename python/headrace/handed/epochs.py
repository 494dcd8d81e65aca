"""The epochs of a loader whose batches torch delivers: their numbers, and their states."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data import DataLoader as TorchDataLoader

from headrace.epochs.samplers import asked_of, begin_with, followers, late_epoch, samplers_of
from headrace.handed.iterators import missing_hook
from headrace.handed.layout import Saved, read, write
from headrace.handed.making import Making
from headrace.handed.progress import Progress
from headrace.handed.protocol import stateful
from headrace.handed.workers import have_states
from headrace.sampler.seeded import Seeded, tell


class TorchEpochs:
    """Begins epochs of torch's iterator.

    Args:
        seed: decides order and worker seeds together with the epoch; None: all is drawn as torch draws it.
        rank: of this process: the workers of no two ranks draw the same.
    """

    def __init__(self, seed: int | None, rank: int) -> None:
        self._seed, self._rank = seed, rank
        self._next = 0
        self._loaded: tuple[dict[str, Any], Saved] | None = None
        self._progress: Progress | None = None  # of the newest epoch, until another one is asked for
        self._begun: Any = None  # an iterator whose state was asked for before its time
        self._fresh: Any = None  # an iterator of which no batch was asked for; its workers have still to tell a state
        self._making: Making | None = None

    # ---- which epoch -------------------------------------------------------------------------------------------------

    def upcoming(self, loader: Any) -> int:
        """The number of the epoch that `begin` would begin."""
        asked = asked_of(_told_by(loader))
        if asked is None and self._begun is not None and self._progress is not None:
            return self._progress.epoch
        return self._next if asked is None else asked

    def set(self, loader: Any, epoch: int) -> None:
        """The next epoch is this one; the samplers are told."""
        self._next = epoch
        if self._loaded is not None and self._loaded[1].start.epoch not in (None, epoch):
            self._loaded = None
        self._progress = self._begun = self._fresh = None
        begin_with(_samplers(loader), epoch)

    def go_on(self, epoch: int) -> None:
        """The next epoch is this one; the samplers know."""
        self._next = epoch

    def resumes(self, loader: Any) -> bool:
        """Whether `begin` would go on with the epoch that a state was loaded for."""
        return self._resumed(loader) is not None

    def _resumed(self, loader: Any) -> Saved | None:
        saved = None if self._loaded is None else self._loaded[1]
        return saved if saved is not None and saved.start.epoch in (None, self.upcoming(loader)) else None

    # ---- beginning it ------------------------------------------------------------------------------------------------

    def begin(self, loader: Any, start: Callable[[], Any]) -> Iterator[Any]:
        """The iterator that `start` makes, torch's own for the loader."""
        begun, self._begun = self._begun, None
        told = _told_by(loader)
        iterator = self._begin(loader, start) if begun is None or asked_of(told) is not None else begun
        if not told:
            return iterator  # type: ignore[no-any-return]
        return _Heeding(iterator, told, lambda: self._begin(loader, start))

    def iterator(self, stock: Callable[[], Any]) -> Any:
        """What torch's ``__iter__`` asks the loader for; `stock` makes it without us."""
        return stock() if self._making is None else self._making.iterator()

    def _begin(self, loader: Any, start: Callable[[], Any]) -> Any:
        epoch, saved = self.upcoming(loader), self._resumed(loader)
        told = _told_by(loader)
        for one in told:
            one.told(epoch)
        self._making = making = Making(loader, start, self._seed, self._rank)
        try:
            iterator, progress = making.from_its_beginning(epoch) if saved is None else making.going_on(saved, epoch)
        finally:
            self._making = None
        if told:
            progress.draw()  # at once: two epochs may be begun before the first batch of either is asked for
        self._next, self._loaded, self._progress = epoch + 1, None, progress  # a state that is refused is not forgotten
        if have_states(loader) and stateful(loader.dataset):
            self._fresh, ours = iterator, weakref.ref(self)
            progress.when_asked = lambda asked: _let_go(ours(), asked)
        return iterator

    # ---- state -------------------------------------------------------------------------------------------------------

    def state_dict(self, loader: Any) -> dict[str, Any]:
        """Of the newest epoch, or where that has ended of the next one.

        Raises:
            RuntimeError: this version of torch cannot be watched, or a state could not be taken.
        """
        lacks = missing_hook()
        if lacks is not None:
            raise RuntimeError(f"this loader has no state: it needs {lacks}, which this version of torch does not have")
        if self._loaded is not None and self._resumed(loader) is not None:
            return copy.deepcopy(self._loaded[0])
        progress = self._progress
        if (
            progress is not None
            and asked_of(_told_by(loader)) is not None
            and (progress.is_finished or progress.untouched)
        ):
            progress = None
        if progress is None and have_states(loader):
            self._begun = self._begin(loader, lambda: TorchDataLoader.__iter__(loader))
            progress = self._progress
        making = Making(loader, lambda: None, self._seed, self._rank)
        upcoming = making.upcoming(self.upcoming(loader))
        if progress is not None:
            return write(progress.save(loader, upcoming))
        return write(Progress(loader, upcoming, None, (), None, making.fits).save(loader, upcoming))

    def load_state_dict(self, loader: Any, state: dict[str, Any]) -> None:
        """The next epoch goes on there.

        Raises:
            ValueError: it is no state, or a damaged one.
        """
        saved = None
        if state:
            state = copy.deepcopy(state)
            saved = read(state)
        self._progress = self._begun = self._fresh = None
        loader._iterator = None  # workers that live on would not know of the state
        self._loaded = None if saved is None else (state, saved)
        if saved is None or saved.start.epoch is None:
            return
        self._next = saved.start.epoch
        samplers = _samplers(loader)
        for one in followers(samplers):
            one.told(self._next)
        if saved.start.sampler_epoch is not None:
            tell((one for one in samplers if not isinstance(one, Seeded)), saved.start.sampler_epoch)

    def close(self) -> None:
        """Gives up an iterator that was begun for a state and never asked for."""
        self._fresh = None
        if self._begun is not None and self._progress is not None:
            self._next = self._progress.epoch
            self._begun = self._progress = None

    def __getstate__(self) -> dict[str, Any]:
        # Iterators stay behind: what one of two yields is not counted by the other.
        upcoming = self._next if self._begun is None or self._progress is None else self._progress.epoch
        gone = dict.fromkeys(("_progress", "_begun", "_fresh", "_making"))
        return {**vars(self), "_next": upcoming, **gone}


def _let_go(epochs: TorchEpochs | None, asked: Progress) -> None:
    """Of an iterator whose first batch is asked for."""
    if epochs is not None and epochs._fresh is not None and epochs._fresh.held.watch is asked:
        epochs._fresh = None


def _samplers(loader: Any) -> list[Any]:
    return samplers_of(loader.sampler, loader.batch_sampler)


def _told_by(loader: Any) -> list[Seeded]:
    return followers(_samplers(loader))


class _Heeding:
    """torch's iterator, made anew where a sampler was told another epoch before the first batch was asked for."""

    def __init__(self, iterator: Any, told: list[Seeded], anew: Callable[[], Any]) -> None:
        self._iterator, self._told, self._epoch = iterator, told, told[0].epoch
        self._anew: Callable[[], Any] | None = anew

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        anew, self._anew = self._anew, None
        if anew is not None and late_epoch(self._told, self._epoch) is not None:
            self._iterator = anew()
        return next(self._iterator)

    def __len__(self) -> int:
        return len(self._iterator)

    def __getattr__(self, name: str) -> Any:
        if name == "_iterator":  # while it is copied
            raise AttributeError(name)
        return getattr(self._iterator, name)
