"""Profiler: records what the threads of all loaders of this process do over time, like `torch.profiler`."""

from __future__ import annotations

import functools
import os
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from headrace._base import messages
from headrace._base.lifetimes.finalizers import Ending, call_in_finalizer_thread
from headrace._base.native import core
from headrace._reports.loader import chrome_trace
from headrace._reports.loader.timeline import (
    Nanoseconds,
    StageTime,
    ThreadTimeline,
    format_stage_table,
    sum_stage_times,
)

_TRIES = 30
_Columns = tuple[str, int, list[str], Nanoseconds, Nanoseconds, Nanoseconds, Nanoseconds]
_Claim: TypeAlias = "weakref.ref[profile]"
_claims: dict[int, _Claim] = {}  # pid -> owner of the running recording; a forked child has none


def _end_recording(claim: _Claim) -> tuple[int, list[_Columns], int] | None:
    """Ends this process's recording if `claim` owns it; returns end time, threads' columns, number of spans dropped."""
    pid = os.getpid()
    if _claims.get(pid) is not claim:
        return None
    ended_ns = time.perf_counter_ns()
    threads, dropped = core.stop_recording()
    _claims.pop(pid, None)  # last, so that after an interrupt the recording can be ended again
    last = max((int(ends.max()) for *_, ends, _ in threads if len(ends)), default=0)
    return max(ended_ns, last), threads, dropped


class profile(Ending):
    """Records what all loaders of this process do while inside ``with``.

    It records the native threads (read, header, decode, resize, idle), the Python threads (pillow, python), and the
    consumer's ``__next__`` with its parts (wait, submit, hand_over, out_transform). With a device it also records the
    files that workers stage for the device's decoders (staging), the decoders (device decode), and the thread that
    uploads batches and launches kernels (launch). Loaders that torch delivers are in `torch.profiler`'s recordings.

        with headrace.profile() as prof:
            for images, labels in loader:
                ...
        print(prof)
        prof.export_chrome_trace("trace.json")

    While recording, every sample is timed stage by stage; otherwise one in sixteen is. Loaders may begin and end
    inside. A span that is open when the recording ends is not recorded; a span that began before the recording is cut.
    Dropping a profile while it records ends its recording.

    Args:
        max_spans: maximum number of spans to keep; a sample makes five. Further spans are counted in `dropped`, and a
            warning reports them.

    Attributes:
        threads: what each thread did, ``headrace._reports.loader.timeline.ThreadTimeline``.
        dropped: number of spans beyond `max_spans`.
        recorded_s: duration of the recording in seconds.
        clock_error_ns: bound of the difference between times in exported traces and the system clock, in nanoseconds.

    Raises:
        ValueError: `max_spans` is less than 1.
        RuntimeError: at the start, if this process is recording already; from methods that need a finished recording,
            if there is none.
    """

    def __init__(self, *, max_spans: int = 1_000_000) -> None:
        if max_spans < 1:
            raise ValueError(f"max_spans must be at least 1, not {max_spans}")
        self._max_spans = max_spans
        self._pid = 0
        self._recorded = False
        self.threads: tuple[ThreadTimeline, ...] = ()
        self.dropped: int = 0
        self._claim: _Claim = weakref.ref(self)

    def start(self) -> None:
        """Begins to record and discards an earlier recording."""
        pid, unix = os.getpid(), _offset_to_unix_time()
        before = _claims.get(pid)
        if before is not None and before() is None:
            _end_recording(before)  # a profile that was dropped a moment ago
        if self.at_end is bool:
            self.at_end: Callable[[], object] = call_in_finalizer_thread(functools.partial(_end_recording, self._claim))
        if pid in _claims or _claims.setdefault(pid, self._claim) is not self._claim:
            raise RuntimeError("a headrace.profile() is recording in this process already; end it before the next one")
        self._pid, self._unix, self._recorded = pid, unix, False
        try:
            self._begin_ns = time.perf_counter_ns()
            core.start_recording(self._max_spans)
        except BaseException:  # an interrupt may come before the recording has begun or after
            _end_recording(self._claim)
            raise

    def stop(self) -> None:
        """Ends the recording. Does nothing in a process forked during the recording, because it records nothing."""
        self._stop()

    def _stop(self) -> None:
        ended = _end_recording(self._claim)
        if ended is None:
            return
        self._end_ns, threads, self.dropped = ended
        first, last = self._unix, _offset_to_unix_time()
        self._offset_ns, error = min(first, last, key=lambda one: one[1])
        self._clock_error_ns = error + abs(first[0] - last[0])
        names = {thread.native_id: thread.name for thread in threading.enumerate()}
        self.threads = tuple(
            ThreadTimeline(name or names.get(tid, f"thread {tid}"), tid, tuple(stages), *columns)
            for name, tid, stages, *columns in threads
        )
        self._recorded = True
        if self.dropped:
            messages.warn(
                f"headrace.profile() had no room for {self.dropped} spans beyond max_spans={self._max_spans}: they "
                "are missing from the recording"
            )

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _check(self) -> None:
        if not self._recorded or self._pid != os.getpid():
            raise RuntimeError("there is no recording: it has not ended yet, or it belongs to another process")

    @property
    def recorded_s(self) -> float:
        self._check()
        return (self._end_ns - self._begin_ns) / 1e9

    @property
    def clock_error_ns(self) -> int:
        self._check()
        return self._clock_error_ns

    def summary(self, *, per_thread: bool = False) -> tuple[StageTime, ...]:
        """Returns the time by thread and stage, as ``print(prof)`` shows it.

        Args:
            per_thread: report each thread separately, instead of the sum over threads of a kind. Threads of two loaders
                have the same names; `StageTime.tid` distinguishes them.
        """
        self._check()
        return sum_stage_times(self.threads, self.recorded_s, per_thread=per_thread)

    def __str__(self) -> str:
        if not self._recorded or self._pid != os.getpid():
            return "headrace.profile: no recording"
        return format_stage_table(self.summary(), self.recorded_s, self.dropped)

    def export_chrome_trace(self, path: str | Path, torch_trace: str | Path | None = None) -> None:
        """Writes the recording as a trace for https://ui.perfetto.dev or chrome://tracing.

        Args:
            path: the file to write; compressed if the name ends in ``.gz``.
            torch_trace: a file that `torch.profiler`'s ``export_chrome_trace`` wrote for the same time, in the same
                process; `path` then contains both on one time axis.

        Raises:
            ValueError: `torch_trace` is not such a file, or does not overlap with the recording.
            RuntimeError: there is no finished recording.
        """
        self._check()
        window = self._begin_ns + self._offset_ns, self._end_ns + self._offset_ns
        about: dict[str, object] = {
            "recorded_s": self.recorded_s,
            "begin_unix_ns": window[0],
            "end_unix_ns": window[1],
            "dropped_spans": self.dropped,
            "clock_error_ns": self.clock_error_ns,
        }
        trace = chrome_trace.Trace(self.threads, self._pid, self._offset_ns, window, about)
        chrome_trace.write_trace(
            path, trace.alone() if torch_trace is None else trace.within(chrome_trace.read_trace(torch_trace))
        )


def _offset_to_unix_time() -> tuple[int, int]:
    """Returns time.time_ns minus time.perf_counter_ns, and a bound of the error; both in ns."""
    best = (0, 2**62)
    for _ in range(_TRIES):
        before, unix, after = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
        best = min(best, (unix - (before + after) // 2, (after - before + 1) // 2), key=lambda one: one[1])
    return best
