"""The fields of boxes and of their labels among the fields of samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from headrace._recipe.object_boxes.followed_steps import why_not_followed
from headrace._recipe.object_boxes.object_values import BoxPart
from headrace._recipe.steps.recipe import Recipe
from headrace.datasets.fields.boxes import Boxes, join_samples
from headrace.datasets.fields.field_kinds import Field


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
