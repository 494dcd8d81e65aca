"""headrace.profile: what threads did, the sums that follow, and how recordings begin, end and exclude each other."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import DataLoader
from headrace import transforms as T
from headrace._native import core
from headrace.timeline import ThreadTimeline
from support import TENSOR, assert_same, blobs, eventually, output_of

SAMPLES, BATCH = 96, 16
BATCHES = SAMPLES // BATCH
BY_PILLOW = SAMPLES // 6  # a PNG and a CMYK file in each dozen


class Negative:
    """A step that Python does."""

    def __call__(self, image: Any) -> Any:
        return image.point(lambda value: 255 - value)


def with_python_steps() -> headrace.Blobs:
    return blobs(SAMPLES, T.Compose([T.RandomResizedCrop(32), Negative(), T.RandomHorizontalFlip(), *TENSOR]))


LOADERS: dict[str, dict[str, Any]] = {
    "two threads": {"num_workers": 2},
    "in the caller's thread": {"num_workers": 0},
    "out_transform": {"num_workers": 2, "out_transform": lambda batch: batch},
    "python steps": {"num_workers": 2, "dataset": with_python_steps},
    "python steps in the caller's thread": {"num_workers": 0, "dataset": with_python_steps},
    "to a device": {"num_workers": 2, "device": "emulated", "decoder": "cpu"},
    "a device decodes": {"num_workers": 2, "device": "emulated", "decoder": "hardware", "deterministic": True},
    "a device and the CPU decode": {"num_workers": 2, "device": "emulated", "decoder": "hardware"},
}


def make(name: str) -> DataLoader:
    options = dict(LOADERS[name])
    dataset = options.pop("dataset", lambda: blobs(SAMPLES))()
    return DataLoader(dataset, BATCH, shuffle=True, seed=0, **options)


@pytest.fixture(scope="module", params=LOADERS)
def recorded(request: pytest.FixtureRequest) -> tuple[str, headrace.profile, DataLoader]:
    """A recording of one epoch of each loader."""
    loader = make(request.param)
    with headrace.profile() as prof:
        assert len(list(loader)) == BATCHES
    return request.param, prof, loader


def totals(prof: headrace.profile, thread: str = "") -> dict[str, tuple[int, int, int]]:
    """(spans, items, nanoseconds) by stage, of the threads whose names begin so."""
    sums: Counter[tuple[str, str]] = Counter()
    for one in prof.threads:
        if one.thread.startswith(thread):
            for number, items, ns in zip(one.stage, one.items, one.end_ns - one.begin_ns, strict=True):
                stage = one.stages[number]
                sums.update({(stage, "spans"): 1, (stage, "items"): int(items), (stage, "ns"): int(ns)})
    stages = {stage for stage, _ in sums}
    return {stage: (sums[stage, "spans"], sums[stage, "items"], sums[stage, "ns"]) for stage in stages}


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
    """They are of the same clock readings, so they are equal to the nanosecond."""
    name, prof, loader = recorded
    assert loader._engine is not None
    counters = {stage: (items, ns) for stage, items, ns in loader._engine.stages()}
    everywhere, in_workers = totals(prof), totals(prof, "headrace worker" if loader.num_workers else "MainThread")
    for stage in ("read", "header", "decode", "resize", "idle"):
        ns = in_workers.get(stage, (0, 0, 0))[2]
        if stage == "resize" and not loader.num_workers:
            assert ns > counters[stage][1]  # what Pillow and the calls made goes on in the same thread
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
    assert in_workers.get("idle", (0, 0, 0))[2] == round(stats.idle_s * 1e9)


def test_every_thread_has_a_name_and_its_stages(recorded: tuple[str, headrace.profile, DataLoader]) -> None:
    name, prof, loader = recorded
    kinds = {one.thread: set(one.stages) for one in prof.threads}
    assert len({one.tid for one in prof.threads}) == len(prof.threads)  # one timeline each, whichever module records
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
        tids = {one.tid for one in prof.threads} if per_thread else {None}
        assert {one.tid for one in rows} == tids
    text = str(prof)
    for stage in spans:
        assert f" {stage} " in text
    assert f"{prof.recorded_s:.4f} s recorded" in text
    assert ("headrace worker " in text) == (loader.num_workers > 0)
    assert "headrace worker 0" not in text  # threads of one kind are taken together


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
    window = [(one.begin_ns.min(), one.end_ns.max()) for one in prof.threads]
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


def test_one_recording_at_a_time() -> None:
    with headrace.profile() as prof:
        with pytest.raises(RuntimeError, match=r"a headrace.profile\(\) is recording in this process already"):
            headrace.profile().start()
        list(make("two threads"))
    assert totals(prof)["read"][0] == SAMPLES
    with headrace.profile() as prof:
        pass
    assert prof.threads == () and "no loader of headrace's did anything" in str(prof)


def test_without_a_recording_there_is_nothing_to_export(tmp_path: Any) -> None:
    prof = headrace.profile()
    assert str(prof) == "headrace.profile: no recording"
    export = partial(prof.export_chrome_trace, tmp_path / "trace.json")
    for ask in (prof.summary, export, lambda: prof.recorded_s, lambda: prof.clock_error_ns):
        with pytest.raises(RuntimeError, match="there is no recording"):
            ask()
    with prof, pytest.raises(RuntimeError, match="it has not ended yet"):
        prof.summary()


def test_the_recording_ends_where_the_loop_raises() -> None:
    prof = headrace.profile()
    with pytest.raises(ZeroDivisionError), prof:
        next(iter(make("two threads")))
        raise ZeroDivisionError
    assert not core.recording()
    assert totals(prof)["__next__"][0] == 1


def test_a_profile_that_is_lost_ends_its_recording() -> None:
    lost = headrace.profile()
    lost.start()
    other = headrace.profile()
    with pytest.raises(RuntimeError, match="is recording in this process already"):
        other.start()
    del other  # which records nothing, and ends nothing
    assert core.recording()
    del lost
    assert not core.recording()
    with headrace.profile() as prof:
        with pytest.raises(RuntimeError, match="is recording in this process already"):
            prof.start()  # and goes on
        list(make("two threads"))
    assert totals(prof)["read"][0] == SAMPLES


@pytest.mark.parametrize("begun", [False, True])
def test_an_interrupt_while_a_recording_begins_leaves_none(monkeypatch: pytest.MonkeyPatch, begun: bool) -> None:
    def interrupted(most: int) -> None:
        if begun:
            start(most)
        raise KeyboardInterrupt

    start, prof = core.start_recording, headrace.profile()
    monkeypatch.setattr(core, "start_recording", interrupted)
    with pytest.raises(KeyboardInterrupt), prof:
        pass
    monkeypatch.undo()
    assert not core.recording()
    with headrace.profile() as later:
        list(make("two threads"))
    assert totals(later)["read"][0] == SAMPLES


def test_a_lost_profile_harms_neither_a_forked_child_nor_the_programs_end() -> None:
    assert output_of(
        "import os, warnings, headrace\n"
        "from headrace._native import core\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "prof = headrace.profile()\n"
        "prof.start()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    mine = headrace.profile()\n"
        "    mine.start()\n"
        "    del prof\n"
        "    raise SystemExit(0 if core.recording() else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), core.recording())\n"
        "prof.itself = prof\n"
    ).split() == ["0", "True"]


def test_it_is_recorded_from_just_before_the_beginning_to_just_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the arrays take to make is no recorded time."""
    begun_ns = ended_ns = 0

    def start(most: int) -> None:
        nonlocal begun_ns
        begun_ns = time.perf_counter_ns()
        start_recording(most)
        core.add_span("early", begun_ns, time.perf_counter_ns())

    def stop() -> Any:
        nonlocal ended_ns
        core.add_span("late", begun_ns, time.perf_counter_ns())
        found = stop_recording()
        ended_ns = time.perf_counter_ns()
        return found

    start_recording, stop_recording = core.start_recording, core.stop_recording
    monkeypatch.setattr(core, "start_recording", start)
    monkeypatch.setattr(core, "stop_recording", stop)
    with headrace.profile() as prof:
        pass
    (mine,) = prof.threads
    assert mine.stages == ("early", "late")
    assert prof._begin_ns <= begun_ns <= mine.begin_ns.min()
    assert mine.end_ns.max() <= prof._end_ns <= ended_ns


