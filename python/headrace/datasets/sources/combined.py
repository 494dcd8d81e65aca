"""Sources built from other sources: a subset of samples, and a concatenation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from headrace._base.native import core
from headrace._storage.parts.sample_bytes import SampleBytes
from headrace.datasets.sources.dataset import BlobDataset, Variant

Int64s = npt.NDArray[np.int64]


class SubsetSource(BlobDataset):
    """Selected samples of a source, in a given order.

    Args:
        base: the source.
        rows: indices into `base`, int64 (n,), each in [0, len(base)).
    """

    transform: Any = property(lambda self: self.base.transform, lambda self, value: None)
    target_transform: Any = property(lambda self: self.base.target_transform, lambda self, value: None)

    def __init__(self, base: BlobDataset, rows: Int64s) -> None:
        super().__init__(None, None, None)
        self.base = base
        self.rows = rows
        self._length = len(base)
        self._order = object()  # stands for the rows in `storage_identity`

    @property
    def variants(self) -> tuple[Variant, ...]:
        return self.base.variants

    def variant_of(self, indices: Int64s) -> Int64s:
        return self.base.variant_of(self.rows[indices])

    @property
    def mode(self) -> str:
        return self.base.mode

    @property
    def upright(self) -> bool:
        return self.base.upright

    @property
    def channels(self) -> int:
        return self.base.channels

    @property
    def encoded(self) -> bool:
        return self.base.encoded

    @property
    def has_targets(self) -> bool:
        return self.base.has_targets

    def is_current(self) -> bool:
        return len(self.base) == self._length and self.base.is_current()

    def named_sources(self) -> tuple[BlobDataset, ...]:
        return self.base.named_sources()

    def holds(self, indices: Sequence[int]) -> bool:
        return self.base.holds(self.rows[indices].tolist())

    @property
    def storage_identity(self) -> object:
        return self.base.storage_identity, self._order

    def known_sources(self) -> dict[int, BlobDataset]:
        return self.base.known_sources()

    def frozen(self, before: object = None) -> BlobDataset:
        return SubsetSource(self.base.frozen(getattr(before, "base", None)), self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, index: int) -> bytes:
        return self.base.read(int(self.rows[index]))

    def file(self, index: int) -> str | SampleBytes:
        return self.base.file(int(self.rows[index]))

    def image(self, index: int) -> Image.Image:
        return self.base.image(int(self.rows[index]))

    def origin(self, index: int) -> tuple[BlobDataset, int]:
        return self.base.origin(int(self.rows[index]))

    def own_image(self, index: int) -> object:
        return self.base.own_image(int(self.rows[index]))

    def image_size(self, index: int) -> tuple[int, int]:
        return self.base.image_size(int(self.rows[index]))

    def identity(self, index: int) -> str:
        return self.base.identity(int(self.rows[index]))

    def location(self, index: int) -> str:
        return self.base.location(int(self.rows[index]))

    def target(self, index: int) -> Any:
        return self.base.target(int(self.rows[index]))

    def numbers(self, indices: Int64s) -> Int64s | None:
        return self.base.numbers(self.rows[indices])

    def numbers_to_hash(self, indices: Int64s) -> Int64s | None:
        return self.base.numbers_to_hash(self.rows[indices])

    @property
    def ahead_bytes(self) -> int:
        return self.base.ahead_bytes

    def expect(self, indices: Int64s, wait: bool = False) -> int:
        return self.base.expect(self.rows[indices], wait)

    def blob_table(self) -> core.BlobTable:
        return core.BlobTable.of_rows(self.base.blob_table(), self.rows)

    def __repr__(self) -> str:
        return f"{len(self)} samples of {self.base!r}"


class ConcatSource(BlobDataset):
    """The concatenation of several sources.

    Args:
        parts: the sources. Either all or none of them have labels.
    """

    transform: Any = property(lambda self: self.parts[0].transform, lambda self, value: None)
    target_transform: Any = property(lambda self: self.parts[0].target_transform, lambda self, value: None)

    def __init__(self, parts: Sequence[BlobDataset]) -> None:
        super().__init__(None, None, None)
        self.parts: tuple[BlobDataset, ...] = tuple(parts)
        self._lengths = [len(part) for part in self.parts]
        self._ends = np.cumsum(self._lengths)
        self._begins = self._ends - self._lengths

    @property
    def variants(self) -> tuple[Variant, ...]:
        return tuple(variant for part in self.parts for variant in part.variants)

    def variant_of(self, indices: Int64s) -> Int64s:
        begins = np.cumsum([0, *(len(part.variants) for part in self.parts)])
        found = np.empty(len(indices), dtype=np.int64)
        which = np.searchsorted(self._ends, indices, side="right")
        for number in np.unique(which).tolist():
            places = np.flatnonzero(which == number)
            found[places] = begins[number] + self.parts[number].variant_of(indices[places] - self._begins[number])
        return found

    @property
    def mode(self) -> str:
        return self.parts[0].mode

    @property
    def upright(self) -> bool:
        return self.parts[0].upright

    @property
    def channels(self) -> int:
        return self.parts[0].channels

    @property
    def encoded(self) -> bool:
        return any(part.encoded for part in self.parts)

    @property
    def has_targets(self) -> bool:
        return self.parts[0].has_targets

    def is_current(self) -> bool:
        same = [len(part) for part in self.parts] == self._lengths
        return same and all(part.is_current() for part in self.parts)

    def named_sources(self) -> tuple[BlobDataset, ...]:
        return tuple(one for part in self.parts for one in part.named_sources())

    def holds(self, indices: Sequence[int]) -> bool:
        return all(part.holds(rows.tolist()) for part, _, rows in self._split_by_part(np.asarray(indices)))

    @property
    def storage_identity(self) -> object:
        return tuple(part.storage_identity for part in self.parts)

    def known_sources(self) -> dict[int, BlobDataset]:
        return {key: source for part in self.parts for key, source in part.known_sources().items()}

    def frozen(self, before: object = None) -> BlobDataset:
        earlier = getattr(before, "parts", ())
        earlier = earlier if len(earlier) == len(self.parts) else [None] * len(self.parts)
        return ConcatSource([part.frozen(one) for part, one in zip(self.parts, earlier, strict=True)])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def read(self, index: int) -> bytes:
        part, row = self._find_part(index)
        return part.read(row)

    def file(self, index: int) -> str | SampleBytes:
        part, row = self._find_part(index)
        return part.file(row)

    def image(self, index: int) -> Image.Image:
        part, row = self._find_part(index)
        return part.image(row)

    def origin(self, index: int) -> tuple[BlobDataset, int]:
        part, row = self._find_part(index)
        return part.origin(row)

    def own_image(self, index: int) -> object:
        part, row = self._find_part(index)
        return part.own_image(row)

    def image_size(self, index: int) -> tuple[int, int]:
        part, row = self._find_part(index)
        return part.image_size(row)

    def identity(self, index: int) -> str:
        part, row = self._find_part(index)
        return part.identity(row)

    def location(self, index: int) -> str:
        part, row = self._find_part(index)
        return part.location(row)

    def target(self, index: int) -> Any:
        part, row = self._find_part(index)
        return part.target(row)

    def numbers(self, indices: Int64s) -> Int64s | None:
        return self._gather_from_parts(indices, BlobDataset.numbers.__name__)

    def numbers_to_hash(self, indices: Int64s) -> Int64s | None:
        return self._gather_from_parts(indices, BlobDataset.numbers_to_hash.__name__)

    def _gather_from_parts(self, indices: Int64s, name: str) -> Int64s | None:
        """Returns what a method of the parts returns for these samples; None if it is None for one of the parts."""
        made = np.empty(len(indices), dtype=np.int64)
        for part, places, rows in self._split_by_part(indices):
            some = getattr(part, name)(rows)
            if some is None:
                return None
            made[places] = some
        return made

    def _split_by_part(self, indices: Int64s) -> Iterator[tuple[BlobDataset, Int64s, Int64s]]:
        """Yields each part that `indices` name, where in `indices` it is named, and the part's rows."""
        which = np.searchsorted(self._ends, indices, side="right")
        for number in np.unique(which):
            places, part = np.flatnonzero(which == number), self.parts[number]
            yield part, places, indices[places] - self._begins[number]

    @property
    def ahead_bytes(self) -> int:
        return max(part.ahead_bytes for part in self.parts)

    def expect(self, indices: Int64s, wait: bool = False) -> int:
        return sum(part.expect(rows, wait) for part, _, rows in self._split_by_part(indices))

    def blob_table(self) -> core.BlobTable:
        return core.BlobTable.of_parts([part.blob_table() for part in self.parts])

    def _find_part(self, index: int) -> tuple[BlobDataset, int]:
        number = int(np.searchsorted(self._ends, index, side="right"))
        return self.parts[number], index - int(self._begins[number])

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))
