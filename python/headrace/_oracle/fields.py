"""The oracle of samples of several fields: each image from the same draws, all else by ``field[i]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch.utils.data import Dataset

from headrace._oracle.object_boxes import reference_objects
from headrace._oracle.reference import ImageSource, reference_sample, try_samples
from headrace._recipe.draws.draws import Draws
from headrace._recipe.images.part_kinds import as_kinds
from headrace._recipe.object_boxes.object_values import BoxPart
from headrace._recipe.steps.recipe import Recipe


@dataclass(frozen=True)
class ImageField:
    """A field of images.

    Attributes:
        source: its images and targets.
        recipe: what is done to them.
        columns: the columns of a sample's draws that the recipe reads.
        kinds: the classes of a sample's tensors; None: plain ones.
    """

    source: ImageSource
    recipe: Recipe
    columns: npt.NDArray[np.int64]
    kinds: Any = None


@dataclass(frozen=True)
class ClipField:
    """A field of clips of videos, or of audio.

    Attributes:
        source: its targets.
        make: returns a sample without its target: its number, its draws, float64 (k,).
        columns: the columns of a sample's draws that it reads.
        kinds: the class of a sample's tensor; None: a plain one.
    """

    source: ImageSource
    make: Callable[[int, npt.NDArray[np.float64]], Any]
    columns: npt.NDArray[np.int64]
    kinds: Any = None


class ReferenceFields(Dataset[object]):
    """The samples of one epoch by (index, occurrence), as dicts or tuples.

    Args:
        fields: each an `ImageField`, a `ClipField`, the `BoxPart` of boxes or of the boxes whose labels it has, or a
            function that returns the value of sample i, by name.
        draws: makes the draws of a sample.
        epoch: number of the epoch.
        row: returns the number of sample i in the fields.
        length: number of samples.
        one_size: whether the images of a sample must have one size.
        positional: whether samples are tuples.
        on_error: "raise"; "skip": a failed sample is None; "replace": it is the next one that can be made.
    """

    def __init__(
        self,
        fields: Mapping[str, ImageField | ClipField | BoxPart | Callable[[int], object]],
        draws: Draws,
        epoch: int,
        row: Callable[[int], int],
        length: int,
        *,
        one_size: bool,
        positional: bool,
        on_error: str,
    ) -> None:
        self._fields, self._draws, self._epoch, self._row, self._length = dict(fields), draws, epoch, row, length
        self._one_size, self._positional, self._on_error = one_size, positional, on_error

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, key: tuple[int, int]) -> object:
        draws = self._draws.batch(self._epoch, [key[0]], [key[1]])[0]
        return try_samples(lambda one: self._sample(self._row(one), draws), key[0], self._length, self._on_error)

    def _sample(self, row: int, draws: npt.NDArray[np.float64]) -> object:
        images = {name: one.source.image(row) for name, one in self._fields.items() if isinstance(one, ImageField)}
        sizes = {image.size for image in images.values()}
        if self._one_size and len(sizes) > 1:
            raise ValueError(f"the images of sample {row} have different sizes: {sizes}")
        made: dict[str, object] = {}
        for name, one in self._fields.items():
            if isinstance(one, BoxPart):
                image, followed = images[one.image], self._fields[one.image]
                assert isinstance(followed, ImageField)
                drawn, size = draws[followed.columns].tolist(), (image.height, image.width)
                made[name] = reference_objects(one, row, followed.recipe.steps, drawn, size)[name]
            elif isinstance(one, (ImageField, ClipField)):
                drawn = draws[one.columns]
                if isinstance(one, ClipField):
                    image = one.make(row, drawn)
                else:
                    image = reference_sample(images[name], one.recipe, drawn)
                image = image if one.kinds is None else as_kinds(image, one.kinds)
                made[name] = (image, one.source.target(row)) if one.source.has_targets else image
            else:
                made[name] = one(row)
        return tuple(made.values()) if self._positional else made
