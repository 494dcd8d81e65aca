"""Batches of torch's DataLoader where the main process makes them: records are made in this machine's memory or on a
device, and other tensors copied to the device."""

from __future__ import annotations

from typing import Any

import torch

from headrace._base.native import core
from headrace._engine.counters.counters import Counters
from headrace._engine.destination import Destination
from headrace._engine.device_engine import moved_tensor
from headrace._helpers.argument import Helpers
from headrace._loading.records.leaves_of_batches import map_leaves
from headrace._loading.records.record_batch import RecordBatch, RecordedBatch
from headrace._loading.records.record_engines import RecordEngines


class DeviceBatches:
    """Brings the batches of one loader to its device.

    Args:
        destination: where they go.
        threads, helpers, timeout: see `RecordEngines`.

    Attributes:
        threads: as given.
        entry_points: where the rows of JPEGs begin; None: nothing is learned.
    """

    def __init__(self, destination: Destination, threads: int, helpers: Helpers = (), timeout: float = 0.0) -> None:
        self.destination, self.threads = destination, threads
        self.entry_points: core.EntryPoints | None = None
        self._engines = RecordEngines(destination, threads, helpers, timeout)
        self._served: set[object] = set()  # iterators whose workers have not ended

    def serve(self, begun: object, *, pins: bool) -> None:
        """Called when an iterator has begun.

        Args:
            begun: its batches; stands for it.
            pins: whether what is made in this machine's memory from now on is pinned, as torch pins the rest.
        """
        self._served.add(begun)
        self._engines.pins = pins

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
        return map_leaves(batch, self._deliver_leaf)

    def _deliver_leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, RecordBatch):
            return self._engines.hand_over(leaf)
        return self._moved(leaf) if isinstance(leaf, torch.Tensor) else leaf

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        device = self.destination.device
        if self.destination.way == "memory" or tensor.device.type != "cpu":
            return tensor
        return moved_tensor(tensor, device) if tensor.layout is torch.strided else tensor.to(device)

    def counters(self) -> Counters:
        """Returns what was counted while records were made."""
        return self._engines.counters()

    def rest(self, begun: object) -> None:
        """Called when the workers of an iterator end: threads of this machine's memory end with the last one's, so that
        none is there when the next workers are forked. An iterator may be collected while another one is served."""
        self._served.discard(begun)
        if self.destination.way == "memory" and not self._served:
            self._engines.rest()

    def close(self) -> None:
        """Ends the threads."""
        self._engines.close()
