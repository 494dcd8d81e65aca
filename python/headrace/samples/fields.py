"""The kinds of a sample's fields: an image, rows of arrays, plain values, or another library's dataset."""

from __future__ import annotations

import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from headrace.columns import column
from headrace.columns.source import ColumnSource, as_columns
from headrace.sources import BlobDataset, NotNative, as_source

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
    """

    name: str
    values: Any
    image: BlobDataset | None = None
    rows: ColumnSource | None = None
    gathered: bool = False
    why_not: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether its values are looked up and collated in the consumer's thread."""
        return self.image is None and self.rows is None and not self.gathered

    def held(self) -> tuple[Any, ...]:
        """Returns what must stay the same for this description to hold: the object, and the shape of an array."""
        return self.values, getattr(self.values, "shape", None)

    def is_current(self) -> bool:
        """Returns whether the datasets inside still hold the same objects."""
        return all(one is None or one.is_current() for one in (self.image, self.rows))


def as_field(name: str, values: Any) -> Field:
    """Describes a field."""
    if isinstance(values, _VALUES):
        if not _indexes_as_its_base(values):
            kind = type(values).__qualname__
            return Field(name, values, why_not=f"{kind} overrides __getitem__; give its values as a list or an array")
        return Field(name, values, gathered=_can_be_gathered(name, values))
    try:
        rows = as_columns(values)
        if rows is not None:
            return Field(name, values, rows=rows)
        return Field(name, values, image=as_source(values))
    except NotNative as refusal:
        return Field(name, values, why_not=str(refusal))


def _indexes_as_its_base(values: Any) -> bool:
    base = next(kind for kind in _VALUES if isinstance(values, kind))
    own: Any = type(values)
    return own is np.memmap or own.__getitem__ is base.__getitem__


def _can_be_gathered(name: str, values: Any) -> bool:
    """Whether native copies of the rows are what default_collate makes of ``values[i]``."""
    if type(values) not in (np.ndarray, np.memmap, torch.Tensor) or getattr(values, "requires_grad", False):
        return False
    try:
        found = column.checked(name, values)
    except (TypeError, ValueError):  # a dtype that torch has not, or a tensor on a device
        return False
    # torch makes no tensor of numpy's single numbers of this dtype.
    return not (isinstance(values, np.ndarray) and found.dtype == torch.uint64 and values.ndim == 1)


def length_of(name: str, values: Any) -> int:
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
