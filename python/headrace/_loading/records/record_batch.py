"""What crosses from a worker to the main process in place of a batch of images: their records, and the files' bytes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import torch

from headrace._base.types import Array, State
from headrace._recipe.images.memory_format import Layout
from headrace.pillow.recording.native_plan import Take

AHEAD = 2  #: batches whose records are made beyond the one that is due

Box: TypeAlias = "tuple[int, int, int, int]"


class ImageRecord(NamedTuple):
    """How one image of a batch is made.

    Attributes:
        begin, nbytes: of its file, among the bytes of `RecordedBatch`.
        size: (width, height) of the file's image.
        stages, last: the plan, as bind/plan.cpp reads it.
        erased: boxes (left, top, width, height) of the output that are overwritten, and which row of the batch's
            `erased` they get.
        door, arguments: the function through which the program got the image, and its arguments beside the bytes: it
            decodes the file if that is damaged.
        name: the file's, for messages; empty if it has none.
    """

    begin: int
    nbytes: int
    size: tuple[int, int]
    stages: list[Take]
    last: Take
    erased: list[tuple[Box, int]]
    door: str
    arguments: tuple[Any, ...]
    name: str


@dataclass(eq=False)
class RecordBatch:
    """Stands for a tensor in a batch: `torch.stack` of deferred tensors, or one of them.

    Attributes:
        images: one for each sample.
        shape: of the batch, (n, ..., C, H, W).
        table: values of the 256 bytes, (C, 256), in the batch's dtype.
        layout: of the batch in memory.
        erased: values that erased boxes get, (rows, C), in the batch's dtype.
        single: class and strides of the tensor that the one image is delivered as, without a batch; None: as a batch.
        under_way: what makes it, in the main process; None: not begun.
    """

    images: list[ImageRecord]
    shape: tuple[int, ...]
    table: Array
    layout: Layout
    erased: Array
    single: tuple[type[torch.Tensor], tuple[int, ...]] | None = None
    under_way: Any = field(default=None, repr=False)

    def __getstate__(self) -> State:
        return {**vars(self), "under_way": None}


def group_by_files(records: Iterable[RecordBatch]) -> list[list[RecordBatch]]:
    """Returns records in groups: the images of those in a group are, sample by sample, of the same files, so that one
    decode makes all of a sample. Groups are in the order of their first records."""
    groups: dict[Any, list[RecordBatch]] = {}
    for one in records:
        groups.setdefault(tuple(image.begin for image in one.images), []).append(one)
    return list(groups.values())


@dataclass(eq=False)
class RecordedBatch:
    """A batch with records in it.

    Attributes:
        batch: what the user gets, with `RecordBatch`es in place of tensors.
        records: all of them.
        files: bytes of the files, one after another: uint8 (n,).
        worker: number of the worker process that sends it; None: it is of this process.
        requested: what the sampler yielded for it, noted in the main process; None: a stream's.
    """

    batch: Any
    records: list[RecordBatch]
    files: torch.Tensor
    worker: int | None = None
    requested: Any = field(default=None, repr=False)

    def name_sample(self, number: int, record: RecordBatch) -> str:
        """Returns how an error names the sample of one image of a record: by its index in the dataset, if that is
        known. A dataset may return more or fewer samples than the sampler asks for."""
        requested: Any = self.requested
        if record.single is not None:
            return "a sample of a stream" if requested is None else f"sample {requested}"
        with contextlib.suppress(Exception):  # any object may be an index
            if len(requested) == len(record.images):
                return f"sample {requested[number]}"
        return f"sample {number} of the batch"

    def pin_memory(self) -> RecordedBatch:
        """Pins what is in the batch beside records, as torch does; called by torch."""
        from torch.utils.data._utils.pin_memory import pin_memory

        return replace(self, batch=pin_memory(self.batch))  # type: ignore[no-untyped-call]
