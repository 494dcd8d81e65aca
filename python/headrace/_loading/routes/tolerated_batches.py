"""Batches that torch delivers with ``on_error``: notes the samples that failed, and passes over batches without any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace._loading.fallback.tolerance.attempts import EpochFaults, ToleratedBatch
from headrace._loading.native.sample_errors import FaultLog


class ToleratedBatches:
    """The batches of torch's iterator, without those that have no sample left.

    Args:
        loader: whose batches they are; no reference is kept.
        faults: of the epoch; gets the errors.
    """

    def __init__(self, batches: Iterator[object], loader: Any, faults: EpochFaults) -> None:
        self._batches, self._ranks = batches, loader._settings().ranks
        self._log = FaultLog(loader.on_error, loader.max_errors, faults, self)

    def __iter__(self) -> Iterator[object]:
        return self

    def __next__(self) -> object:
        while True:
            try:
                data = next(self._batches)
            except StopIteration:
                self._log.warn()
                raise
            if not isinstance(data, ToleratedBatch):
                return data
            self._log.add(data.errors)
            if not data.is_empty:
                return data.batch
            if not self._log.skips:
                self._log.give_up_dataset()
            if self._ranks > 1:
                self._log.give_up_batch()

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]  # torch's iterators have a length
