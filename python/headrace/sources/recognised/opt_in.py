"""Datasets of the user's own that name their images: one method, ``headrace_source``, makes them native."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

from torch.utils.data import IterableDataset

from headrace.sources.combined import Joined
from headrace.sources.dataset import BlobDataset
from headrace.sources.unchanged import home, refuse_override

METHOD = "headrace_source"

# The usual names of what such a dataset builds its source with; another object there, and it is asked again.
_WATCHED = ("transform", "target_transform", "transforms")


class _Seen(Exception):
    """The transform was reached; the rest of the sample is not needed."""


class _Named(Joined):
    def __init__(self, dataset: Any, source: BlobDataset) -> None:
        super().__init__([source])
        self._dataset, self._held = dataset, _watched(dataset)

    def is_current(self) -> bool:
        now = _watched(self._dataset)
        return all(a is b for a, b in zip(now, self._held, strict=True)) and super().is_current()

    def own_image(self, index: int) -> Any:
        """What the dataset's own ``__getitem__`` hands to its transform; None where it calls none of that name."""
        seen: list[Any] = []

        def transform(image: Any, *_: Any, **named: Any) -> Any:
            seen.append(named.get("image", image))
            raise _Seen

        copied = copy.copy(self._dataset)
        if getattr(copied, "transform", None) is None:
            return None
        copied.transform = transform
        with suppress(_Seen):
            copied[index]
        return seen[0] if seen else None


def named(dataset: Any) -> Joined | None:
    """What the method of a map-style dataset returns.

    Raises:
        TypeError: it is none of headrace's datasets. ValueError: its length is another than the dataset's.
        NotNative: a subclass makes its samples otherwise, and says nothing of it in a ``headrace_source`` of its own.
    """
    cls = type(dataset)
    # The class is asked, not the object: one that wraps another and passes attributes on would give the other's.
    if not hasattr(cls, METHOD) or isinstance(dataset, (type, IterableDataset)):
        return None
    for method in ("__getitem__", "__getitems__"):
        if home(cls, method) < home(cls, METHOD):
            refuse_override(cls, method, f"override {METHOD} with it")
    source = dataset.headrace_source()
    if not isinstance(source, BlobDataset):
        raise TypeError(
            f"{cls.__qualname__}.{METHOD}() must return one of headrace's datasets (ImageFiles, ImageFolder, Blobs, "
            f"Arrays), not {type(source).__name__}"
        )
    if len(source) != len(dataset):
        raise ValueError(
            f"{cls.__qualname__} has {len(dataset)} samples, but its {METHOD}() has {len(source)}; both must name the "
            "same ones in the same order"
        )
    return _Named(dataset, source)


def _watched(dataset: Any) -> list[Any]:
    return [getattr(dataset, name, None) for name in _WATCHED]
