"""The soak: a short run of it, and that what it counts would be found."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from bench.soak import heap, ledger, watcher, weather
from bench.soak.answers import checksums
from bench.soak.attempts import Attempt
from bench.soak.board import Board
from bench.soak.checking import Check
from bench.soak.library import library
from bench.soak.watcher import Pulse

from support import REPOSITORY, WATCHDOG_S, eventually

IMAGES = torch.arange(10 * 12, dtype=torch.float32).reshape(10, 3, 2, 2)
SUMS = checksums(IMAGES)
ORDER = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path / "board")


def checked(board: Board, on_error: str = "raise") -> Check:
    return Check(board, ORDER, SUMS, 4, on_error, lambda index, other: 1000 + SUMS[other])


def batch(*labels: int) -> tuple[torch.Tensor, torch.Tensor]:
    return IMAGES[list(labels)], torch.tensor(labels)


def found(board: Board) -> dict[str, int]:
    return {name: count for name, count in board.counters().items() if count}


def test_what_is_right(board: Board) -> None:
    check = checked(board)
    check.take(batch(3, 1, 4, 0), ())
    check.resume(1, ())
    check.take(batch(5, 9, 2, 6), ())
    assert not check.complete
    check.take(batch(8, 7), ())
    check.end(())
    assert check.complete and check.findings == []
    assert found(board) == {"epochs": 1, "batches": 3, "samples": 10}


def test_a_wrong_bit_is_found(board: Board) -> None:
    check = checked(board)
    images, labels = batch(3, 1, 4, 0)
    images.view(torch.int32)[2, 0, 1, 1] ^= 1
    check.take((images, labels), ())
    assert [one[:8] for one in check.findings] == ["wrong: s"] and board.counters()["wrong"] == 1


@pytest.mark.parametrize(
    ("labels", "counter"),
    [((3, 1, 0, 4), "wrong"), ((3, 1, 4, 4), "wrong"), ((3, 1, 0, 5), "lost"), ((3, 1, 4), "wrong")],
)
def test_samples_that_are_missing_or_out_of_place_are_found(
    board: Board, labels: tuple[Any, ...], counter: str
) -> None:
    check = checked(board)
    check.take(batch(*labels), ())
    assert board.counters()[counter] >= 1 and check.findings


def test_what_was_skipped_must_have_been_reported(board: Board) -> None:
    check = checked(board, "skip")
    check.take(batch(3, 4, 0), {1})
    check.take(batch(5, 2, 6), {1, 9})
    assert check.findings == [] and board.counters()["samples_reported"] == 2
    check.end({1, 9, 8})
    assert check.findings == ["lost: 1 samples are missing before the end of the epoch: [7]"]
    assert board.counters()["lost"] == 1


def test_a_state_that_skips_or_repeats_is_found(board: Board) -> None:
    skips, repeats = checked(board), checked(board)
    skips.take(batch(3, 1, 4, 0), ())
    skips.resume(2, ())
    assert board.counters()["lost"] == 4
    repeats.take(batch(3, 1, 4, 0), ())
    repeats.resume(0, ())
    assert board.counters()["wrong"] == 1


def test_replacements_are_the_next_samples_with_the_first_ones_draws(board: Board) -> None:
    check = checked(board, "replace")
    images, labels = batch(3, 2, 4, 0)  # 1 failed, 2 stands for it
    check.take((images, labels), {1})
    assert board.counters()["wrong"] == 1  # its own draws instead of those of sample 1
    check.take(batch(5, 9, 6, 6), ())  # 6 stands for 2, which was not reported
    assert board.counters()["lost"] == 1


def test_a_loop_that_may_be_interrupted_takes_every_batch(board: Board) -> None:
    class Loader(list[Any]):
        errors: tuple[Any, ...] = ()

    check = checked(board)
    attempt = Attempt(board, random.Random(4), check)
    batches = Loader([batch(3, 1, 4, 0), batch(5, 9, 2, 6), batch(8, 7)])
    assert attempt.interrupted(batches) == (board.counters()["interrupts"] == 0)
    assert check.findings == []


def test_an_error_needs_a_fault_that_explains_it() -> None:
    no_file = FileNotFoundError(2, "No such file or directory")
    assert not weather.excused(no_file, {}, False)
    assert not weather.excused(no_file, {"read: I/O error": 1}, False)
    assert weather.excused(no_file, {"open: no such file": 1}, False)
    assert not weather.excused(RuntimeError("boom"), dict.fromkeys(weather.WEATHERS["storm"], 1), True)
    assert weather.excused(OSError(24, "Too many open files"), {}, True)
    assert not weather.excused(OSError(24, "Too many open files"), {"no memory": 1}, False)


def test_counts_survive_the_process_and_add_up(tmp_path: Path) -> None:
    one = Board(tmp_path / "board")
    one.add("samples", 5)
    child = Board(tmp_path / "board")
    child.lane = 1
    child.add("samples", 7)
    assert one.counters()["samples"] == 12
    one.take_lane()
    child.add("samples", 1)
    assert one.counters()["samples"] == 13
    run: dict[str, Any] = {"hours": 2.0, "hangs": 0, "crashes": 0, "longest_wait_s": 1.0, "longest_quiet_wait_s": 0.0}
    run |= {"counters": one.counters(), "faults": {"read: short": 3}, "growth_mb_per_hour": 0.5}
    file = tmp_path / "soak.json"
    ledger.add(file, {"id": "a", **run})
    ledger.add(file, {"id": "b", **run, "growth_mb_per_hour": None, "hangs": 1})
    totals = ledger.add(file, {"id": "b", **run, "longest_wait_s": 3.0, "growth_mb_per_hour": 1.5})["totals"]
    assert totals == json.loads(file.read_text())["totals"]
    assert (totals["runs"], totals["hours"], totals["hangs"], totals["longest_wait_s"]) == (2, 4.0, 0, 3.0)
    assert totals["counters"]["samples"] == 26 and totals["faults_injected"] == 6
    assert totals["growth_mb_per_hour"] == 1.0


def test_what_is_allocated_is_counted_and_what_is_freed_is_not() -> None:
    before = heap.trimmed()
    if before is None:
        pytest.skip("this libc has no mallinfo2: glibc before 2.33, or another library")
    held = bytearray(64 << 20)
    during = heap.trimmed()
    del held
    assert during is not None and during - before == pytest.approx(64 << 20, abs=1 << 20)
    assert heap.trimmed() == pytest.approx(before, abs=1 << 20)


def test_growth_is_the_slope_after_the_first_quarter() -> None:
    filling = [(60.0 * minute, 100.0 + min(minute, 30) + minute / 30) for minute in range(121)]
    assert ledger.growth(filling) == pytest.approx(2.0)
    assert ledger.growth(filling[:29]) is None


@pytest.mark.processes
def test_a_process_that_is_stopped_does_not_hang_and_one_that_sleeps_does(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "QUIET_LIMIT_S", 0.5)
    code = f"import time; print(flush=True); time.sleep({2 * WATCHDOG_S})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        pulse = Pulse(board, process.pid)

        def ticks(count: int) -> list[str]:
            said = []
            for _ in range(count):
                time.sleep(watcher.TICK_S)
                said.append(pulse.tick())
            return said

        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        before = board.clock("awake_us")
        assert not any(ticks(12)) and board.clock("awake_us") == before
        process.send_signal(signal.SIGCONT)
        assert eventually(lambda: "no thread has run" in "".join(ticks(1)))
        assert board.clock("quiet_us") > 0
        board.advance("progress")
        assert not any(ticks(2))
        process.kill()


@pytest.mark.processes
def test_a_thread_that_cannot_start_is_one_clear_error(tmp_path: Path) -> None:
    code = """
