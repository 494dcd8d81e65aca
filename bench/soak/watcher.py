"""Starts the trainer, keeps the clocks of the board, ends a trainer that hangs, and writes the figures.

The clocks tell a paused process from one that hangs. `awake_us` advances by the time between two ticks of this process,
at most two ticks, and not while the trainer is stopped: not while both are stopped, nor while the machine sleeps.
`quiet_us` advances with it while no thread of the trainer has run or waited for a core, by the kernel's own account
(/proc/PID/task/*/schedstat): not while other programs take the cores.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.machine import describe
from bench.soak import ledger
from bench.soak.board import Board
from bench.soak.library import library

TICK_S = 0.1
QUIET_LIMIT_S = 30.0  # without progress and without a running thread: a deadlock, or a lost wake-up
AWAKE_LIMIT_S = 900.0  # without progress, though threads run
_WRITE_EVERY_S = 60.0
_MOST_FINDINGS = 10  # in the file of figures
_MOST_POINTS = 60


@dataclass
class Pulse:
    """The clocks of one trainer."""

    board: Board
    pid: int
    progress: int = -1
    quiet: float = 0.0  # seconds since the last progress
    awake: float = 0.0
    _busy: int = 0  # ns that the threads have run or waited for a core
    _at: float = field(default_factory=time.monotonic)

    def tick(self) -> str:
        """Advances the clocks. Returns why the trainer hangs; "" if it does not."""
        now = time.monotonic()
        passed, self._at = min(now - self._at, 2 * TICK_S), now
        if self._stopped():
            return ""
        busy = self._busy_ns()
        ran, self._busy = busy != self._busy, busy
        self.board.advance("awake_us", round(1e6 * passed))
        if not ran:
            self.board.advance("quiet_us", round(1e6 * passed))
        if (progress := self.board.clock("progress")) != self.progress:
            self.progress, self.quiet, self.awake = progress, 0.0, 0.0
            return ""
        self.awake += passed
        self.quiet += 0.0 if ran else passed
        if self.quiet > QUIET_LIMIT_S:
            return f"no thread has run for {self.quiet:.0f} s"
        return f"no batch for {self.awake:.0f} s" if self.awake > AWAKE_LIMIT_S else ""

    def _stopped(self) -> bool:
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] in "Tt"

    def _busy_ns(self) -> int:
        """Returns the sum over the trainer's threads, and over its children's: a parent may wait for a forked child."""
        total = 0
        for pid in (self.pid, *_children(self.pid)):
            for task in _listed(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError, ValueError):  # the thread has just ended
                    ran, waited, _ = Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()
                    total += int(ran) + int(waited)
        return total


class Watcher:
    """One run of a soak.

    Args:
        folder: for the board, the material and the logs; kept.
        out: the file of figures that this run is added to.
        images, epochs, seed: of the trainer.
        niceness: of the trainer.
    """

    def __init__(self, folder: Path, out: Path, images: int, epochs: int, seed: int, niceness: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("board", "findings.jsonl", "memory.jsonl"):
            (folder / name).unlink(missing_ok=True)
        self.folder, self.out, self.seed, self.niceness = folder.resolve(), out, seed, niceness
        self.arguments = [str(images), str(epochs)]
        self.board = Board(folder / "board")
        self.board.seed(seed)
        self.begun = time.time()
        self.hangs: list[str] = []
        self.crashes: list[str] = []
        self._trainer: subprocess.Popen[bytes] | None = None
        self._ended = False

    def end(self, *_: object) -> None:
        """Makes `run` return at its next tick; a signal handler."""
        self._ended = True

    def run(self, seconds: float) -> dict[str, Any]:
        """Soaks for so long, or until `end`; returns the record of this run, which is in the file."""
        self.write()
        written, until = time.monotonic(), seconds
        try:
            while not self._ended and self.board.clock("awake_us") / 1e6 < until:
                self._watch_one(until, written)
                written = time.monotonic()
        finally:
            self._kill()
            record = self.write()
        return record

    def _watch_one(self, until: float, written: float) -> None:
        """Starts a trainer, and returns when it has ended or the time is over."""
        self._trainer = trainer = self._start(len(self.hangs) + len(self.crashes))
        pulse = Pulse(self.board, trainer.pid)
        while not self._ended and self.board.clock("awake_us") / 1e6 < until:
            time.sleep(TICK_S)
            if trainer.poll() is not None:
                self.crashes.append(f"status {trainer.returncode}: {self._last_words()}")
                self.board.disarm()
                return
            if said := pulse.tick():
                trainer.send_signal(signal.SIGABRT)  # faulthandler writes the stacks of all threads
                trainer.wait()
                self.hangs.append(f"{said}: {self._last_words()}")
                self.board.disarm()
                return
            if time.monotonic() - written > _WRITE_EVERY_S:
                self.write()
                written = time.monotonic()

    def _start(self, restarts: int) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "LD_PRELOAD": str(library()),
            "HEADRACE_SOAK_BOARD": str(self.folder / "board"),
            "HEADRACE_SOAK_ROOT": f"{self.folder / 'material'}/",
            "OMP_NUM_THREADS": "1",
        }
        arguments = [str(self.folder), *self.arguments, str(self.seed + 1000 * restarts)]
        with (self.folder / "trainer.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "bench.soak.trainer", *arguments],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in the terminal is for this process alone
                preexec_fn=lambda: os.nice(self.niceness) and None,
            )

    def _last_words(self) -> str:
        return (self.folder / "trainer.log").read_text(errors="replace")[-3000:]

    def _kill(self) -> None:
        if self._trainer is not None and self._trainer.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._trainer.pid, signal.SIGKILL)  # of its own session: with its forked children
            self._trainer.wait()

    def write(self) -> dict[str, Any]:
        """Puts this run as it is into the file of figures; returns its record."""
        points, in_use = self._memory("anonymous_mb"), self._memory("in_use_mb")
        step = max(1, len(points) // _MOST_POINTS)
        record = {
            "id": f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(self.begun))} {os.getpid()}",
            "seed": self.seed,
            "images": int(self.arguments[0]),
            "different_epochs": int(self.arguments[1]),
            "machine": describe(),
            "versions": _versions(),
            "hours": round(self.board.clock("awake_us") / 3.6e9, 4),
            "counters": self.board.counters(),
            "faults": self.board.faults(),
            "hangs": len(self.hangs),
            "crashes": len(self.crashes),
            "longest_wait_s": round(self.board.clock("longest_wait_us") / 1e6, 2),
            "longest_quiet_wait_s": round(self.board.clock("longest_quiet_wait_us") / 1e6, 2),
            "growth_mb_per_hour": ledger.growth(points),
            "growth_in_use_mb_per_hour": ledger.growth(in_use),
            "memory": [{"s": round(seconds), "mb": size} for seconds, size in points[::step]],
            "memory_in_use": [{"s": round(seconds), "mb": size} for seconds, size in in_use[::step]],
            "findings": [*self.hangs, *self.crashes, *self._findings()][:_MOST_FINDINGS],
        }
        ledger.add(self.out, record)
        return record

    def _memory(self, kind: str) -> list[tuple[float, float]]:
        """Returns (seconds, MB) of the trainer's memory, since its last start; none where it is not known."""
        noted = [json.loads(line) for line in _lines(self.folder / "memory.jsonl")]
        return [(one["s"], one[kind]) for one in noted if one["pid"] == noted[-1]["pid"] and kind in one]

    def _findings(self) -> list[str]:
        noted = map(json.loads, _lines(self.folder / "findings.jsonl"))
        return [f"{one['finding'][-1500:]} in {one['epoch']}" for one in noted]


def _lines(path: Path) -> list[str]:
    """Returns the complete lines of a file that another process writes."""
    text = path.read_text() if path.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - a path is not needed
    except OSError:
        return []


def _children(pid: int) -> list[str]:
    found: list[str] = []
    for task in _listed(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            found += Path(f"/proc/{pid}/task/{task}/children").read_text().split()
    return found


def _versions() -> dict[str, str]:
    import numpy
    import PIL
    import torch

    import headrace

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "pillow": PIL.__version__,
        "numpy": numpy.__version__,
        "headrace": headrace.__version__,
    }
