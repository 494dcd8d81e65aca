"""A collate_fn for sequences of different lengths: pads them to the longest of the batch and keeps their lengths."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

from headrace.sampler.sequences import collate_sequences, locate


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
        return collate_sequences(samples, self.padding_value, _pad)


def _check_padding(padding: object) -> None:
    if isinstance(padding, Mapping):
        for inner in padding.values():
            _check_padding(inner)
    elif not isinstance(padding, (bool, int, float)):
        raise TypeError(f"padding_value must be a number or a dict of entries and numbers, not {padding!r}")


def _pad(sequences: list[torch.Tensor], padding: float, where: str) -> Padded:
    _check_range(padding, sequences[0].dtype, where)
    return Padded(pad_sequence(sequences, True, padding), torch.tensor([len(one) for one in sequences]))


def _check_range(padding: float, dtype: torch.dtype, where: str) -> None:
    """Raises ValueError if `dtype` cannot hold the padding value; of floating dtypes only the range is checked, not the
    rounding."""
    if dtype.is_floating_point or dtype.is_complex:
        if math.isfinite(padding) and abs(padding) > torch.finfo(dtype).max:
            raise ValueError(f"the sequences{locate(where)} are of {dtype}, which cannot hold padding_value={padding}")
        return
    low, high = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    if not (low <= padding <= high and padding == int(padding)):
        raise ValueError(f"the sequences{locate(where)} are of {dtype}, which cannot hold padding_value={padding}")
