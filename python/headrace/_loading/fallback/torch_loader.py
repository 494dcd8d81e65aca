"""A loader whose batches torch delivers, as the code that begins its epochs sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

import torch
from torch.utils.data import Dataset

from headrace._base.types import Function

if TYPE_CHECKING:
    from torch.utils.data.dataloader import _BaseDataLoaderIter


class TorchLoader(Protocol):
    """The attributes and methods of torch's DataLoader, and of headrace's own, that an epoch needs."""

    _iterator: _BaseDataLoaderIter | None

    @property
    def dataset(self) -> Dataset[object]: ...

    @property
    def batch_size(self) -> int | None: ...

    @property
    def drop_last(self) -> bool: ...

    @property
    def sampler(self) -> Iterable[object]: ...

    @property
    def batch_sampler(self) -> Iterable[object] | None: ...

    @property
    def _index_sampler(self) -> Iterable[object]: ...

    @property
    def generator(self) -> torch.Generator | None: ...

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
    def in_order(self) -> bool: ...

    @property
    def snapshot_every_n_steps(self) -> int | None: ...

    @property
    def _defers(self) -> bool: ...

    def check_worker_number_rationality(self) -> None: ...
