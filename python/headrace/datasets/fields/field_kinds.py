"""The kinds of a sample's fields: an image, rows of arrays, plain values, or another library's dataset."""

from __future__ import annotations

import array
from collections.abc import Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from headrace._recipe.object_boxes.object_values import ObjectValues
from headrace.datasets.columns import row_layout
from headrace.datasets.columns.columns_source import ColumnSource, as_columns
from headrace.datasets.fields.boxes import Boxes
from headrace.datasets.sources import BlobDataset, NotNative, as_source
from headrace.datasets.sources.held_values import Held, address_of

_VALUES = (list, tuple, range, array.array, np.ndarray, torch.Tensor)


@dataclass(frozen=True, eq=False)
class Field:
    """One field of a dataset's samples: ``values[i]`` of sample i.

    Attributes:
        values: what was given.
        image: the source of its images; None: it has no images.
        rows: the source of its rows; None: it is no dataset of columns.
        gathered: whether it is an array whose rows native threads copy.
        why_not: why its samples are made by ``values[i]`` in torch's workers alone; "": they need not be.
        placed: where the values of an array are stored.
        held: the values that `values` is a copy of; None: it is the object itself.
        boxes: what was given, if these are boxes.
        objects: the values of boxes, or of a field of their labels.
        follows: of boxes: the field of the image that they follow; of their labels: the field of the boxes.
    """

    name: str
    values: Any
    image: BlobDataset | None = None
    rows: ColumnSource | None = None
    gathered: bool = False
    why_not: str = ""
    placed: tuple[object, ...] = field(init=False)
    held: Held | None = None
    boxes: Boxes | None = None
    objects: ObjectValues | None = None
    follows: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "placed", address_of(self.values))

    @property
    def is_plain(self) -> bool:
        """Whether its values are looked up and collated in the consumer's thread."""
        return self.image is None and self.rows is None and self.objects is None and not self.gathered

    def is_current(self) -> bool:
        """Returns whether an array is still at the same place, and the datasets inside still hold the same values."""
        same = address_of(self.values) == self.placed
        return same and all(one is None or one.is_current() for one in (self.image, self.rows))

    def holds(self, rows: Sequence[int]) -> bool:
        """Returns whether this holds for some samples; False may be wrong."""
        same = address_of(self.values) == self.placed
        return same and all(one is None or one.holds(rows) for one in (self.image, self.rows))

    def frozen(self, before: Field | None) -> Field:
        """Returns the field with the plain values, labels and target_transform of now; see `BlobDataset.frozen`."""
        if self.image is not None:
            return replace(self, image=self.image.frozen(None if before is None else before.image))
        if not self.is_plain:
            return self
        held = None if before is None else before.held
        if held is None or not held.is_held(self.values):
            held = Held(self.values)
        return replace(self, values=held.then, held=held)


def as_field(name: str, values: object, before: Field | None = None) -> Field:
    """Describes a field.

    Args:
        before: its description before it changed; what has not changed is taken from it.
    """
    if isinstance(values, Boxes):
        return Field(name, values, boxes=values, objects=values.objects)
    if isinstance(values, _VALUES):
        if not _indexes_as_its_base(values):
            kind = type(values).__qualname__
            return Field(name, values, why_not=f"{kind} overrides __getitem__; give its values as a list or an array")
        return Field(name, values, gathered=_can_be_gathered(name, values))
    try:
        rows = as_columns(values)
        if rows is not None:
            return Field(name, values, rows=rows)
        return Field(name, values, image=as_source(values, None if before is None else before.image))
    except NotNative as refusal:
        return Field(name, values, why_not=str(refusal))


def _indexes_as_its_base(values: object) -> bool:
    base = next(kind for kind in _VALUES if isinstance(values, kind))
    own: Any = type(values)
    return own is np.memmap or own.__getitem__ is base.__getitem__


def _can_be_gathered(name: str, values: object) -> bool:
    """Whether native copies of the rows are what default_collate makes of ``values[i]``."""
    if type(values) not in (np.ndarray, np.memmap, torch.Tensor) or getattr(values, "requires_grad", False):
        return False
    try:
        found = row_layout.check_column(name, values)
    except (TypeError, ValueError):  # a dtype that torch has not, or a tensor on a device
        return False
    # torch makes no tensor of numpy's single numbers of this dtype.
    return not (isinstance(values, np.ndarray) and found.dtype == torch.uint64 and values.ndim == 1)


def length_of(name: str, values: Sized) -> int:
    """Returns the number of samples of a field. Raises TypeError if it has none, or no samples by number."""
    if isinstance(values, (str, bytes, dict)) or not hasattr(type(values), "__getitem__"):
        raise TypeError(
            f"field {name!r} is a {type(values).__name__}; give a dataset, an array, or a list with one value a sample"
        )
    try:
        return len(values)
    except TypeError:
        raise TypeError(f"field {name!r}, a {type(values).__name__}, has no length") from None


def check_lengths(names: Sequence[str], lengths: Sequence[int]) -> None:
    """Raises ValueError if the fields have different numbers of samples."""
    for name, length in zip(names, lengths, strict=True):
        if length != lengths[0]:
            raise ValueError(f"field {name!r} has {length} samples, but field {names[0]!r} has {lengths[0]}")


def check_equal(fields: Sequence[Field]) -> None:
    """Raises NotNative if fields have different numbers of samples now."""
    counts = {len(one.values) for one in fields}
    if len(counts) > 1:
        raise NotNative(f"the fields have different numbers of samples now: {', '.join(map(str, sorted(counts)))}")
