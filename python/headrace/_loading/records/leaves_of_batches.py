"""What is in the lists, tuples and mappings of a batch, and batches like it with other things in them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any


def named_leaves(batch: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yields what is in lists, tuples and mappings, with what leads to it: `[0]`, `['image'][1]`."""
    if isinstance(batch, Mapping):
        for key in batch:
            yield from named_leaves(batch[key], f"{path}[{key!r}]")
    elif isinstance(batch, (list, tuple)):
        for number, one in enumerate(batch):
            yield from named_leaves(one, f"{path}[{number}]")
    else:
        yield path, batch


def map_leaves(batch: Any, function: Callable[[Any], Any]) -> Any:
    """Returns a batch with the results of a function for what is in its lists, tuples and mappings. Those in which
    nothing is another are returned themselves; else copies, made as torch's pinning makes them."""
    if isinstance(batch, Mapping):
        return _with_values(batch, {key: map_leaves(one, function) for key, one in batch.items()})
    if isinstance(batch, (list, tuple)):
        return _with_items(batch, [map_leaves(one, function) for one in batch])
    return function(batch)


def _with_values(batch: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    if all(values[key] is batch[key] for key in values):
        return batch
    kind: Any = type(batch)
    try:
        if not isinstance(batch, MutableMapping):
            return kind(values)
        made: Any = copy.copy(batch)  # it may have more attributes
        made.update(values)
    except TypeError:  # it cannot be copied, changed or made from a dict
        return values
    return made


def _with_items(batch: list[Any] | tuple[Any, ...], items: list[Any]) -> Any:
    if all(new is old for new, old in zip(items, batch, strict=True)):
        return batch
    kind: Any = type(batch)
    if isinstance(batch, tuple):
        return kind(*items) if hasattr(batch, "_fields") else kind(items)
    try:
        made = copy.copy(batch)
        made[:] = items
    except TypeError:
        return items
    return made
