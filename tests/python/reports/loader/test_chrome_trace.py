"""Recordings as traces: the trace-event format, and a time axis shared with torch.profiler."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, record_function

import headrace
from headrace import DataLoader
from headrace._base.native import core
from support import blobs

# Times are float microseconds: near 1e13 their resolution is about a thousandth; begin and duration are rounded each.
ROUNDING_US = 0.004


def test_the_trace_is_of_chromes_format(tmp_path: Path) -> None:
    before = time.time_ns()
    with headrace.profile() as prof:
        list(DataLoader(blobs(24), 8, num_workers=2, device="emulated", decoder="hardware", deterministic=True))
    after = time.time_ns()
    prof.export_chrome_trace(tmp_path / "trace.json")
    prof.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes())) == trace

    assert trace["headrace"]["dropped_spans"] == 0
    assert trace["headrace"]["recorded_s"] == prof.recorded_s
    assert trace["displayTimeUnit"] == "ms"
    slack_ns = trace["headrace"]["clock_error_ns"] + 1000 * ROUNDING_US
    events = trace["traceEvents"]
    assert {one["ph"] for one in events} == {"X", "M"}
    assert {one["pid"] for one in events} == {os.getpid()}
    names = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    assert names == {one.tid: one.thread for one in prof.threads}
    assert names[threading.get_native_id()] == "MainThread"
    kinds = {name.rstrip(" 01") for name in names.values()}
    assert kinds == {"MainThread", "headrace worker", "device decode lane", "launcher", "headrace-pillow"}

    spans = [one for one in events if one["ph"] == "X"]
    assert len(spans) == sum(one.count for one in prof.summary())
    for span in spans:
        assert span["tid"] in names and span["cat"] == "headrace" and span["dur"] >= 0
        begin_ns = trace["baseTimeNanoseconds"] + 1e3 * span["ts"]
        assert before - slack_ns <= begin_ns <= begin_ns + 1e3 * span["dur"] <= after + slack_ns
    launches = [one for one in spans if one["name"] == "launch"]
    assert [one["args"]["items"] for one in launches] == [8, 8, 8]
    for rows in prof.summary():
        seconds = sum(one["dur"] for one in spans if one["name"] == rows.stage) / 1e6
        total = sum(one.total_s for one in prof.summary() if one.stage == rows.stage)
        assert seconds == pytest.approx(total, abs=1e-9 * len(spans))


@pytest.mark.processes
@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_trace_is_written_as_it_is_made(tmp_path: Path, name: str) -> None:
    """The export holds only a part of the trace in memory: one dict per span would be 40 MB here."""
    spans = 50_000
    with headrace.profile() as prof:
        for _ in range(spans):
            now = time.perf_counter_ns()
            core.add_span('"quoted"', now, now + 1)
    tracemalloc.start()
    try:
        prof.export_chrome_trace(tmp_path / name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000
    data = (tmp_path / name).read_bytes()
    trace = json.loads(gzip.decompress(data) if name.endswith(".gz") else data)
    written = [one for one in trace["traceEvents"] if one["ph"] == "X"]
    assert [one["name"] for one in written] == ['"quoted"'] * spans
    (thread,) = prof.threads
    shift = prof._offset_ns - trace["baseTimeNanoseconds"]
    assert [one["ts"] for one in written] == ((thread.begin_ns + shift) / 1e3).tolist()


class Recorded:
    """An epoch recorded by both profilers, with torch's marks around and within headrace's spans."""

    def __init__(self, folder: Path) -> None:
        loader = DataLoader(blobs(24), 8, num_workers=2, seed=0, out_transform=self.mark)
        with torch.profiler.profile(activities=[ProfilerActivity.CPU]) as theirs, headrace.profile() as self.ours:
            batches = iter(loader)
            for _ in range(3):
                with record_function("around"):
                    next(batches)
        self.path = folder / "torch.json"
        theirs.export_chrome_trace(str(self.path))

    @staticmethod
    def mark(batch: Any) -> Any:
        with record_function("within"):
            return batch


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("traces"))


def spans_of(trace: dict[str, Any], name: str) -> list[tuple[float, float]]:
    spans = [one for one in trace["traceEvents"] if one["name"] == name and one["ph"] == "X"]
    return sorted((one["ts"], one["ts"] + one["dur"]) for one in spans)


def test_both_profilers_have_one_axis_of_time(recorded: Recorded, tmp_path: Path) -> None:
    recorded.ours.export_chrome_trace(tmp_path / "both.json", torch_trace=recorded.path)
    trace = json.loads((tmp_path / "both.json").read_text())
    for outer, inner in (("around", "__next__"), ("out_transform", "within")):
        pairs = list(zip(spans_of(trace, outer), spans_of(trace, inner), strict=True))
        assert len(pairs) == 3
        for (outer_begin, outer_end), (begin, end) in pairs:
            assert outer_begin <= begin <= end <= outer_end, f"{inner} is not within {outer}"
    main = {one["tid"] for one in trace["traceEvents"] if one["name"] in ("around", "within", "__next__", "wait")}
    assert main == {threading.get_native_id()}


def test_nothing_of_torchs_trace_is_lost_or_said_twice(recorded: Recorded, tmp_path: Path) -> None:
    theirs = json.loads(recorded.path.read_text())
    recorded.path.with_suffix(".json.gz").write_bytes(gzip.compress(recorded.path.read_bytes()))
    for source in (recorded.path, recorded.path.with_suffix(".json.gz")):
        recorded.ours.export_chrome_trace(tmp_path / "both.json", torch_trace=source)
        both = json.loads((tmp_path / "both.json").read_text())
        tids = {one.tid for one in recorded.ours.threads}
        kept = [
            one
            for one in theirs["traceEvents"]
            if not (one["name"] in ("thread_name", "thread_sort_index") and one["tid"] in tids)
        ]
        assert both["traceEvents"][: len(kept)] == kept
        assert sum(one["ph"] != "M" for one in kept) == sum(one["ph"] != "M" for one in theirs["traceEvents"])
        assert {key: both[key] for key in theirs if key != "traceEvents"} == {
            key: theirs[key] for key in theirs if key != "traceEvents"
        }
        added = both["traceEvents"][len(kept) :]
        assert sum(one["ph"] == "X" for one in added) == sum(one.count for one in recorded.ours.summary())
        named = [one for one in both["traceEvents"] if one["name"] == "thread_name" and one["tid"] in tids]
        assert len(named) == len(tids)
        assert {one["tid"]: one["args"]["name"] for one in named} == {
            one.tid: one.thread for one in recorded.ours.threads
        }


def test_what_is_no_trace_of_torchs_is_refused(recorded: Recorded, tmp_path: Path) -> None:
    out = tmp_path / "both.json"
    for content in ("no JSON", "[]", "{}", '{"traceEvents": []}'):
        (tmp_path / "odd.json").write_text(content)
        with pytest.raises(ValueError, match=r"odd\.json is not a trace that torch\.profiler wrote"):
            recorded.ours.export_chrome_trace(out, torch_trace=tmp_path / "odd.json")
    whole = gzip.compress(recorded.path.read_bytes())
    for damaged in (whole[: len(whole) // 2], whole[:-1] + b"?", whole[:20] + b"?" * 40 + whole[60:], whole[:2] + b"?"):
        (tmp_path / "odd.json.gz").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"odd\.json\.gz is not a trace that torch\.profiler wrote"):
            recorded.ours.export_chrome_trace(out, torch_trace=tmp_path / "odd.json.gz")
    with pytest.raises(FileNotFoundError):
        recorded.ours.export_chrome_trace(out, torch_trace=tmp_path / "none.json")
    with headrace.profile() as later:
        list(DataLoader(blobs(8), 8, seed=0))
    with pytest.raises(ValueError, match="do not overlap in time"):
        later.export_chrome_trace(out, torch_trace=recorded.path)
    assert not out.exists()
