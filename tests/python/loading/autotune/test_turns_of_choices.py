"""Two choices in turns: their order, the gain, and when it is believed."""

from __future__ import annotations

import random

import pytest

from headrace._loading.autotune.ab_test import Noise, Turns, Window
from headrace._loading.bottleneck.batch_cost import Load, Setting


def window(made: float, handed: float = 0.0) -> Window:
    return Window(0.3, Load(Setting(1, 1.0), 1, 1.0, 0.0), 1.0, made, handed)


def judged(speed_before: float, speed_after: float, spread: float, seed: int, noise: Noise | None = None) -> Turns:
    """Returns the turns of two choices whose windows have noise, until there is a verdict."""
    draw = random.Random(seed)
    turns = Turns([window(draw.gauss(speed_before, spread * speed_before))], noise or Noise())
    while turns.verdict() is None:
        speed = speed_after if turns.is_afters else speed_before
        (turns.after if turns.is_afters else turns.before).append(window(draw.gauss(speed, spread * speed)))
    return turns


def test_turns_come_in_pairs_of_alternating_order() -> None:
    turns, order = Turns([window(1.0)]), "b"
    for _ in range(7):
        order += "a" if turns.is_afters else "b"
        (turns.after if turns.is_afters else turns.before).append(window(1.0))
    assert order == "baabbaab"


def test_a_gain_is_the_geometric_mean_of_the_pairs() -> None:
    turns = Turns([window(1.0), window(10.0)], after=[window(2.0), window(80.0)])
    assert turns.gain == pytest.approx(4.0)


def test_batches_count_where_all_windows_have_them() -> None:
    assert Turns([window(1.0, 5.0)], after=[window(9.0, 10.0)]).gain == pytest.approx(2.0)
    assert Turns([window(1.0, 0.0)], after=[window(9.0, 10.0)]).gain == pytest.approx(9.0)


def test_a_window_without_samples_is_a_speed_near_zero() -> None:
    assert Turns([window(0.0)], after=[window(1.0)]).verdict() is True
    assert Turns([window(1.0)], after=[window(0.0)]).verdict() is False


@pytest.mark.parametrize(("gain", "pairs"), [(2.0, 1), (0.5, 1), (1.1, 8), (1.0, 8)])
def test_clear_gains_need_one_pair_on_a_quiet_machine(gain: float, pairs: int) -> None:
    for seed in range(50):
        turns = judged(100.0, 100.0 * gain, 0.01, seed)
        assert turns.verdict() is (gain > 1.03)
        assert len(turns.after) <= pairs


@pytest.mark.parametrize("spread", [0.02, 0.05, 0.1])
def test_what_costs_a_twentieth_is_seldom_kept_and_what_gains_a_quarter_is(spread: float) -> None:
    kept = {0.95: 0, 1.25: 0}
    for gain in kept:
        noise = Noise()
        for seed in range(300):
            turns = judged(100.0, 100.0 * gain, spread, seed, noise)
            noise = turns.noise.fade_noise()
            kept[gain] += bool(turns.verdict())
    assert kept[0.95] <= 0.05 * 300, kept
    assert kept[1.25] >= 0.95 * 300, kept


def test_earlier_trials_tell_the_noise() -> None:
    """Beside a quiet past, the same two windows are a gain."""
    quiet, loud = Noise(8 * 0.01**2, 8.0), Noise(8 * 0.2**2, 8.0)
    assert Turns([window(100.0)], quiet, [window(110.0)]).verdict() is True
    assert Turns([window(100.0)], loud, [window(110.0)]).verdict() is None
    long_past = Noise(400.0, 400.0).fade_noise()
    assert (long_past.squares, long_past.freedom) == (8.0, 8.0)
