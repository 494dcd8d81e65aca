"""The random numbers of samples, which depend only on (seed, epoch, sample index, occurrence).

Method: Philox4x64-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011). The k
uniforms of a sample equal ``Generator(Philox(counter=[0, index, occurrence, 0], key=[seed, epoch])).random(k)`` of
numpy.random, but are computed natively for a whole batch at once.
"""

from __future__ import annotations

import copy
import enum
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._recipe.draws.policy_arguments import normals, policy_arguments
from headrace._recipe.draws.warp_matrices import warp_numbers
from headrace._recipe.draws.weights_from_draws import chain_weights, gaussian_weights
from headrace._recipe.steps.draw_columns import (
    AnyColumn,
    ChainWeights,
    Column,
    GaussianWeight,
    Normal,
    PolicyNumber,
    SumWeights,
    WarpNumber,
)

UInt64Array = npt.NDArray[np.uint64]
Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]

# ln 2 as a sum of two parts. The first has 21 trailing zero bits, so its multiples by small integers are exact.
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42fee00000p-1"), float.fromhex("0x1.a39ef35793c76p-33")
_LOG2_E = float.fromhex("0x1.71547652b82fep+0")
_EXP_SERIES = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))


class Draws:
    """Computes the draws of batches.

    Args:
        columns: the recipe's columns; k = len(columns).
        seed: any integer; only its low 64 bits are used.
    """

    def __init__(self, columns: Sequence[AnyColumn], seed: int) -> None:
        self._seed = seed % 2**64
        drawn = [column for column in columns if isinstance(column, (Column, Normal))]
        bounds = [(one.low, one.high) if isinstance(one, Column) else (0.0, 1.0) for one in drawn]
        self._low, high = np.array(bounds, dtype=np.float64).reshape(-1, 2).T
        self._span = high - self._low
        self._exp = np.flatnonzero([isinstance(column, Column) and column.exp for column in drawn])
        self._normal = np.flatnonzero([isinstance(column, Normal) for column in drawn])
        self._kernels = tuple(dict.fromkeys(column for column in columns if isinstance(column, GaussianWeight)))
        self._warps = tuple(dict.fromkeys(column for column in columns if isinstance(column, WarpNumber)))
        self._mixes = tuple(
            dict.fromkeys(column for column in columns if isinstance(column, (ChainWeights, SumWeights)))
        )
        self._policies = [(at, column) for at, column in enumerate(columns) if isinstance(column, PolicyNumber)]
        self._drawn = np.flatnonzero([isinstance(column, (Column, Normal)) for column in columns])
        self._count = len(columns)

    def batch(self, epoch: int, indices: npt.ArrayLike, occurrences: npt.ArrayLike) -> Float64Array:
        """Returns the draws of samples.

        Args:
            epoch: any integer; only its low 64 bits are used.
            indices, occurrences: int64 (n,).

        Returns:
            Draws, float64 (n, k), C-contiguous.
        """
        uniforms = core.uniforms(
            self._seed,
            epoch % 2**64,
            np.asarray(indices, dtype=np.int64),
            np.asarray(occurrences, dtype=np.int64),
            len(self._low),
        )
        draws = np.multiply(uniforms, self._span)
        draws += self._low
        if len(self._exp):
            draws[:, self._exp] = _exp(draws[:, self._exp])
        if len(self._normal):
            draws[:, self._normal] = normals(draws[:, self._normal])
        return draws if len(self._drawn) == self._count else self.add_computed(draws)

    def with_seed(self, seed: int) -> Draws:
        """Returns Draws with the same columns and another seed."""
        other = copy.copy(self)
        other._seed = seed % 2**64
        return other

    def add_computed(self, drawn: Float64Array) -> Float64Array:
        """Returns all columns, float64 (n, k), from the drawn ones: also those that are computed from them."""
        draws = np.empty((len(drawn), self._count))
        draws[:, self._drawn] = drawn
        for kernel in self._kernels:
            weights = gaussian_weights(draws[:, kernel.sigma], kernel.size, kernel.softmax)
            draws[:, kernel.first : kernel.first + kernel.size] = weights
        for mix in self._mixes:
            draws[:, mix.first : mix.first + mix.count + 1] = chain_weights(mix, draws[:, mix.drawn])
        for at, number in self._policies:
            draws[:, at] = policy_arguments(number, draws)
        for warp in self._warps:  # after the angles of policies
            draws[:, warp.first : warp.first + warp.count] = warp_numbers(warp, draws)
        return draws


