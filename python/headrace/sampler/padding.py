"""A collate_fn for sequences of different lengths: pads them to the longest of the batch and keeps their lengths."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import default_collate


class Padded(NamedTuple):
    """The sequences of a batch, padded to one length.

    Attributes:
        values: (n, longest, ...), in the dtype of the samples. ``values[i][:lengths[i]]`` is sample i, the rest is
            padding.
        lengths: length of each sample, int64 (n,), on the CPU, where ``pack_padded_sequence`` expects it.
    """

    values: torch.Tensor
    lengths: torch.Tensor

    @property
    def mask(self) -> torch.Tensor:
        """Attention mask, bool (n, longest), on the device of `values`: True for samples, False for padding."""
        entries = torch.arange(self.values.shape[1], device=self.values.device)
        return entries < self.lengths.to(self.values.device)[:, None]


class PaddingCollate:
    """Collates samples that are sequences, or nested tuples and dicts that contain sequences.

    Each sequence in a sample becomes a `Padded` in the batch, which can be unpacked: ``(values, lengths), labels =
    batch``. All other values are collated by torch's ``default_collate``. The batch has the structure that
    ``default_collate`` returns: a dict for dicts, the same class for named tuples, a list for tuples.

    A sequence is a tensor or array with at least one dimension, or a list of numbers (or of such lists of equal
    length). Sequences may differ in their first dimension only. Lists are converted by ``torch.tensor``; an empty list
    gets the dtype of the other samples. Numbers, strings and tensors without dimensions are not sequences.

    Args:
        padding_value: one number, which pads all sequences; or a dict of the entries (keys of dicts, positions in
            tuples) that hold sequences to their padding values, such as ``{"tokens": 0, "tags": -100}`` or ``{0: 0}``.
            Its values may be dicts for nested samples. Entries that are not in the dict go to ``default_collate``, such
            as images and vectors of a fixed size.

    Raises:
        TypeError: `padding_value` is neither a number nor a dict. When called: an entry holds sequences of different
            dtypes, or sequences in some samples only.
        ValueError: when called, if sequences differ in more than their first dimension, the samples have different
            entries, or the dtype cannot represent the padding value. The message names the sample and the entry.
    """

    def __init__(self, padding_value: float | Mapping[Any, object] = 0) -> None:
        _check_padding(padding_value)
        self.padding_value = padding_value

    def __call__(self, samples: Sequence[object]) -> Any:
        """Collates one sample or more into a batch."""
        return _collate(samples, self.padding_value, "", named=False)


def _check_padding(padding: object) -> None:
    if isinstance(padding, Mapping):
        for inner in padding.values():
            _check_padding(inner)
    elif not isinstance(padding, (bool, int, float)):
        raise TypeError(f"padding_value must be a number or a dict of entries and numbers, not {padding!r}")


def _collate(samples: Any, padding: Any, where: str, named: bool) -> Any:
    """Collates one entry of all samples.

    Args:
        samples: the entry of each sample, in a list or a tuple.
        padding: a number, a dict of the entries inside this one, or None: nothing to pad.
        where: the path of the entry as an index expression, such as ``['words'][0]``, for messages.
        named: whether the caller's `padding_value` names this entry as a sequence.
    """
    if padding is None:
        return default_collate(samples)
    first = samples[0]
    if isinstance(first, (tuple, Mapping)):
        entries = _checked_entries(samples, where)
        if isinstance(padding, Mapping):
            unknown = [entry for entry in padding if entry not in entries]
            if unknown:
                raise ValueError(f"padding_value names {unknown[0]!r}{_locate(where)}, but the samples have {entries}")
        batch = {}
        of = list if isinstance(first, Mapping) else tuple  # default_collate returns strings in the same container
        for entry in entries:
            inner = padding.get(entry) if isinstance(padding, Mapping) else padding
            column = of(sample[entry] for sample in samples)
            batch[entry] = _collate(column, inner, f"{where}[{entry!r}]", named or isinstance(padding, Mapping))
        if isinstance(first, Mapping):
            return batch
        return type(first)(*batch.values()) if hasattr(first, "_fields") else list(batch.values())
    if isinstance(padding, Mapping):
        raise TypeError(f"padding_value names entries{_locate(where)}, but sample 0 is {_name_kind(first)} there")
    if named or any(_is_sequence(sample) for sample in samples):
        return _pad_samples(samples, padding, where)
    return default_collate(samples)


def _checked_entries(samples: Sequence[Any], where: str) -> list[object]:
    """Returns the keys of dicts or the positions of tuples. Raises if they are not the same in all samples."""
    found: list[object] = []
    for number, sample in enumerate(samples):
        if not isinstance(sample, Mapping if isinstance(samples[0], Mapping) else tuple):
            raise TypeError(
                f"sample {number}{_locate(where)} is {_name_kind(sample)}, but sample 0 is {_name_kind(samples[0])}"
            )
        entries = list(sample) if isinstance(sample, Mapping) else list(range(len(sample)))
        found = found if number else entries
        if set(entries) != set(found):
            raise ValueError(f"sample {number}{_locate(where)} has the entries {entries}, but sample 0 has {found}")
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


def _pad_samples(samples: Sequence[object], padding: float, where: str) -> Padded:
    for number, sample in enumerate(samples):
        if not _is_sequence(sample):
            raise TypeError(f"sample {number}{_locate(where)} is {_name_kind(sample)}, not a sequence of numbers")
    tensors = [None if isinstance(one, list) and not one else _tensor(one, i, where) for i, one in enumerate(samples)]
    first = next((number for number, one in enumerate(tensors) if one is not None), 0)
    model = tensors[first] if tensors[first] is not None else torch.tensor([])
    assert model is not None
    filled = [model[:0] if one is None else one for one in tensors]
    for number, one in enumerate(filled):
        if one.dtype != model.dtype:
            raise TypeError(f"sample {number}{_locate(where)} is of {one.dtype}, but sample {first} of {model.dtype}")
        if one.shape[1:] != model.shape[1:]:
            raise ValueError(
                f"sample {number}{_locate(where)} has the shape {tuple(one.shape)}, but sample {first} "
                f"{tuple(model.shape)}: only the first dimension may differ"
            )
    _check_range(padding, model.dtype, where)
    return Padded(pad_sequence(filled, True, padding), torch.tensor([len(one) for one in filled]))


def _tensor(sample: object, number: int, where: str) -> torch.Tensor:
    if isinstance(sample, torch.Tensor):
        return sample
    try:
        # A copy, because torch warns about read-only memory and does not support negative strides.
        return torch.from_numpy(np.array(sample, order="C")) if isinstance(sample, np.ndarray) else torch.tensor(sample)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"sample {number}{_locate(where)} cannot be converted to a tensor: {error}") from None


def _check_range(padding: float, dtype: torch.dtype, where: str) -> None:
    """Raises ValueError if `dtype` cannot hold the padding value; of floating dtypes only the range is checked, not the
    rounding."""
    if dtype.is_floating_point or dtype.is_complex:
        if math.isfinite(padding) and abs(padding) > torch.finfo(dtype).max:
            raise ValueError(f"the sequences{_locate(where)} are of {dtype}, which cannot hold padding_value={padding}")
        return
    low, high = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    if not (low <= padding <= high and padding == int(padding)):
        raise ValueError(f"the sequences{_locate(where)} are of {dtype}, which cannot hold padding_value={padding}")


def _name_kind(value: object) -> str:
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return f"a {type(value).__name__} of {value.ndim} dimensions"
    return f"of type {type(value).__name__}"


def _locate(where: str) -> str:
    return f" at {where}" if where else ""
