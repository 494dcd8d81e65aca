"""Makes torch's iterator for an epoch, from its beginning or resumed from a state."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import IterableDataset

from headrace._base.checks import length_or_none
from headrace._base.safe_exceptions import contextmanager
from headrace._loading.epoch.sampler_kinds import plans_occurrences
from headrace._loading.epoch.sampler_setup import foreign_epoch, samplers_of
from headrace._loading.epoch.sampler_state import restore_state
from headrace._loading.epoch.torch_loader import TorchLoader, missing_hook
from headrace._loading.fallback.checkpoint_format import Saved, TorchStart
from headrace._loading.fallback.epoch_observer import TorchProgress
from headrace._loading.fallback.index_batches import restore_ended
from headrace._loading.fallback.observed_iterators import begin_observed_iterator
from headrace._loading.fallback.randomness import Randomness, may_draw_from_default
from headrace._loading.fallback.seeded_indices import SampleSeeds
from headrace._loading.fallback.worker_states import WorkerStates, have_states
from headrace._recipe.draws.draws import epoch_seed
from headrace._recipe.draws.generator_states import draw_base_seed, generators_of
from headrace._storage.entry_points.entry_points import EntryPoints

if TYPE_CHECKING:
    from torch.utils.data._utils.fetch import _IterableDatasetFetcher
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    from headrace._loading.records.device_batches import DeviceBatches

_WORKERS = 0x5851F42D4C957F2D  # makes the workers' seeds differ from the seed of the order
_RANKS = 0x14057B7EF767814F  # and from those of other ranks


class Making:
    """Makes the iterator of one loader and epoch.

    Args:
        start: torch's ``__iter__`` of the loader, which calls `get_iterator`.
        seed, rank: the loader's arguments.
        entry_points: where the rows of JPEGs begin; None: nothing is learned.
        device_batches: brings the batches to a device; None: they stay where torch makes them.
    """

    def __init__(
        self,
        loader: TorchLoader,
        start: Callable[[], _BaseDataLoaderIter],
        seed: int | None,
        rank: int,
        entry_points: EntryPoints | None = None,
        device_batches: DeviceBatches | None = None,
    ) -> None:
        self._loader, self._start, self._seed, self._rank = loader, start, seed, rank
        self._entry_points, self._device_batches = entry_points, device_batches
        self._samplers = samplers_of(loader.sampler, loader.batch_sampler)
        self._generators = generators_of(loader.generator, self._samplers)
        self._iterable = isinstance(loader.dataset, IterableDataset)
        # Progress and generator of the iterator that `start` is about to request.
        self._prepared: tuple[TorchProgress, torch.Generator | None] | None = None
        self.fits = {
            "samples": None if self._iterable else length_or_none(loader.dataset),
            "batch_size": loader.batch_size,
            "drop_last": loader.drop_last,
            "ranks": max([1, *(getattr(one, "num_replicas", None) or 1 for one in self._samplers)]),
            "seed": seed,
        }

    def upcoming(self, epoch: int) -> TorchStart:
        """Returns how the epoch would begin now."""
        default = may_draw_from_default(self._samplers, self._loader.dataset)
        random = Randomness.now(self._generators, default)
        return TorchStart(epoch, random=random, sampler_epoch=foreign_epoch(self._samplers))

    def begin_epoch(self, epoch: int) -> tuple[_BaseDataLoaderIter, TorchProgress]:
        """Returns torch's iterator at the epoch's beginning, and its observer."""
        return self._make_iterator(self.upcoming(epoch), None, _Apart())

    def going_on(self, saved: Saved, epoch: int) -> tuple[_BaseDataLoaderIter, TorchProgress]:
        """Returns torch's iterator resumed from a state, and its observer.

        torch's default generator belongs to the user. Resuming advances it only if the epoch had not yet drawn from it
        when the state was taken, and the user has restored it to its state of that time.

        Raises:
            ValueError: the state does not fit the loader.
        """
        computed: Any = next(filter(plans_occurrences, self._samplers), None)
        if computed is not None:
            saved = saved.for_ranks(self.fits, len(computed))
        saved.check(self.fits, self._iterable, self._loader.num_workers)
        first = replace(saved.start, epoch=epoch)
        default = None if first.random is None else first.random.default
        moved = first.begun or (default is not None and not torch.equal(default, torch.get_rng_state()))
        with _Apart(moved) as apart:
            if saved.finished:
                self._restore_end_states(saved, apart)
            if first.random is None:
                first = replace(first, random=self.upcoming(epoch).random)
            else:
                first.random.restore(self._generators)
            if saved.finished:
                keeps = self._loader.persistent_workers and not first.drew_seed
                first = replace(first, begun=False, drew_seed=not keeps, base_seed=first.base_seed if keeps else None)
            iterator, progress = self._make_iterator(first, None if saved.finished else saved, apart)
            # If the first indices were not drawn when the state was taken, and the generator's state is the same as
            # then, they are drawn from it on request.
            late = None if first.late is None else first.late.default
            if (not first.begun and not moved) or (
                not first.drawn and late is not None and torch.equal(late, apart.kept)
            ):
                progress.let_draw()
            else:
                progress.draw()
            if not saved.finished:
                self._replay_batches(iterator, saved)
            return iterator, progress

    def get_iterator(self) -> _BaseDataLoaderIter:
        """Makes the iterator for torch's ``__iter__``, which `start` runs; it reports to the prepared progress."""
        assert self._prepared is not None
        if self._loader.num_workers:
            self._loader.check_worker_number_rationality()
        return begin_observed_iterator(self._loader, *self._prepared)

    # ---- the parts ---------------------------------------------------------------------------------------------------

    def _make_iterator(
        self, first: TorchStart, saved: Saved | None, apart: _Apart
    ) -> tuple[_BaseDataLoaderIter, TorchProgress]:
        loader, generator = self._loader, self._loader.generator
        running = loader._iterator if loader.persistent_workers and loader.num_workers else None
        advance: Callable[[], object] | None = None
        if self._seed is not None:
            if running is None:  # torch draws no base seed for the later epochs of persistent workers
                advance = functools.partial(draw_base_seed, generator)  # the user's, as torch and the native path do
            of_workers = (self._seed ^ _WORKERS) + self._rank * _RANKS
            generator = torch.Generator("cpu").manual_seed(epoch_seed(of_workers, first.epoch or 0))
            first = replace(first, base_seed=None)
        elif not first.drew_seed:
            generator = torch.Generator("cpu")  # the workers keep the seed of an earlier epoch
        held = getattr(running, "held", None)
        their: WorkerStates | None = None
        if held is not None:
            their = held.watch.workers
            first = replace(first, base_seed=held.watch.start.base_seed, drew_seed=False)
        elif running is None and have_states(loader):
            their = WorkerStates(loader, {} if saved is None else saved.workers, 0 if saved is None else saved.step)
        progress = TorchProgress(
            loader, first, saved, self._generators, their, self.fits, self._make_sample_seeds(first)
        )
        if self._entry_points is not None:
            progress.images.entry_points = self._entry_points.native
        progress.images.indexes = self._loader._indexes if self._loader._defers else None
        progress.device_batches = self._device_batches
        if missing_hook() is None:
            progress.when_iterated = advance
        elif advance is not None:
            advance()
        inline = saved.workers[0] if saved is not None and loader.num_workers == 0 else None
        if inline is not None:
            with apart.users_generator_state():
                restore_state(loader.dataset, inline.dataset, "dataset")
        if held is not None:
            held.watch = progress
        self._prepared = progress, generator
        iterator = self._start()
        if inline is not None and self._iterable:
            of_this_process: Any = iterator
            fetcher: _IterableDatasetFetcher = of_this_process._dataset_fetcher
            with apart.users_generator_state():
                restore_state(fetcher.dataset_iter, inline.iterator, "dataset's iterator")
            fetcher.ended = saved is not None and inline.ended and saved.has_states
        progress.began(iterator)
        return iterator, progress

    def _make_sample_seeds(self, first: TorchStart) -> SampleSeeds | None:
        if self._seed is None or self._iterable:
            return None
        return SampleSeeds(self._loader, self.fits["samples"], self._seed, first.epoch or 0)

    def _replay_batches(self, iterator: Iterator[object], saved: Saved) -> None:
        """Makes and discards the batches between the states of this process and its workers and the saved position."""
        wanted = saved.step + saved.since - saved.count_covered(self._iterable)
        for made in range(wanted):
            if next(iterator, self) is self:
                raise ValueError(
                    f"the state requires {wanted} batches to be made again, but there are only {made}: "
                    "the dataset is not the one of the state"
                )

    def _restore_end_states(self, saved: Saved, apart: _Apart) -> None:
        """Restores what outlives an epoch (dataset, persistent workers, samplers) to its state at the end."""
        loader = self._loader
        if loader.num_workers == 0:
            inline = saved.workers[0]
            with apart.users_generator_state():
                restore_state(loader.dataset, inline.dataset, "dataset")
                if inline.iterator is not None:
                    restore_state(iter(loader.dataset), inline.iterator, "dataset's iterator")
        elif loader.persistent_workers and have_states(loader):
            iterator, _ = self._make_iterator(replace(saved.start, drew_seed=False), saved, apart)
            self._replay_batches(iterator, saved)
            if next(iterator, self) is not self:
                raise ValueError("the state says that its epoch had ended, but there are more batches in it")
            if saved.since:
                return
        restore_ended(loader._index_sampler, saved.position)


class _Apart:
    """Context manager that restores torch's default generator at the end if `moved`."""

    def __init__(self, moved: bool = False) -> None:
        self._moved, self.kept = moved, torch.get_rng_state()

    def __enter__(self) -> _Apart:
        return self

    def __exit__(self, *error: object) -> None:
        if self._moved:
            torch.set_rng_state(self.kept)

    @contextmanager
    def users_generator_state(self) -> Iterator[None]:
        """Runs the user's code with the user's state of the generator, which the code may change."""
        ours = torch.get_rng_state()
        if self._moved:
            torch.set_rng_state(self.kept)
        yield
        if self._moved:
            self.kept = torch.get_rng_state()
            torch.set_rng_state(ours)
