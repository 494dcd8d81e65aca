"""The benchmarks of the GPU path run without a GPU: with a double of nvJPEG, and on the emulated device."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import WATCHDOG_S

pytestmark = pytest.mark.processes

REPOSITORY = Path(__file__).parents[4]
sys.path.insert(0, str(REPOSITORY))

from bench.gpu import check, own_datasets, verdicts  # noqa: E402
from bench.gpu.loaders import BARE  # noqa: E402
from bench.gpu.own_datasets import NATIVE, OWN  # noqa: E402

DOUBLE = REPOSITORY / "build" / "dev" / "libfake_nvjpeg.so"


def run(module: str, out: Path, *options: str, **environment: str) -> dict[str, Any]:
    """The figures that a benchmark writes."""
    command = [sys.executable, "-m", module, *options, "--out", str(out)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
        check=False,
        cwd=REPOSITORY,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    result: dict[str, Any] = json.loads(out.read_text())
    return result


@pytest.mark.skipif(not DOUBLE.exists(), reason=f"no {DOUBLE}: `make test-cpp` builds it")
def test_the_questions_are_answered(tmp_path: Path) -> None:
    options = ["--device", "cpu", "--seconds", "0.1", "--batches", "2"]
    answers = run("bench.gpu.questions", tmp_path / "answers.json", *options, HEADRACE_NVJPEG=str(DOUBLE))
    assert answers["1 present"]["nvjpeg"] == "13.3.2" and answers["1 present"]["engines"] == 7
    rates = [row for row in answers["2 throughput"] if "images_per_s" in row]
    assert {row["backend"] for row in rates} == {"hardware", "cuda"}  # the double has no others
    assert all(0 < row["images_per_s"]["least"] <= row["images_per_s"]["greatest"] for row in rates)
    for row in answers["3 planes"]:
        assert row["luma"] == row["chroma"] == {"greatest": 0, "mean": 0.0}
        assert (row["columns_beyond"], row["rows_beyond"]) == (0, 0)
    damaged = answers["5 corrupt"]
    assert {row["means"] for row in damaged} == {"success", "bad JPEG"} and all(
        row["neighbours_equal"] for row in damaged
    )
    assert all(not row["routed"] or row["supported"] for row in answers["6 takes"])
    assert {row["region"] for row in answers["6 parts"]} == {"JPEG not supported"}
    parts = {"questions": {"status": 0, "last_line": "", "result": answers}}
    reached = {one.bar.what: one.met for one in verdicts.judge(parts)}
    assert reached["nvJPEG's samples off libjpeg's"] and reached["damaged files that hang or end a decoder"]


def test_loaders_are_timed_in_turns(tmp_path: Path) -> None:
    options = ["--device", "emulated", "--batch", "4", "--files", "16", "--seconds", "0.2", "--rounds", "2"]
    only = ["headrace, auto", "headrace, cpu (exact)"]
    figures = run("bench.gpu.loaders", tmp_path / "loaders.json", *options, "--only", *only)
    assert [list(row) for row in figures["rounds"]] == [only, only] and figures["failed"] == {}
    assert all(one["images_per_s"] > 0 for row in figures["rounds"] for one in row.values())


def test_datasets_of_ones_own_are_timed_beside_headraces(tmp_path: Path) -> None:
    """All but DALI, which is not installed: its error takes its place."""
    options = ["--device", "emulated", "--batch", "4", "--files", "32", "--seconds", "0.2", "--rounds", "1"]
    figures = run("bench.gpu.own_datasets", tmp_path / "own.json", *options)
    (row,) = figures["rounds"]
    assert list(row)[:2] == [NATIVE, OWN] and set(row) | set(figures["failed"]) == set(own_datasets.CONTENDERS)
    assert set(figures["failed"]) <= {"DALI Proxy"}
    assert all(one["images_per_s"] > 0 for one in row.values())
    parts = {"own_datasets": {"status": 0, "last_line": "", "result": figures}}
    said = {one.bar.what: one.measured for one in verdicts.judge(parts)}
    assert not said["a dataset of one's own over headrace's"].startswith("not measured")


def test_a_training_step_is_fed(tmp_path: Path) -> None:
    options = ["--device", "emulated", "--model", "tiny", "--batch", "4", "--files", "16", "--seconds", "0.2"]
    only = ["headrace, cpu (exact)"]
    figures = run("bench.gpu.training", tmp_path / "training.json", *options, "--rounds", "1", "--only", *only)
    (row,) = figures["rounds"]
    assert set(row) == {"one batch that stays on the GPU", *only}
    assert 0 < row[only[0]]["starved"] < 1 and row[only[0]]["of_resident"] > 0


def test_parts_are_limited_in_time_and_leave_what_they_said(tmp_path: Path) -> None:
    slow = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    ended = check.call("slow", check.Part([sys.executable, "-c", slow], 2), None, tmp_path)
    assert ended["status"] == check.TOO_LONG and ended["seconds"] < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int(ended["last_line"]), 0)
    missing = check.call("none", check.Part(["no-such-program"], 2), None, tmp_path)
    assert missing["status"] is None and missing["last_line"] == "no-such-program is not on the PATH"
    writes = "import sys, pathlib; pathlib.Path(sys.argv[2]).write_text('[1]'); print('said'); sys.exit(3)"
    made = check.call("kept", check.Part([sys.executable, "-c", writes], 20, figures="kept.json"), None, tmp_path)
    assert (made["status"], made["result"], made["last_line"]) == (3, [1], "said")
    crashes = check.Part([sys.executable, "-c", "raise SystemExit(1)"], 20, figures="kept.json")
    assert "result" not in check.call("kept", crashes, None, tmp_path)  # figures of an earlier run are not reported
    assert check.failures({"slow": ended, "none": missing, "kept": made}) == ["slow", "kept"]


def test_the_parts_of_a_run_end_within_ten_minutes() -> None:
    assert all(sum(part.limit for part in run.values()) <= 600 for run in check.RUNS.values())


def test_the_tests_that_are_run_exist() -> None:
    commands = [part.command for run in check.RUNS.values() for part in run.values()]
    named = {word for command in commands for word in command if word.startswith("tests/")}
    assert "tests/python/engine/devices/test_cuda.py" in named
    assert [name for name in named if not (REPOSITORY / name).exists()] == []


def parts(**rates: float) -> verdicts.Parts:
    names = {"auto": "headrace, auto", "hardware": "headrace, hardware", "cpu": "headrace, cpu (exact)", "bare": BARE}
    row = {names[name]: {"images_per_s": rate} for name, rate in rates.items()}
    return {"loaders": {"status": 0, "last_line": "", "result": {"rounds": [row], "failed": {}}}}


def met(parts: verdicts.Parts) -> set[str]:
    return {one.bar.what for one in verdicts.judge(parts) if one.met}


def test_bars_are_reached_by_figures_alone() -> None:
    bare, routing = 'decoder="hardware" over nvjpegDecodeBatched alone', 'decoder="auto" over hardware and cpu, added'
    assert met({}) == set()
    assert met(parts(hardware=91, bare=100)) == {bare}
    assert met(parts(hardware=89, bare=100)) == set()
    assert met(parts(hardware=91)) == set()
    assert met(parts(auto=90, hardware=40, cpu=60)) == {routing}
    assert met(parts(auto=89, hardware=40, cpu=60)) == set()
    assert met({"memcheck": {"status": None, "last_line": "compute-sanitizer is not on the PATH"}}) == set()
    assert met({"memcheck": {"status": 9, "last_line": "========= ERROR SUMMARY: 1 error"}}) == set()
    clean = {"memcheck": {"status": 0, "last_line": "========= ERROR SUMMARY: 0 errors"}}
    assert met(clean) == {"compute-sanitizer memcheck"}
    assert met({"tests": {"status": 0, "last_line": "3 passed"}}) == {"tests of the GPU path"}
    assert met({"tests": {"status": 0, "last_line": "31 skipped in 2.0s"}}) == set()
    assert met({"tests": {"status": 0, "last_line": "29 passed, 2 skipped in 9.0s"}}) == set()
    assert met({"loaders": parts(hardware=91, bare=100)["loaders"] | {"status": 124}}) == set()
    done = {"status": 0, "last_line": ""}
    hung = {"5 corrupt": [{"backend": "hardware", "what": "a cut", "routed": True, "gone": "hung for 20 s"}]}
    said = {one.bar.what: one.measured for one in verdicts.judge({"questions": done | {"result": hung}})}
    assert said["damaged files that hang or end a decoder"] == "hardware: a cut (hung for 20 s)"
    assert said["nvJPEG's samples off libjpeg's"] == "not measured: questions has no '3 planes'"
