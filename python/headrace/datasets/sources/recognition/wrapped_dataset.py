"""Mixin for a source that stands for another library's dataset: follows that dataset's transforms and lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.datasets.sources.dataset import BlobDataset
from headrace.datasets.sources.held_values import Held
from headrace.datasets.sources.override_checks import NotNative, makes_samples_as


class Followed(BlobDataset):
    """Mixin; must precede the source class among the bases, because it overrides `transform` and `target_transform`.

    The transforms are looked up on each access, so that a change on the dataset takes effect. The lists are those of
    when the source was made.

    Args:
        dataset: the other library's dataset.
        original: the class whose ``__getitem__`` makes its samples.
        lists: the dataset's attributes that the source was made from, and what they held.
        images, labels: numbers of images and labels in them.

    Raises:
        NotNative: the numbers of images and labels differ.
    """

    transform: Any = property(lambda self: self.owner.transform, lambda self, value: None)
    target_transform: Any = property(lambda self: self._transform_of_targets(), lambda self, value: None)

    def __init__(self, dataset: Any, original: type, lists: dict[str, Held], images: int, labels: int) -> None:
        self.dataset = dataset
        self._original, self._held = original, lists
        self._loader = getattr(dataset, "loader", None)
        self._fixed: tuple[object] | None = None  # the target_transform of a source that is frozen
        if images != labels:
            name = type(dataset).__qualname__
            raise NotNative(f"{name} has {images} images but {labels} labels; give it one label an image")

    @property
    def owner(self) -> Any:
        """The object that holds the transforms."""
        return self.dataset

    def _transform_of_targets(self) -> object:
        return self.owner.target_transform if self._fixed is None else self._fixed[0]

    def is_current(self) -> bool:
        """Whether the dataset still makes its samples in the same way, with the same `loader`, from the same values."""
        same = all(held.is_held(getattr(self.dataset, name, None)) for name, held in self._held.items())
        return same and self._makes_same_samples()

    def holds(self, indices: Sequence[int]) -> bool:
        """Whether the dataset still holds the same values of some samples."""
        held = (one.rows_are_held(getattr(self.dataset, name, None), indices) for name, one in self._held.items())
        return all(held) and self._makes_same_samples()

    def _makes_same_samples(self) -> bool:
        """Whether the dataset makes its samples in the same way."""
        same = getattr(self.dataset, "loader", None) is self._loader
        return same and makes_samples_as(self.dataset, self._original)

    def known_sources(self) -> dict[int, BlobDataset]:
        """Returns this source, by the ``id()`` of its dataset."""
        return {id(self.dataset): self}

    def frozen(self, before: object = None) -> BlobDataset:
        """Returns this source with its labels, and the target_transform of now."""
        made: BlobDataset = object.__new__(type(self))
        vars(made).update(vars(self), _fixed=(self.target_transform,))
        return made
