"""Which epoch comes next, with which seed and in which order; draws from torch's generators as torch's loader."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch

from headrace.order import Cut, EpochOrder, OrderedBatch, RandomState, base_seed, generators_of
from headrace.sampler.seeded import Seeded, tell
from headrace.sampling import Order, asked_of, begin_with, followers, late_epoch, order_of, samplers_of
from headrace.state import Progress, Resume, Start


class Epochs:
    """The epochs of one loader.

    Args:
        loader: a torch DataLoader; its samplers, batch size and generator are read.
        length: of the dataset.
        seed: decides order and augmentation; None: drawn anew for each epoch.
        keeps_base_seed: whether only the first epoch draws the base seed, as torch does with persistent workers.
    """

    def __init__(self, loader: Any, length: int, seed: int | None, *, keeps_base_seed: bool) -> None:
        self._sampler, self._batch_sampler = loader.sampler, loader.batch_sampler
        self._generator, self._length, self._seed = loader.generator, length, seed
        self._keeps_base_seed = keeps_base_seed
        self._samplers = samplers_of(loader.sampler, loader.batch_sampler)
        self._followers = followers(self._samplers)
        self._generators = generators_of(loader.generator, self._samplers)
        self._next = 0
        self._base_seed: int | None = None
        self._resume: Resume | None = None
        self._progress: Progress | None = None  # of the newest epoch, until another one is asked for

    @property
    def upcoming(self) -> int:
        """The number of the epoch that `begin` would begin."""
        asked = asked_of(self._followers)
        return self._next if asked is None else asked

    @property
    def resumes(self) -> bool:
        """Whether `begin` would go on with the epoch that a state was loaded for."""
        return self._resume is not None and self._resume.start.epoch == self.upcoming

    @property
    def generators(self) -> int:
        """How many generators the order follows from."""
        return len(self._generators)

    def begin(self) -> tuple[Progress, EpochOrder]:
        """Begins the next epoch, or goes on with the one that a state was loaded for."""
        progress, order = self._begin()
        self._resume, self._progress = None, progress
        self._next = progress.epoch + 1
        self._base_seed = progress.start.base_seed
        return progress, order

    def renew(self, progress: Progress) -> EpochOrder | None:
        """Where a sampler was told another epoch after this one began, as its user may before the first batch, and as
        torch heeds it then: that epoch, and its progress in place of this one's. Else None."""
        if progress is not self._progress or late_epoch(self._followers, progress.epoch) is None:
            return None
        # Begun already, so that nothing is drawn a second time.
        start = replace(self._upcoming(), begun=True, base_seed=progress.start.base_seed, random=progress.start.random)
        begun, order = self._draw(start)
        begun.before = progress.before
        self._next = begun.epoch + 1
        vars(progress).update(vars(begun))
        self._progress = progress
        return order

    def peek(self, batches: int | None = None) -> tuple[Progress, list[OrderedBatch]]:
        """What `begin` would return, the order's first `batches` or all; leaves all generators as they were."""
        before = RandomState.now(self._generators)
        told = [(one, one.epoch, one.asked) for one in self._followers]
        try:
            progress, order = self._begin()
            return progress, list(itertools.islice(order, batches))
        finally:
            before.restore(self._generators)
            for one, epoch, asked in told:
                one.told(epoch)
                if asked is not None:
                    one.set_epoch(asked)

    def _begin(self) -> tuple[Progress, EpochOrder]:
        resume = self._resume
        if resume is None or resume.start.epoch != self.upcoming:
            return self._draw(self._upcoming())
        # The order is replayed from the generators' states of then. Those that belong to the loader stay where that
        # leaves them. torch's default one is its user's: it only moves if this epoch had not moved it before, and if
        # the user has brought it back to where it was.
        moved = resume.start.begun or not torch.equal(torch.get_rng_state(), resume.start.random.default)
        with torch.random.fork_rng(devices=[]) if moved else nullcontext():
            resume.start.random.restore(self._generators)
            progress, order = self._draw(resume.start, resume.offset)
            order.skip(resume.offset, resume.position)
            order.draw()
        progress.position = progress.first = resume.position
        return progress, order

    def _draw(self, start: Start, offset: int = 0) -> tuple[Progress, EpochOrder]:
        for one in self._followers:
            one.told(start.epoch)
        order_of_all = self.order()
        items, cut = order_of_all.items, order_of_all.cut
        drew = start.drew_seed if start.begun else not (self._keeps_base_seed and start.base_seed is not None)
        drawn = base_seed(self._generator) if drew else start.base_seed
        seed = self._seed if self._seed is not None else drawn
        assert seed is not None
        order = EpochOrder(items, order_of_all.unique, self._length, cut)
        # Drawn at once: the order must not depend on when the first batch is asked for, nor on who draws in between.
        order.draw()
        begun = Start(start.epoch, True, drawn, drew, start.sampler_epoch, start.random)
        whole, behind = (self._count(items, cut, passed) for passed in (0, offset))
        return Progress(begun, seed, whole, cut, offset, behind), order

    def order(self) -> Order:
        """The order of all ranks together."""
        return order_of(self._sampler, self._batch_sampler, self._length, self._seed)

    def _upcoming(self) -> Start:
        now = RandomState.now(self._generators)
        return Start(self.upcoming, False, self._base_seed, False, self._sampler_epoch(), now)

    @staticmethod
    def _count(items: Any, cut: Cut, offset: int) -> int:
        """The batches behind so many items; -1 where nobody knows."""
        try:
            return cut.batches(max(0, len(items) - offset))
        except TypeError:  # a sampler without a length
            return -1

    def __copy__(self) -> Epochs:
        """What one of the two yields is not counted by the other."""
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        copied._progress = None if self._progress is None else replace(self._progress)
        return copied

    # ---- set_epoch and state -----------------------------------------------------------------------------------------

    def set(self, epoch: int) -> None:
        """The next epoch is this one; the samplers are told."""
        self._next = epoch
        if self._resume is not None and self._resume.start.epoch != epoch:
            self._resume = None
        self._progress = None
        begin_with(self._samplers, epoch)

    def position(self) -> Resume:
        """Where a copy of the loader has to go on to deliver what is still to come."""
        progress, asked = self._progress, asked_of(self._followers)
        if self._resume is not None:
            return self._resume if asked in (None, self._resume.start.epoch) else Resume(self._upcoming())
        if progress is None or progress.finished:
            return Resume(self._upcoming())
        if progress.position == progress.first and asked not in (None, progress.epoch):  # see `renew`
            return Resume(self._upcoming())
        return Resume(progress.start, progress.position, progress.offset, progress.behind_offset)

    def resume(self, at: Resume) -> None:
        """`begin` goes on there."""
        self._resume, self._progress = at, None
        self._next, self._base_seed = at.start.epoch, at.start.base_seed
        for one in self._followers:
            one.told(at.start.epoch)
        if at.start.sampler_epoch is not None:
            tell((one for one in self._samplers if not isinstance(one, Seeded)), at.start.sampler_epoch)

    def _sampler_epoch(self) -> int | None:
        for sampler in self._samplers:
            epoch = getattr(sampler, "epoch", None)
            if hasattr(sampler, "set_epoch") and isinstance(epoch, int) and not isinstance(sampler, Seeded):
                return epoch
        return None
