"""A collate_fn for samples of different lengths: pads them to the longest of the batch, and says how long each is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import default_collate


class Padded(NamedTuple):
    """Sequences of a batch, one length.

    Attributes:
        values: (n, longest, ...), in the dtype of the samples.
        lengths: int64 (n,), on the CPU, where pack_padded_sequence wants them: the first ``lengths[i]`` of
            ``values[i]`` are sample i's, the others are padding.
    """

    values: torch.Tensor
    lengths: torch.Tensor

    @property
    def mask(self) -> torch.Tensor:
        """bool (n, longest): True where there is a sample's value, as in an attention mask. On `values`' device."""
        places = torch.arange(self.values.shape[1], device=self.values.device)
        return places < self.lengths.to(self.values.device)[:, None]


class PaddingCollate:
    """Collates samples that are sequences, or tuples and dicts with sequences in them, nested as one likes.

    Where the samples have a sequence, the batch has `Padded`: its values and its lengths, which ``(values, lengths),
    labels = batch`` takes apart. All else is as torch's ``default_collate`` makes it, and stands where that puts it: a
    dict gives a dict, a named tuple one of the same kind, a tuple a list.

    A sequence is a tensor or an array of one dimension or more, or a list of numbers (or of such lists, of one length):
    it varies in its first dimension, the others must be the same in all samples. Lists become what ``torch.tensor``
    makes of them; an empty list has the dtype of the others. Numbers, strings and tensors without a dimension are none.

    Args:
        padding_value: a number: pads all sequences. A dict: says which places hold the sequences and what pads each, as
            ``{"tokens": 0, "tags": -100}`` for dicts or ``{0: 0}`` for the first of a tuple; its values may be such
            dicts again. Places that it does not name go to ``default_collate``: images and vectors of a fixed size.

    Raises:
        TypeError: padding that is neither; when called: sequences of different dtypes, or with something else among
            them. ValueError: when called: sequences that differ in more than their first dimension, samples with other
            places than the first, a padding value that the dtype does not have. The message names sample and place.
    """

    def __init__(self, padding_value: Any = 0) -> None:
        _check_padding(padding_value)
        self.padding_value = padding_value

    def __call__(self, samples: list[Any]) -> Any:
        """Collates samples; there must be one at least."""
        return _collate(samples, self.padding_value, "", named=False)


def _check_padding(padding: Any) -> None:
    if isinstance(padding, Mapping):
        for inner in padding.values():
            _check_padding(inner)
    elif not isinstance(padding, (bool, int, float)):
        raise TypeError(f"padding_value must be a number or a dict of places and numbers, not {padding!r}")


def _collate(samples: Any, padding: Any, where: str, named: bool) -> Any:
    """Collates what samples have at a place.

    Args:
        samples: a list or a tuple.
        padding: a number, a dict of places in this one, or None: there is nothing to pad.
        where: the place, as one would write it behind a sample: ``['words'][0]``.
        named: whether the user says that here are sequences.
    """
    if padding is None:
        return default_collate(samples)
    first = samples[0]
    if isinstance(first, (tuple, Mapping)):
        places = _places(samples, where)
        if isinstance(padding, Mapping):
            unknown = [place for place in padding if place not in places]
            if unknown:
                raise ValueError(f"padding_value names {unknown[0]!r}{_at(where)}, but the samples have {places}")
        batch = {}
        of = list if isinstance(first, Mapping) else tuple  # as in default_collate, which gives strings back in it
        for place in places:
            inner = padding.get(place) if isinstance(padding, Mapping) else padding
            column = of(sample[place] for sample in samples)
            batch[place] = _collate(column, inner, f"{where}[{place!r}]", named or isinstance(padding, Mapping))
        if isinstance(first, Mapping):
            return batch
        return type(first)(*batch.values()) if hasattr(first, "_fields") else list(batch.values())
    if isinstance(padding, Mapping):
        raise TypeError(f"padding_value names places{_at(where)}, but sample 0 is {_kind(first)} there")
    if named or any(_is_sequence(sample) for sample in samples):
        return _pad(samples, padding, where)
    return default_collate(samples)


def _places(samples: Sequence[Any], where: str) -> list[Any]:
    """The keys of dicts, the numbers of tuples: the same in all samples."""
    found: list[Any] = []
    for number, sample in enumerate(samples):
        if not isinstance(sample, Mapping if isinstance(samples[0], Mapping) else tuple):
            raise TypeError(f"sample {number}{_at(where)} is {_kind(sample)}, but sample 0 is {_kind(samples[0])}")
        places = list(sample) if isinstance(sample, Mapping) else list(range(len(sample)))
        found = found if number else places
        if set(places) != set(found):
            raise ValueError(f"sample {number}{_at(where)} has the places {places}, but sample 0 has {found}")
    return found


def _is_sequence(value: Any) -> bool:
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


def _pad(samples: Sequence[Any], padding: float, where: str) -> Padded:
    for number, sample in enumerate(samples):
        if not _is_sequence(sample):
            raise TypeError(f"sample {number}{_at(where)} is {_kind(sample)}, and no sequence of numbers")
    tensors = [None if isinstance(one, list) and not one else _tensor(one, i, where) for i, one in enumerate(samples)]
    first = next((number for number, one in enumerate(tensors) if one is not None), 0)
    model = tensors[first] if tensors[first] is not None else torch.tensor([])
    assert model is not None
    filled = [model[:0] if one is None else one for one in tensors]
    for number, one in enumerate(filled):
        if one.dtype != model.dtype:
            raise TypeError(f"sample {number}{_at(where)} is of {one.dtype}, but sample {first} of {model.dtype}")
        if one.shape[1:] != model.shape[1:]:
            raise ValueError(
                f"sample {number}{_at(where)} has the shape {tuple(one.shape)}, but sample {first} "
                f"{tuple(model.shape)}: only the first dimension may differ"
            )
    _check_representable(padding, model.dtype, where)
    return Padded(pad_sequence(filled, True, padding), torch.tensor([len(one) for one in filled]))


def _tensor(sample: Any, number: int, where: str) -> torch.Tensor:
    if isinstance(sample, torch.Tensor):
        return sample
    try:
        # A copy: torch warns of memory that must not be written, and takes no negative strides.
        return torch.from_numpy(np.array(sample, order="C")) if isinstance(sample, np.ndarray) else torch.tensor(sample)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"sample {number}{_at(where)} makes no tensor: {error}") from None


def _check_representable(padding: float, dtype: torch.dtype, where: str) -> None:
    if dtype.is_floating_point or dtype.is_complex:
        if math.isfinite(padding) and abs(padding) > torch.finfo(dtype).max:
            raise ValueError(f"the sequences{_at(where)} are of {dtype}, which has no {padding} to pad with")
        return
    low, high = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    if not (low <= padding <= high and padding == int(padding)):
        raise ValueError(f"the sequences{_at(where)} are of {dtype}, which has no {padding} to pad with")


def _kind(value: Any) -> str:
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return f"a {type(value).__name__} of {value.ndim} dimensions"
    return f"of type {type(value).__name__}"


def _at(where: str) -> str:
    return f" at {where}" if where else ""
