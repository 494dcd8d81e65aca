"""The dataset of samples that consist of several fields."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from headrace._base.types import State
from headrace._media.audio.audio_clip import AudioClip
from headrace.datasets.fields.box_fields import attach_boxes
from headrace.datasets.fields.field_kinds import Field, as_field, check_lengths, length_of
from headrace.datasets.fields.shared_geometry import Geometry

if TYPE_CHECKING:
    from headrace.datasets.fields.box_samples import BoxSamples


class Fields(torch.utils.data.Dataset[dict[str, Any]]):
    """Samples of several fields: images, masks, arrays, labels, texts.

    ``dataset[i]`` is ``{name: field[i] for name, field in fields.items()}``, and a batch is what torch's
    ``default_collate`` makes of such dicts. ``headrace.DataLoader`` makes the images of all fields in native threads,
    each field's with threads of its own, gathers the rows of arrays in native threads, and collates the other values in
    the consumer's thread. A failed sample names its field.

    Args:
        fields: by name, in the order of the sample's keys, with one number of samples. A field is

            - an image dataset that runs natively, such as ``ImageFiles`` or torchvision's ``ImageFolder``, with a
              transform. A dataset with labels makes ``(image, label)``, and a batch ``[images, labels]``;
            - ``Videos`` or ``Audio``, which share no geometry;
            - ``Columns``, whose samples are dicts;
            - a numpy array, a mapped file or a tensor, whose rows are the samples;
            - a list or tuple of values that default_collate takes: numbers, strings, tuples and dicts of these;
            - ``Boxes``, which follow an image, and the fields that they name as their labels. A batch of them is a list
              of one tensor (k, ...) for each sample;
            - any other dataset. torch's DataLoader then delivers.
        geometry: a transform of every image field that comes before the field's own transform, with the same random
            numbers for all fields: crops, resizes, flips and pads, of headrace's or torchvision's. It is copied; later
            changes have no effect. The images of a sample must have one size. None: each field has its own
            transform alone.
        masks: names of the image fields for which the geometry takes nearest pixels and pads with 0, so that no new
            values arise. They are opened with ``mode="L"`` or ``mode="P"``, as the image datasets' argument says.

    Raises:
        TypeError: `fields` is not a dict, a name is not a string, a field has no samples by number, or the geometry
            holds another transform, or meets audio or a dataset whose images headrace does not know; a transform
            moves pixels in a way that boxes cannot follow.
        ValueError: there is no field, the numbers of samples differ, a mask is not an image field, or boxes name a
            field that is not there or has not one entry for each box.
    """

    def __init__(
        self, fields: Mapping[str, Any], geometry: Callable[[Any], object] | None = None, masks: Iterable[str] = ()
    ) -> None:
        if not isinstance(fields, Mapping):
            raise TypeError(f"fields must be a dict of datasets and values by name, not {type(fields).__name__}")
        if not fields:
            raise ValueError("fields is empty: there is nothing to make samples from")
        for name in fields:
            if not isinstance(name, str) or not name:
                raise TypeError(f"the name of a field is a string of at least one letter, not {name!r}")
        check_lengths(list(fields), [length_of(name, values) for name, values in fields.items()])
        if isinstance(masks, str):
            raise TypeError(f"masks must be a list of names, not one name: {masks!r}")
        self._given, self._masks = dict(fields), tuple(masks)
        self._fields = self._describe_fields()
        self._check_masks(geometry)
        self._geometry = None if geometry is None else Geometry(geometry, self._masks)
        if geometry is not None:
            self._check_shaped()
        if self._has_boxes:
            self._box_samples()

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that were passed in, by name."""
        return dict(self._given)

    @property
    def described(self) -> tuple[Field, ...]:
        """The fields as the native path sees them: again if a dataset among them holds other objects now."""
        if not all(one.is_current() for one in self._fields):
            self._fields = attach_boxes([as_field(one.name, one.values, one) for one in self._fields], self._masks)
        return self._fields

    @property
    def _has_boxes(self) -> bool:
        return any(one.boxes is not None for one in self._fields)

    @property
    def geometry(self) -> Geometry | None:
        """What all image fields share."""
        return self._geometry

    def __len__(self) -> int:
        return len(next(iter(self._given.values())))

    def __getitem__(self, index: int) -> dict[str, Any]:
        place = operator.index(index)
        if not -len(self) <= place < len(self):
            raise IndexError(f"index {place} is out of range for a dataset of {len(self)} samples")
        place %= len(self)
        if self._has_boxes:
            return self._box_samples().make(place)
        if self._geometry is None:
            return {name: values[place] for name, values in self._given.items()}
        fields = self.described
        made = self._geometry.apply({one.name: one.image.image(place) for one in fields if one.image is not None})
        return {one.name: _finish_field(one, made, place) for one in fields}

    def _box_samples(self) -> BoxSamples:
        from headrace.datasets.fields.box_samples import BoxSamples

        return BoxSamples(self.described, self._geometry)

    def _describe_fields(self) -> tuple[Field, ...]:
        return attach_boxes([as_field(name, values) for name, values in self._given.items()], self._masks)

    def _check_masks(self, geometry: object) -> None:
        images = [one.name for one in self._fields if one.image is not None]
        if self._masks and geometry is None:
            raise ValueError("masks names the fields for which the geometry takes nearest pixels; give a geometry, too")
        if geometry is not None and not images:
            raise ValueError("geometry changes images, but no field is an image dataset that headrace knows")
        for name in self._masks:
            if name not in images:
                raise ValueError(f"masks names {name!r}, which is no image field; those are {', '.join(images)}")

    def _check_shaped(self) -> None:
        """Raises TypeError if the geometry could not be put before a field's own transform."""
        for one in self._fields:
            if one.why_not:
                raise TypeError(
                    f"field {one.name!r}: {one.why_not}. A geometry needs fields whose images headrace opens itself"
                )
            if one.image is not None and any(isinstance(variant.clips, AudioClip) for variant in one.image.variants):
                raise TypeError(f"field {one.name!r} is audio, which a geometry of images cannot change; leave it out")
            if one.image is not None and len({id(variant.transform) for variant in one.image.variants}) > 1:
                raise TypeError(
                    f"field {one.name!r} joins datasets with transforms of their own; with a geometry, give them one"
                )

    def __getstate__(self) -> State:
        return {name: value for name, value in self.__dict__.items() if name != "_fields"}

    def __setstate__(self, kept: State) -> None:
        self.__dict__.update(kept)
        self._fields = self._describe_fields()

    def __repr__(self) -> str:
        return f"Fields({len(self)} of {', '.join(self._given)})"


def _finish_field(field: Field, images: dict[str, object], index: int) -> object:
    """Returns a field's value of a sample, from its image after the geometry."""
    if field.image is None:
        return field.values[index]
    image = images[field.name]
    transform = field.image.variants[0].transform
    if transform is not None:
        image = transform(image)
    return (image, field.image.target(index)) if field.image.has_targets else image
