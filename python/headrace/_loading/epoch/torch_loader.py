"""torch's DataLoader, and headrace's where torch delivers its batches, as the code that begins epochs sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch
from torch.utils.data import Dataset, dataloader

from headrace._base.types import Function

if TYPE_CHECKING:
    from headrace._helpers.argument import Helpers
    from headrace._loading.autotune.tuner import Tuner
    from headrace._storage.entry_points.entry_points import EntryPoints
    from headrace._storage.video_indexes.shared_indexes import SharedIndexes


_HOOKS = {
    "_SingleProcessDataLoaderIter": ("_next_data", "_next_index"),
    "_MultiProcessingDataLoaderIter": ("_next_data", "_try_put_index", "_reset", "_shutdown_workers"),
}


def missing_hook() -> str | None:
    """Returns a method of torch's that states need and this version lacks; None if there is none."""
    for name, methods in _HOOKS.items():
        for method in methods:
            if not hasattr(getattr(dataloader, name, None), method):
                return f"torch.utils.data.dataloader.{name}.{method}"
    return None


class Ordering(Protocol):
    """The part of a loader that decides the order."""

    @property
    def sampler(self) -> Iterable[object]: ...

    @property
    def batch_sampler(self) -> Iterable[object] | None: ...

    @property
    def generator(self) -> torch.Generator | None: ...


class TorchLoader(Ordering, Protocol):
    """The part of a loader that an epoch needs if torch delivers."""

    _iterator: Any  # torch's iterator, or None

    @property
    def dataset(self) -> Dataset[object]: ...

    @property
    def batch_size(self) -> int | None: ...

    @property
    def drop_last(self) -> bool: ...

    @property
    def _index_sampler(self) -> Any: ...

    @property
    def collate_fn(self) -> Function: ...

    @property
    def worker_init_fn(self) -> Callable[[int], object] | None: ...

    @property
    def num_workers(self) -> int: ...

    @property
    def prefetch_factor(self) -> int | None: ...

    @property
    def persistent_workers(self) -> bool: ...

    @property
    def multiprocessing_context(self) -> Any: ...

    @property
    def in_order(self) -> bool: ...

    @property
    def snapshot_every_n_steps(self) -> int | None: ...

    @property
    def _defers(self) -> bool: ...

    @property
    def _indexes(self) -> SharedIndexes | None: ...

    @property
    def _active_tuner(self) -> Tuner | None: ...

    @property
    def entry_points(self) -> EntryPoints | Literal["auto"] | None: ...

    @property
    def helpers(self) -> Helpers: ...

    @property
    def on_error(self) -> str: ...

    @property
    def timeout(self) -> float: ...

    def check_worker_number_rationality(self) -> None: ...


def start_method(loader: TorchLoader) -> str:
    """Returns how torch starts the worker processes of a loader: "fork", "spawn" or "forkserver"."""
    started: Any = loader.multiprocessing_context or torch.multiprocessing
    return str(started.get_start_method())


class LoaderView:
    """View of a loader with some attributes replaced."""

    _loader: TorchLoader

    def __init__(self, loader: TorchLoader, others: dict[str, object]) -> None:
        vars(self).update(others, _loader=loader)

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)
