"""The load of threads and of the GPU, from a trace of headrace.profile, alone or merged with torch.profiler's.

A trace is the result of `json.load` for the file. All shares are of the time that headrace.profile recorded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Trace = dict[str, Any]
Interval = tuple[float, float]  # microseconds on the trace's axis
WORKER, LANE, LAUNCHER = "headrace worker", "device decode lane", "launcher"
DEVICE_ROWS = ("kernel", "gpu_memcpy", "gpu_memset")  # Kineto's categories of what a GPU does


@dataclass(frozen=True)
class Bar:
    """One span: its row, its stage and its time."""

    row: str
    stage: str
    begin: float
    end: float


def window(trace: Trace) -> Interval:
    """The time that headrace recorded."""
    about, base = trace["headrace"], trace["baseTimeNanoseconds"]
    return (about["begin_unix_ns"] - base) / 1e3, (about["end_unix_ns"] - base) / 1e3


def _device_stage(event: Trace) -> str:
    if event["cat"] == "kernel":
        return "kernel"
    for direction, stage in (("HtoD", "copy to the GPU"), ("DtoH", "copy from the GPU")):
        if direction in event["name"]:
            return stage
    return "copy or fill on the GPU"


def _natural(name: str) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def bars(trace: Trace) -> list[Bar]:
    """The spans of headrace's threads and of the GPU's streams. The consumer's row is named "consumer"."""
    spans = [one for one in trace["traceEvents"] if one.get("ph") == "X"]
    ours = [one for one in spans if one.get("cat") == "headrace"]
    pids = {one["pid"] for one in ours}
    threads = [one for one in trace["traceEvents"] if one.get("name") == "thread_name" and one["pid"] in pids]
    names = {one["tid"]: one["args"]["name"] for one in threads}
    names |= {one["tid"]: "consumer" for one in ours if one["name"] == "__next__"}
    made = [Bar(names[one["tid"]], one["name"], one["ts"], one["ts"] + one["dur"]) for one in ours]
    for one in spans:
        if one.get("cat") in DEVICE_ROWS:
            row = f"GPU {one['args'].get('device', one['pid'])}, stream {one['args'].get('stream', one['tid'])}"
            made.append(Bar(row, _device_stage(one), one["ts"], one["ts"] + one["dur"]))
    return made


def rows_of(made: Iterable[Bar]) -> list[str]:
    """Rows from top to bottom: the consumer, workers, Python's threads, decode lanes, launcher, streams."""
    order = ("consumer", WORKER, "headrace-", LANE, LAUNCHER, "GPU")

    def place(row: str) -> tuple[int, list[Any]]:
        return next((i for i, start in enumerate(order) if row.startswith(start)), len(order)), _natural(row)

    return sorted({one.row for one in made}, key=place)


def union_us(intervals: Iterable[Interval], within: Interval) -> float:
    """The length of the union of the intervals inside `within`."""
    total, reached = 0.0, within[0]
    for begin, end in sorted(intervals):
        begin, end = max(begin, reached), min(end, within[1])
        if end > begin:
            total, reached = total + end - begin, end
    return total


def _mean_shares(made: Sequence[Bar], kind: str, within: Interval) -> dict[str, float]:
    """The share of each stage in the time of all threads of a kind."""
    mine = [one for one in made if one.row.startswith(kind)]
    sums: dict[str, float] = defaultdict(float)
    for one in mine:
        sums[one.stage] += union_us([(one.begin, one.end)], within)
    whole = len({one.row for one in mine}) * (within[1] - within[0])
    return {stage: round(spent / whole, 4) for stage, spent in sorted(sums.items(), key=lambda pair: -pair[1])}


def shares(trace: Trace) -> dict[str, Any]:
    """Shares of consumer, workers, decode lanes and launcher, and of the GPU if torch recorded it."""
    made, within = bars(trace), window(trace)
    whole = within[1] - within[0]
    consumer = [one for one in made if one.row == "consumer"]
    found: dict[str, Any] = {
        "recorded_s": round(whole / 1e6, 6),
        "consumer_in_next": round(union_us(((b.begin, b.end) for b in consumer), within) / whole, 4),
        "consumer_waiting": round(
            union_us(((b.begin, b.end) for b in consumer if b.stage == "wait"), within) / whole, 4
        ),
        "workers": _mean_shares(made, WORKER, within),
        "decode_lanes": _mean_shares(made, LANE, within),
        "launcher": _mean_shares(made, LAUNCHER, within),
    }
    device = [one for one in made if one.row.startswith("GPU")]
    if device:
        found["gpu"] = {
            stage: round(union_us(((b.begin, b.end) for b in device if b.stage == stage), within) / whole, 4)
            for stage in sorted({one.stage for one in device})
        }
        found["gpu"]["busy with anything"] = round(union_us(((b.begin, b.end) for b in device), within) / whole, 4)
    return found
