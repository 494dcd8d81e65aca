"""The order of an epoch: which batches of which samples, and the states of the generators that it follows from."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.utils.data import RandomSampler, SequentialSampler

from headrace.draws import Occurrences


@dataclass(frozen=True)
class RandomState:
    """The states of torch's generators from which an epoch's order follows, before anything was drawn."""

    own: tuple[torch.Tensor, ...]  # of the generators that the loader and its samplers hold
    default: torch.Tensor  # of torch's default one

    @classmethod
    def now(cls, generators: Sequence[torch.Generator]) -> RandomState:
        return cls(tuple(one.get_state() for one in generators), torch.get_rng_state())

    def restore(self, generators: Sequence[torch.Generator]) -> None:
        torch.set_rng_state(self.default)
        for generator, state in zip(generators, self.own, strict=True):
            generator.set_state(state)


def generators_of(loader_generator: torch.Generator | None, samplers: Iterable[Any]) -> tuple[torch.Generator, ...]:
    """The generators that decide the order, each once: the loader's and those that torch's samplers were given."""
    found: list[torch.Generator] = []
    for one in (loader_generator, *(getattr(sampler, "generator", None) for sampler in samplers)):
        if isinstance(one, torch.Generator) and all(one is not known for known in found):
            found.append(one)
    return tuple(found)


def base_seed(generator: torch.Generator | None) -> int:
    """Drawn as torch's loader draws its own at the start of an epoch, so that the same numbers follow after it."""
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


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
    """Turns what a sampler yields into batches of (index, occurrence).

    Args:
        batches: lists of indices, or single indices.
        length: of the dataset.
        unique: whether it is known that no sample is named twice.
    """

    batches: Iterator[Any]
    length: int
    unique: bool
    _occurrences: Occurrences | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not self.unique:
            self._occurrences = Occurrences(self.length)

    def __iter__(self) -> EpochOrder:
        return self

    def __next__(self) -> OrderedBatch:
        indices = self._checked(next(self.batches))
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

    def draw(self) -> None:
        """Lets the sampler draw its random numbers now rather than when its first batch is asked for."""
        first = list(itertools.islice(self.batches, 1))
        self.batches = itertools.chain(first, self.batches)

    def _checked(self, named: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
        if isinstance(named, torch.Tensor):
            named = named.tolist()
        try:
            indices = np.asarray([named] if isinstance(named, (int, np.integer)) else list(named))
        except (TypeError, ValueError):
            raise TypeError(f"the sampler yielded {named!r}; an integer index or a list of them is needed") from None
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise TypeError(f"the sampler yielded {named!r}; an integer index or a list of them is needed")
        if not indices.size:
            raise ValueError("the batch sampler yielded an empty batch")
        bad = indices[(indices < -self.length) | (indices >= self.length)]
        if bad.size:
            raise IndexError(f"the sampler named index {bad[0]}, out of range for a dataset of {self.length} samples")
        indices = indices.astype(np.int64)
        return np.where(indices < 0, indices + self.length, indices)
