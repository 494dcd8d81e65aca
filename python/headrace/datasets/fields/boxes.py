"""Bounding boxes as a field of samples: they follow the field of an image."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex

import numpy as np
import torch

from headrace._base.types import Array
from headrace._recipe.object_boxes.box_rule import DTYPES, BoxRule
from headrace._recipe.object_boxes.object_values import ObjectTensor, ObjectValues


class Boxes(torch.utils.data.Dataset[torch.Tensor]):
    """Bounding boxes, a field of `Fields` that follows an image: through its geometry, and its own transform.

    They are moved as torchvision v2 moves ``tv_tensors.BoundingBoxes``: by the same crops, resizes, flips and pads as
    the image, with its random numbers, and with torchvision's rounding for each dtype and format. Steps that leave
    pixels where they are (colours, blurs, erasing) do not change boxes. A batch is a list of one tensor (k, 4) for each
    sample.

    ``boxes[i]`` alone are the given boxes. In ``Fields`` an image that boxes follow, and they with it, are made from
    its transforms' native steps, also by ``dataset[i]``.

    Args:
        values: for each sample an array or tensor (k, 4) of float32, float64, int32 or int64, all of one dtype, in
            pixels of the image as it is opened; k may be 0. They are copied; later changes have no effect.
        format: ``"XYXY"`` (corners), ``"XYWH"`` (corner and size) or ``"CXCYWH"`` (centre and size), or torchvision's
            ``BoundingBoxFormat``.
        image: name of the image field that they follow. None: the only one that is no mask.
        labels: names of fields with one entry for each box, such as ``["labels", "iscrowd"]``: a list of arrays,
            tensors or lists of numbers, of which entry i has k entries. Their batches are lists of tensors, too, and
            the entries of boxes that `sanitize` removes are removed with them. They are copied.
        clamping_mode: whether each step cuts boxes at the image's border, as torchvision's default ``"soft"`` and
            ``"hard"`` do. None: no step does.
        clamp: whether they are cut once more at the end, as by ``v2.ClampBoundingBoxes()``.
        sanitize: whether boxes are removed afterwards, as by ``v2.SanitizeBoundingBoxes(min_size, min_area)``.
        min_size, min_area: of boxes that `sanitize` keeps, in pixels, 1 or more.
        out_format: format of the result, as by ``v2.ConvertBoundingBoxFormat`` at the very end. None: `format`.

    Raises:
        TypeError: `values` is no sequence of arrays or tensors, or a dtype is another.
        ValueError: a shape is another, dtypes differ, or an argument is none of the values above.
    """

    def __init__(
        self,
        values: Sequence[Array | torch.Tensor],
        format: str = "XYXY",
        *,
        image: str | None = None,
        labels: Iterable[str] = (),
        clamping_mode: str | None = "soft",
        clamp: bool = False,
        sanitize: bool = False,
        min_size: float = 1.0,
        min_area: float = 1.0,
        out_format: str | None = None,
    ) -> None:
        if isinstance(labels, str):
            raise TypeError(f"labels must be a list of names, not one name: {labels!r}")
        given, wanted = _name_of(format), _name_of(format if out_format is None else out_format)
        self.rule: BoxRule = BoxRule(given, wanted, clamping_mode, bool(clamp), bool(sanitize), min_size, min_area)
        self.image: str | None = image
        self.labels: tuple[str, ...] = tuple(labels)
        self.objects: ObjectValues = join_samples(
            "boxes", [_check_boxes(one, n, given) for n, one in enumerate(values)]
        )
        if len(self.objects) and self.objects.values.dtype not in DTYPES:
            kinds = ", ".join(str(dtype).removeprefix("torch.") for dtype in DTYPES)
            raise TypeError(f"boxes must be of {kinds}, not {self.objects.values.dtype}; convert them")

    def __len__(self) -> int:
        return len(self.objects)

    def __getitem__(self, index: SupportsIndex) -> torch.Tensor:
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexError(f"index {place} is out of range for the boxes of {len(self)} samples")
        return self.objects.sample(place % len(self)).as_subclass(ObjectTensor)

    def __repr__(self) -> str:
        return f"Boxes({len(self.objects.values)} in {len(self)} samples, {self.rule})"


def _name_of(format: Any) -> str:
    """Returns the name of a format, which may be a member of torchvision's enum."""
    name = getattr(format, "value", format)
    return name.upper() if isinstance(name, str) else repr(format)


def _check_boxes(value: object, number: int, format: str) -> torch.Tensor:
    """Returns a sample's boxes as a plain tensor."""
    if not isinstance(value, (np.ndarray, torch.Tensor)):
        raise TypeError(
            f"boxes of sample {number} are a {type(value).__name__}; give an array or a tensor, for example "
            "torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4)"
        )
    given = _name_of(getattr(value, "format", format))
    if given != format:
        raise ValueError(f"boxes of sample {number} are tv_tensors of format {given}, but format={format!r}")
    boxes = torch.as_tensor(value, device="cpu").detach().as_subclass(torch.Tensor)
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(
            f"boxes of sample {number} have shape {tuple(boxes.shape)} instead of (k, 4); reshape(-1, 4) makes this of "
            "no boxes, too"
        )
    return boxes


def join_samples(what: str, samples: Sequence[torch.Tensor]) -> ObjectValues:
    """Returns the values of all samples in one tensor.

    Raises:
        ValueError: the samples' tensors have different dtypes, or shapes that differ beyond the first axis.
    """
    for number, one in enumerate(samples):
        if one.dtype != samples[0].dtype or one.shape[1:] != samples[0].shape[1:]:
            found, first = (f"{value.dtype} {('k', *value.shape[1:])}".replace("'", "") for value in (one, samples[0]))
            raise ValueError(f"{what} of sample {number} are {found}, but those of sample 0 {first}; make them alike")
    return ObjectValues.of(samples)
