"""What crosses from a worker to the main process in place of a batch of images: their records, and the files' bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from headrace._base.types import Array, State
from headrace._engine.destination import Destination
from headrace._recipe.images.memory_format import Layout
from headrace.pillow.recording.native_plan import Take

AHEAD = 2  #: batches whose records are made beyond the one that is due


class ImageRecord(NamedTuple):
    """How one image of a batch is made.

    Attributes:
        begin, nbytes: of its file, among the bytes of `RecordedBatch`.
        size: (width, height) of the file's image.
        stages, last: the plan, as bind/plan.cpp reads it.
        door, arguments: the function through which the program got the image, and its arguments beside the bytes: it
            decodes the file if that is damaged.
        name: the file's, for messages; empty if it has none.
    """

    begin: int
    nbytes: int
    size: tuple[int, int]
    stages: list[Take]
    last: Take
    door: str
    arguments: tuple[Any, ...]
    name: str


@dataclass(eq=False)
class RecordBatch:
    """Stands for a tensor in a batch: `torch.stack` of deferred tensors.

    Attributes:
        images: one for each sample.
        shape: of the batch, (n, ..., C, H, W).
        table: values of the 256 bytes, (C, 256), in the batch's dtype.
        layout: of the batch in memory.
        under_way: what makes it, in the main process; None: not begun.
    """

    images: list[ImageRecord]
    shape: tuple[int, ...]
    table: Array
    layout: Layout
    under_way: Any = field(default=None, repr=False)

    def __getstate__(self) -> State:
        return {**vars(self), "under_way": None}


@dataclass(eq=False)
class RecordedBatch:
    """A batch with records in it.

    Attributes:
        batch: what the user gets, with `RecordBatch`es in place of tensors.
        records: all of them.
        files: bytes of the files, one after another: uint8 (n,).
        requested: what the sampler yielded for the batch, noted in the main process; None: a stream's.
    """

    batch: Any
    records: list[RecordBatch]
    files: torch.Tensor
    requested: Any = field(default=None, repr=False)

    def name_sample(self, number: int, count: int) -> str:
        """Returns how an error names one of the batch's samples: by its index in the dataset, if that is known.

        Args:
            number: of the sample in the batch.
            count: of samples in the batch. A dataset may return more or fewer than the sampler asks for.
        """
        try:
            if len(self.requested) == count:
                return f"sample {self.requested[number]}"
        except Exception:  # any object may be an index
            pass
        return f"sample {number} of the batch"


def are_wanted(destination: Destination) -> bool:
    """Whether the workers of a loader make records: where batches stay in this machine's memory, none are made."""
    return destination.way != "memory"
