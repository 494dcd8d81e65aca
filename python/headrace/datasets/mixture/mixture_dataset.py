"""A weighted mixture of map-style datasets: their concatenation, and the weights by which a sampler chooses."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, NoReturn

from torch.utils.data import ConcatDataset, IterableDataset

from headrace._base.checks import whole_number
from headrace.datasets.mixture.epoch_counts import SIZES, Counting, EpochCounts, count_samples

Schedule = Mapping[int, Mapping[str, "float | None"]]


class MixturePart(NamedTuple):
    """One dataset of a `Mixture`.

    Attributes:
        dataset: any map-style dataset, with a transform of its own.
        weight: its share, or its number of samples in an epoch; None: its length.
        seed: of the order of its rows. None: that of the sampler.
    """

    dataset: Any
    weight: float | None = None
    seed: int | None = None


class Mixture(ConcatDataset[Any]):
    """Several datasets, of which an epoch has samples in proportion to their weights.

    As a dataset it is torch's ``ConcatDataset``: ``mixture[i]`` is sample i of all rows, one dataset after the other.
    The order is the sampler's: ``headrace.sampler.MixtureSampler(mixture, seed=0)`` goes to any loader as `sampler`;
    headrace's makes one itself. A mixture has no ``len()``, so that no other sampler is taken by mistake, with which
    the weights would have no effect.

    In an epoch each row of a dataset occurs equally often, or once more than others; over all epochs, too. Everything
    depends on (seed, epoch) alone.

    Args:
        datasets: by name a `MixturePart`, or a pair (dataset, weight).
        weights: ``"proportion"``: weights are shares of the epoch, which need not sum to 1; ``"count"``: numbers of
            samples of an epoch.
        epoch_size: number of samples in an epoch. ``"first_exhausted"``: as many as there are until a dataset has none
            left, so no row occurs twice; ``"all_exhausted"``: until each row of each dataset has occurred; None: as
            many as all datasets have together. With counts it is their sum.
        temperature: T in weight ** (1 / T): 1 leaves the weights as they are, a large one makes the shares equal.
        schedule: weights of later epochs, by the first epoch that has them: ``{5: {"web": 1, "books": 3}}``. A name
            that is left out keeps its weight.

    Attributes:
        names: of the datasets.
        lengths: number of rows of each.
        schedule: as above, with the changes of `set_weights`. A program that resumes passes it again.

    Raises:
        TypeError: a dataset is iterable, or an argument has the wrong type.
        ValueError: there is no dataset, a weight is negative or not finite, no dataset with samples has a weight, a
            dataset with a weight is empty, or a name is not known.
    """

    def __init__(
        self,
        datasets: Mapping[str, MixturePart | tuple[Any, float | None]],
        *,
        weights: Literal["proportion", "count"] = "proportion",
        epoch_size: int | Literal["first_exhausted", "all_exhausted"] | None = None,
        temperature: float = 1.0,
        schedule: Schedule | None = None,
    ) -> None:
        if wrong := [name for name in datasets if not isinstance(name, str)]:
            raise TypeError(f"the name of a dataset must be a string, not {wrong[0]!r}")
        parts = {name: _checked_part(name, one) for name, one in datasets.items()}
        if not parts:
            raise ValueError("a mixture needs at least one dataset")
        if weights not in ("proportion", "count"):
            raise ValueError(f"weights must be 'proportion' or 'count', not {weights!r}")
        if not (isinstance(temperature, numbers.Real) and 0 < temperature < math.inf):
            raise ValueError(f"temperature must be a number above 0, not {temperature!r}")
        if weights == "count" and (epoch_size is not None or temperature != 1):
            raise ValueError("numbers of samples are the epoch: leave out epoch_size and temperature")
        super().__init__([one.dataset for one in parts.values()])
        self.names: tuple[str, ...] = tuple(parts)
        begins = [0, *self.cumulative_sizes]
        self.lengths: dict[str, int] = {name: begins[n + 1] - begins[n] for n, name in enumerate(parts)}
        self.seeds: dict[str, int | None] = {name: one.seed for name, one in parts.items()}
        self._counting: Counting = Counting(weights == "count", _checked_size(epoch_size), float(temperature))
        first = {name: one.weight for name, one in parts.items()}
        self._check_weights(first, 0)
        self.schedule: dict[int, dict[str, float | None]] = {0: _as_plain_numbers(first)}
        for epoch, changed in sorted((schedule or {}).items()):
            self.set_weights(changed, epoch)

    def set_weights(self, weights: Mapping[str, float | None], epoch: int) -> None:
        """Changes weights from the beginning of an epoch on, until the next change in `schedule`.

        Args:
            weights: by name; datasets that are left out keep their weights.
            epoch: the first epoch that has them; not one that is under way.

        Raises:
            TypeError, ValueError: as for the constructor.
        """
        first = whole_number("epoch", epoch, smallest=0)
        unknown = [name for name in weights if name not in self.lengths]
        if unknown:
            raise ValueError(f"the mixture has no dataset {unknown[0]!r}; it has {', '.join(self.names)}")
        merged = {**self._weights_at(first), **weights}
        self._check_weights(merged, first)
        self.schedule = dict(sorted({**self.schedule, first: _as_plain_numbers(merged)}.items()))

    def counts(self, epoch: int) -> EpochCounts:
        """Returns how many samples of each dataset an epoch has, in the order of `names`, and how many of those that
        are left after whole passes earlier epochs had."""
        lengths, earlier = tuple(self.lengths.values()), [0] * len(self.names)
        begins = [begin for begin in self.schedule if begin <= epoch]
        for begin, end in zip(begins, [*begins[1:], epoch], strict=True):
            weights = self._weights(begin)
            taken = self._count(weights)
            for n, length in enumerate(lengths):
                earlier[n] += (end - begin) * (taken[n] % length) if length else 0
        return EpochCounts(self._count(self._weights(begins[-1])), lengths, tuple(earlier))

    def describe(self) -> str:
        """Returns what the order of the epochs follows from, as text: lengths, weights and seeds by name."""
        return repr((self._counting, self.lengths, self.seeds, self.schedule))

    def _count(self, weights: tuple[float, ...]) -> tuple[int, ...]:
        return count_samples(self._counting, weights, tuple(self.lengths.values()))

    def _weights_at(self, epoch: int) -> dict[str, float | None]:
        return self.schedule[max(begin for begin in self.schedule if begin <= epoch)]

    def _weights(self, begin: int) -> tuple[float, ...]:
        held = self.schedule[begin].items()
        return tuple(self.lengths[name] if weight is None else weight for name, weight in held)

    def _check_weights(self, weights: Mapping[str, float | None], epoch: int) -> None:
        for name, weight in weights.items():
            if weight is None:
                continue
            if not isinstance(weight, numbers.Real) or isinstance(weight, bool):
                raise TypeError(f"the weight of {name!r} must be a number or None, not {type(weight).__name__}")
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"the weight of {name!r} must be a number from 0 up, not {weight!r}")
            if self._counting.absolute and weight != int(weight):
                raise ValueError(f"the weight of {name!r} is a number of samples, not {weight!r}")
            if weight and not self.lengths[name]:
                raise ValueError(f"dataset {name!r} is empty; give it a weight of 0")
        given = [self.lengths[name] if weight is None else weight for name, weight in weights.items()]
        if not any(given):
            raise ValueError(f"no dataset has a weight above 0 from epoch {epoch} on")

    def __len__(self) -> NoReturn:
        raise TypeError(
            "a Mixture has no length: how many samples an epoch has is its sampler's. Give torch's DataLoader "
            "sampler=headrace.sampler.MixtureSampler(mixture, seed=0); headrace.DataLoader makes it itself"
        )

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        rows = ", ".join(f"{name}: {length}" for name, length in self.lengths.items())
        return f"Mixture({rows})"


def _as_plain_numbers(weights: Mapping[str, float | None]) -> dict[str, float | None]:
    """Returns weights as numbers whose text is the same in every program: 3.0 is 3."""
    plain: dict[str, float | None] = {}
    for name, weight in weights.items():
        whole = weight is not None and weight == int(weight)
        plain[name] = None if weight is None else int(weight) if whole else float(weight)
    return plain


def _checked_part(name: str, given: object) -> MixturePart:
    if not isinstance(given, tuple) or not 2 <= len(given) <= 3:
        raise TypeError(
            f"dataset {name!r} must be given as (dataset, weight), or as a MixturePart, not {type(given).__name__}"
        )
    part = MixturePart(*given)
    if isinstance(part.dataset, IterableDataset):
        raise TypeError(
            f"dataset {name!r} is iterable: its samples have no numbers, so a mixture could neither choose of them in "
            "any order nor resume with another number of ranks; give a map-style one, such as headrace.TarShards(urls) "
            "for the shards of a TarStream"
        )
    if not hasattr(part.dataset, "__getitem__") or not hasattr(part.dataset, "__len__"):
        raise TypeError(f"dataset {name!r} must be map-style, with a length, not {type(part.dataset).__name__}")
    if part.seed is not None:
        whole_number(f"the seed of {name!r}", part.seed)
    return part


def _checked_size(size: object) -> int | str | None:
    if size is None or size in SIZES:
        return size  # type: ignore[return-value]
    if isinstance(size, str):
        raise ValueError(f"epoch_size must be a number of samples, {' or '.join(map(repr, SIZES))}, not {size!r}")
    return whole_number("epoch_size", size, smallest=1)
