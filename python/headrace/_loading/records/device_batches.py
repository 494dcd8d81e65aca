"""Batches of torch's DataLoader on a device: records are made there, and other tensors copied."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping
from typing import Any

import torch

from headrace._base.native import core
from headrace._engine.destination import Destination
from headrace._engine.device_engine import moved_tensor
from headrace._loading.records.record_batch import RecordBatch, RecordedBatch
from headrace._loading.records.record_engines import RecordEngines


class DeviceBatches:
    """Brings the batches of one loader to its device.

    Args:
        destination: where they go.
        threads: see `RecordEngines`.

    Attributes:
        threads: as given.
        entry_points: where the rows of JPEGs begin; None: nothing is learned.
    """

    def __init__(self, destination: Destination, threads: int) -> None:
        self.destination, self.threads = destination, threads
        self.entry_points: core.EntryPoints | None = None
        self._engines = RecordEngines(destination, threads)

    def begin(self, batch: object) -> None:
        """Called when a batch has arrived: begins to make its records. What raises an error here, such as a device
        without memory, is tried again when the batch is due."""
        if isinstance(batch, RecordedBatch):
            try:
                self._engines.begin(batch, self.entry_points)
            except Exception:  # torch's iterator must not lose the batch that it is about to receive
                self._engines.drop(batch)

    def finish(self, batch: object) -> None:
        """Called when a batch is due: begins what could not be begun before, and waits until all values are made.

        Raises:
            Exception: see `RecordEngines.finish`.
        """
        if isinstance(batch, RecordedBatch):
            if any(one.under_way is None for one in batch.records):
                self._engines.begin(batch, self.entry_points)
            self._engines.finish(batch)

    def drop(self, batch: object) -> None:
        """Called with a batch that was begun, and that is not handed out."""
        if isinstance(batch, RecordedBatch):
            self._engines.drop(batch)

    def deliver(self, batch: Any) -> Any:
        """Returns a batch, whose records are finished, on the device: the tensors in lists, tuples and mappings are
        copied there, as torch pins them; all else is as it was."""
        if isinstance(batch, RecordBatch):
            return self._engines.hand_over(batch)
        if isinstance(batch, torch.Tensor):
            return self._moved(batch)
        if isinstance(batch, Mapping):
            return _with_values(batch, {key: self.deliver(one) for key, one in batch.items()})
        if isinstance(batch, (list, tuple)):
            return _with_items(batch, [self.deliver(one) for one in batch])
        return batch

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        device = self.destination.device
        if self.destination.way == "memory" or tensor.device.type != "cpu":
            return tensor
        return moved_tensor(tensor, device) if tensor.layout is torch.strided else tensor.to(device)

    def close(self) -> None:
        """Ends the threads."""
        self._engines.close()


def _with_values(batch: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    if all(values[key] is batch[key] for key in values):
        return batch
    kind: Any = type(batch)
    try:
        if not isinstance(batch, MutableMapping):
            return kind(values)
        made: Any = copy.copy(batch)  # it may have more attributes
        made.update(values)
    except TypeError:  # it cannot be copied, changed or made from a dict
        return values
    return made


def _with_items(batch: list[Any] | tuple[Any, ...], items: list[Any]) -> Any:
    if all(new is old for new, old in zip(items, batch, strict=True)):
        return batch
    kind: Any = type(batch)
    if isinstance(batch, tuple):
        return kind(*items) if hasattr(batch, "_fields") else kind(items)
    try:
        made = copy.copy(batch)
        made[:] = items
    except TypeError:
        return items
    return made
