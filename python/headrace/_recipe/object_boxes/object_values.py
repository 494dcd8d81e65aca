"""Values of the objects in samples, as many as a sample has objects: boxes, and labels beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data._utils.collate import default_collate_fn_map

from headrace._base.types import Array
from headrace._recipe.object_boxes.box_rule import BoxRule
from headrace._recipe.steps.steps import Step


class ObjectTensor(torch.Tensor):
    """A sample's values of its objects, (k, ...). ``default_collate`` makes a list of plain tensors of them, because k
    differs between samples. Operations return plain tensors."""

    __torch_function__: Any = torch._C._disabled_torch_function_impl


def _collate_objects(batch: Sequence[torch.Tensor], *, collate_fn_map: object = None) -> list[torch.Tensor]:
    return [one.as_subclass(torch.Tensor) for one in batch]


default_collate_fn_map[ObjectTensor] = _collate_objects


@dataclass(frozen=True, eq=False)
class ObjectValues:
    """The values of all samples in one tensor.

    Attributes:
        values: (number of objects, ...).
        ends: int64 (samples + 1,): those of sample i are ``values[ends[i] : ends[i + 1]]``.
    """

    values: torch.Tensor
    ends: npt.NDArray[np.int64]

    @classmethod
    def of(cls, samples: Sequence[torch.Tensor]) -> ObjectValues:
        """Joins the tensors of samples, (k, ...) each, of one dtype and one shape after the first axis."""
        ends = np.cumsum([0, *map(len, samples)], dtype=np.int64)
        return cls(torch.cat(list(samples)) if samples else torch.empty(0, 4, device="cpu"), ends)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def sample(self, row: int) -> torch.Tensor:
        """Returns a copy of a sample's values."""
        return self.values[self.ends[row] : self.ends[row + 1]].clone()

    def counts(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Returns the number of objects of each sample."""
        counted: npt.NDArray[np.int64] = self.ends[rows + 1] - self.ends[rows]
        return counted

    def places(self, rows: npt.NDArray[np.int64]) -> torch.Tensor:
        """Returns where the objects of samples are in `values`, int64, one sample after the other."""
        counts = self.counts(rows)
        shifts = self.ends[rows] - (np.cumsum(counts) - counts)
        return torch.from_numpy(np.repeat(shifts, counts) + np.arange(counts.sum()))

    def fingerprint(self, rows: npt.NDArray[np.int64]) -> str:
        """Returns a hash of the values of some samples."""
        digest = hashlib.sha256(repr((self.values.dtype, tuple(self.values.shape[1:]))).encode())
        digest.update(np.ascontiguousarray(self.counts(rows)).tobytes())
        digest.update(self.values[self.places(rows)].contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class BoxPart:
    """The boxes of samples, with the steps of the image that they follow.

    Attributes:
        name: of the field.
        image: the field whose image they follow.
        rule: what is done to them beside following it.
        boxes: as they were given.
        labels: the values of other fields that belong to the same objects, by field.
        steps: those of the image; they read the columns of its draws.
    """

    name: str
    image: str
    rule: BoxRule
    boxes: ObjectValues
    labels: dict[str, ObjectValues]
    steps: tuple[Step, ...] = field(default=(), repr=False)

    @property
    def names(self) -> list[str]:
        """The fields that this makes."""
        return [self.name, *self.labels]


def split_objects(values: torch.Tensor, counts: Array) -> list[torch.Tensor]:
    """Returns the values of each sample, in memory of their own."""
    return [one.clone() for one in torch.split(values, counts.tolist())]
