"""Verdicts and expected gains from made-up counters, and from a few loaders that wait rather than compute."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest
from torch.utils.data import Dataset

from headrace import DataLoader
from headrace import transforms as T
from headrace._engine.counters.epoch_timing import Mark, Seen, Step
from headrace._engine.counters.thread_times import Scheduled
from headrace._loading.bottleneck.batch_cost import Load, Setting, mean_load_between
from headrace._loading.bottleneck.changes import Change, list_changes
from headrace._loading.bottleneck.model import (
    free_cores,
    predict_period,
    seconds_by_part,
    simulate_consumer,
    with_threads,
)
from headrace._loading.bottleneck.verdict import Verdict, judge, judge_load
from support import TENSOR, blobs, eventually

TWO = Setting(threads=2, cores=2.0)


def verdict(load: Load, steps: list[Step] | None = None) -> Verdict:
    return judge_load(load, [load] * 6, steps or even(load))


def even(load: Load) -> list[Step]:
    """Steps that do not differ."""
    return [Step(round(1e9 * load.step), 0, round(1e9 * sum(load.handed.values())))] * 100


def gains(load: Load, steps: list[Step] | None = None) -> dict[str, float]:
    return {one.name: one.gain for one in list_changes(load, steps or even(load))}


# Two threads on two cores decode all the time: 20 ms of work a batch, one batch in 10 ms.
DECODING = Load(
    TWO, 100, 0.010, 0.001, 0.0085, {"submit": 0.0005}, cpu=0.020, stages={"decode": 0.016, "resize": 0.004}
)
# Their reads take 30 ms a batch.
READING = Load(TWO, 100, 0.015, 0.001, 0.014, {}, cpu=0.001, stuck=0.029, stages={"read": 0.029, "decode": 0.001})
# The consumer works 30 ms on each; the threads are idle for most of the time.
CONSUMING = Load(TWO, 100, 0.030, 0.0299, 0.0001, {}, cpu=0.010, idle=0.050, stages={"decode": 0.010})


# One thread makes images from one worker's records, on two cores: 20 ms a batch, of which the worker works 10.
OF_RECORDS = Load(
    Setting(1, 2.0, native=False, making=1), 100, 0.02, 0.001, 0.019, cpu=0.01, idle=0.01, lanes={"records": 0.0196},
    python_cpu=0.0196,
)  # fmt: skip


@pytest.mark.parametrize(
    ("load", "found"),
    [
        (DECODING, "decode"),
        (dataclasses.replace(DECODING, stages={"decode": 0.004, "resize": 0.016}), "resize"),
        (READING, "read"),
        (CONSUMING, "consumer"),
        (dataclasses.replace(CONSUMING, step=0.005, handed={"out_transform": 0.0245}), "out_transform"),
        (dataclasses.replace(CONSUMING, step=0.005, handed={"submit": 0.0245}), "submit"),
        (Load(TWO, 100, 0.02, 0.001, 0.019, lanes={"pillow": 0.038}, python_cpu=0.038, idle=0.04), "pillow"),
        (Load(TWO, 100, 0.02, 0.001, 0.019, lanes={"python": 0.04}, python_cpu=0.02, idle=0.04), "python"),
        (
            Load(
                dataclasses.replace(TWO, collating=2), 100, 0.02, 0.001, 0.019, lanes={"collate_fn": 0.039},
                python_cpu=0.02, idle=0.04,
            ),
            "collate_fn",
        ),
        (dataclasses.replace(DECODING, setting=Setting(0, 2.0), cpu=0.0), "decode"),
        (Load(Setting(0, 2.0), 100, 0.02, 0.011, 0.009), "consumer"),
        (Load(Setting(2, 2.0, native=False), 100, 0.02, 0.001, 0.019, cpu=0.038, stuck=0.002), "workers"),
        (Load(Setting(2, 2.0, native=False), 100, 0.02, 0.001, 0.019, cpu=0.002, stuck=0.038), "waiting workers"),
        (Load(Setting(2, 2.0, native=False), 100, 0.02, 0.0199, 0.0001, cpu=0.002, idle=0.038), "consumer"),
        (Load(Setting(0, 2.0, native=False), 100, 0.02, 0.001, 0.019, other_cpu=0.019), "dataset"),
        (OF_RECORDS, "records"),
        (dataclasses.replace(OF_RECORDS, cpu=0.0195, idle=0.0005, lanes={"records": 0.01}, python_cpu=0.01), "workers"),
    ],
)  # fmt: skip
def test_the_slowest_part_is_the_bottleneck(load: Load, found: str) -> None:
    given = verdict(load)
    assert (given.bottleneck, given.certainty) == (found, "sure"), given
    assert len(str(given).splitlines()) == 3


def test_more_workers_than_half_of_the_cores_make_the_images_themselves() -> None:
    """Then all work is theirs; with fewer of them there are more threads, too."""
    here = gains(OF_RECORDS)
    assert here["threads"] == pytest.approx(0.02 / ((0.01 + 0.0196) / 2 + 0.0004))  # 0.4 ms have no reason
    four = dataclasses.replace(OF_RECORDS, setting=dataclasses.replace(OF_RECORDS.setting, cores=4.0))
    two = with_threads(four, 2, 4.0)
    assert two.setting.making == 2 and two.lanes == pytest.approx({"records": 0.0196})
    assert seconds_by_part(two)["records"] == pytest.approx(0.0098)
    three = with_threads(four, 3, 4.0)
    assert three.setting.making == 0 and not three.lanes and three.cpu == pytest.approx(0.0296)
    there = dataclasses.replace(four, setting=dataclasses.replace(four.setting, on_device=True))
    assert with_threads(there, 3, 4.0).setting.making == 3


def test_workers_are_not_said_to_wait_while_their_records_do() -> None:
    setting = Setting(1, 2.0, native=False, making=1)
    begin = Mark(0, 0, Step(0, 0, 0), {}, Seen(count=1), 0)
    for busy, stuck in ((950_000_000, 0.0), (500_000_000, 0.006)):
        seen = Seen({"records": busy}, workers=Scheduled(400_000_000), python=Scheduled(busy), count=1)
        load = mean_load_between(begin, Mark(10**9, 100, Step(0, 9 * 10**8, 0), {}, seen, busy + 10**7), setting)
        assert load.stuck == pytest.approx(stuck) and load.lanes == pytest.approx({"records": busy / 1e11})
        assert load.other_cpu == pytest.approx(0.0001) and load.stuck + load.idle == pytest.approx(0.006)


def test_threads_that_starve_the_consumer_are_the_bottleneck_not_the_consumer() -> None:
    starved = Load(
        Setting(32, 2.0), 100, 0.020, 0.001, 0.001, {"submit": 0.018}, cpu=0.036, delayed=0.500, idle=0.1,
        stages={"decode": 0.03, "resize": 0.006}, own_delayed=0.0185,
    )  # fmt: skip
    assert verdict(starved).bottleneck == "decode"
    waking = dataclasses.replace(starved, delayed=0.0, runnable=5.0)  # woken in vain, they compete for the cores, too
    assert verdict(waking).bottleneck == "decode"
    assert "submit" not in gains(starved)
    alone = dataclasses.replace(starved, delayed=0.0, runnable=1.0)  # other programs starve it
    assert verdict(alone).bottleneck == "submit"


def test_helpers_are_weighed_against_cores() -> None:
    assert "helpers" not in gains(DECODING)  # no other machine can make the samples
    for helpers, words in ((0, "two helpers with 2 cores each"), (2, "two more helpers with 2 cores each")):
        helped = dataclasses.replace(DECODING, setting=dataclasses.replace(DECODING.setting, helpers=helpers))
        assert gains(helped)["helpers"] == pytest.approx(2.26, abs=0.01)
        assert f"; or 4 cores and num_workers=4: about 2.00x; or {words}: about 2.26x" in str(verdict(helped))
    reading = dataclasses.replace(READING, setting=dataclasses.replace(READING.setting, helpers=0))
    assert gains(reading)["helpers"] < 1.1  # storage is the limit


def test_more_threads_are_worth_what_cores_and_waits_allow() -> None:
    alone = dataclasses.replace(DECODING, setting=Setting(1, 2.0), period=0.020, blocked=0.0185)
    best = verdict(alone).change
    assert best is not None and best.advice == "num_workers=2" and best.gain == pytest.approx(2.0)
    assert "threads" not in gains(DECODING)  # both cores are busy already
    assert gains(DECODING)["cores"] == pytest.approx(2.0)
    assert gains(READING)["threads"] == pytest.approx(8.0)  # 16 threads
    assert gains(READING)["storage"] == pytest.approx(15.0)
    inline = dataclasses.replace(DECODING, setting=Setting(0, 2.0), period=0.0215, blocked=0.020, cpu=0.0)
    assert gains(inline)["threads"] == pytest.approx(2.15, rel=0.05)


def test_a_step_that_holds_the_interpreter_gains_nothing_from_threads() -> None:
    computing = Load(TWO, 100, 0.02, 0.001, 0.019, lanes={"python": 0.04}, python_cpu=0.0199, idle=0.04)
    assert gains(computing).get("threads", 1.0) < 1.05 and gains(computing)["native step"] > 5
    assert "; python takes 100% of the work; 40 ms a batch in Python threads, 50% of it on a core" in str(
        verdict(computing)
    )
    waiting = dataclasses.replace(computing, python_cpu=0.0002)
    assert gains(waiting)["threads"] > 4


@pytest.mark.parametrize("part", ["submit", "hand_over"])
def test_what_the_caller_computes_for_each_batch_is_a_change_if_it_takes_long(part: str) -> None:
    computing = dataclasses.replace(CONSUMING, step=0.005, handed={part: 0.0245}, cpu=0.004, other_cpu=0.0295)
    best = verdict(computing).change
    assert best is not None and best.name == part and best.gain == pytest.approx(0.030 / 0.0055)
    assert part not in gains(dataclasses.replace(computing, step=0.02, handed={part: 0.0095}))


def test_a_wait_for_the_interpreter_goes_with_the_step_that_keeps_it() -> None:
    keeping = Load(
        TWO, 100, 0.024, 0.0004, 0.004, {"submit": 0.019, "hand_over": 0.0006}, lanes={"python": 0.047},
        python_cpu=0.023, idle=0.048, other_cpu=0.0005,
    )  # fmt: skip
    assert gains(keeping)["native step"] == pytest.approx(0.024 / 0.0009, rel=0.01)
    short = [Step(400_000, 0, 100_000 if i % 10 == 3 else 22_000_000) for i in range(100)]  # it was free for these
    assert gains(keeping, short)["native step"] == pytest.approx(0.024 / 0.0005, rel=0.01)
    users = dataclasses.replace(keeping, handed={**keeping.handed, "out_transform": 0.0001})  # in the same steps
    assert gains(users, short)["native step"] == pytest.approx(0.024 / 0.0010, rel=0.01)
    decoders = dataclasses.replace(keeping, lanes={"pillow": 0.047})  # they do not keep it
    assert gains(decoders)["plain JPEG"] == pytest.approx(0.024 / (0.020 + 0.0005), rel=0.01)


def test_who_keeps_the_interpreter_is_the_limit_though_the_consumers_steps_are_long() -> None:
    """They wait for the interpreter; the shortest step waits least."""
    kept = Load(
        TWO, 100, 0.024, 0.016, 0.008, {}, lanes={"python": 0.046}, python_cpu=0.023, idle=0.048, other_cpu=0.0005
    )
    steps = [Step(2_000_000 if i == 7 else 16_100_000, 0, 0) for i in range(100)]
    found = verdict(kept, steps)
    assert found.bottleneck == "python" and found.change is not None and found.change.name == "native step"
    assert found.change.gain == pytest.approx(0.024 / 0.002, rel=0.01)
    half = dataclasses.replace(kept, python_cpu=0.011, lanes={"python": 0.012})  # the other half it is the consumer's
    assert verdict(half, steps).bottleneck == "consumer"


def test_smaller_images_have_fewer_pixels_and_bytes() -> None:
    read = dataclasses.replace(DECODING, stages={"read": 0.002, "header": 0.002, "decode": 0.012, "resize": 0.004})
    left = 0.25 * 0.016 + 0.6 * 0.004
    assert gains(read)["smaller images"] == pytest.approx(0.010 / (left / 2), rel=0.02)
    enlarging = dataclasses.replace(DECODING, stages={"decode": 0.001, "resize": 0.019})
    assert gains(enlarging)["smaller images"] < 1.06


def test_other_programs_take_cores() -> None:
    slowed = dataclasses.replace(DECODING, period=0.020, blocked=0.0185, delayed=0.020)
    assert free_cores(slowed) == pytest.approx(1.0)
    best = verdict(slowed).change
    assert best is not None and best.name == "free cores" and best.gain == pytest.approx(2.0)
    one = dataclasses.replace(slowed, setting=dataclasses.replace(TWO, threads=1), cpu=0.010, delayed=0.010)
    assert "change: the 2 cores free of other programs and num_workers=2: about 4.00x;" in str(verdict(one))
    assert "; 1 thread on 2 cores is busy 100%; of which 50% on a core, 50% waiting for a core" in str(verdict(one))
    late = dataclasses.replace(READING, delayed=0.001)  # a thread that hardly runs may wait long: the cores suffice
    assert free_cores(late) == pytest.approx(1.0) and verdict(late).bottleneck == "read"
    assert gains(late)["storage"] > 5


def test_the_change_of_a_consumer_is_its_own_step() -> None:
    """A faster loader could save a tenth of the time at most."""
    lucky = dataclasses.replace(CONSUMING, step=0.0275, blocked=0.0025, setting=Setting(1, 2.0), cpu=0.026, idle=0.004)
    found = verdict(lucky)
    assert found.bottleneck == "consumer" and found.change is None and found.ceiling < 1.15
    assert str(found).endswith("\nchange: the training step, not the loader: a perfect loader would give 1.09x")
    inline = verdict(Load(Setting(0, 2.0), 100, 0.02, 0.011, 0.009))  # both take turns: a thread gains much
    assert inline.bottleneck == "consumer" and inline.change is not None and inline.change.name == "threads"
    advice = str(inline).splitlines()[-1]
    assert advice.startswith("change: the training step first; a perfect loader would give 1.82x, and num_workers=")


def test_a_perfect_loader_is_no_faster_than_the_consumer() -> None:
    for load in (DECODING, READING, CONSUMING):
        assert all(one <= load.period / load.own + 1e-9 for one in gains(load).values())
        assert verdict(load).ceiling == pytest.approx(load.period / load.step)
    assert verdict(CONSUMING).change is None
    assert str(verdict(CONSUMING)).endswith(
        "change: the training step, not the loader: a perfect loader would give 1.00x"
    )


def test_varying_steps_need_more_batches_in_flight() -> None:
    steps = [Step(82_000_000 if i % 10 == 9 else 2_000_000, 0, 0) for i in range(200)]
    making = 0.010
    now = simulate_consumer(steps, making, 1)
    waiting = Load(
        dataclasses.replace(TWO, depth=1), 200, now, 0.010, now - 0.010, {}, stuck=0.020, idle=2 * now - 0.020,
        stages={"read": 0.020},
    )  # fmt: skip
    given = verdict(waiting, steps)
    assert (given.bottleneck, given.certainty) == ("prefetch", "sure")
    found = next(one for one in (given.change, *given.others) if one is not None and one.name == "prefetch")
    assert found.advice == "prefetch_factor=8"
    assert found.gain == pytest.approx(now / simulate_consumer(steps, making, 8))
    assert simulate_consumer(steps, making, 64) == pytest.approx(0.010, rel=0.05) and now > 0.016


def test_a_simulation_without_variation_is_the_slower_of_the_two() -> None:
    for own, making in itertools.product((1_000_000, 5_000_000), (0.001, 0.007)):
        slower = max(own / 1e9, making)
        assert simulate_consumer([Step(own, 0, 0)] * 500, making, 2) == pytest.approx(slower, rel=0.01)
    assert simulate_consumer([], 0.001, 2) == 0.0


def marks(count: int, batches: int = 5) -> list[Mark]:
    """An epoch of two decoding threads."""
    found = []
    for i in range(count):
        ns = i * batches * 10_000_000
        seen = Seen(
            {"decode": ns // 16, "idle": ns // 50}, {"read": i * 320, "decode": i * 20}, Scheduled(2 * ns), count=2
        )
        steps = Step(ns // 10, ns * 8 // 10, ns // 10)
        found.append(Mark(ns, 1 + i * batches, steps, {"submit": ns // 20}, seen, 2 * ns + ns // 10))
    return found


def test_marks_become_loads() -> None:
    begin, end = marks(2)
    load = mean_load_between(begin, end, TWO)
    assert load.period == pytest.approx(0.010) and load.step == pytest.approx(0.001)
    assert load.handed == pytest.approx({"submit": 0.0005, "hand_over": 0.0005})
    assert load.stages == pytest.approx({"decode": 0.010}) and load.idle == pytest.approx(0.0002)
    assert load.cpu == pytest.approx(0.0198) and load.other_cpu == pytest.approx(0.001)
    assert seconds_by_part(load)["workers"] == pytest.approx(0.0099)
    assert seconds_by_part(load)["cores"] == pytest.approx(0.0104) == predict_period(load)


def test_torchs_workers_that_do_not_run_wait_for_data_only_if_the_consumer_waits() -> None:
    torch_setting = dataclasses.replace(TWO, native=False)
    begin, end = marks(2)
    assert mean_load_between(begin, end, torch_setting).stuck == 0.0  # they run all the time
    asleep = dataclasses.replace(end, seen=Seen(workers=Scheduled(end.at_ns // 10), count=2))
    assert mean_load_between(begin, asleep, torch_setting).stuck == pytest.approx(0.019)
    served = dataclasses.replace(asleep, steps=Step(end.at_ns, 0, 0))
    load = mean_load_between(begin, served, torch_setting)
    assert [load.stuck, load.idle] == [0.0, pytest.approx(0.019)]


def test_interrupted_samples_do_not_name_the_stage() -> None:
    typical = {"decode": 1.0, "resize": 3.0}
    assert judge(marks(4), [], TWO, typical).bottleneck == "decode"
    slowed = []
    for one in marks(4):
        workers = Scheduled(one.at_ns // 5, 8 * one.at_ns // 5)
        seen = dataclasses.replace(one.seen, workers=workers)
        slowed.append(dataclasses.replace(one, seen=seen, process_ns=one.at_ns // 4))
    assert judge(slowed, [], TWO).bottleneck == "decode"
    assert judge(slowed, [], TWO, typical).bottleneck == "resize"
    assert judge(slowed, [], TWO, {"decode": 0.0}).bottleneck == "decode"


def test_parts_of_an_epoch_that_disagree_are_not_sure() -> None:
    mixed = [DECODING, CONSUMING] * 3
    given = judge_load(DECODING, mixed, [])
    assert (given.certainty, given.agreement) == ("unsure", 0.5)
    unexplained = dataclasses.replace(DECODING, period=0.03)
    assert judge_load(unexplained, [unexplained] * 6, []).certainty == "unsure"
    assert judge_load(DECODING, [DECODING] * 4, []).certainty == "likely"


class Waiting:
    """A Python step that waits."""

    def __call__(self, image: Any) -> Any:
        time.sleep(0.004)
        return image


class Own(Dataset[Any]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> int:
        time.sleep(0.01)
        return index


def judged(make: Callable[..., Any], **options: Any) -> Verdict:
    """The verdict on an epoch of a loader. Other work on the machine can be the bottleneck: tests ask again."""
    loader = make(**options)
    list(loader)
    return loader.stats().verdict


def change_of(verdict: Verdict, bottleneck: str) -> str:
    """The name of the change that a verdict proposes; "" if it names another bottleneck."""
    return verdict.change.name if verdict.bottleneck == bottleneck and verdict.change is not None else ""


def stepping(**options: Any) -> Any:
    return DataLoader(blobs(240, T.Compose([T.Resize((8, 8)), Waiting(), *TENSOR])), 4, **options)


def test_steps_that_wait_are_found() -> None:
    # How much a change gains: bench.verdicts, on a machine with nothing else to do.
    assert eventually(
        lambda: change_of(judged(stepping, num_workers=2), "python") in ("threads", "native step", "free cores")
    )


@pytest.mark.processes
def test_torchs_workers_are_judged() -> None:
    assert eventually(lambda: bool(change_of(judged(lambda: DataLoader(Own(), 2, num_workers=2)), "waiting workers")))


def test_torch_alone_is_judged() -> None:
    loader = DataLoader(Own(), 2)
    assert loader.stats().bottleneck == "nothing yet"

    def limited_by_the_consumer() -> bool:
        for _ in loader:
            time.sleep(0.06)
        found = loader.stats().verdict
        return change_of(found, "consumer") in ("threads", "free cores") and found.ceiling < 2

    assert eventually(limited_by_the_consumer)
    total = loader.stats()
    assert "torch's DataLoader delivers" in str(total) and total.steps.batches == 31
    assert total.steps.total_s > 1.8 and total.waited_s > 0.25


@pytest.mark.parametrize(("gain", "told"), [(9.987, "about 9.99x"), (10.0, "more than 10x"), (38.4, "more than 10x")])
def test_a_large_gain_is_no_number(gain: float, told: str) -> None:
    change = Change("native step", "a native step", gain)
    assert str(Verdict("python", "sure", "it is", change)).endswith(f"\nchange: a native step: {told}")
