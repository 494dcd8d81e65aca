"""User datasets with a ``headrace_source`` method, which returns their samples as a headrace dataset."""

from __future__ import annotations

import copy
from collections.abc import Sized
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch.utils.data import IterableDataset

from headrace.datasets.sources.combined import ConcatSource
from headrace.datasets.sources.dataset import BlobDataset
from headrace.datasets.sources.held_values import Held, address_of, same
from headrace.datasets.sources.override_checks import mro_index, refuse_override

METHOD = "headrace_source"

_WATCHED = ("transform", "target_transform", "transforms")  # also where they are properties
_MOST_BYTES = 1 << 24  # of an array whose values are compared when an epoch begins; of a larger one, their place


class _Seen(Exception):
    """Stops ``__getitem__`` once the transform was called: the rest of the sample is not needed."""


class _Named(ConcatSource):
    def __init__(self, dataset: Any, source: BlobDataset) -> None:
        super().__init__([source])
        self._dataset, self._held = dataset, {name: _Value(value) for name, value in _attributes(dataset).items()}

    def is_current(self) -> bool:
        """Whether the dataset's attributes hold the same values: lists are compared, and arrays up to a size."""
        now = _attributes(self._dataset)
        same = now.keys() == self._held.keys() and all(held.is_held(now[name]) for name, held in self._held.items())
        return same and "__getitems__" not in now and super().is_current()

    def named_sources(self) -> tuple[BlobDataset, ...]:
        return self.parts

    def own_image(self, index: int) -> object:
        """Returns what the dataset's ``__getitem__`` passes to ``self.transform``; None if it does not call it."""
        seen: list[object] = []

        def transform(image: object, *_: object, **named: object) -> object:
            seen.append(named.get("image", image))
            raise _Seen

        copied = copy.copy(self._dataset)
        if getattr(copied, "transform", None) is None:
            return None
        copied.transform = transform
        with suppress(_Seen):
            copied[index]
        return seen[0] if seen else None


def find_source(dataset: Any) -> ConcatSource | None:
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
    if "__getitems__" in _attributes(dataset):
        refuse_override(cls, "__getitems__ in an instance", f"override {METHOD} with it")
    source = dataset.headrace_source()
    if not isinstance(source, BlobDataset):
        raise TypeError(
            f"{cls.__qualname__}.{METHOD}() must return one of headrace's datasets (ImageFiles, ImageFolder, "
            f"EncodedImages, ImageArray), not {type(source).__name__}"
        )
    length = _length(dataset)
    if length is not None and len(source) != length:
        raise ValueError(
            f"{cls.__qualname__} has {length} samples, but its {METHOD}() has {len(source)}; both must name the "
            "same ones in the same order"
        )
    return _Named(dataset, source)


def _length(dataset: Sized) -> int | None:
    """Returns a dataset's length; None if it has none, which a loader with a sampler does not need."""
    try:
        return len(dataset)
    except Exception:
        return None


def _attributes(dataset: object) -> dict[str, object]:
    """Returns the attributes of a dataset, which it may build its source from."""
    return {name: getattr(dataset, name, None) for name in _WATCHED} | getattr(dataset, "__dict__", {})


class _Value:
    """An attribute, as it was."""

    def __init__(self, value: object) -> None:
        self._value = value
        self._placed = address_of(value)
        small = isinstance(value, (np.ndarray, torch.Tensor)) and value.nbytes <= _MOST_BYTES
        self._held = Held(value) if small or isinstance(value, list) else None
        self._items = list(value.items()) if isinstance(value, dict) else None

    def is_held(self, now: Any) -> bool:
        if now is not self._value:
            return isinstance(now, (str, int, float)) and type(now) is type(self._value) and now == self._value
        if self._items is not None:
            return same(self._items, list(now.items()))
        return address_of(now) == self._placed if self._held is None else self._held.is_held(now)