def epoch_seed(seed: int, epoch: int) -> int:
    """Returns the seed of an epoch's shuffle, for torch.Generator.manual_seed."""
    return (seed * 0x9E3779B97F4A7C15 + (epoch + 1) * 0xD1B54A32D192ED03) % 2**63


class BatchUse(enum.Enum):
    """What draws random numbers for a whole batch; the values are words of Philox's counter. 2 belongs to the order."""

    OUT_TRANSFORM = 1
    COLLATE = 3


def batch_uniform(seed: int, epoch: int, batch: int, use: BatchUse) -> float:
    """Returns the draw in [0, 1) of a whole batch; its Philox counter differs from those of all samples."""
    return float(np.random.Generator(_numpy_philox(seed, epoch, (0, batch, 0, use.value))).random())


def epoch_words(seed: int, epoch: int, stream: int, count: int) -> UInt64Array:
    """Returns random words for the order of an epoch, uint64 (count,).

    Their Philox counters differ from those of all samples and batches.

    Args:
        seed, epoch: any integers; only their low 64 bits are used.
        stream: number of an independent stream of words.
        count: number of words; a longer request begins with the words of a shorter one.
    """
    # Raw words of the bit generator: the methods of numpy's Generator may change between versions.
    return _numpy_philox(seed, epoch, (0, stream, 0, 2)).random_raw(count)


def _numpy_philox(seed: int, epoch: int, counter: tuple[int, int, int, int]) -> np.random.Philox:
    # Explicit dtype: numpy would convert a list of large and small integers to floats.
    key = np.array([seed % 2**64, epoch % 2**64], dtype=np.uint64)
    return np.random.Philox(counter=np.array(counter, dtype=np.uint64), key=key)


class Occurrences:
    """Counts how often the order of an epoch has yielded each sample, in 4 bytes per sample. One object per epoch.

    Args:
        length: number of samples in the dataset.
    """

    def __init__(self, length: int) -> None:
        self._seen = np.zeros(length, dtype=np.uint32)

    @property
    def counts(self) -> npt.NDArray[np.uint32]:
        """How often each sample was yielded so far, uint32 (length,)."""
        return self._seen

    def restore(self, counts: npt.NDArray[np.integer]) -> None:
        """Sets the counts, integers (length,)."""
        self._seen = counts.astype(np.uint32)

    def take(self, indices: npt.ArrayLike) -> Int64Array:
        """Counts the indices and returns how often each was yielded before, earlier entries of `indices` included.

        Args:
            indices: int64 (n,), each in [0, length).

        Returns:
            Occurrences, int64 (n,).

        Raises:
            IndexError: an index is not below `length`.
        """
        named = np.asarray(indices, dtype=np.int64)
        order = np.argsort(named, kind="stable")
        ordered = named[order]
        first = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))  # start of each run of equal indices
        length = np.diff(first, append=len(ordered))
        rank = np.arange(len(ordered)) - np.repeat(first, length)
        taken = np.empty(len(named), dtype=np.int64)
        taken[order] = self._seen[ordered] + rank
        self._seen[ordered[first]] += length.astype(np.uint32)
        return taken


def _exp(x: Float64Array) -> Float64Array:
    """Returns e to the x, within 2 units in the last place. Uses only + - *: libm's results differ between machines."""
    power = np.rint(x * _LOG2_E)
    rest = (x - power * _LN2_HIGH) - power * _LN2_LOW
    series = np.full_like(rest, _EXP_SERIES[0])
    for coefficient in _EXP_SERIES[1:]:
        series *= rest
        series += coefficient
    return np.ldexp(series, power.astype(np.int32))
