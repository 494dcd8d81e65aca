"""User datasets with a ``headrace_source`` method, which returns their samples as a headrace dataset."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

from torch.utils.data import IterableDataset

from headrace.sources.combined import Joined
from headrace.sources.dataset import BlobDataset
from headrace.sources.unchanged import mro_index, refuse_override

METHOD = "headrace_source"

# Attributes that such a dataset commonly builds its source from. If one is replaced, the source is built again.
_WATCHED = ("transform", "target_transform", "transforms")


class _Seen(Exception):
    """Stops ``__getitem__`` once the transform was called: the rest of the sample is not needed."""


class _Named(Joined):
    def __init__(self, dataset: Any, source: BlobDataset) -> None:
        super().__init__([source])
        self._dataset, self._held = dataset, _watched(dataset)

    def is_current(self) -> bool:
        now = _watched(self._dataset)
        return all(a is b for a, b in zip(now, self._held, strict=True)) and super().is_current()

    def own_image(self, index: int) -> Any:
        """Returns what the dataset's ``__getitem__`` passes to ``self.transform``; None if it does not call it."""
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
    """Returns the source that a map-style dataset's ``headrace_source`` returns; None if it has no such method.

    Raises:
        TypeError: ``headrace_source`` does not return a headrace dataset.
        ValueError: the source and the dataset have different lengths.
        NotNative: a subclass overrides how samples are made without overriding ``headrace_source``.
    """
    cls = type(dataset)
    # Looks at the class, not at the object: a wrapper that forwards attributes would return its inner dataset's method.
    if not hasattr(cls, METHOD) or isinstance(dataset, (type, IterableDataset)):
        return None
    for method in ("__getitem__", "__getitems__"):
        if mro_index(cls, method) < mro_index(cls, METHOD):
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
