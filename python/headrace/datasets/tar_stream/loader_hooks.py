"""What a loader takes from a stream instead of its samplers: an order, and a length.

Imports the streams only in a program that has made one.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from torch.utils.data import BatchSampler

if TYPE_CHECKING:
    import torch

    from headrace._base.ranks import World
    from headrace.datasets.tar_stream.stream_sampler import StreamSampler
    from headrace.datasets.tar_stream.stream_source import StreamSource


class StreamOrder(NamedTuple):
    """The attributes of a loader that its order follows from."""

    sampler: StreamSampler
    batch_sampler: BatchSampler | None
    generator: torch.Generator | None


def _stream_class() -> type | None:
    return getattr(sys.modules.get("headrace.datasets.tar_stream.stream_dataset"), "TarStream", None)


def is_stream(dataset: object) -> bool:
    """Whether a dataset is a TarStream, or of a subclass."""
    cls = _stream_class()
    return cls is not None and isinstance(dataset, cls)


def stream_source(dataset: Any) -> StreamSource | None:
    """The source of a TarStream; None for other datasets, also for a subclass, which may yield other samples."""
    return dataset.source if type(dataset) is _stream_class() else None


def sampled_world(dataset: object, world: World) -> World:
    """Returns the ranks that a loader's samplers share their order among: a stream shares its shards itself."""
    return type(world)() if is_stream(dataset) else world


class Streamed:
    """Mixin of the loader, which must precede torch's class: its order and length where the dataset is a stream."""

    _stream_order: StreamOrder | None = None

    def _find_ordering(self) -> Any:
        """Returns the object whose attributes `sampler`, `batch_sampler` and `generator` decide the order."""
        loader: Any = self
        if not is_stream(loader.dataset):
            return self
        if self._stream_order is None:
            world = loader._own.world
            sampler = loader.dataset.sampler(world.rank, world.size, loader.seed, loader.generator)
            batches = None if loader.batch_size is None else BatchSampler(sampler, loader.batch_size, loader.drop_last)
            self._stream_order = StreamOrder(sampler, batches, loader.generator)
        return self._stream_order

    def __len__(self) -> int:
        order = self._find_ordering()
        if order is self:
            return super().__len__()  # type: ignore[misc, no-any-return]
        return len(order.sampler if order.batch_sampler is None else order.batch_sampler)
