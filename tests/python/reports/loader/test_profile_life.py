"""headrace.profile: how recordings begin, end and exclude each other."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest
from recorded_loaders import BATCH, BATCHES, SAMPLES, make, totals

import headrace
from headrace import DataLoader
from headrace._base.native import core
from support import blobs, eventually, output_of


def test_one_recording_at_a_time() -> None:
    with headrace.profile() as prof:
        with pytest.raises(RuntimeError, match=r"a headrace.profile\(\) is recording in this process already"):
            headrace.profile().start()
        list(make("two threads"))
    assert totals(prof)["read"][0] == SAMPLES
    with headrace.profile() as prof:
        pass
    assert prof.threads == () and "no headrace loader was active" in str(prof)


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
    del other  # it never recorded, so this ends no recording
    assert core.recording()
    del lost
    assert eventually(lambda: not core.recording())
    with headrace.profile() as prof:
        with pytest.raises(RuntimeError, match="is recording in this process already"):
            prof.start()  # the recording continues
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
        "from headrace._base.native import core\n"
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
    """The recorded time excludes the time that it takes to make the arrays."""
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


@pytest.mark.processes
def test_a_forked_child_records_by_itself() -> None:
    print_of = output_of(
        "import os, warnings, headrace\n"
        "from headrace._base.native import core\n"
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
    loader = DataLoader(blobs(8), 4, worker_init_fn=print)
    assert not loader.native
    with headrace.profile() as prof:
        list(loader)
    assert "no headrace loader was active" in str(prof)