from pathlib import Path
import torch
from bench.soak.board import Board
from headrace import ImageArray, DataLoader, transforms as T
data = ImageArray(torch.zeros((8, 4, 4, 3), dtype=torch.uint8), None, T.ToTensor())
board, loader = Board(Path("board")), DataLoader(data, 4, num_workers=3)
board.arm({"no thread": 1.0})
try:
    iter(loader)
except RuntimeError as error:
    print(error)
board.disarm()
print(len(list(loader)))
"""
    Board(tmp_path / "board")
    environment = {"LD_PRELOAD": str(library()), "HEADRACE_SOAK_BOARD": "board", "HEADRACE_SOAK_ROOT": "nothing/"}
    out = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, **environment, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    assert out == (
        "thread 1 of 3 cannot start; use fewer workers, or raise the limit of processes (ulimit -u, pids.max of the "
        "control group): Resource temporarily unavailable\n2\n"
    )


@pytest.mark.slow
@pytest.mark.processes
def test_a_short_soak(tmp_path: Path) -> None:
    """Nothing lost, wrong or unexpected; faults were injected and interrupts happened."""
    arguments = ["--minutes", "0.6", "--images", "96", "--epochs", "1", "--seed", "3"]
    paths = ["--folder", str(tmp_path / "soak"), "--out", str(tmp_path / "soak.json")]
    done = subprocess.run(
        [sys.executable, "-m", "bench.soak", *arguments, *paths], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    totals = json.loads((tmp_path / "soak.json").read_text())["totals"]
    assert done.returncode == 0, done.stdout
    assert totals["counters"]["samples"] > 500 and totals["counters"]["epochs"] > 5
    bad = ("lost", "wrong", "unexpected")
    assert all(totals["counters"][name] == 0 for name in bad) and totals["hangs"] == totals["crashes"] == 0
    assert totals["faults_injected"] > 0 and totals["counters"]["resumes"] > 0
