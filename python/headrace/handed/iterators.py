"""torch's own two iterators, with a watch over what they draw and hand out."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch.utils.data import dataloader

from headrace.handed.workers import Workers

_HOOKS = {
    "_SingleProcessDataLoaderIter": ("_next_data",),
    "_MultiProcessingDataLoaderIter": ("_next_data", "_try_put_index", "_reset"),
}


def missing_hook() -> str | None:
    """What states need of torch and this version does not have; None where all is there."""
    for name, methods in _HOOKS.items():
        for method in methods:
            if not hasattr(getattr(dataloader, name, None), method):
                return f"torch.utils.data.dataloader.{name}.{method}"
    return None


class Watch(Protocol):
    """What an iterator tells of an epoch; `headrace.handed.progress` keeps it."""

    workers: Workers | None
    base_seed: int | None

    def begins(self, sampler: Any) -> Iterator[Any]:
        """The iterator over the batches of indices."""

    def first_worker(self) -> int:
        """Which worker is given the first batch."""

    def returned(self, iterator: Any) -> None:
        """torch's iterator has tried to get a batch."""

    def batch(self, data: Any) -> Any:
        """The user's batch, of what the iterator has got."""

    def finished(self) -> None:
        """There is no further batch."""


class Held:
    """The watch of an iterator, another one in each epoch."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch


class _Sampler:
    """The loader's index sampler, as its iterator is to see it."""

    def __init__(self, sampler: Any, held: Held) -> None:
        self._sampler, self._held = sampler, held

    def __iter__(self) -> Iterator[Any]:
        return self._held.watch.begins(self._sampler)

    def __len__(self) -> int:
        return len(self._sampler)


class _View:
    """A loader, some of whose attributes are others."""

    def __init__(self, loader: Any, others: dict[str, Any]) -> None:
        vars(self).update(others, _loader=loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Watched:
    """Tells the watch of each batch."""

    held: Held
    _drawn_seed: int

    def _next_data(self) -> Any:
        try:
            data = super()._next_data()  # type: ignore[misc]
        except StopIteration:
            self.held.watch.returned(self)
            self.held.watch.finished()
            raise
        except Exception:
            self.held.watch.returned(self)
            raise
        self.held.watch.returned(self)
        return self.held.watch.batch(data)

    @property
    def _base_seed(self) -> int:
        """Of the workers: torch draws it, and the watch may have another one."""
        seed = self.held.watch.base_seed
        return self._drawn_seed if seed is None else seed

    @_base_seed.setter
    def _base_seed(self, drawn: int) -> None:
        self._drawn_seed = drawn


def begin(loader: Any, watch: Watch, generator: torch.Generator | None) -> Any:
    """An iterator of torch's for a loader; where this version of torch has no hooks for a watch, without one.

    Args:
        generator: in place of the loader's.
    """
    others: dict[str, Any] = {"generator": generator}
    if missing_hook() is not None:
        view: Any = _View(loader, others)
        several = dataloader._MultiProcessingDataLoaderIter
        return several(view) if loader.num_workers else dataloader._SingleProcessDataLoaderIter(view)
    held = Held(watch)
    others["_index_sampler"] = _Sampler(loader._index_sampler, held)
    if loader.num_workers == 0:
        return _single()(_View(loader, others), held)
    if watch.workers is not None:
        carrier = watch.workers.carrier
        others |= {"dataset": carrier, "collate_fn": carrier.collate, "worker_init_fn": carrier.start}
    return _several()(_View(loader, others), held)


# torch names what it profiles after the class.
@functools.cache
def _single() -> type[Any]:
    class _SingleProcessDataLoaderIter(_Watched, dataloader._SingleProcessDataLoaderIter):  # type: ignore[misc]
        def __init__(self, loader: Any, held: Held) -> None:
            self.held = held
            super().__init__(loader)

    return _SingleProcessDataLoaderIter


@functools.cache
def _several() -> type[Any]:
    class _MultiProcessingDataLoaderIter(_Watched, dataloader._MultiProcessingDataLoaderIter):  # type: ignore[misc]
        _passed_by = 0

        def __init__(self, loader: Any, held: Held) -> None:
            self.held = held
            super().__init__(loader)
            # In this process they only serve messages.
            self._dataset, self._collate_fn = loader._loader.dataset, loader._loader.collate_fn

        def _reset(self, loader: Any, first_iter: bool = False) -> None:
            self._passed_by = self.held.watch.first_worker()
            if not first_iter and self.held.watch.workers is not None:
                self.held.watch.workers.renew()
            super()._reset(loader, first_iter)

        def _try_put_index(self) -> None:
            passed_by, self._passed_by = self._passed_by, 0
            for _ in range(passed_by):
                next(self._worker_queue_idx_cycle)
            super()._try_put_index()

    return _MultiProcessingDataLoaderIter
