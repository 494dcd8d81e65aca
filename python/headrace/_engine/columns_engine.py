"""The native threads that gather rows of columns: batches in, dicts of tensors out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from headrace._base.native import core
from headrace._engine.engine import Flight
from headrace._engine.pipeline_engine import PipelineEngine
from headrace.datasets.columns.row_layout import RowLayout


def memory_of(row_bytes: Sequence[int], count: int) -> torch.Tensor:
    """Returns pinned memory, uint8, for `count` rows of columns whose rows have these sizes."""
    _, size = core.gathered_bytes(row_bytes, count)
    return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=True)


def parts_of(batch: core.Batch, row_bytes: Sequence[int]) -> list[torch.Tensor]:
    """Returns the columns of a complete batch, uint8 (bytes,) each: once a batch."""
    memory = batch.memory
    if memory is None:
        return [torch.utils.dlpack.from_dlpack(one) for one in core.gathered(batch, row_bytes)]
    batch.release()
    offsets, _ = core.gathered_bytes(row_bytes, len(batch))
    return [memory[offset : offset + len(batch) * size] for offset, size in zip(offsets, row_bytes, strict=True)]


class ColumnsEngine(PipelineEngine):
    """Threads and slots for rows of one layout.

    A batch is one piece of memory, one column after the other. Over a slot of the pool, each tensor is a storage
    of its own; the slot returns when the last one is freed. Pinned memory is one storage, because torch's allocator
    knows only the whole, and the tensors are views of it.

    Args:
        layout: of the rows.
        threads, slots_kept, pin: as in `ImageEngine`.
    """

    def __init__(self, layout: RowLayout, *, threads: int, slots_kept: int, pin: bool = False) -> None:
        self._rows, self._pin = layout, pin
        pipeline = core.gather_pipeline(layout.row_bytes, threads=threads, slots_kept=slots_kept)
        super().__init__(pipeline, [], inline=threads == 0)

    def submit(self, table: core.BlobTable, rows: npt.NDArray[np.int64], draws: npt.NDArray[np.float64]) -> Flight:
        memory = memory_of(self._rows.row_bytes, len(rows)) if self._pin else None
        return Flight(self._pipeline.submit(table, rows, draws, memory))

    def tensor(self, flight: Flight, places: list[int] | None = None) -> dict[str, torch.Tensor]:
        """Returns the batch as a dict of tensors (n, ...); `places` (ascending) selects samples."""
        count, layout = len(flight.batch), self._rows
        parts = parts_of(flight.batch, layout.row_bytes)
        described = zip(layout.names, parts, layout.dtypes, layout.shapes, strict=True)
        made = {name: part.view(dtype).view(count, *shape) for name, part, dtype, shape in described}
        return made if places is None else {name: values[places] for name, values in made.items()}

    def single(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Returns the sample of a batch of one."""
        return {name: values[0] for name, values in batch.items()}

    def makes(self, product: object) -> bool:
        return not self.closed and self._rows == product

    def has_current_limit(self) -> bool:
        return True  # rows have no pixels
