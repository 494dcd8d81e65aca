"""Orders of PermutationSampler repeat no sample and pass tests of randomness, which detect weaker networks."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from headrace.sampler import PermutationSampler, permutation
from headrace.sampler.permutation import _Feistel

pytestmark = pytest.mark.slow

BILLIONS = 10**10
# Standard deviations: a two-sided probability of 7 in a million. The file tests about 70 such figures, so a truly
# random permutation would fail for one choice of seeds in 2,000. The seeds are fixed, so the outcome is, too.
UNLIKELY = 4.5


def deviation(observed: np.ndarray, expected: np.ndarray | float, dof: int | None = None) -> float:
    """Pearson's chi-square in standard deviations from its mean (Wilson and Hilferty's cube root)."""
    dof = observed.size - 1 if dof is None else dof
    chi_square = float(((observed - expected) ** 2 / expected).sum())
    return float(((chi_square / dof) ** (1 / 3) - (1 - 2 / (9 * dof))) / math.sqrt(2 / (9 * dof)))


def scattered(n: int) -> dict[str, np.ndarray]:
    """Positions with a structure that a weak round function would carry over into the values."""
    width = 2 ** math.ceil((n - 1).bit_length() / 2)
    starts = np.random.Generator(np.random.PCG64(3)).integers(0, n - 2**12, 64)
    return {
        "a run": np.arange(2**18) + n // 3,
        "runs": (np.unique(starts)[:, None] + np.arange(2**12)).reshape(-1),
        "low halves equal": np.arange(min(2**18, n // width - 1)) * width + 5,
        "a stride": np.arange(2**18) * (n // 2**18),
    }


@pytest.mark.parametrize("n", [BILLIONS, 2**62, 2**62 - 3, 2**61 + 1, 2**33 + 1])
def test_no_sample_twice_among_millions_of_billions(n: int) -> None:
    sampler = PermutationSampler(n, seed=2)
    positions = np.sort(np.concatenate([*scattered(n).values(), np.arange(2**21), np.arange(n - 2**20, n)]))
    positions = positions[np.diff(positions, prepend=-1) > 0]
    values = np.sort(sampler.at(positions))
    assert len(positions) > 3_000_000 and (np.diff(values) > 0).all()
    assert values[0] >= 0 and values[-1] < n


def deviations(at: Callable[[np.ndarray], np.ndarray], n: int, positions: np.ndarray) -> dict[str, float]:
    """Statistics of the values at positions, in standard deviations."""
    count, values = len(positions), at(positions)
    share = values / n
    place = np.arange(count) * 64 // count
    joint = np.bincount(place * 64 + (share * 64).astype(int), minlength=64 * 64)
    # The difference of two independent uniform values, modulo n, is uniform.
    steps = (values[1:] - values[:-1]) % n / n
    halves = 2 ** math.ceil((n - 1).bit_length() / 2)
    low = values % halves * 256 // halves
    # The exclusive or of neighbours' high halves, which a Feistel network of two rounds leaves as it is.
    xor = values[1:] ^ values[:-1]
    high_steps = (xor // halves) % 256
    return {
        "values": deviation(np.bincount((share * 1000).astype(int), minlength=1000), count / 1000),
        "low bits": deviation(np.bincount(low, minlength=256), count / 256),
        "positions and values": deviation(joint, count / 64**2, 64 * 63),
        "steps": deviation(np.bincount((steps * 1000).astype(int), minlength=1000), (count - 1) / 1000),
        "steps of high bits": deviation(np.bincount(high_steps, minlength=256), (count - 1) / 256),
    }


@pytest.mark.parametrize("where", list(scattered(BILLIONS)))
@pytest.mark.parametrize("seed", [0, 1])
def test_values_and_their_steps_are_uniform(where: str, seed: int) -> None:
    found = deviations(PermutationSampler(BILLIONS, seed).at, BILLIONS, scattered(BILLIONS)[where])
    # Values do not repeat, unlike independent ones, but they are too few of 10**10 for a visible effect.
    assert all(abs(one) < UNLIKELY for one in found.values()), found


def test_a_network_of_two_rounds_would_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The statistics above detect a network of two rounds."""
    monkeypatch.setattr(permutation, "ROUNDS", 2)
    sampler = PermutationSampler(BILLIONS, seed=0)
    found = [deviations(sampler.at, BILLIONS, positions) for positions in scattered(BILLIONS).values()]
    assert max(abs(one) for each in found for one in each.values()) > 3 * UNLIKELY


