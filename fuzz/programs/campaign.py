"""Many programs in processes that are renewed, and what came of them. A process that makes no progress is killed."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fuzz.programs.world import files

#: Programs that a process runs.
EACH = 500
#: A program that takes longer hangs.
WATCHDOG_S = 120.0
#: Time that the processes of a program that hangs have for writing their threads' stacks.
DUMP_S = 2.0

#: What came of a program, without a finding.
HARMLESS = {"same", "loud", "another error", "unsteady", "passed over"}

REPOSITORY = Path(__file__).parents[2]


class Job:
    """A process, and the programs that are its.

    Args:
        first, last: numbers of its programs.
        without: a regular expression; programs whose text it matches are passed over.
    """

    def __init__(self, first: int, last: int, without: str) -> None:
        self.next, self.last, self.begun = first, last, False
        self.at, self._rest = time.monotonic(), b""
        path = os.pathsep.join(
            [str(REPOSITORY), str(REPOSITORY / "tests" / "python"), os.environ.get("PYTHONPATH", "")]
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.programs.child", str(first), str(last), without],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
        assert self.process.stdout is not None
        self.pipe = self.process.stdout.fileno()

    def lines(self) -> Iterator[dict[str, Any]]:
        """The lines that have arrived; the process's end if it has ended."""
        data = os.read(self.pipe, 1 << 20)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.at = time.monotonic()
            said = json.loads(line)
            if "begun" in said:
                self.next, self.begun = said["begun"] + 1, True
            yield said
        if not data:
            yield {"ended": self.process.wait()}

    def kill(self) -> None:
        """Ends the process and those that it has started."""
        self._signal(signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def stacks(self) -> str:
        """Where each Python thread of the process, and of those that it has started, is now."""
        log = files.stacks(self.process.pid)
        self._signal(files.DUMP)
        time.sleep(DUMP_S)
        return log.read_text(errors="replace") if log.exists() else ""

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


class Campaign:
    """Runs programs and counts.

    Args:
        without: a regular expression; programs whose text it matches are passed over.

    Attributes:
        counts: of programs, by what came of them: "same", "silent", "loud", "another error", "unsteady", "hung", ...
        routes, documented: of programs, by the loaders' routes and by documented differences.
        found: those that differ.
    """

    def __init__(self, without: str = "") -> None:
        self.without = without
        self.counts: Counter[str] = Counter()
        self.routes: Counter[str] = Counter()
        self.documented: Counter[str] = Counter()
        self.found: list[dict[str, Any]] = []

    @property
    def programs(self) -> int:
        """How many have ended."""
        return sum(self.counts.values())

    def run(self, first: int, count: int, jobs: int, seconds: float) -> Iterator[int]:
        """Runs programs; yields how many have ended, now and then."""
        with tempfile.TemporaryDirectory(prefix="programs-") as root:
            os.environ[files.VARIABLE] = root
            files.prepare(Path(root))
            begun = time.monotonic()
            waiting = [(at, min(at + EACH, first + count)) for at in range(first, first + count, EACH)][::-1]
            with selectors.DefaultSelector() as selector:
                while waiting or selector.get_map():
                    late = time.monotonic() - begun > seconds
                    while waiting and not late and len(selector.get_map()) < jobs:
                        self._start(selector, *waiting.pop())
                    if late and not selector.get_map():
                        break
                    for key, _ in selector.select(1.0):
                        self._hear(selector, key.data, waiting)
                    for key in list(selector.get_map().values()):
                        if time.monotonic() - key.data.at > WATCHDOG_S:
                            self._over(selector, key.data, waiting, "hung")
                        elif time.monotonic() - begun > seconds:
                            key.data.kill()
                            selector.unregister(key.data.pipe)
                            waiting.clear()
                    yield self.programs

    def _start(self, selector: selectors.BaseSelector, first: int, last: int) -> None:
        job = Job(first, last, self.without)
        selector.register(job.pipe, selectors.EVENT_READ, job)

    def _hear(self, selector: selectors.BaseSelector, job: Job, waiting: list[tuple[int, int]]) -> None:
        for said in job.lines():
            if "done" in said:
                self._count(said)
            elif "ended" in said:
                if said["ended"] == 0:
                    selector.unregister(job.pipe)
                    job.kill()  # nothing is left of it but its pipe
                else:
                    self._over(selector, job, waiting, f"ended with status {said['ended']}")

    def _over(self, selector: selectors.BaseSelector, job: Job, waiting: list[tuple[int, int]], how: str) -> None:
        """The program that runs never ends, or ended its process: the others go on in a new one."""
        selector.unregister(job.pipe)
        stacks = job.stacks() if how == "hung" else ""
        job.kill()
        if not job.begun:
            raise RuntimeError(f"a process of programs {how} before it ran one")
        from fuzz.programs.drawing.generate import program

        self._count(
            {
                "done": job.next - 1,
                "kind": how.split(" with")[0],
                "program": program(job.next - 1).snippet,
                "difference": f"{how}\n{stacks}".strip(),
            }
        )
        if job.next < job.last:
            waiting.append((job.next, job.last))

    def _count(self, said: dict[str, Any]) -> None:
        self.counts[said["kind"]] += 1
        self.routes.update(said.get("routes", []))
        self.documented.update(said.get("documented", []))
        if "difference" in said:
            self.found.append(said)
            print(f"program {said['done']}: {said['difference']}\n{said['program']}\n", flush=True)

    def summary(self) -> dict[str, Any]:
        """The figures."""
        return {
            "programs": self.programs,
            "counts": dict(self.counts),
            "routes": dict(self.routes),
            "documented": dict(self.documented),
            "found": [{"seed": one["done"], "kind": one["kind"]} for one in self.found],
        }