def test_what_there_is_no_room_for_is_counted_and_said() -> None:
    prof = headrace.profile(max_spans=100)
    loader = make("in the caller's thread")
    with pytest.warns(UserWarning, match="no room for [0-9]+ spans beyond max_spans=100") as caught, prof:
        list(loader)
    assert caught[0].filename == __file__
    assert sum(len(one.stage) for one in prof.threads) == 100
    assert prof.dropped > 2 * SAMPLES
    assert f"{prof.dropped} spans are missing" in str(prof)
    prof.start()
    list(loader)
    with pytest.warns(UserWarning, match="no room for") as caught:
        prof.stop()
    assert caught[0].filename == __file__
    with pytest.raises(ValueError, match="max_spans must be at least 1"):
        headrace.profile(max_spans=0)


def test_a_forked_child_records_by_itself() -> None:
    print_of = output_of(
        "import os, warnings, headrace\n"
        "from headrace._native import core\n"
        "from support import blobs\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "with headrace.profile() as prof:\n"
        "    list(headrace.DataLoader(blobs(24), 8, num_workers=2, seed=0))\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        assert not core.recording()\n"
        "        prof.stop()\n"
        "        with headrace.profile() as mine:\n"
        "            list(headrace.DataLoader(blobs(24), 8, num_workers=2, seed=0))\n"
        "        reads = sum(one.count for one in mine.summary() if one.stage == 'read')\n"
        "        os._exit(0 if reads == 24 and str(prof) == 'headrace.profile: no recording' else 1)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "print(sum(one.count for one in prof.summary() if one.stage == 'read'))\n"
    )
    assert print_of.split() == ["0", "24"]


def test_recordings_begin_and_end_while_loaders_run() -> None:
    loader = DataLoader(blobs(SAMPLES), BATCH, seed=0, num_workers=2, persistent_workers=True)
    list(loader)
    reads = 0
    for _ in range(5):
        batches = iter(loader)
        for _ in range(3):
            with headrace.profile() as prof:
                next(batches)
            reads += totals(prof).get("read", (0, 0, 0))[0]
            for one in prof.threads:
                assert (one.begin_ns >= prof._begin_ns).all() and (one.end_ns <= prof._end_ns).all()
        rest = list(batches)
        assert len(rest) == BATCHES - 3
    assert reads > 0


def test_the_clock_is_the_one_of_python() -> None:
    assert eventually(lambda: time.perf_counter_ns() <= core.now_ns() <= time.perf_counter_ns())


def test_torchs_loader_is_not_recorded() -> None:
    loader = DataLoader(blobs(8), 4, collate_fn=list)
    assert not loader.native
    with headrace.profile() as prof:
        list(loader)
    assert "no loader of headrace's did anything" in str(prof)
