"""The verdict on the ranks of a job, from constructed figures: who is late, and each of the reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headrace._reports.ranks.lateness import measure_lateness
from headrace._reports.ranks.rank_figures import WORDS, Arrivals, JobVerdict, Load, RankFigures, sum_loads
from headrace._reports.ranks.straggler import judge_ranks

STEP_US = 50_000
NONE = Arrivals()


def arrivals(late_ms: float = 0.0, count: int = 60, *, device_ms: float = -1.0, offset_ms: float = 0.0) -> Arrivals:
    """A rank that comes so much later than the first one to each collective; with its time on the device."""
    device = -1 if device_ms < 0 else round(1e3 * device_ms)
    times = [round(1e9 + number * STEP_US + 1e3 * (late_ms + offset_ms)) for number in range(count)]
    return Arrivals("gloo", list(range(count)), times, [device] * count)


def rank(number: int, late_ms: float = 0.0, **changed: Any) -> RankFigures:
    """A rank that waits 2% of ten seconds for its loader, whose threads decode."""
    usual: dict[str, Any] = {"seconds": 10.0, "batches": 200, "worked_s": 9.8, "waited_s": 0.2, "busy_s": 5.0}
    usual |= {"read_s": 0.5, "bottleneck": "consumer", "cpu_mhz": 3000.0, "gpu_mhz": 1980.0}
    return replace(
        RankFigures(number, 4, "node", 100 + number, 1e9, 1.0, arrivals=arrivals(late_ms)), **(usual | changed)
    )


def judged(*ranks: RankFigures) -> JobVerdict:
    return judge_ranks("job", {one.rank: one for one in ranks}, 4)


def job_with(straggler: RankFigures) -> JobVerdict:
    others = [rank(number, number / 10) for number in range(4) if number != straggler.rank]
    return judged(straggler, *others)


READS = {"waited_s": 4.2, "read_s": 4.5, "busy_s": 9.0}  # it reads 20 ms a batch longer than the others
LATE = 20.0  # ms of a step of 50


@pytest.mark.parametrize(
    ("reason", "changed", "figures"),
    [
        ("step", {}, "it waits 2% of the time for its loader, the others 2%"),
        ("storage", {**READS}, "its threads read 22.5 ms a batch and work 45 in all, the others' 2.5 and 25"),
        ("network", {**READS, "far": True}, "it waits 42% of the time for its loader"),
        ("quota", {"stopped": 0.8, "stopped_s": 6.0}, "stopped it in 80% of the periods, 0.6 s a second"),
        ("quota", {"stopped": 0.8, "stopped_s": 6.0, **READS}, "the others in 0%"),
        ("loader", {"waited_s": 4.2, "bottleneck": "decode"}, "the bottleneck of its loader: decode"),
        ("cores", {"waited_s": 4.2, "threads_delayed_s": 9.0}, "threads are ready without a core 0.9 s a second"),
        ("cores", {"delayed_s": 3.0}, "its thread is ready without a core 0.3 s a second, the others' 0 s"),
        ("clock", {"cpu_mhz": 1200.0}, "its CPU runs at 1200 MHz, the others at 3000"),
        ("clock", {"waited_s": 4.2, "cpu_mhz": 1200.0}, "its CPU runs at 1200 MHz"),
        ("gpu", {"gpu_mhz": 1200.0}, "its GPU runs at 1200 MHz, the others at 1980"),
        ("unknown", {"seconds": 0.0}, "nothing else is known of this rank yet"),
        # torch's workers have no stages: the loader's own verdict has to do
        ("storage", {"waited_s": 4.2, "busy_s": 0.0, "read_s": 0.0, "bottleneck": "read"}, "42%"),
    ],
)
def test_a_late_rank_has_the_reason_that_its_figures_give(reason: str, changed: dict[str, Any], figures: str) -> None:
    found = job_with(rank(2, LATE, **changed))
    assert (found.straggler, found.reason, found.certainty) == (2, reason, "sure"), found
    assert figures in found.why
    assert found.cost == pytest.approx((LATE - 0.3) / 50, rel=0.05)
    assert found.speedup == pytest.approx(50 / 30.3, rel=0.05)
    assert str(found).startswith(f"straggler: rank 2 on node, {WORDS[reason]} (sure; 4 ranks compared)\nwhy: of 60 ")
    assert "cost: all other ranks wait for it 40% of the time; the job would be about 1.66x as fast" in str(found)


def test_a_reason_that_all_ranks_share_is_none() -> None:
    """A quota that stops all of them, and storage that is slow for all, do not make one of them late."""
    others = [rank(number, stopped=0.7, stopped_s=5.0, waited_s=4.0, read_s=4.5) for number in (0, 1, 3)]
    found = judged(rank(2, LATE, stopped=0.7, stopped_s=5.0, waited_s=4.0, read_s=4.5), *others)
    assert (found.straggler, found.reason) == (2, "step")


def test_small_and_changing_delays_are_no_straggler() -> None:
    assert judged(*(rank(number, number / 2) for number in range(4))).straggler == -1
    turns = [
        Arrivals("gloo", list(range(80)), [n * STEP_US + 20_000 * (n % 4 == r) for n in range(80)], [-1] * 80)
        for r in range(4)
    ]
    found = judged(*(rank(number, arrivals=one) for number, one in enumerate(turns)))
    assert found.straggler == -1 and found.certainty == "likely"
    assert all(float(str(share)) == pytest.approx(0.1, rel=0.1) for share in found.costs.values())


def test_a_rank_that_is_held_up_twice_is_no_straggler() -> None:
    times = [10**9 + n * STEP_US + 900_000 * (n in (20, 50)) for n in range(60)]
    found = judged(rank(0), rank(1), rank(2), rank(3, arrivals=Arrivals("gloo", list(range(60)), times, [-1] * 60)))
    assert found.straggler == -1 and found.costs["3"] != 0 and "rank 3 came last in 2" in found.why


def test_between_machines_a_delay_has_to_exceed_what_clocks_may_differ() -> None:
    assert job_with(rank(2, 8.0, host="other")).straggler == -1
    assert "than the clocks of machines may differ" in job_with(rank(2, 8.0, host="other")).why
    assert job_with(rank(2, LATE, host="other")).host == "other"
    assert job_with(rank(2, 8.0)).straggler == 2


def test_clocks_that_cannot_be_true_are_not_believed() -> None:
    found = judged(rank(0), rank(1), rank(2), rank(3, arrivals=arrivals(offset_ms=5000)))
    assert found.straggler == -1 and "clocks of the ranks' machines disagree" in found.why


def test_on_a_device_the_rank_that_takes_least_time_in_a_collective_came_last() -> None:
    late = [rank(number, arrivals=arrivals(device_ms=20.5 - number / 10)) for number in range(3)]
    found = judged(*late, rank(3, arrivals=arrivals(device_ms=0.5)))
    assert (found.straggler, found.reason) == (3, "gpu")
    slow = judged(*late, rank(3, arrivals=arrivals(device_ms=0.5), **READS))
    assert slow.reason == "storage"


def test_a_slow_clock_of_a_gpu_is_named_though_its_cost_is_not_known() -> None:
    found = judged(*(rank(number, gpu_mhz=1980.0 if number else 900.0) for number in range(4)))
    assert (found.straggler, found.reason, found.certainty, found.cost) == (0, "gpu", "unsure", 0.0)
    assert "cost:" not in str(found)


def test_without_arrivals_only_the_waits_for_loaders_are_compared() -> None:
    few = [rank(number, arrivals=NONE) for number in range(3)]
    slow = judged(*few, rank(3, arrivals=NONE, **READS))
    assert (slow.straggler, slow.reason, slow.certainty) == (3, "storage", "likely")
    assert slow.cost == pytest.approx(0.4) and "torch has recorded no collectives" in slow.why
    same = judged(*few, rank(3, arrivals=NONE))
    assert same.straggler == -1 and same.certainty == "unsure" and "the steps are not compared" in same.why
    early = judged(*few, rank(3, arrivals=NONE, batches=3))
    assert early.certainty == "not enough data"
    assert judged(few[0]).why == "the figures of fewer than two ranks are known"


def test_collectives_that_overlap_count_once() -> None:
    """Gradients in several buckets: a rank that is 20 ms late is late for all of them at the same time."""
    first, late = [1_000 * n for n in range(40)], [1_000 * n + 20_000 for n in range(40)]
    ranks = {
        0: Arrivals("gloo", list(range(40)), first, [-1] * 40),
        1: Arrivals("gloo", list(range(40)), late, [-1] * 40),
    }
    found = measure_lateness(ranks)
    assert found.costs == {0: 0.0, 1: 0.059} and found.last == {1: 40}


def test_ranks_are_compared_where_they_have_the_same_collectives() -> None:
    one, other = arrivals(count=60), arrivals(20, count=60)
    later = Arrivals("gloo", other.numbers[30:], other.times_us[30:], other.device_us[30:])
    assert measure_lateness({0: one, 1: later}).collectives == 30
    assert measure_lateness({0: arrivals(count=20), 1: later}).seconds == 0
    assert measure_lateness({0: one, 1: replace(other, backend="nccl")}).collectives == 0


def test_figures_survive_their_text_and_damaged_ones_are_refused() -> None:
    one = rank(3, LATE)
    assert RankFigures.of_text(one.as_text()) == one
    for text in (
        one.as_text().replace('"seconds": 10.0', '"seconds": NaN'),
        one.as_text().replace('"numbers": [0, ', '"numbers": ['),
        one.as_text().replace('"gloo"', "3"),
        one.as_text().replace('"format": 1', '"format": 0'),
        "[]",
        "{",
    ):
        with pytest.raises(ValueError, match=r"damaged|no str|another version|Expecting"):
            RankFigures.of_text(text)


def test_loads_of_several_loaders_add_up() -> None:
    both = sum_loads([Load(3, 1.0, 2.0, {"read": 1.0}, True, "read"), Load(4, 5.0, 1.0, {"read": 2.0, "decode": 3.0})])
    assert both == Load(7, 6.0, 3.0, {"read": 3.0, "decode": 3.0}, True, "read")
    assert sum_loads([]) == Load()
