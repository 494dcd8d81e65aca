"""Reports about a loader of columns: its batches compared with ``dataset[i]``, and its explanation."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headrace._base.errors import VerificationError
from headrace._base.messages import public_name_of
from headrace._engine.engine import Engine
from headrace._loading.collate.collate_call import CollateFunction
from headrace._loading.native.settings import Settings
from headrace._loading.routes.columns_route import ColumnsRoute
from headrace._reports.loader.explanation import Explanation, Part, explain_collation, explain_ranks, explain_seeding
from headrace._reports.loader.verification import (
    Epoch,
    ReferenceLoader,
    Report,
    collated_by,
    compared_iterator,
    have_same_bytes,
    paired_batches,
)


@dataclass(frozen=True, repr=False)
class ColumnReport(Report):
    """What `verify` compared: `bytes` counts those of all columns."""

    def __str__(self) -> str:
        counts = f"{self.batches} batches, {self.samples} samples, {self.bytes:,} bytes"
        return f"{counts} compared with dataset[i]: 0 differ"


def oracle(
    settings: Settings, route: ColumnsRoute, epoch: Epoch, collate_fn: CollateFunction | None
) -> ReferenceLoader:
    order = [batch.indices.tolist() for batch in epoch[1]]
    return collated_by(collate_fn, settings.dataset, order, settings.batched, epoch[0])


def verify(settings: Settings, route: ColumnsRoute, epoch: Epoch, engine: Engine) -> ColumnReport:
    """Compares the batches of an epoch, byte for byte; see ``DataLoader.verify``.

    Args:
        engine: makes the batches; closed at the end.
    """
    order = epoch[1]
    native = compared_iterator(settings, route, route.source.blob_table(), epoch, engine)
    batches = samples = size = 0
    try:
        for ours, theirs in paired_batches(native, oracle(settings, route, epoch, None)):
            size += _compare(ours, theirs, f"batch {batches}")
            samples += len(order[batches].indices)
            batches += 1
    finally:
        native.close()
    return ColumnReport(batches, samples, size)


def _compare(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor], what: str) -> int:
    """Returns the number of bytes compared."""
    if list(ours) != list(theirs):
        raise VerificationError(f"{what}: columns {list(ours)} against {list(theirs)}")
    size = 0
    for name, a in ours.items():
        b = theirs[name]
        if a.dtype != b.dtype or a.shape != b.shape:
            raise VerificationError(
                f"{what}: column {name!r}: {a.dtype} {tuple(a.shape)} against {b.dtype} {tuple(b.shape)}"
            )
        if not have_same_bytes(a, b):
            raise VerificationError(f"{what}: column {name!r} differs")
        size += a.nbytes
    return size


def explain(settings: Settings, route: ColumnsRoute, verbose: bool) -> Explanation:
    """Returns the table of a loader whose rows native threads gather, the same if `verbose`."""
    source = route.source
    kind = type(settings.dataset)
    threads = f"{settings.num_workers} threads" if settings.num_workers else "the caller's thread (num_workers=0)"
    lines = [
        Part("dataset", "native", f"{source!r} of {public_name_of(kind)}"),
        Part("gather", "native", f"{threads}; {sum(route.product.row_bytes):,} bytes a sample are copied as they are"),
    ]
    for column in source.parts[0].checked_columns:
        contiguous = column.raw[:1].flags.c_contiguous
        how = "contiguous rows" if contiguous else "rows with strides, copied element by element: slower"
        lines.append(
            Part(f"column {column.name!r}", "native", f"{column.dtype}, {('n', *column.shape)}, {how}".replace("'", ""))
        )
    where = "pinned memory" if settings.pin_memory else "memory that is reused"
    return Explanation(
        (
            *lines,
            *explain_collation(settings),
            *explain_seeding(settings),
            *explain_ranks(settings),
            Part("output", "native", f"a dict of tensors in {where}"),
        )
    )
