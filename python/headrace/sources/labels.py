"""Collates the labels of a batch as torch does, and names the samples whose labels cannot be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import torch
from torch.utils.data import default_collate

_KINDS = (TypeError, RuntimeError, ValueError, KeyError)


def collate(labels: tuple[Any, ...], indices: Sequence[int], location: Callable[[int], str]) -> Any:
    """``default_collate(labels)``.

    Args:
        labels: of the samples `indices`; a tuple, as collating whole samples would have it: words stay in one.
        location: where a sample lies.

    Raises:
        TypeError, RuntimeError, ValueError, KeyError: as torch does, about the first two labels that disagree.
    """
    batch: Any = labels
    try:
        return default_collate(batch)
    except Exception as error:
        _explain(error, labels, indices, location)


def on_the_default_device(numbers: torch.Tensor) -> torch.Tensor:
    """As ``default_collate`` makes a tensor of numbers: on torch's default device."""
    device = torch.get_default_device()
    return numbers if device.type == "cpu" else numbers.to(device)


def _explain(
    error: Exception, labels: tuple[Any, ...], indices: Sequence[int], location: Callable[[int], str]
) -> NoReturn:
    def named(place: int) -> str:
        return f"sample {indices[place]} ({location(indices[place])})"

    kind = next((one for one in _KINDS if isinstance(error, one)), None)
    if kind is None:
        raise error
    for place, label in enumerate(labels):
        if not _goes((label,)):
            raise kind(
                f"the label of {named(place)} is {_shape(label)}, of which default_collate makes no batch: {error}"
            ) from error
        if not _goes((labels[0], label)):
            raise kind(
                f"the labels of {named(0)} and {named(place)} do not stack: {_shape(labels[0])} and {_shape(label)}; "
                "give all samples labels of one kind and shape"
            ) from error
    raise error


def _goes(labels: Any) -> bool:
    try:
        default_collate(labels)
    except Exception:
        return False
    return True


def _shape(label: Any) -> str:
    """A label in a few words: its type, and how large it is."""
    name = type(label).__name__
    if hasattr(label, "shape"):
        return f"{name} {tuple(label.shape)}"
    if isinstance(label, Mapping):
        return f"{name} with the keys {', '.join(map(repr, label))}"
    if isinstance(label, Sequence) and not isinstance(label, (str, bytes)):
        return f"{name} of {len(label)}"
    return f"{name} {label!r:.40}"
