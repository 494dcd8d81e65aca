"""Durations, counters, the kernel's accounts of threads, and the marks of an epoch."""

from __future__ import annotations

import copy
import threading
import time

import numpy as np
import pytest

from headrace._engine.counters.counters import Counters, sum_counters
from headrace._engine.counters.epoch_timing import EpochTiming, Seen, Spending
from headrace._engine.counters.percentiles import BOUNDS, Durations, percentile
from headrace._engine.counters.thread_times import (
    NEVER,
    Scheduled,
    scheduler_times_of_processes,
    scheduler_times_of_threads,
)


def test_percentiles_are_within_12_percent() -> None:
    counted = Durations()
    for ns in range(1_000, 101_000, 10):
        counted.add(ns)
    for share in (0.01, 0.5, 0.99, 1.0):
        assert percentile(counted.counts, share) == pytest.approx((1_000 + 100_000 * share) / 1e9, rel=0.125)
    assert percentile([], 0.5) == percentile(Durations().counts, 0.5) == 0.0


def test_the_buckets_are_those_of_the_native_threads() -> None:
    assert sorted(set(BOUNDS)) == BOUNDS and BOUNDS[:9] == list(range(9))
    counted = Durations()
    for ns in (-5, 0, 7, BOUNDS[40], BOUNDS[40] - 1, 2**60):
        counted.add(ns)
    assert [number for number, count in enumerate(counted.counts) if count] == [0, 7, 39, 40, len(BOUNDS) - 1]


def test_counters_add_up_and_subtract() -> None:
    one = Counters({"read": (2, 10), "idle": (1, 5)}, {"read": np.array([1, 1])}, 7, (11,), (12,))
    two = sum_counters([one, Counters({"read": (3, 20)}, {"read": np.array([0, 3])}, 1, (13,))])
    assert two.stages == {"read": (5, 30), "idle": (1, 5)} and two.bytes_read == 8
    assert (two.workers, two.python) == ((11, 13), (12,)) and two.durations["read"].tolist() == [1, 4]
    rest = two.since(one)
    assert rest.stages == {"read": (3, 20), "idle": (0, 0)} and rest.durations["read"].tolist() == [0, 3]
    assert (rest.bytes_read, rest.workers) == (1, (11, 13))
    assert sum_counters([]).stages == {}


def test_the_kernel_tells_how_long_a_thread_ran() -> None:
    before, began = scheduler_times_of_threads([threading.get_native_id()]), time.thread_time_ns()
    while time.thread_time_ns() - began < 20_000_000:
        pass
    ran = scheduler_times_of_threads([threading.get_native_id()]).since(before).ran_ns
    if not scheduler_times_of_threads([threading.get_native_id()]).ran_ns:
        pytest.skip("this kernel keeps no /proc/self/task/ID/schedstat")
    assert 15_000_000 < ran < 60_000_000
    assert scheduler_times_of_threads([2**30]) == scheduler_times_of_processes([2**30]) == NEVER  # no such thread
    assert Scheduled(5, 9).since(Scheduled(7, 3)) == (0, 6)


def run(pace: EpochTiming, batches: int, ms: float, *, steady: bool = True) -> int:
    """Hands out batches that take 1 ms each, `ms` after each other; returns the time of the last."""
    now = pace.marks[-1].at_ns if pace.marks else 10**9
    for _ in range(batches):
        now += round(1e6 * ms)
        pace.handed_out(now - 1_000_000, now, 400_000, steady=steady)
    return now


def test_an_epoch_of_any_length_has_few_marks() -> None:
    looked: list[Seen] = []

    def look() -> Seen:
        looked.append(Seen())
        return looked[-1]

    pace = EpochTiming(look)
    run(pace, 100_000, 2.0)
    assert 16 <= len(pace.marks) <= 32 and len(looked) < 400
    assert pace.marks[0].batches == 1 and pace.batches == 100_000 == sum(pace.waits.counts)
    gaps = {b.at_ns - a.at_ns for a, b in zip(pace.marks[1:], pace.marks[2:], strict=False)}
    assert len(gaps) == 1
    last = pace.marks[-1]
    assert last.steps == tuple((last.batches - 1) * ns for ns in (1_000_000, 400_000, 600_000))
    assert pace.stepped_ns == 99_999 * 1_000_000 and pace.waited_ns == 100_000 * 1_000_000


def test_marks_are_ten_milliseconds_and_two_batches_apart_and_end_with_the_supply() -> None:
    pace = EpochTiming(Seen)
    run(pace, 21, 1.0)
    assert [one.batches for one in pace.marks] == [1, 11, 21]
    slow = EpochTiming(Seen)
    run(slow, 5, 50.0)
    assert [one.batches for one in slow.marks] == [1, 3, 5]
    run(slow, 4, 50.0, steady=False)
    assert len(slow.marks) == 3 and slow.batches == 9
    slow.end()
    run(slow, 4, 50.0)
    assert len(slow.marks) == 3 and slow.batches == 13


def test_time_is_counted_by_part_in_any_thread_and_a_pace_can_be_copied() -> None:
    pace = EpochTiming(Seen)

    def spend() -> None:
        for _ in range(1000):
            pace.add_time("collate_fn", 3)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(ZeroDivisionError), Spending(pace, "out_transform"):
        1 / 0  # noqa: B018
    assert pace.parts()["collate_fn"] == 12_000 and pace.parts()["out_transform"] > 0
    copied = copy.deepcopy(pace)
    run(copied, 30, 1.0)
    assert copied.marks == [] and copied.batches == 30 and pace.batches == 0


def test_a_mark_survives_the_end_by_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """`close()` in another thread ends the pace while the first batch is being counted."""
    pace = EpochTiming(lambda: Seen({}, {}, NEVER, NEVER, 0))

    def ended_meanwhile(threads: tuple[int, ...]) -> Scheduled:
        pace.end()
        return NEVER

    monkeypatch.setattr("headrace._engine.counters.epoch_timing.scheduler_times_of_threads", ended_meanwhile)
    pace.handed_out(1, 2, 0, steady=True)
    assert len(pace.marks) == 1
    pace.handed_out(3, 4, 0, steady=True)
    assert len(pace.marks) == 1
