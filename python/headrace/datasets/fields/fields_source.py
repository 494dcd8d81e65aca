"""Where the native path finds the fields of samples: `Fields`, torch's StackDataset, and Subset of these."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch.utils.data import StackDataset, Subset, default_collate

from headrace._base.native import core
from headrace._recipe.object_boxes.object_values import BoxPart
from headrace.datasets.columns.columns_dataset import Columns
from headrace.datasets.columns.columns_source import ColumnSource, as_columns
from headrace.datasets.fields.box_fields import list_boxes
from headrace.datasets.fields.field_kinds import Field, as_field, check_equal
from headrace.datasets.fields.fields_dataset import Fields
from headrace.datasets.fields.shared_geometry import Geometry, Shaped
from headrace.datasets.sources import BlobDataset, NotNative, checked_table
from headrace.datasets.sources.labels import collate
from headrace.datasets.sources.override_checks import check_length, check_samples, makes_samples_as
from headrace.datasets.sources.recognition.torch_combined import FollowedSubset, subset_rows

Int64s = npt.NDArray[np.int64]

ARRAYS = ""  # the part that holds the rows of all array fields; no field has this name
_LOOKED_AT = 100  # samples whose plain values `fingerprint` hashes


@dataclass(frozen=True)
class Tables:
    """The tables of all parts, and the row of each sample in them.

    Attributes:
        rows: int64 (n,); None: row i is that of sample i.
    """

    parts: dict[str, core.BlobTable]
    rows: Int64s | None


class StackedSource:
    """The fields of one dataset, and the parts of them that native threads make.

    Attributes:
        images, columns: the sources of the parts, by field.
        boxes: the boxes that follow these images, by field.

    Args:
        dataset: the dataset with these samples.
        fields: its fields.
        geometry: what its image fields share.
        positional: whether a sample is a tuple instead of a dict.
        rows: number of each sample in the fields; None: all in order.
    """

    has_targets = True  # `batch_of` puts the parts together

    def __init__(
        self,
        dataset: object,
        fields: tuple[Field, ...],
        geometry: Geometry | None,
        *,
        positional: bool,
        rows: Int64s | None = None,
    ) -> None:
        for one in fields:
            if one.why_not or one.name == ARRAYS:
                raise NotNative(f"field {one.name!r}: {one.why_not or 'has no name; give it one'}")
        self.dataset = dataset
        self.fields = fields
        self.geometry = geometry
        self.rows = rows
        self.positional = positional
        self._follows, self._order = _follow_dataset(dataset), object()
        check_equal(fields)
        self._length = len(fields[0].values) if rows is None else len(rows)
        self.images: dict[str, BlobDataset] = {}
        self.columns: dict[str, ColumnSource] = {}
        for one in fields:
            if one.image is not None:
                self.images[one.name] = (
                    one.image if geometry is None else Shaped(one.image, geometry.transform_of(one.name))
                )
            elif one.rows is not None:
                self.columns[one.name] = one.rows
        if arrays := {one.name: one.values for one in fields if one.gathered}:
            gathered = as_columns(Columns(arrays))
            assert gathered is not None
            self.columns[ARRAYS] = gathered
        self.boxes: dict[str, BoxPart] = list_boxes(fields)

    def __len__(self) -> int:
        return self._length

    def is_current(self) -> bool:
        """Returns whether the dataset still consists of the same objects, which hold the same values; plain ones may
        have changed."""
        length = self._length if self.rows is None else len(self.fields[0].values)
        same = all(one.is_current() for one in self._follows) and all(one.is_current() for one in self.fields)
        return same and all(len(one.values) == length for one in self.fields)

    def holds(self, indices: Sequence[int]) -> bool:
        """Returns whether this holds for some samples; False may be wrong."""
        rows = indices if self.rows is None else self.rows[np.asarray(indices)].tolist()
        outer, *inner = self._follows
        named = outer.holds(indices) if isinstance(outer, FollowedSubset) else outer.is_current()
        return named and all(one.is_current() for one in inner) and all(one.holds(rows) for one in self.fields)

    @property
    def storage_identity(self) -> object:
        """What compares equal for two sources if the bytes of each sample are stored at the same place."""
        return self._order

    def frozen(self, before: object = None) -> StackedSource:
        """Returns this source with the plain values, labels and target_transforms of now; see `BlobDataset.frozen`."""
        earlier: tuple[Field | None, ...] = before.fields if isinstance(before, StackedSource) else ()
        earlier = earlier if len(earlier) == len(self.fields) else (None,) * len(self.fields)
        made: StackedSource = object.__new__(type(self))
        fields = tuple(one.frozen(then) for one, then in zip(self.fields, earlier, strict=True))
        vars(made).update(vars(self), fields=fields)
        return made

    def row(self, index: int) -> int:
        """Returns the number of a sample in the fields."""
        return index if self.rows is None else int(self.rows[index])

    def location(self, index: int) -> str:
        """Returns where a sample's images are stored, for messages."""
        named = [f"{name}: {source.location(self.row(index))}" for name, source in self.images.items()]
        return ", ".join(named) or f"sample {self.row(index)} of {self!r}"

    def part_location(self, part: str, index: int) -> str:
        """Returns where a part of a sample is stored, for messages."""
        source: BlobDataset | ColumnSource = self.images[part] if part in self.images else self.columns[part]
        return str(source.location(self.row(index)))

    def metadata(self, row: int) -> dict[object, object]:
        """Returns functions that read the metadata of each image of a row of the fields, by field: Python steps need
        that of one field."""
        return {name: lambda source=source: source.metadata(row) for name, source in self.images.items()}

    def blob_table(self) -> Tables:
        """Returns the native core's tables."""
        tables = {name: checked_table(source) for name, source in self.images.items()}
        return Tables(tables | {name: source.blob_table() for name, source in self.columns.items()}, self.rows)

    @property
    def ahead_bytes(self) -> int:
        """Bytes to fetch before they are read; 0: the samples are in this machine."""
        return max((source.ahead_bytes for source in self.images.values()), default=0)

    def expect(self, indices: Int64s, wait: bool = False) -> int:
        """Begins to fetch the images of samples that are in other machines, and returns their number of bytes."""
        rows = indices if self.rows is None else self.rows[indices]
        return sum(source.expect(rows, wait) for source in self.images.values())

    def target(self, index: int) -> dict[str, object]:
        """Returns what Python makes of one sample: plain values, and the targets of images, by field."""
        row = self.row(index)
        return {name: look_up(row) for name, look_up in self._list_lookups().items()}

    def numbers(self, indices: Int64s) -> Int64s | None:
        """Returns None: targets belong to fields."""
        return None

    def targets_of(self, indices: Int64s) -> dict[str, object]:
        """Returns what Python makes of a batch, collated as torch does, by field."""
        rows = indices if self.rows is None else self.rows[indices]
        made: dict[str, object] = {}
        for one in self.fields:
            if one.image is not None and one.image.has_targets:
                made[one.name] = one.image.targets_of(rows)
            elif one.is_plain:
                made[one.name] = self._collate_field(one, rows.tolist())
        return made

    def _list_lookups(self) -> dict[str, Callable[[int], object]]:
        plain = {one.name: one.values.__getitem__ for one in self.fields if one.is_plain}
        with_targets = [one for one in self.fields if one.image is not None and one.image.has_targets]
        return plain | {one.name: one.image.target for one in with_targets if one.image is not None}

    def _collate_field(self, field: Field, rows: list[int]) -> object:
        values = [field.values[row] for row in rows]
        if isinstance(values[0], (str, bytes)):  # these stay in the container that they come in
            container: Any = tuple(values) if self.positional else values
            return default_collate(container)
        return collate(tuple(values), rows, lambda row: f"field {field.name!r}")

    def sample_of(self, made: Any, index: int) -> object:
        """Returns the sample that ``dataset[index]`` would be, given its images and boxes, by field; all else is looked
        up."""
        row = self.row(index)
        sample: dict[str, object] = {}
        for one in self.fields:
            if one.objects is not None:
                sample[one.name] = made[one.name]
            else:
                sample[one.name] = one.values[row] if one.image is None else one.image.sample_of(made[one.name], row)
        return tuple(sample.values()) if self.positional else sample

    def batch_of(self, made: dict[str, Any], targets: dict[str, object]) -> object:
        """Returns a batch, or a sample, in the shape of the dataset's.

        Args:
            made: what native threads made, by part.
            targets: what Python made, by field.
        """
        flat = {**made, **made.get(ARRAYS, {})}
        values: dict[str, object] = {}
        for one in self.fields:
            if one.objects is not None:
                values[one.name] = list(flat[one.name]) if isinstance(flat[one.name], list) else flat[one.name]
            elif one.name not in flat:
                values[one.name] = targets[one.name]
            else:
                image = flat[one.name]
                values[one.name] = [image, targets[one.name]] if one.name in targets else image
        return list(values.values()) if self.positional else values

    def fingerprint(self) -> str:
        """Returns a hash of the fields and their samples, 16 hex digits."""
        digest = hashlib.sha256(repr((len(self), self.positional, [one.name for one in self.fields])).encode())
        sources: list[BlobDataset | ColumnSource] = [*self.images.values(), *self.columns.values()]
        for source in sources:
            digest.update(source.fingerprint().encode())
        if self.rows is not None:
            digest.update(np.ascontiguousarray(self.rows).tobytes())
        looked_at = np.unique(np.linspace(0, len(self) - 1, min(_LOOKED_AT, len(self))).astype(np.int64))
        for part in self.boxes.values():
            digest.update(repr((part.image, part.rule)).encode())
            for objects in (part.boxes, *part.labels.values()):
                digest.update(objects.fingerprint(looked_at if self.rows is None else self.rows[looked_at]).encode())
        for index in looked_at.tolist():
            row = self.row(index)
            digest.update(repr([_format_value(one.values[row]) for one in self.fields if one.is_plain]).encode())
        return digest.hexdigest()[:16]

    def __repr__(self) -> str:
        return f"{len(self)} samples of {', '.join(one.name for one in self.fields)}"


