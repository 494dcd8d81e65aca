"""Finds the sequences in the samples of a batch, which have one structure, and joins them; torch collates all else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import default_collate

#: Makes one value of a batch's sequences. Arguments: the sequences, tensors of one dtype that differ in their first
#: dimension only; what the caller has given for the entry; where it is, for messages.
Join = Callable[[list[torch.Tensor], Any, str], Any]


def collate_sequences(samples: Any, given: Any, join: Join, where: str = "", *, named: bool = False) -> Any:
    """Collates one entry of all samples.

    Args:
        samples: the entry of each sample, in a list or a tuple.
        given: what `join` gets, a dict of the entries inside this one, or None: nothing to join.
        join: makes one value of sequences.
        where: the path of the entry as an index expression, such as ``['words'][0]``, for messages.
        named: whether the caller names this entry as a sequence.
    """
    if given is None:
        return default_collate(samples)
    first = samples[0]
    if isinstance(first, (tuple, Mapping)):
        entries = _checked_entries(samples, where)
        if isinstance(given, Mapping):
            unknown = [entry for entry in given if entry not in entries]
            if unknown:
                raise ValueError(f"the collate_fn names {unknown[0]!r}{locate(where)}, but the samples have {entries}")
        batch = {}
        of = list if isinstance(first, Mapping) else tuple  # default_collate returns strings in the same container
        for entry in entries:
            inner = given.get(entry) if isinstance(given, Mapping) else given
            column = of(sample[entry] for sample in samples)
            batch[entry] = collate_sequences(
                column, inner, join, f"{where}[{entry!r}]", named=named or isinstance(given, Mapping)
            )
        if isinstance(first, Mapping):
            return batch
        return type(first)(*batch.values()) if hasattr(first, "_fields") else list(batch.values())
    if isinstance(given, Mapping):
        raise TypeError(f"the collate_fn names entries{locate(where)}, but sample 0 is {_name_kind(first)} there")
    if named or any(_is_sequence(sample) for sample in samples):
        return join(_tensors_of(samples, where), given, where)
    return default_collate(samples)


def _checked_entries(samples: Sequence[Any], where: str) -> list[object]:
    """Returns the keys of dicts or the positions of tuples. Raises if they are not the same in all samples."""
    found: list[object] = []
    for number, sample in enumerate(samples):
        if not isinstance(sample, Mapping if isinstance(samples[0], Mapping) else tuple):
            raise TypeError(
                f"sample {number}{locate(where)} is {_name_kind(sample)}, but sample 0 is {_name_kind(samples[0])}"
            )
        entries = list(sample) if isinstance(sample, Mapping) else list(range(len(sample)))
        found = found if number else entries
        if set(entries) != set(found):
            raise ValueError(f"sample {number}{locate(where)} has the entries {entries}, but sample 0 has {found}")
    return found


def _is_sequence(value: object) -> bool:
    if isinstance(value, torch.Tensor):
        return value.ndim > 0
    if isinstance(value, np.ndarray):
        return value.ndim > 0 and value.dtype.kind in "biufc"
    if not isinstance(value, list):
        return False
    while isinstance(value, list):
        if not value:
            return True
        value = value[0]
    return isinstance(value, (bool, int, float, complex, np.number))


def _tensors_of(samples: Sequence[object], where: str) -> list[torch.Tensor]:
    """Returns the sequences as tensors. Raises TypeError, ValueError; see PaddingCollate."""
    for number, sample in enumerate(samples):
        if not _is_sequence(sample):
            raise TypeError(f"sample {number}{locate(where)} is {_name_kind(sample)}, not a sequence of numbers")
    tensors = [None if isinstance(one, list) and not one else _tensor(one, i, where) for i, one in enumerate(samples)]
    first = next((number for number, one in enumerate(tensors) if one is not None), 0)
    model = tensors[first] if tensors[first] is not None else torch.tensor([])
    assert model is not None
    filled = [model[:0] if one is None else one for one in tensors]
    for number, one in enumerate(filled):
        if one.dtype != model.dtype:
            raise TypeError(f"sample {number}{locate(where)} is of {one.dtype}, but sample {first} of {model.dtype}")
        if one.shape[1:] != model.shape[1:]:
            raise ValueError(
                f"sample {number}{locate(where)} has the shape {tuple(one.shape)}, but sample {first} "
                f"{tuple(model.shape)}: only the first dimension may differ"
            )
    return filled


def _tensor(sample: object, number: int, where: str) -> torch.Tensor:
    if isinstance(sample, torch.Tensor):
        return sample
    try:
        # A copy, because torch warns about read-only memory and does not support negative strides.
        return torch.from_numpy(np.array(sample, order="C")) if isinstance(sample, np.ndarray) else torch.tensor(sample)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"sample {number}{locate(where)} cannot be converted to a tensor: {error}") from None


def _name_kind(value: object) -> str:
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return f"a {type(value).__name__} of {value.ndim} dimensions"
    return f"of type {type(value).__name__}"


def locate(where: str) -> str:
    return f" at {where}" if where else ""
