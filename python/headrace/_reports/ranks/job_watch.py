"""Publishes this rank's figures to the others, and the verdict on all of them. Rank 0 makes the verdict."""

from __future__ import annotations

import os
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from headrace._reports.ranks import checked_json
from headrace._reports.ranks.boards import FolderBoard, StoreBoard, default_store, host_name, job_name
from headrace._reports.ranks.collectives import LONGEST_S, CollectiveLog
from headrace._reports.ranks.machine_look import MachineLook, look_at_machine
from headrace._reports.ranks.rank_figures import JobVerdict, Load, RankFigures
from headrace._reports.ranks.straggler import judge_ranks

_WINDOW_S = 15.0
_OLD_S = 15.0  # figures that are older, and five times older than they should be, are of a rank that has ended
_RANKS_A_SECOND = 100  # whose figures rank 0 reads
VERSION = 1  # of the verdict's fields


class Consumer(NamedTuple):
    """The thread that takes the batches.

    Attributes:
        rank, ranks: of the process.
        thread: its number, as the system counts.
        gpu: number of its device; -1: none.
    """

    rank: int = 0
    ranks: int = 1
    thread: int = 0
    gpu: int = -1


class _Look(NamedTuple):
    at_s: float
    load: Load
    machine: MachineLook


class JobWatch:
    """Compares the ranks of this process's job. One thread calls `look`.

    Args:
        folder: of this user's files, where the ranks of this machine find each other, or those of all machines that
            share it.

    Attributes:
        unpaced_s: CPU seconds of the newest `look` that are limited in a way of their own; see `CollectiveLog`.
        trouble: why the newest figures could not be exchanged; "" if they could.
    """

    def __init__(self, folder: Path) -> None:
        self._top, self._pid = folder, os.getpid()
        self._log = CollectiveLog(_WINDOW_S)
        self._looks: deque[_Look] = deque()
        self._board: FolderBoard | None = None
        self._store: StoreBoard | None = None
        self._job, self._rank = "", 0
        self._posted_s = float("-inf")
        self._verdict: JobVerdict | None = None
        self.unpaced_s = 0.0
        self.trouble = ""

    def look(self, load: Load, consumer: Consumer, every_s: float) -> JobVerdict | None:
        """Publishes this rank's figures, at most as often as one rank can read those of all; returns the newest verdict
        on the job, None if this is no job of several ranks, or there is no verdict yet.

        Args:
            load: of all loaders of the process.
            every_s: seconds until the next call.
        """
        self.unpaced_s = 0.0
        if consumer.ranks < 2 or not consumer.thread:
            return None
        every_s = max(every_s, consumer.ranks / _RANKS_A_SECOND)
        now = time.monotonic()
        if now - self._posted_s < 0.9 * every_s:
            return self._verdict
        self._posted_s = now
        try:
            self._join(consumer)
            if self._board is None:
                return None
            self._verdict = self._exchange(self._board, self._figures_of(now, load, consumer, every_s))
            self.trouble = ""
        except (OSError, ValueError) as error:  # a full disk, a damaged verdict: the next one may do
            self.trouble = str(error)
        return self._verdict

    def _join(self, consumer: Consumer) -> None:
        """Finds the job, once, and again when torch.distributed has been initialised since."""
        if self._job and (self._store is not None or not self._job.startswith("env-")):
            return
        store = default_store()
        job = job_name(store)
        if job != self._job:
            self.close()
            self._job, self._rank = job, consumer.rank
            self._board = FolderBoard(self._top, job) if job else None
            self._store = None if store is None else StoreBoard(store)

    def _figures_of(self, now: float, load: Load, consumer: Consumer, every_s: float) -> RankFigures:
        machine = look_at_machine(consumer.thread, consumer.gpu)
        while self._looks and now - self._looks[0].at_s > _WINDOW_S:
            self._looks.popleft()
        begin = self._looks[0] if self._looks else _Look(now, load, machine)
        self._looks.append(_Look(now, load, machine))
        then, before = begin.load, begin.machine
        stages = {name: max(0.0, seconds - then.stage_s.get(name, 0.0)) for name, seconds in load.stage_s.items()}
        periods = machine.throttling.periods - before.throttling.periods
        arrivals = self._log.newest(1.0 if self._verdict is None else self._verdict.every_s)
        self.unpaced_s = self._log.cost_s
        return RankFigures(
            consumer.rank,
            consumer.ranks,
            host_name(),
            self._pid,
            time.time(),
            every_s,
            now - begin.at_s,
            max(0, load.batches - then.batches),
            max(0.0, load.worked_s - then.worked_s),
            max(0.0, load.waited_s - then.waited_s),
            sum(stages.values()),
            stages.get("read", 0.0),
            load.far,
            load.bottleneck,
            max(0.0, machine.throttling.seconds - before.throttling.seconds),
            (machine.throttling.stopped - before.throttling.stopped) / periods if periods > 0 else 0.0,
            machine.consumer.since(before.consumer).delayed_ns / 1e9,
            machine.threads.since(before.threads).delayed_ns / 1e9,
            machine.cpu_mhz,
            machine.gpu_mhz,
            arrivals,
        )

    def _exchange(self, board: FolderBoard, own: RankFigures) -> JobVerdict | None:
        name, text = str(own.rank), own.as_text()
        board.put(name, text)
        store = self._store if board.count() < own.ranks else None  # some ranks do not share this folder
        try:
            if store is not None:
                store.put(name, text)
            if own.rank:
                said = (store.verdict() if store is not None else "") or board.verdict()
                return checked_json.of_text(JobVerdict, said, VERSION, {}) if said else None
            verdict = self._judge({**(store.all(own.ranks) if store is not None else {}), **board.all(own.ranks)}, own)
            board.put("verdict", checked_json.as_text(verdict, VERSION))
            if store is not None:
                store.put("verdict", checked_json.as_text(verdict, VERSION))
            return verdict
        except RuntimeError:  # the store has ended with the job, or does not answer
            self._store = None
            return self._exchange(board, own)

    def _judge(self, texts: dict[str, str], own: RankFigures) -> JobVerdict:
        verdict, before = judge_ranks(self._job, dict(_fresh_figures(texts)), own.ranks), self._verdict
        if not verdict.costs and before is not None and before.costs and verdict.at - before.at < 2 * LONGEST_S:
            return replace(before, every_s=verdict.every_s)  # some ranks have newer arrivals than others
        return verdict

    def close(self) -> None:
        """Removes this rank's figures. Idempotent."""
        if self._board is not None and self._pid == os.getpid():
            self._board.remove(str(self._rank))
        self._board = None


def _fresh_figures(texts: dict[str, str]) -> list[tuple[int, RankFigures]]:
    now, found = time.time(), []
    for name, text in texts.items():
        try:
            one = RankFigures.of_text(text)
        except ValueError:  # of another version, or damaged
            continue
        if str(one.rank) == name and now - one.at < max(_OLD_S, 5 * one.every_s):
            found.append((one.rank, one))
    return sorted(found, key=lambda both: both[0])
