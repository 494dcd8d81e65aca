"""bench.timeline: the load of threads and of a GPU, read from a trace, and its picture."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import headrace
from support import WATCHDOG_S

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[4]
BASE_NS, PID = 1_790_000_000_000_000_000, 4000


def span(name: str, cat: str, tid: int, begin: float, end: float, pid: int = PID, **args: Any) -> dict[str, Any]:
    times = {"ts": begin, "dur": end - begin}
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, **times, "args": args}


def kernel(name: str, stream: int, begin: float, end: float) -> dict[str, Any]:
    """A GPU event as Kineto writes it: the device is the process, the stream the thread."""
    cat = "kernel" if "Mem" not in name else "gpu_memcpy"
    return span(name, cat, stream, begin, end, pid=0, device=0, stream=stream, correlation=7, context=1)


def thread(tid: int, name: str, pid: int = PID) -> dict[str, Any]:
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}


@pytest.fixture
def trace() -> dict[str, Any]:
    """1000 microseconds of two workers, a decode lane, a launcher, a consumer and two streams."""
    events = [
        thread(4000, "thread 4000 (python)"),
        *(thread(4001 + i, name) for i, name in enumerate(["headrace worker 0", "headrace worker 1"])),
        thread(4003, "device decode lane 0"),
        thread(4004, "launcher"),
        thread(4001, "stream 4001", pid=0),  # a stream's number may equal a thread's
        span("__next__", "headrace", 4000, 100, 400),
        span("wait", "headrace", 4000, 150, 390),
        span("__next__", "headrace", 4000, 500, 900),
        span("read", "headrace", 4001, 100, 200),
        span("decode", "headrace", 4001, 200, 800),
        span("idle", "headrace", 4002, 50, 600),  # 50 of them before the recording
        span("device decode", "headrace", 4003, 300, 700, items=64),
        span("launch", "headrace", 4004, 700, 750),
        span("aten::add", "cpu_op", 4000, 150, 160),
        {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 1100, "s": "g"},
        kernel("void nvjpeg::decode", 7, 300, 500),
        kernel("headrace::fuse", 13, 450, 600),  # 50 of them overlap the other kernel
        kernel("headrace::fuse", 13, 1050, 1300),  # 50 of them in the recording
        kernel("Memcpy HtoD (Pinned -> Device)", 7, 200, 320),
        kernel("Memcpy DtoH (Device -> Pinned)", 7, 600, 610),
    ]
    about = {"begin_unix_ns": BASE_NS + 100_000, "end_unix_ns": BASE_NS + 1_100_000}
    return {"baseTimeNanoseconds": BASE_NS, "headrace": about, "traceEvents": events}


def test_shares_of_threads_and_of_the_gpu(trace: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from bench.timeline.shares import shares

    assert shares(trace) == {
        "recorded_s": 0.001,
        "consumer_in_next": 0.7,
        "consumer_waiting": 0.24,
        "workers": {"decode": 0.3, "idle": 0.25, "read": 0.05},
        "decode_lanes": {"device decode": 0.4},
        "launcher": {"launch": 0.05},
        "gpu": {
            "kernel": 0.35,
            "copy to the GPU": 0.12,
            "copy from the GPU": 0.01,
            "busy with anything": 0.46,
        },
    }


def test_union_counts_what_overlaps_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from bench.timeline.shares import union_us

    assert union_us([], (0, 10)) == 0
    assert union_us([(3, 5), (1, 4), (1, 2), (8, 20), (-5, 0.5)], (0, 10)) == 6.5


def test_rows_are_named_and_ordered(trace: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from bench.timeline.shares import bars, rows_of

    assert rows_of(bars(trace)) == [
        "consumer",
        "headrace worker 0",
        "headrace worker 1",
        "device decode lane 0",
        "launcher",
        "GPU 0, stream 7",
        "GPU 0, stream 13",
    ]


def run(tmp_path: Path, *command: str) -> str:
    """The output of Python for a command, with this headrace and bench."""
    path = f"{Path(headrace.__file__).parents[1]}:{ROOT}"
    environment = {"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_whole_script(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    command = ["-m", "bench.timeline", "--device", "emulated", "--decoder", "hardware"]
    run(tmp_path, *command, "--batch", "4", "--batches", "8", "--out", str(tmp_path))
    result = json.loads((tmp_path / "timeline.json").read_text())
    assert {one["stage"] for one in result["stages"]} >= {"__next__", "read", "decode", "launch"}
    assert 0 < sum(result["shares"]["workers"].values()) <= 1
    assert (tmp_path / "trace.json.gz").stat().st_size > 0 and not (tmp_path / "torch.json").exists()
    with Image.open(tmp_path / "timeline.png") as picture:
        assert len(picture.convert("RGB").getcolors(1 << 24) or []) > 5


def test_a_machine_without_matplotlib_gets_the_trace_and_its_shares(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["bench.timeline", "--batch", "4", "--batches", "8", "--out", str(out)]
    code = (
        f"import sys; sys.modules['matplotlib'] = None; sys.argv = {options}; "
        "from bench.timeline.__main__ import main; main()"
    )
    said = run(tmp_path, "-c", code)
    assert {one.name for one in out.iterdir()} == {"trace.json.gz", "timeline.json"}
    (line,) = (line for line in said.splitlines() if "timeline.png" in line)
    assert "matplotlib" in line
