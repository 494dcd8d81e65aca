"""The native threads that gather rows of columns: batches in, dicts of tensors out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from headrace.base.native import core
from headrace.columns.column import RowLayout
from headrace.engine.engine import Engine, Flight


class GatherEngine(Engine):
    """Threads and slots for rows of one layout.

    A batch lies in one piece of memory, one column after the other. Over a slot of the ring, each tensor is a storage
    of its own; the slot returns when the last one is freed. Pinned memory is one storage, because torch's allocator
    knows only the whole, and the tensors are views of it.

    Args:
        layout: of the rows.
        threads, slots_kept, pin: as in `Engine`.
    """

    def __init__(self, layout: RowLayout, *, threads: int, slots_kept: int, pin: bool = False) -> None:
        self._rows, self._pin, self._inline = layout, pin, threads == 0
        self._pipeline = core.gather_pipeline(layout.row_bytes, threads=threads, slots_kept=slots_kept)
        self._lanes = []
        self._served_here = []

    def submit(self, table: core.BlobTable, rows: np.ndarray[Any, Any], draws: np.ndarray[Any, Any]) -> Flight:
        memory = None
        if self._pin:
            _, size = core.gathered_bytes(self._rows.row_bytes, len(rows))
            memory = torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=True)
        return Flight(self._pipeline.submit(table, rows, draws, memory))

    def wait(self, flight: Flight, seconds: float) -> bool:
        while self._inline and self._pipeline.run_one():
            pass
        return super().wait(flight, seconds)

    def tensor(self, flight: Flight, places: list[int] | None = None) -> Any:
        """Returns the batch as a dict of tensors (n, ...); `places` (ascending) selects samples."""
        count, layout = len(flight.batch), self._rows
        if (memory := flight.batch.memory) is not None:
            flight.batch.release()
            offsets, _ = core.gathered_bytes(layout.row_bytes, count)
            parts = [
                memory[offset : offset + count * size] for offset, size in zip(offsets, layout.row_bytes, strict=True)
            ]
        else:
            parts = [torch.utils.dlpack.from_dlpack(one) for one in core.gathered(flight.batch, layout.row_bytes)]
        described = zip(layout.names, parts, layout.dtypes, layout.shapes, strict=True)
        made = {name: part.view(dtype).view(count, *shape) for name, part, dtype, shape in described}
        return made if places is None else {name: values[places] for name, values in made.items()}

    def single(self, batch: Any) -> Any:
        """Returns the sample of a batch of one."""
        return {name: values[0] for name, values in batch.items()}

    def close(self) -> None:
        """Ends the threads. Batches already handed out stay valid. Idempotent."""
        self._pipeline.close()

    def fits(self, recipe: Any) -> bool:
        """Returns whether this engine can be used for another epoch of rows of this layout."""
        return not self.closed and self._rows == recipe