def as_stacked(dataset: object, before: StackedSource | None = None) -> StackedSource | None:
    """Returns the source of a dataset of several fields; None for any other dataset.

    Args:
        before: the dataset's source before it changed; what has not changed is taken from it.

    Raises:
        NotNative: a class overrides how its samples are made, or a field is a dataset that headrace does not know.
    """
    known = {} if before is None else {id(one.values): one for one in before.fields}
    if isinstance(dataset, Fields):
        check_samples(dataset, Fields)
        check_length(dataset)
        return StackedSource(dataset, dataset.described, dataset.geometry, positional=False)
    if isinstance(dataset, StackDataset):
        check_samples(dataset, StackDataset)
        fields = tuple(
            as_field(str(name), values, known.get(id(values))) for name, values in _name_fields(dataset.datasets)
        )
        if any(one.boxes is not None for one in fields):
            raise NotNative("Boxes follow an image in headrace.Fields alone; give it the fields of the StackDataset")
        return StackedSource(dataset, fields, None, positional=not isinstance(dataset.datasets, dict))
    if isinstance(dataset, Subset):
        base = as_stacked(dataset.dataset, before)
        if base is None:
            return None
        check_samples(dataset, Subset)
        rows = subset_rows(dataset, len(base))
        rows = rows if base.rows is None else base.rows[rows]
        return StackedSource(dataset, base.fields, base.geometry, positional=base.positional, rows=rows)
    return None


