"""Mixin for a source that stands for another library's dataset: reads the transforms from that dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Followed:
    """Mixin; must precede the source class among the bases, because it overrides `transform` and `target_transform`.

    The transforms are looked up on each access, so that a change on the dataset takes effect.

    Args:
        dataset: the other library's dataset.
        lists: names of the dataset's attributes that the source was made from.
        images, labels: numbers of images and labels in them.

    Raises:
        ValueError: the numbers of images and labels differ, or the dataset's ``len()`` exceeds them.
    """

    transform: Any = property(lambda self: self.owner.transform, lambda self, value: None)
    target_transform: Any = property(lambda self: self.owner.target_transform, lambda self, value: None)

    def __init__(self, dataset: Any, lists: Sequence[str], images: int, labels: int) -> None:
        self.dataset, self._lists = dataset, tuple(lists)
        self._held = [getattr(dataset, name) for name in lists]
        self._loader = getattr(dataset, "loader", None)
        name = type(dataset).__qualname__
        if images != labels:
            raise ValueError(f"{name} has {images} images but {labels} labels; give it one label an image")
        if len(dataset) > images:
            raise ValueError(f"{name} says that it has {len(dataset)} samples, but there are {images} images")

    @property
    def owner(self) -> Any:
        """The object that holds the transforms."""
        return self.dataset

    def is_current(self) -> bool:
        """Whether the dataset still holds the same lists and the same `loader`."""
        if getattr(self.dataset, "loader", None) is not self._loader:
            return False
        return all(getattr(self.dataset, name) is held for name, held in zip(self._lists, self._held, strict=True))
