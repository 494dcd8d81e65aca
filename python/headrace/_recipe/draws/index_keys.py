"""The keys of a sampler's indices, which need not be numbers, and how often an epoch has named each of them."""

from __future__ import annotations

import base64
import operator
import zlib
from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np
import torch

from headrace._base.types import State

Key = int | str  # of an index: a number, or a text for all other indices
_IN_ARRAY = 1 << 30  # numbers below this are counted in an array


def index_key(index: Any) -> Key:
    """Returns the key of a sampler's index. Equal indices have equal keys, in every process.

    Raises:
        TypeError: the index is neither a number, a string, bytes, None or a slice, nor an array or collection of these.
    """
    if type(index) is int:
        return index
    if hasattr(type(index), "__index__"):
        try:
            return operator.index(index)
        except TypeError:  # an array or tensor of several numbers
            pass
    return repr(_as_plain_value(index))


def _as_plain_value(index: object) -> object:
    """Returns an index as values whose repr determines them."""
    if isinstance(index, (np.ndarray, np.generic, torch.Tensor)):
        return index.tolist()
    # As the type itself: a subclass, such as an Enum, may have another repr.
    if isinstance(index, str):
        return str.__str__(index)
    if isinstance(index, (int, float, complex)):
        return index + 0
    if index is None or isinstance(index, bytes):
        return index
    if isinstance(index, (list, tuple)):
        return [_as_plain_value(one) for one in index]
    if isinstance(index, (slice, range)):
        return [index.start, index.stop, index.step]
    if isinstance(index, dict):
        return [[_as_plain_value(key), _as_plain_value(value)] for key, value in index.items()]
    raise TypeError(
        "seed= makes a sample's random numbers from its index, but the sampler yielded an object of "
        f"{type(index).__module__}.{type(index).__qualname__}; use numbers, strings or tuples of these, or leave out "
        "seed="
    )


class KeyCounts:
    """Counts how often the order of an epoch has named each index, in 4 bytes a sample. One object per epoch.

    Args:
        length: number of samples in the dataset; 0 if it is unknown.
    """

    def __init__(self, length: int) -> None:
        self._of_samples = np.zeros(min(length, _IN_ARRAY), np.uint32)
        self._others: dict[Key, int] = {}

    def take(self, key: Key) -> int:
        """Counts an index and returns how often it was named before."""
        if self._is_sample(key):
            seen = int(self._of_samples[key])
            self._of_samples[key] = seen + 1
        else:
            seen = self._others.get(key, 0)
            self._others[key] = seen + 1
        return seen

    def _is_sample(self, key: Key) -> TypeGuard[int]:
        return isinstance(key, int) and 0 <= key < len(self._of_samples)

    def pack_counts(self, less: Iterable[Key]) -> State:
        """Returns the counts as a dict of strings and numbers, without these keys, each counted before."""
        counts, others = self._of_samples.copy(), dict(self._others)
        for key in less:
            (counts if self._is_sample(key) else others)[key] -= 1  # type: ignore[index]
        packed = base64.b64encode(zlib.compress(counts.tobytes(), 1)).decode()
        return {"samples": packed, "others": [[key, count] for key, count in others.items() if count]}

    def restore(self, packed: State) -> None:
        """Sets the counts to those that `pack_counts` returned.

        Raises:
            ValueError: they are of a dataset of another length.
        """
        counts = np.frombuffer(zlib.decompress(base64.b64decode(packed["samples"])), np.uint32)
        if len(counts) != len(self._of_samples):
            raise ValueError("the state does not fit: the dataset has another number of samples")
        self._of_samples, self._others = counts.copy(), dict(packed["others"])
