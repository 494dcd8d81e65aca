"""The fields of boxes and of their labels among the fields of samples, and such samples by plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from headrace._lowering import columns_drawn_by, lower
from headrace._oracle.object_boxes import reference_boxes
from headrace._oracle.reference import reference_sample
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.part_kinds import as_kinds
from headrace._recipe.object_boxes.followed_steps import why_not_followed
from headrace._recipe.object_boxes.object_values import BoxPart, ObjectTensor
from headrace._recipe.steps.recipe import Recipe
from headrace.datasets.fields.boxes import Boxes, join_samples
from headrace.datasets.fields.field_kinds import Field
from headrace.datasets.fields.shared_geometry import Geometry, Shaped, unequal
from headrace.datasets.sources import BlobDataset


def attach_boxes(fields: Sequence[Field], masks: Sequence[str]) -> tuple[Field, ...]:
    """Returns the fields: boxes with the image that they follow, and the fields of their labels with their values.

    Raises:
        TypeError, ValueError: there is no such image, or a field has not one entry for each box.
    """
    found = {one.name: one for one in fields}
    images = [one.name for one in fields if one.image is not None]
    for name, one in list(found.items()):
        if one.boxes is None:
            continue
        found[name] = replace(one, follows=_image_of(one.boxes, name, images, masks))
        for label in one.boxes.labels:
            if label not in found:
                raise ValueError(f"labels of {name!r} names {label!r}, which is no field")
            if not found[label].is_plain and not found[label].gathered:
                raise ValueError(f"labels of {name!r} names {label!r}; give a list with one array a sample")
            found[label] = _attach_labels(found[label], one)
    return tuple(found.values())


def _image_of(boxes: Boxes, name: str, images: Sequence[str], masks: Sequence[str]) -> str:
    """Returns the name of the image field that boxes follow."""
    if boxes.image is not None:
        if boxes.image not in images:
            shown = ", ".join(images) or "none"
            raise ValueError(f"field {name!r} follows {boxes.image!r}, which is no image field; those are {shown}")
        return boxes.image
    able = [one for one in images if one not in masks]
    if len(able) != 1:
        shown = ", ".join(able) or "none"
        raise ValueError(f"field {name!r} follows one image, but those of the fields are {shown}; name it as image=")
    return able[0]


def _attach_labels(field: Field, boxes: Field) -> Field:
    assert boxes.objects is not None
    samples = []
    for row, ends in enumerate(np.diff(boxes.objects.ends).tolist()):
        try:
            one = torch.as_tensor(field.values[row], device="cpu").detach().as_subclass(torch.Tensor)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"field {field.name!r}: sample {row} is no array of numbers: {error}") from error
        if one.ndim == 0 or len(one) != ends:
            entries = "one value" if one.ndim == 0 else f"{len(one)} entries"
            raise ValueError(f"field {field.name!r} has {entries} in sample {row}, but {boxes.name!r} has {ends} boxes")
        samples.append(one)
    objects = join_samples(f"field {field.name!r}: values", samples)
    return replace(field, gathered=False, objects=objects, follows=boxes.name)


def list_boxes(fields: Sequence[Field]) -> dict[str, BoxPart]:
    """Returns the boxes among the fields, with the values that belong to them, by field."""
    labels: dict[str, dict[str, Any]] = {one.name: {} for one in fields if one.boxes is not None}
    for one in fields:
        if one.objects is not None and one.boxes is None:
            labels[one.follows][one.name] = one.objects
    return {
        one.name: BoxPart(one.name, one.follows, one.boxes.rule, one.boxes.objects, labels[one.name])
        for one in fields
        if one.boxes is not None
    }


def why_no_boxes(recipe: Recipe) -> str:
    """Returns a sentence if boxes cannot follow an image through a recipe; else ""."""
    return "boxes cannot follow several views of an image" if recipe.views else why_not_followed(recipe.steps)


class BoxSamples:
    """Samples with boxes by plain Python: images and boxes from the recipes of the images.

    Args:
        fields: all fields of the samples.
        geometry: what the images share.

    Raises:
        TypeError: an image's transform cannot be lowered, or moves pixels in a way that boxes cannot follow.
    """

    def __init__(self, fields: Sequence[Field], geometry: Geometry | None) -> None:
        self._fields, self._one_size = fields, geometry is not None
        self._boxes = list_boxes(fields)
        self._shared, self._recipes = 0, {}
        for one in fields:
            if one.why_not:
                raise TypeError(f"field {one.name!r}: {one.why_not}. Boxes need fields that headrace knows")
            if one.image is not None:
                self._recipes[one.name] = _lower_field(one.name, one.image, geometry)
        for name, part in self._boxes.items():
            if why := why_no_boxes(self._recipes[part.image]):
                raise TypeError(f"field {name!r} follows {part.image!r}: {why}")
        if geometry is not None:
            name, source = next((one.name, one.image) for one in fields if one.image is not None)
            first, shared = source.variants[0], geometry.transform_of(name)
            self._shared = len(columns_drawn_by(shared, channels=first.channels, size=first.size, mode=first.mode))

    def make(self, row: int) -> dict[str, object]:
        """Returns a sample, with random numbers that follow from torch's default generator."""
        seed, *own_seeds = torch.randint(2**63 - 1, (1 + len(self._recipes),), device="cpu").tolist()
        opened = {one.name: one.image.image(row) for one in self._fields if one.image is not None}
        sizes = {name: (image.height, image.width) for name, image in opened.items()}
        if self._one_size and (trouble := unequal(sizes)):
            raise ValueError(trouble)
        draws: dict[str, list[float]] = {}
        for (name, recipe), own_seed in zip(self._recipes.items(), own_seeds, strict=True):
            both = (Draws(recipe.columns, one).batch(0, [0], [0])[0] for one in (seed, own_seed))
            shared, own = (one.tolist() for one in both)
            draws[name] = shared[: self._shared] + own[self._shared :]
        objects: dict[str, object] = {}
        for name, part in self._boxes.items():
            steps = self._recipes[part.image].steps
            given = part.boxes.sample(row)
            made, kept = reference_boxes(given, part.rule, steps, draws[part.image], sizes[part.image])
            values = {name: made} | {label: one.sample(row)[kept] for label, one in part.labels.items()}
            objects |= {field: one.as_subclass(ObjectTensor) for field, one in values.items()}
        return {
            one.name: objects[one.name] if one.name in objects else self._value(one, row, opened, draws)
            for one in self._fields
        }

    def _value(self, field: Field, row: int, opened: dict[str, Any], draws: dict[str, list[float]]) -> object:
        if field.image is None:
            return field.values[row]
        recipe = self._recipes[field.name]
        image = as_kinds(reference_sample(opened[field.name], recipe, draws[field.name]), recipe.kinds)
        return (image, field.image.target(row)) if field.image.has_targets else image


def _lower_field(name: str, source: BlobDataset, geometry: Geometry | None) -> Recipe:
    first = (source if geometry is None else Shaped(source, geometry.transform_of(name))).variants[0]
    try:
        return lower(first.transform, channels=first.channels, size=first.size, mode=first.mode, may_vary=True)
    except TypeError as error:
        raise TypeError(f"field {name!r}: {error}") from error
