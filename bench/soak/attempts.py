"""Ways to iterate over (a part of) an epoch: to its end, left in the middle, interrupted, forked, or short of files."""

from __future__ import annotations

import gc
import os
import random
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.soak.board import Board
from bench.soak.checking import Check

#: Called with the batch's number before each batch.
Between = Callable[[int], None]


class Attempt:
    """One loader's iteration.

    Args:
        board: counts, and gives the time.
        draw: of this attempt.
        check: gets each batch.
    """

    def __init__(self, board: Board, draw: random.Random, check: Check) -> None:
        self.board, self.draw, self.check = board, draw, check

    def whole(self, loader: Any, between: Between | None = None, most: int | None = None) -> bool:
        """Takes batches until the epoch ends (True), or until there were `most` (False)."""
        iterator, count = iter(loader), 0
        while most is None or count < most:
            if between is not None:
                between(count)
            awake, quiet = self.board.clock("awake_us"), self.board.clock("quiet_us")
            try:
                batch = next(iterator)
            except StopIteration:
                return True
            finally:
                self.board.note_longest("longest_wait_us", self.board.clock("awake_us") - awake)
                self.board.note_longest("longest_quiet_wait_us", self.board.clock("quiet_us") - quiet)
            self.check.take(batch, failed(loader))
            self.board.advance("progress")
            count += 1
        return False

    def left(self, loader: Any) -> bool:
        """Leaves the epoch in the middle."""
        return self.whole(loader, most=self.draw.randrange(8))

    def interrupted(self, loader: Any) -> bool:
        """Is interrupted by a signal at a random instant. Batches are checked after it: the handler may run at any
        instruction of the loop, and the loop must be sure of what it has received."""
        seen: list[Any] = []
        current, armed, ended = None, False, False

        def strike(*_: object) -> None:
            if armed:
                raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, strike)
        try:
            iterator = iter(loader)
            armed = True
            signal.setitimer(signal.ITIMER_REAL, 10 ** self.draw.uniform(-4.5, -0.5))
            for current in iterator:  # no call between the return of a batch and its name
                seen.append(current)
            armed, ended = False, True
        except KeyboardInterrupt:
            armed = False
            self.board.add("interrupts")
            if current is not None and not (seen and seen[-1] is current):
                seen.append(current)
        finally:
            armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            for batch in seen:
                self.check.take(batch, failed(loader))
            self.board.advance("progress")
        return ended

    def forked(self, loader: Any, childs_work: Callable[[], bool]) -> bool:
        """Forks in the middle of the epoch. The child does `childs_work` and must succeed; the parent goes on."""
        when, child = self.draw.randrange(6), 0

        def between(count: int) -> None:
            nonlocal child
            if count == when:
                child = os.fork()
                if child == 0:
                    _end_as_child(self.board, childs_work)

        try:
            return self.whole(loader, between)
        finally:
            if child:
                status = os.waitpid(child, 0)[1]
                self.board.take_lane()
                self.board.add("forks")
                if status:
                    self.check.findings.append(f"unexpected: a forked child ended with status {status}")
                    self.board.add("unexpected")

    def short_of_files(self, loader: Any) -> bool:
        """Has one to four file descriptors to open files with, and one for a table of entry points."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        gc.collect()
        last = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
        resource.setrlimit(resource.RLIMIT_NOFILE, (last + 1 + self.draw.randrange(1, 5), hard))
        try:
            return self.whole(loader)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def failed(loader: Any) -> set[int]:
    """Returns the samples that a loader has reported."""
    return {error.index for error in loader.errors}


def _end_as_child(board: Board, work: Callable[[], bool]) -> None:
    status = 1
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
        board.lane = 1
        board.disarm()
        status = 0 if work() else 3
    finally:
        os._exit(status)
