"""The order of an epoch: which batches of which samples, with which random key, and how to come back to it later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.utils.data import RandomSampler, SequentialSampler

from headrace.draws import Occurrences

_MIX = 0x9E3779B97F4A7C15


@dataclass
class RandomState:
    """The states of torch's generators from which an epoch's order follows, before anything was drawn."""

    generator: torch.Tensor | None  # of the loader's own generator
    default: torch.Tensor | None  # of torch's default one, where samplers draw from that

    @classmethod
    def now(cls, generator: torch.Generator | None) -> RandomState:
        if generator is not None:
            return cls(generator.get_state(), torch.get_rng_state())
        return cls(None, torch.get_rng_state())

    def restore(self, generator: torch.Generator | None) -> None:
        if self.default is not None:
            torch.set_rng_state(self.default)
        if generator is not None and self.generator is not None:
            generator.set_state(self.generator)


def base_seed(generator: torch.Generator | None) -> int:
    """Drawn as torch's loader draws its own at the start of an epoch, so that the same numbers follow after it."""
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


def epoch_seed(seed: int, epoch: int) -> int:
    """The seed of an epoch's shuffle, for torch.Generator.manual_seed."""
    return (seed * _MIX + (epoch + 1) * 0xD1B54A32D192ED03) % 2**63


def names_each_once(sampler: Any, length: int) -> bool:
    """Whether it is known that an epoch of this sampler names no sample twice."""
    if type(sampler) is SequentialSampler:
        return True
    return type(sampler) is RandomSampler and not sampler.replacement and sampler.num_samples <= length


@dataclass(frozen=True)
class OrderedBatch:
    """The samples of one batch: int64 (n,) each."""

    indices: np.ndarray[Any, np.dtype[np.int64]]
    occurrences: np.ndarray[Any, np.dtype[np.int64]]


@dataclass
class EpochOrder:
    """Turns what a batch sampler yields into batches of (index, occurrence)."""

    batches: Iterator[Any]
    length: int  # of the dataset
    unique: bool
    position: int = 0  # batches taken so far
    _occurrences: Occurrences | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not self.unique:
            self._occurrences = Occurrences(self.length)

    def __iter__(self) -> EpochOrder:
        return self

    def __next__(self) -> OrderedBatch:
        named = next(self.batches)
        indices = self._checked([named] if isinstance(named, (int, np.integer)) else named)
        self.position += 1
        if self._occurrences is None:
            return OrderedBatch(indices, np.zeros_like(indices))
        return OrderedBatch(indices, self._occurrences.take(indices))

    def skip(self, batches: int) -> None:
        """Passes over batches without making them.

        Raises:
            ValueError: the order ends before that.
        """
        for skipped in range(batches):
            if next(self, None) is None:
                raise ValueError(f"the state says {batches} batches were yielded, but this epoch has only {skipped}")

    def _checked(self, named: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
        try:
            indices = np.asarray(named.tolist() if isinstance(named, torch.Tensor) else list(named))
        except TypeError:
            raise TypeError(f"the batch sampler yielded {named!r}; a list of integer indices is needed") from None
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise TypeError(f"the batch sampler yielded {named!r}; a list of integer indices is needed")
        indices = indices.astype(np.int64)
        bad = indices[(indices < -self.length) | (indices >= self.length)]
        if bad.size:
            raise IndexError(f"the sampler named index {bad[0]}, out of range for a dataset of {self.length} samples")
        return np.where(indices < 0, indices + self.length, indices)
