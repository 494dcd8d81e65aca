"""What stands for a dataset of another library: looks its transforms up there, so that they can be changed there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Followed:
    """Comes before a source's class among its bases.

    Args:
        dataset: of the other library.
        lists: the attributes that the source was read from.
        images, labels: how many there are in them.

    Raises:
        ValueError: the numbers of images and labels differ, or the dataset's ``len()`` is another one.
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
        """Whether the dataset still holds the lists that were read, and opens files as it did."""
        if getattr(self.dataset, "loader", None) is not self._loader:
            return False
        return all(getattr(self.dataset, name) is held for name, held in zip(self._lists, self._held, strict=True))
