"""Processes that do numbered jobs: each job once, progress, and errors of any of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headrace._cli.pack.job_processes import run_in_processes

pytestmark = [pytest.mark.processes, pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")]
JOBS = list(range(3, 40, 2))


def note(folder: Path, job: int, tick: Callable[[], None]) -> None:
    with (folder / str(job)).open("a") as file:
        file.write(f"{os.getpid()}\n")
    for _ in range(job):
        tick()


@pytest.mark.parametrize("workers", [1, 3, 100])
def test_each_job_is_done_once(workers: int, tmp_path: Path) -> None:
    seen: list[int] = []
    run_in_processes(partial(note, tmp_path), JOBS, seen.append, workers)
    assert {int(path.name): path.read_text().count("\n") for path in tmp_path.iterdir()} == dict.fromkeys(JOBS, 1)
    assert sum(seen) == sum(JOBS)
    ours = {path.read_text() for path in tmp_path.iterdir()} == {f"{os.getpid()}\n"}
    assert ours == (workers == 1)


def test_no_jobs_need_no_processes() -> None:
    run_in_processes(lambda job, tick: None, [], lambda more: None, 4)


class Odd(Exception):
    pass


@pytest.mark.parametrize(
    "error, kind, message",
    [
        (ValueError("odd"), ValueError, "odd"),
        (OSError(errno.ENOSPC, "No space left on device", "f"), OSError, r"\[Errno 28\] No space left on device: 'f'"),
        (Odd("odd"), RuntimeError, "Odd: odd"),
    ],
)
def test_the_first_error_stops_all(error: Any, kind: type, message: str, tmp_path: Path) -> None:
    def work(job: int, tick: Callable[[], None]) -> None:
        if job == JOBS[1]:
            raise error
        while True:  # the others would never end
            tick()

    with pytest.raises(kind, match=message):
        run_in_processes(work, JOBS, lambda more: None, 3)


def test_a_process_that_dies_is_an_error() -> None:
    def work(job: int, tick: Callable[[], None]) -> None:
        if job == JOBS[1]:
            os._exit(7)
        while True:
            tick()

    with pytest.raises(RuntimeError, match="a process ended with status 7: it was killed, or it ran out of memory"):
        run_in_processes(work, JOBS, lambda more: None, 3)