@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.parametrize("vary", ["seed", "epoch"])
def test_all_orders_of_few_samples_are_equally_likely(n: int, vary: str) -> None:
    orders = list(itertools.permutations(range(n)))
    seen: Counter[tuple[int, ...]] = Counter()
    trials = 100 * len(orders)
    for number in range(trials):
        sampler = PermutationSampler(n, number if vary == "seed" else 5)
        sampler.set_epoch(number if vary == "epoch" else 5)
        seen[tuple(sampler)] += 1
    assert abs(deviation(np.array([seen[order] for order in orders]), 100)) < UNLIKELY


def orders(n: int, count: int, vary: str, feistel: bool) -> list[np.ndarray]:
    """The orders of n samples for some seeds or epochs."""
    made = []
    for number in range(count):
        seed, epoch = (number, 5) if vary == "seed" else (5, number)
        sampler = PermutationSampler(n, seed)
        sampler.set_epoch(epoch)
        made.append((_Feistel(n, seed, epoch) if feistel else sampler).at(np.arange(n)))
    return made


def from_poisson(counts: list[int]) -> float:
    """Deviation of counts from Poisson's distribution of mean 1; 5 and more are one class."""
    expected = [math.exp(-1) / math.factorial(k) for k in range(5)]
    expected.append(1 - sum(expected))
    return deviation(np.bincount(np.minimum(counts, 5), minlength=6), len(counts) * np.array(expected))


def at_home(made: list[np.ndarray]) -> float:
    """The deviation of the number of fixed points, which has Poisson's distribution in random orders."""
    return from_poisson([int(np.count_nonzero(one == np.arange(len(one)))) for one in made])


def agreeing(made: list[np.ndarray]) -> float:
    """The deviation of the number of positions at which an order and the next one agree."""
    return from_poisson([int(np.count_nonzero(a == b)) for a, b in itertools.pairwise(made)])


@pytest.mark.parametrize(
    ("n", "feistel", "count"), [(1000, False, 4000), (1000, True, 4000), (4096, True, 2000), (66_000, False, 500)]
)
@pytest.mark.parametrize("vary", ["seed", "epoch"])
def test_epochs_and_seeds_are_independent(n: int, feistel: bool, count: int, vary: str) -> None:
    made = orders(n, count, vary, feistel)
    assert abs(at_home(made)) < UNLIKELY and abs(agreeing(made)) < UNLIKELY


@pytest.mark.parametrize(("rounds", "n"), [(2, 1000), (4, 64)])
def test_networks_of_four_rounds_and_less_would_be_found_out(
    monkeypatch: pytest.MonkeyPatch, rounds: int, n: int
) -> None:
    """The reason for more than four rounds: the statistic above detects networks with fewer."""
    made = orders(n, 10_000, "seed", True)
    assert abs(at_home(made)) < UNLIKELY
    monkeypatch.setattr(permutation, "ROUNDS", rounds)
    assert at_home(orders(n, 10_000, "seed", True)) > UNLIKELY


def test_a_network_over_a_power_of_two_makes_even_orders_only() -> None:
    """The reason why few samples get a stored order instead."""

    def is_odd(order: np.ndarray) -> bool:
        return sum(int(a > b) for a, b in itertools.combinations(order.tolist(), 2)) % 2 == 1

    assert not any(is_odd(_Feistel(16, seed, 0).at(np.arange(16))) for seed in range(200))
    assert 60 < sum(is_odd(PermutationSampler(16, seed).at(np.arange(16))) for seed in range(200)) < 140
