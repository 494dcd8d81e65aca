"""Which epoch comes next, with which seed and in which order; draws from torch's generators as torch's loader."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from typing import Any

import torch
from torch.utils.data import RandomSampler

from headrace.draws import epoch_seed
from headrace.order import EpochOrder, OrderedBatch, RandomState, base_seed, generators_of, names_each_once
from headrace.state import Progress, Resume, Start


class Epochs:
    """The epochs of one loader.

    Args:
        loader: a torch DataLoader; its samplers, batch size and generator are read.
        length: of the dataset.
        seed: decides order and augmentation; None: drawn anew for each epoch.
        own_order: whether the order of the loader's RandomSampler follows from `seed` instead of a generator.
        keeps_base_seed: whether only the first epoch draws the base seed, as torch does with persistent workers.
    """

    def __init__(self, loader: Any, length: int, seed: int | None, *, own_order: bool, keeps_base_seed: bool) -> None:
        self._sampler, self._batch_sampler = loader.sampler, loader.batch_sampler
        self._generator, self._length, self._seed = loader.generator, length, seed
        self._unique = loader.batch_size is not None and names_each_once(loader.sampler, length)
        self._keeps_base_seed = keeps_base_seed
        samplers = (loader.sampler, loader.batch_sampler, getattr(loader.batch_sampler, "sampler", None))
        self._generators = generators_of(loader.generator, samplers)
        self._own_order = own_order and isinstance(loader.sampler, RandomSampler)
        self._next = 0
        self._base_seed: int | None = None
        self._resume: Resume | None = None
        self._progress: Progress | None = None  # of the newest epoch, until another one is asked for

    @property
    def upcoming(self) -> int:
        """The number of the epoch that `begin` would begin."""
        return self._next

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

    def peek(self, batches: int | None = None) -> tuple[Progress, list[OrderedBatch]]:
        """What `begin` would return, the order's first `batches` or all; leaves all generators as they were."""
        before = RandomState.now(self._generators)
        try:
            progress, order = self._begin()
            return progress, list(itertools.islice(order, batches))
        finally:
            before.restore(self._generators)

    def _begin(self) -> tuple[Progress, EpochOrder]:
        resume = self._resume
        if resume is None:
            return self._draw(self._upcoming())
        # The order is replayed from the generators' states of then. Those that belong to the loader stay where that
        # leaves them. torch's default one is its user's: it only moves if this epoch had not moved it before, and if
        # the user has brought it back to where it was.
        moved = resume.start.begun or not torch.equal(torch.get_rng_state(), resume.start.random.default)
        with torch.random.fork_rng(devices=[]) if moved else nullcontext():
            resume.start.random.restore(self._generators)
            progress, order = self._draw(resume.start)
            order.skip(resume.position)
            order.draw()
        progress.position = resume.position
        return progress, order

    def _draw(self, start: Start) -> tuple[Progress, EpochOrder]:
        batches = iter(self._sampler if self._batch_sampler is None else self._batch_sampler)
        drew = start.drew_seed if start.begun else not (self._keeps_base_seed and start.base_seed is not None)
        drawn = base_seed(self._generator) if drew else start.base_seed
        seed = self._seed if self._seed is not None else drawn
        assert seed is not None
        order = EpochOrder(batches, self._length, self._unique)
        # Drawn at once: the order must not depend on when the first batch is asked for, nor on who draws in between.
        if self._own_order:  # and only for this: a sampler that holds a generator does not go into a spawned process
            self._sampler.generator = torch.Generator().manual_seed(epoch_seed(seed, start.epoch))
        try:
            order.draw()
        finally:
            if self._own_order:
                self._sampler.generator = None
        begun = Start(start.epoch, True, drawn, drew, start.sampler_epoch, start.random)
        return Progress(begun, seed, self._count()), order

    def _upcoming(self) -> Start:
        return Start(
            self._next, False, self._base_seed, False, self._sampler_epoch(), RandomState.now(self._generators)
        )

    def _count(self) -> int:
        try:
            return len(self._sampler if self._batch_sampler is None else self._batch_sampler)
        except TypeError:  # a sampler without a length
            return -1

    # ---- set_epoch and state -----------------------------------------------------------------------------------------

    def set(self, epoch: int) -> None:
        """The next epoch is this one; the samplers are told."""
        self._next = epoch
        if self._resume is not None and self._resume.start.epoch != epoch:
            self._resume = None
        self._progress = None
        tell_samplers((self._sampler, self._batch_sampler), epoch)

    def position(self) -> Resume:
        """Where a copy of the loader has to go on to deliver what is still to come."""
        if self._resume is not None:
            return self._resume
        if self._progress is None or self._progress.finished:
            return Resume(self._upcoming(), 0)
        return Resume(self._progress.start, self._progress.position)

    def resume(self, at: Resume) -> None:
        """`begin` goes on there."""
        self._resume, self._progress = at, None
        self._next, self._base_seed = at.start.epoch, at.start.base_seed
        if at.start.sampler_epoch is not None:
            tell_samplers((self._sampler, self._batch_sampler), at.start.sampler_epoch)

    def _sampler_epoch(self) -> int | None:
        for sampler in (self._sampler, self._batch_sampler):
            epoch = getattr(sampler, "epoch", None)
            if hasattr(sampler, "set_epoch") and isinstance(epoch, int):
                return epoch
        return None


def tell_samplers(samplers: tuple[Any, ...], epoch: int) -> None:
    """Calls ``set_epoch`` of those that have it."""
    for sampler in samplers:
        forward = getattr(sampler, "set_epoch", None)
        if forward is not None:
            forward(epoch)
