"""Verdicts on runs of few batches, and on epochs that are too short to be judged alone."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import pytest
from torch.utils.data import Dataset

from headrace import DataLoader
from headrace import transforms as T
from headrace._engine.counters.epoch_timing import EpochTiming, History, Mark, Seen, Step
from headrace._engine.counters.thread_times import Scheduled
from headrace._loading.bottleneck.batch_cost import Setting
from headrace._loading.bottleneck.verdict import BATCHES, judge
from support import TENSOR, blobs, eventually

TWO = Setting(threads=2, cores=2.0)
LONG = Step(58_000_000_000, 160_000_000, 1_000_000)


def marks(count: int, batches: int = 5, began_ns: int = 0) -> list[Mark]:
    """An epoch of two threads that decode all the time."""
    found = []
    for i in range(count):
        ns = i * batches * 10_000_000
        seen = Seen({"decode": ns // 16, "idle": ns // 50}, {"read": i * 320, "decode": i * 20}, Scheduled(2 * ns))
        found.append(
            Mark(began_ns + ns, 1 + i * batches, Step(ns // 10, ns * 8 // 10, ns // 10), {}, seen, 2 * ns + ns // 10)
        )
    return found


def test_few_batches_give_an_unsure_verdict() -> None:
    for few in (marks(2, 2), marks(3, 50), marks(5, (BATCHES - 1) // 4)):
        found = judge(few, [], TWO)
        assert (found.bottleneck, found.certainty) == ("decode", "unsure")
        assert found.why.startswith("few batches so far; of 10 ms a batch")
    assert judge(marks(4), [], TWO).certainty != "unsure"


def test_the_consumers_long_steps_are_the_bottleneck_of_few_batches() -> None:
    found = judge(marks(1), [LONG], TWO)
    assert (found.bottleneck, found.certainty, found.change) == ("consumer", "unsure", None)
    assert "works 58 s and waits 0.161 s" in str(found) and found.ceiling == pytest.approx(1.0, abs=0.01)
    begin, end = marks(2, 2)
    waiting = dataclasses.replace(end.seen, stages={"idle": 0}, workers=Scheduled(1))  # as if both waited for data
    idle = dataclasses.replace(end, steps=Step(19_000_000, 500_000, 500_000), seen=waiting)
    assert judge([begin, idle], [], TWO).bottleneck == "consumer"


def test_one_batch_gives_no_verdict() -> None:
    for steps in ([], [Step(10, 10, 10)]):
        found = judge(marks(1), steps, TWO)
        assert (found.bottleneck, found.certainty, found.change) == ("nothing yet", "not enough data", None)
        assert f"it takes {BATCHES}" in str(found)
    assert "no batch after the first" in str(judge([], [], TWO))


def test_short_epochs_are_judged_together() -> None:
    earlier = History()
    for epoch in range(40):
        earlier = earlier.followed_by(marks(2, 2, began_ns=epoch * 10**12), [Step(1, 2, 3)] * 2)
    assert len(earlier.marks) == 32 and len(earlier.steps) == 80
    gaps = {(b.at_ns - a.at_ns, b.batches - a.batches) for a, b in zip(earlier.marks, earlier.marks[1:], strict=False)}
    assert gaps == {(20_000_000, 2)}  # the time between two epochs is left out
    found = judge(marks(2, 2), [], TWO, None, earlier)
    assert (found.bottleneck, found.certainty) == ("decode", "likely")
    assert found.why.startswith("the newest epochs together: of 10 ms a batch")
    assert judge([], [], TWO, None, earlier).bottleneck == "decode"  # the first batch of an epoch is awaited
    assert "together" not in judge(marks(6), [], TWO, None, earlier).why  # long enough alone


def test_an_epoch_without_marks_leaves_the_history() -> None:
    earlier = History().followed_by(marks(3), [LONG])
    assert earlier.followed_by([], [LONG]) == earlier and earlier.marks == tuple(marks(3))
    pace = EpochTiming(Seen)
    pace.follow(EpochTiming(Seen))
    assert pace.earlier == History()


def test_a_short_epoch_has_one_window() -> None:
    """The order ends before two steady batches after the first were handed out."""
    pace = EpochTiming(Seen)
    for number, steady in enumerate((True, True, False, False)):
        pace.handed_out(number * 1000, number * 1000 + 1, 0, steady=steady)
    assert [one.batches for one in pace.marks] == [1, 3]


class Own(Dataset[Any]):
    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> int:
        return index


def made(route: str, workers: int) -> DataLoader[Any]:
    if route == "native":
        return DataLoader(blobs(32, T.Compose([T.Resize((8, 8)), *TENSOR])), 8, num_workers=workers)
    return DataLoader(Own(), 8, num_workers=workers)


@pytest.mark.processes
@pytest.mark.parametrize("route", ["native", "torch"])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("epochs", [1, 5])
def test_four_batches_have_a_verdict(route: str, workers: int, epochs: int) -> None:
    pauses = iter(0.02 * 2**turn for turn in range(10))  # on a busy machine, workers take long to begin

    def limited_by_the_consumer() -> bool:
        loader, pause = made(route, workers), next(pauses)
        for _ in range(epochs):
            for _ in loader:
                time.sleep(pause)
        found = loader.stats().verdict
        loader.close()
        return found.bottleneck == "consumer" and found.certainty in ("unsure", "likely")

    assert eventually(limited_by_the_consumer)


def test_idle_time_counts_while_it_lasts() -> None:
    loader = made("native", 2)
    batches = iter(loader)
    next(batches)

    def idle() -> bool:
        before = loader.stats().idle_s
        time.sleep(0.1)
        return loader.stats().idle_s - before > 0.15  # of two threads, which have made all batches in flight

    assert eventually(idle)
    first = loader.stats().idle_s
    list(batches)
    loader.close()
    assert loader.stats().idle_s >= first
