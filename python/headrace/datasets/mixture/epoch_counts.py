"""How many samples of each dataset an epoch of a mixture has."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

SIZES = ("first_exhausted", "all_exhausted")


@dataclass(frozen=True)
class Counting:
    """How weights become numbers of samples.

    Attributes:
        absolute: whether weights are these numbers.
        size: number of samples in an epoch, or one of `SIZES`; None: as many as all datasets have.
        temperature: T in weight ** (1 / T).
    """

    absolute: bool
    size: int | str | None
    temperature: float


@dataclass(frozen=True)
class EpochCounts:
    """The samples of an epoch, by dataset.

    Attributes:
        samples: number of samples of each dataset in the epoch.
        lengths: number of rows of each.
        earlier: sum over the earlier epochs of what their `samples` leave after whole passes through the rows.
    """

    samples: tuple[int, ...]
    lengths: tuple[int, ...]
    earlier: tuple[int, ...]

    @property
    def total(self) -> int:
        """Number of samples in the epoch."""
        return sum(self.samples)


@functools.lru_cache(maxsize=256)
def count_samples(counting: Counting, weights: tuple[float, ...], lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the number of samples of each dataset in an epoch.

    Whole numbers follow from exact fractions, so they are the same on every machine: a float stands for the decimal
    number that it is printed as, and a power is rounded to 12 digits.
    """
    if counting.absolute:
        return tuple(int(one) for one in weights)
    shares = [_heat(one, counting.temperature) for one in weights]
    whole = sum(shares)
    shares = [one / whole for one in shares]
    if counting.size in SIZES:
        # Samples in all when the rows of each are exhausted.
        ends = [length / share for length, share in zip(lengths, shares, strict=True) if share]
        if counting.size == "first_exhausted":
            return tuple(int(min(ends) * share) for share in shares)
        return tuple(-int(-max(ends) * share // 1) for share in shares)
    size = sum(lengths) if counting.size is None else counting.size
    assert isinstance(size, int)
    return _round_to_sum(shares, size)


def _heat(weight: float, temperature: float) -> Fraction:
    if not weight or temperature == 1:
        return Fraction(str(weight))
    return Fraction(f"{float(weight) ** (1 / temperature):.12g}")


def _round_to_sum(shares: Sequence[Fraction], size: int) -> tuple[int, ...]:
    """Returns whole numbers near ``share * size`` that sum to `size`: the largest remainders are rounded up."""
    exact = [share * size for share in shares]
    counts = [int(one) for one in exact]
    by_remainder = sorted(range(len(shares)), key=lambda n: counts[n] - exact[n])
    for n in by_remainder[: size - sum(counts)]:
        counts[n] += 1
    return tuple(counts)
