"""Which setting is recommended in spite of noise: never one that another setting beats by more than 5%."""

from __future__ import annotations

import math
import random

import pytest

from headrace._cli.tune.race import Race
from headrace._loading.autotune.tuner import Choice

FEW, BEST, MANY = Choice(1, 2), Choice(2, 2), Choice(4, 2)


def recommended(true: dict[Choice, float], noise: float, seed: int, rounds: int = 30) -> Choice | None:
    """What a race of these true speeds recommends; each measurement is slowed down or not, as other programs do it."""
    random_ = random.Random(seed)
    race = Race()

    def measure(choice: Choice) -> float:
        return true[choice] * (1 - noise * random_.random() * random_.choice((0, 1))) * random_.lognormvariate(0, 0.01)

    race.add_round({one: measure(one) for one in true})
    for _ in range(rounds):
        if race.is_decided or race.target is None:
            break
        race.add_round({one: measure(one) for one in (race.target, *race.rivals())})
    return race.target if race.is_decided else None


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.3, 0.6])
def test_a_recommendation_is_not_refuted(noise: float) -> None:
    true = {FEW: 60.0, BEST: 100.0, MANY: 93.0, Choice(3, 2): 97.5, Choice(2, 4): 99.0}
    found = [recommended(true, noise, seed) for seed in range(200)]
    assert not [one for one in found if one is not None and true[one] < 95]
    assert noise > 0.05 or sum(one is not None for one in found) > 190


def test_a_single_round_decides_nothing() -> None:
    race = Race()
    assert (race.target, race.is_decided, race.rivals(), race.may_gain(FEW)) == (None, False, [], 1.0)
    race.add_round({FEW: 30.0, BEST: 100.0})
    assert race.target == BEST and not race.is_decided and race.rivals() == [FEW]
    assert race.may_gain(FEW) == math.inf
    race.add_round({FEW: 30.0, BEST: 100.0})
    assert race.rivals() == [FEW] and not race.is_decided
    race.add_round({FEW: 30.0, BEST: 100.0})
    assert race.rivals() == [] and race.is_decided and race.recommended == BEST


def test_a_speed_that_changes_decides_nothing() -> None:
    """Ratios are the same in every round, and the rounds differ: other programs begin and end."""
    race = Race()
    for slower in (1.0, 0.8, 1.0, 0.8):
        race.add_round({FEW: 30.0 * slower, BEST: 100.0 * slower})
    assert race.rivals() == [] and not race.is_steady and race.recommended is None


def test_where_a_smaller_setting_may_be_too_slow_the_fastest_is_recommended() -> None:
    race = Race()
    for slower in (1.0, 0.98, 1.02):
        race.add_round({FEW: 97.2 * slower, BEST: 100.0 / slower})
    assert race.target == FEW and race.rivals() == [BEST] and race.recommended == BEST


def test_challengers_are_those_that_were_measured_least() -> None:
    race = Race()
    race.add_round({FEW: 60.0, BEST: 100.0, MANY: 90.0, Choice(3, 2): 80.0})
    race.add_round({BEST: 100.0, MANY: 90.0})
    assert set(race.challengers()) == {FEW, Choice(3, 2)}


def test_of_settings_that_are_as_fast_the_smallest_is_the_target() -> None:
    race = Race()
    for _ in range(3):
        race.add_round({MANY: 103.0, BEST: 101.0, Choice(2, 4): 102.0, FEW: 60.0})
    assert race.target == BEST
    assert race.may_gain(MANY) > 1.02 > 1 > race.may_gain(FEW)


def test_a_fast_setting_of_one_lucky_round_is_measured_again() -> None:
    """Thirteen threads on two cores were once the fastest by a quarter, between slow neighbours."""
    race = Race()
    race.add_round({BEST: 76.0, Choice(12, 2): 72.0, Choice(13, 2): 100.0, Choice(14, 2): 71.0})
    assert race.target == Choice(13, 2) and not race.is_decided
    for _ in range(8):
        race.add_round({one: {BEST: 100.0}.get(one, 72.0) for one in (race.target, *race.rivals(), BEST)})
    assert race.target == BEST


def test_what_delivers_nothing_is_left_out() -> None:
    race = Race()
    race.add_round({FEW: 0.0})
    assert race.target is None and not race.is_decided
