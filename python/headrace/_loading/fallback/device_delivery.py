"""Between torch's iterators and the records of their batches: which samples were requested, and the delivery on the
device."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch.utils.data import default_collate, default_convert

from headrace._loading.fallback.deferred_workers import CountedBatch
from headrace._loading.fallback.seeded_indices import SeededCall, SeededSamples
from headrace._loading.fallback.tolerance.attempts import ToleratedBatch
from headrace._loading.fallback.worker_wrappers import Carried, Task
from headrace._loading.records.record_batch import RecordedBatch
from headrace._loading.records.record_collation import RecordCollation
from headrace._loading.records.record_conversion import RecordConversion

if TYPE_CHECKING:
    from headrace._loading.records.device_batches import DeviceBatches


class RequestedSamples:
    """What the sampler yielded for each batch that was requested and has not arrived, so that errors name the samples
    as the dataset does. Streams have no such names."""

    def __init__(self) -> None:
        self._items: dict[int, object] = {}

    def note(self, number: int, item: object) -> None:
        """Called when torch's batch of this number is requested."""
        self._items[number] = item

    def give(self, number: int, data: object) -> None:
        """Called when it has arrived: notes in its records which samples they are."""
        item, batch = self._items.pop(number, None), recorded_in(data)
        if isinstance(batch, RecordedBatch) and item is not None:
            batch.requested = _plain(item)

    def clear(self) -> None:
        """Forgets all of them: an epoch begins."""
        self._items.clear()


def _plain(item: object) -> object:
    """Returns what the sampler yielded, without what headrace adds for workers."""
    if isinstance(item, Task):
        item = item.indices
    return item.indices if isinstance(item, (SeededSamples, SeededCall)) else item


def recording_of(loader: Any) -> type[RecordCollation] | None:
    """Returns what makes records for torch's loader; None: its function is none of torch's, and gets values."""
    if loader.collate_fn is default_collate:
        return RecordCollation
    return RecordConversion if loader.collate_fn is default_convert and not loader._auto_collation else None


def recorded_in(data: object) -> object:
    """Returns what a worker has sent, without the counts beside it."""
    return data.batch if isinstance(data, CountedBatch) else data


def _delivered(device_batches: DeviceBatches, batch: Any) -> Any:
    """Returns a finished batch on its device, in what carries it."""
    if isinstance(batch, (Carried, ToleratedBatch)):
        return replace(batch, batch=_delivered(device_batches, batch.batch))
    return device_batches.deliver(batch)


def deliver(device_batches: DeviceBatches | None, data: Any) -> Any:
    """Returns the batch that was received, on its device.

    Raises:
        Exception: see `DeviceBatches.finish`.
    """
    if device_batches is None:
        return data
    batch = data.batch if isinstance(data, RecordedBatch) else data
    try:
        device_batches.finish(data)
        return _delivered(device_batches, batch)
    except BaseException:
        device_batches.drop(data)
        raise
