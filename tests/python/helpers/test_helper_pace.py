"""How many samples a helper is asked for, and how many are kept from it."""

from __future__ import annotations

import time

import pytest

from headrace._helpers.connection import Address
from headrace._helpers.helper_lane import _Pace


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which the test sets."""
    time_now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: time_now[0])
    return time_now


def met(now: list[float], most: int = 16) -> _Pace:
    """A helper that a connection has just been opened to."""
    return _Pace(Address("127.0.0.1", 1, ""), keep=2, most=most, wanted=16, answered_at=now[0])


def answer(pace: _Pace, now: list[float], asked: int, seconds: float) -> None:
    now[0] += seconds
    pace.answered(asked, asked, 1000 * asked, seconds)


def test_the_first_answer_is_what_is_expected(now: list[float]) -> None:
    pace = met(now)
    answer(pace, now, 16, 1.0)
    assert (pace.most, pace.latency) == (16, 1.0)
    answer(pace, now, 16, 2.0)
    assert pace.latency == pytest.approx(1.2)


def test_small_requests_at_full_size_tell_nothing_of_growth(now: list[float]) -> None:
    pace = met(now)
    answer(pace, now, 16, 1.0)
    answer(pace, now, 3, 0.2)  # little was queued
    assert pace.latency == pytest.approx(0.84)


def test_requests_grow_after_a_while_and_so_does_what_is_expected(now: list[float]) -> None:
    pace = met(now)
    answer(pace, now, 16, 1.0)
    now[0] += 6
    assert pace.request()[0] == 1
    answer(pace, now, 1, 0.05)
    sizes, expected = [pace.most], [pace.latency]
    for asked in (2, 4, 8):
        answer(pace, now, asked, 0.05 * asked)
        sizes.append(pace.most)
        expected.append(pace.latency)
    assert sizes == [2, 4, 8, 16] and expected == pytest.approx([0.1, 0.2, 0.4, 0.8])
    answer(pace, now, 16, 0.8)
    assert pace.latency == pytest.approx(0.8)


def test_answers_that_were_asked_for_at_once_count_as_one_step(now: list[float]) -> None:
    pace = met(now)
    answer(pace, now, 16, 1.0)
    now[0] += 6
    for _ in range(5):  # five connections
        pace.answered(1, 1, 1000, 0.05)
    assert pace.most == 2 and pace.latency == pytest.approx(0.1)


def test_a_failure_begins_with_one_sample(now: list[float]) -> None:
    pace = met(now)
    answer(pace, now, 16, 1.0)
    pace.failed(OSError("reset"))
    assert pace.most == 1 and pace.rest > 0
    answer(pace, now, 1, 0.1)
    assert pace.most == 2 and pace.latency == pytest.approx(0.2) and pace.rest == 0
