"""Samples with boxes by plain Python, as ``dataset[i]`` returns them. Imported at first use, with the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from headrace._lowering import columns_drawn_by, lower
from headrace._oracle.object_boxes import reference_objects
from headrace._oracle.reference import reference_sample
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.part_kinds import as_kinds
from headrace._recipe.steps.recipe import Recipe
from headrace.datasets.fields.box_fields import list_boxes, why_no_boxes
from headrace.datasets.fields.field_kinds import Field
from headrace.datasets.fields.shared_geometry import Geometry, Shaped, unequal
from headrace.datasets.sources import BlobDataset


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
        for part in self._boxes.values():
            steps = self._recipes[part.image].steps
            objects |= reference_objects(part, row, steps, draws[part.image], sizes[part.image])
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
