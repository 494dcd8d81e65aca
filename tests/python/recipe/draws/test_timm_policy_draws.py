"""timm's policies choose their operations, and how many of them are done, as timm's own code does."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from buffered_torch import DRAWS

from headrace import transforms as T
from headrace._lowering import lower
from headrace._recipe.draws.draws import Draws
from headrace._recipe.steps import steps as S

pytestmark = pytest.mark.slow

RAND = {
    "usual": ("rand-m9-n2-p0.5-mstd0.5-inc1", "rand-m9-n2-p0.6-mstd0.5-inc1"),
    "layers": ("rand-m7-n3-p0.4", "rand-m7-n3-p0.5"),
    "by weight": ("rand-m9-n2-p0.5-tweights", "rand-m9-n2-p0.5"),
}
#: Without 0 bits of posterize, which Pillow 13 refuses.
LEARNED = ("originalr", "v0r", "3a")


def differs(ours: Counter[Any], theirs: Counter[Any]) -> float:
    """Pearson's statistic of two tables of counts, in standard deviations above its mean."""
    keys = [key for key in ours | theirs if ours[key] + theirs[key] > 20]
    square = sum((ours[key] - theirs[key]) ** 2 / (ours[key] + theirs[key]) for key in keys)
    return (square - len(keys)) / (2 * len(keys)) ** 0.5


def numbered(policy: Any) -> list[list[Any]]:
    """The operations of a policy, one list for each place or series; each notes its number when it is done."""
    return policy.policy if hasattr(policy, "policy") else [list(policy.ops)] * policy.num_layers


def theirs_of(policy: Any) -> Counter[tuple[int, ...]]:
    """How often timm's own code does which series of operations; the operations themselves are left out."""
    done: list[int] = []
    every = {id(one): one for some in numbered(policy) for one in some}
    for number, operation in enumerate(every.values()):
        operation.aug_fn = lambda image, *arguments, number=number, **options: done.append(number)
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002  # timm draws from both
    counts: Counter[tuple[int, ...]] = Counter()
    for _ in range(DRAWS):
        done.clear()
        policy(None)
        counts[tuple(done)] += 1
    return counts


def taken(steps: Sequence[S.Step], row: list[float], series: Sequence[Sequence[int]], left: list[int]) -> list[int]:
    """The numbers of the operations that a row of draws does. `left`: numbers that are not chosen yet."""
    made: list[int] = []
    for step in steps:
        if isinstance(step, S.OneOf):
            branch = next(k for k, bound in enumerate(step.bounds) if row[step.draw] < bound)
            inner: tuple[Any, ...] = step.branches[branch]
            if len(series) > 1:  # an AutoAugment: a When for each operation of the series
                parts = zip(inner, series[branch], strict=True)
                made += [number for when, number in parts if row[when.draw] < when.p]
                continue
            when, *others = inner
            made += [left[branch]] if row[when.draw] < when.p else []
            rest = [number for number in left if number != left[branch]] if others else left
            made += taken(others, row, series, rest)
    return made


def ours_of(policy: Any) -> Counter[tuple[int, ...]]:
    recipe = lower(T.Compose([policy, T.PILToTensor()]), size=(30, 40), native_only=True)
    numbers = {one: number for number, one in enumerate({id(one): 0 for some in numbered(policy) for one in some})}
    series = [[numbers[id(one)] for one in some] for some in numbered(policy)]
    weights = getattr(policy, "choice_weights", None)
    usable = [number for number in range(len(numbers)) if weights is None or weights[number] > 0]
    series = series if hasattr(policy, "policy") else series[:1]
    rows = Draws(recipe.columns, 3).batch(0, np.arange(DRAWS), np.zeros(DRAWS, np.int64)).tolist()
    return Counter(tuple(taken(recipe.steps, row, series, usable)) for row in rows)


@pytest.mark.parametrize("name", RAND)
def test_rand_augment(timm: ModuleType, name: str) -> None:
    right, wrong = RAND[name]
    make = timm.auto_augment.rand_augment_transform
    hparams = {"translate_const": 9, "img_mean": (124, 116, 104)}
    ours = ours_of(make(right, dict(hparams)))
    assert differs(ours, theirs_of(make(right, dict(hparams)))) < 4
    assert differs(ours, theirs_of(make(wrong, dict(hparams)))) > 6


@pytest.mark.parametrize("name", LEARNED)
def test_auto_augment(timm: ModuleType, name: str) -> None:
    def make() -> Any:
        policy = timm.auto_augment.auto_augment_transform(name, {"translate_const": 9, "img_mean": (124, 116, 104)})
        for some in policy.policy:  # without 0 bits of posterize, which Pillow 13 refuses
            some[:] = [one for one in some if not one.name.startswith("Posterize")]
        return policy

    ours = ours_of(make())
    assert differs(ours, theirs_of(make())) < 4
    wrong = make()
    wrong.policy += [wrong.policy[0]] * (1 + len(wrong.policy) // 8)  # one series more often
    assert differs(ours, theirs_of(wrong)) > 6
