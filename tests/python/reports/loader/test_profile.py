"""headrace.profile: the recorded spans of threads, and their sums."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

import numpy as np
import pytest
from recorded_loaders import BATCHES, BY_PILLOW, LOADERS, SAMPLES, make, totals

import headrace
from headrace import DataLoader
from headrace._reports.loader.timeline import ThreadTimeline
from support import assert_same, eventually, threads_of_ours


@pytest.fixture(scope="module", params=LOADERS)
def recorded(request: pytest.FixtureRequest) -> tuple[str, headrace.profile, DataLoader]:
    """A recording of one epoch of each loader."""
    loader = make(request.param)
    with headrace.profile() as prof:
        assert len(list(loader)) == BATCHES
        assert loader._engine is not None
        if loader._engine.closed:  # its threads may still end, and their last wait with them
            assert eventually(lambda: not [one for one in threads_of_ours() if re.match(r"headrace-\d", one)])
    return request.param, prof, loader


def test_spans_of_a_thread_follow_one_another_or_nest(recorded: tuple[str, headrace.profile, DataLoader]) -> None:
    _, prof, _ = recorded
    assert prof.dropped == 0 and prof.threads
    for one in prof.threads:
        assert (one.end_ns >= one.begin_ns).all()
        around: list[int] = []
        for i in np.lexsort((-one.end_ns, one.begin_ns)):
            while around and one.end_ns[around[-1]] <= one.begin_ns[i]:
                around.pop()
            assert not around or one.end_ns[i] <= one.end_ns[around[-1]], f"{one.thread}: spans overlap"
            around.append(i)
        assert 0 <= one.own_ns().sum() <= prof.recorded_s * 1e9
        if not one.thread.startswith(("MainThread", "headrace-")):  # native threads do one thing after another
            assert (one.begin_ns[1:] >= one.end_ns[:-1]).all()


def test_spans_add_up_to_the_loaders_own_counters(recorded: tuple[str, headrace.profile, DataLoader]) -> None:
    """Both use the same clock readings, so they are equal to the nanosecond."""
    name, prof, loader = recorded
    assert loader._engine is not None
    counters = {stage: (items, ns) for stage, items, ns in loader._engine.stages()}
    everywhere, in_workers = totals(prof), totals(prof, "headrace worker" if loader.num_workers else "MainThread")
    for stage in ("read", "header", "decode", "resize", "idle"):
        ns = in_workers.get(stage, (0, 0, 0))[2]
        if stage == "resize" and not loader.num_workers:
            assert ns > counters[stage][1]  # the same thread also resizes what Pillow and the calls made
        elif stage == "idle" and not loader._engine.closed:  # the threads' last wait still lasts
            assert 0 < ns <= counters[stage][1]
        else:
            assert ns == counters[stage][1], stage
    for stage in ("pillow", "python", "launch", "device decode"):
        assert everywhere.get(stage, (0, 0, 0))[2] == counters.get(stage, (0, 0))[1], stage
    if "device decode" in everywhere:
        assert everywhere["device decode"][1] == counters["device decode"][0]
    if "python steps" not in name:
        assert everywhere["decode"][0] == counters["decode"][0]

    stats = loader.stats()
    busy = {one.name: (one.items, round(one.busy_s * 1e9)) for one in stats.stages}
    assert in_workers["read"][1:] == busy["read"]
    assert in_workers["decode"][2] == busy["decode"][1]
    assert everywhere["__next__"][0] == BATCHES
    assert everywhere["__next__"][2] == round(stats.waited_s * 1e9)
    assert loader._runner.progress is not None
    before = loader._runner.progress.before.stages["idle"][1]  # the threads began before the epoch
    idle = round(stats.idle_s * 1e9) + before
    assert in_workers.get("idle", (0, 0, 0))[2] == idle if loader._engine.closed else idle > 0


def test_every_thread_has_a_name_and_its_stages(recorded: tuple[str, headrace.profile, DataLoader]) -> None:
    name, prof, loader = recorded
    kinds: dict[str, set[str]] = {}
    for one in prof.threads:  # several threads may have one name, and one of them nothing to do
        kinds.setdefault(one.thread, set()).update(one.stages)
    assert len({one.tid for one in prof.threads}) == len(prof.threads)  # one timeline per thread, from both modules
    assert {"__next__", "wait", "submit"} <= kinds["MainThread"]
    workers = {thread for thread in kinds if thread.startswith("headrace worker")}
    assert workers <= {f"headrace worker {i}" for i in range(loader.num_workers)}
    spans = totals(prof)
    assert spans["read"][:2] == (SAMPLES, SAMPLES)
    if "python steps" in name:
        assert spans["python"][0] == SAMPLES
        assert loader.num_workers == 0 or {"python", "resize"} <= kinds["headrace-python"]
    else:
        assert spans["pillow"][0] == BY_PILLOW
        assert loader.num_workers == 0 or {"pillow", "resize"} <= kinds["headrace-pillow"]
    if loader.num_workers == 0:
        assert {"read", "decode"} <= kinds["MainThread"]
    if name == "out_transform":
        assert spans["out_transform"][0] == BATCHES
    if "device" in name:
        assert "launch" in kinds["launcher"]
        assert spans["launch"][:2] == (BATCHES, SAMPLES)
    if name == "a device decodes":
        calls, images, _ = totals(prof, "device decode lane")["device decode"]
        assert 0 < calls <= images
        assert images + spans["decode"][0] == SAMPLES - BY_PILLOW
        assert spans["staging"][0] == images


def test_batches_are_the_same_while_somebody_records() -> None:
    with headrace.profile():
        batches = list(make("two threads"))
    assert assert_same(batches, make("two threads").reference()) == BATCHES


def test_summary_and_table(recorded: tuple[str, headrace.profile, DataLoader]) -> None:
    _, prof, loader = recorded
    spans = totals(prof)
    for per_thread in (False, True):
        rows = prof.summary(per_thread=per_thread)
        for stage, (count, items, ns) in spans.items():
            mine = [one for one in rows if one.stage == stage]
            assert sum(one.count for one in mine) == count
            assert sum(one.items for one in mine) == items
            assert sum(one.total_s for one in mine) == pytest.approx(ns / 1e9, rel=1e-12)
        for thread in {one.thread for one in rows}:
            shares = sum(one.share for one in rows if one.thread == thread)
            most = sum(one.thread.startswith(thread) for one in prof.threads)
            assert 0 <= shares <= most
        tids: set[Any] = {one.tid for one in prof.threads} if per_thread else {None}
        assert {one.tid for one in rows} == tids
    text = str(prof)
    for stage in spans:
        assert f" {stage} " in text
    assert f"{prof.recorded_s:.4f} s recorded" in text
    assert ("headrace worker " in text) == (loader.num_workers > 0)
    assert "headrace worker 0" not in text  # threads of one kind are grouped


def test_own_time_is_without_what_lies_within() -> None:
    ns = {"wait": (10, 90), "decode": (20, 50), "resize": (50, 60), "again": (95, 99), "__next__": (0, 100)}
    columns = np.array(list(ns.values())).T
    one = ThreadTimeline("x", 1, tuple(ns), np.arange(len(ns)), columns[0], columns[1], np.ones(len(ns), np.int64))
    assert dict(zip(ns, one.own_ns().tolist(), strict=True)) == {
        "wait": 40,
        "decode": 30,
        "resize": 10,
        "again": 4,
        "__next__": 16,
    }


def test_a_part_of_an_epoch() -> None:
    loader = make("two threads")
    batches = iter(loader)
    next(batches)
    with headrace.profile() as prof:
        assert len(list(islice(batches, 2))) == 2
    window = [(one.begin_ns.min(), one.end_ns.max()) for one in prof.threads if len(one.begin_ns)]
    assert max(end for _, end in window) - min(begin for begin, _ in window) <= prof.recorded_s * 1e9
    assert totals(prof)["__next__"][0] == 2
    with headrace.profile() as rest:
        assert len(list(batches)) == BATCHES - 3
    assert totals(rest)["__next__"][0] == BATCHES - 3


def test_threads_of_several_loaders_and_epochs_are_in_one_recording() -> None:
    with headrace.profile() as prof:
        for _ in range(2):
            loader = make("two threads")
            list(loader)
            list(loader)
    assert totals(prof)["read"][0] == 4 * SAMPLES
    tids = {one.tid for one in prof.threads if one.thread == "headrace worker 0"}
    assert len(tids) == 4
    rows = [one for one in prof.summary(per_thread=True) if (one.thread, one.stage) == ("headrace worker 0", "idle")]
    assert {one.tid for one in rows} == tids and len(rows) == 4
    assert all(one.share <= 1 for one in rows)
    (together,) = (one for one in prof.summary() if (one.thread, one.stage) == ("headrace worker", "idle"))
    assert together.tid is None