class _Given:
    """A Fields or StackDataset, and the fields that it had."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._fields = self._current_parts()

    def _current_parts(self) -> tuple[type, list[tuple[object, object]]]:
        given = self._dataset.fields if isinstance(self._dataset, Fields) else self._dataset.datasets
        return type(given), list(_name_fields(given))

    def is_current(self) -> bool:
        kind = Fields if isinstance(self._dataset, Fields) else StackDataset
        (now_kind, fields), (then_kind, before) = self._current_parts(), self._fields
        same = now_kind is then_kind and len(fields) == len(before) and makes_samples_as(self._dataset, kind)
        return same and all(a[0] == b[0] and a[1] is b[1] for a, b in zip(fields, before, strict=True))


def _name_fields(given: Iterable[object]) -> Iterable[tuple[object, object]]:
    """Returns the fields that a Fields or StackDataset holds, with their names or numbers."""
    return given.items() if isinstance(given, dict) else enumerate(given)


def _follow_dataset(dataset: object) -> list[FollowedSubset | _Given]:
    """Returns what the dataset and those inside it held, outermost first."""
    if isinstance(dataset, Subset):
        return [FollowedSubset(dataset), *_follow_dataset(dataset.dataset)]
    return [_Given(dataset)]


def _format_value(value: object) -> str:
    """Returns a value's beginning as text, the same in every process."""
    return f"{type(value).__name__} {value!r:.200}"
