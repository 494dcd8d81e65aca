"""Records what the threads of this process's loaders do and when, as `torch.profiler` does for torch's."""

from __future__ import annotations

import os
import threading
import time
import warnings
import weakref
from pathlib import Path
from types import TracebackType
from typing import Any

from headrace.base.native import core
from headrace.insight import chrome_trace
from headrace.insight.timeline import Nanoseconds, StageTime, ThreadTimeline, add_up, table

_TRIES = 30
_Columns = tuple[str, int, list[str], Nanoseconds, Nanoseconds, Nanoseconds, Nanoseconds]
_claims: dict[int, object] = {}  # whose recording goes on, by process: in a forked child it is nobody's


def _end(claim: object) -> tuple[int, list[_Columns], int] | None:
    """Ends the recording of this process if it is `claim`'s: when that was, what threads did, spans dropped."""
    pid = os.getpid()
    if _claims.get(pid) is not claim:
        return None
    ended_ns = time.perf_counter_ns()
    threads, dropped = core.stop_recording()
    _claims.pop(pid, None)  # only now: an interrupt in between leaves what can be ended again
    last = max((int(ends.max()) for *_, ends, _ in threads if len(ends)), default=0)
    return max(ended_ns, last), threads, dropped


class profile:
    """Records what all loaders of this process do while inside ``with``.

    In the recording are the native threads (read, header, decode, resize, idle), the threads in which Python does a
    sample's work (pillow, python), the consumer in ``__next__`` with what it does there (wait, submit, hand_over,
    out_transform) and, with a device, what workers stage for its decoders (staging), these (device decode) and the
    thread that uploads and launches (launch). Loaders that torch delivers are in `torch.profiler`'s recordings.

        with headrace.profile() as prof:
            for images, labels in loader:
                ...
        print(prof)
        prof.export_chrome_trace("trace.json")

    While it records, every sample is timed stage by stage, otherwise one in sixteen is. Loaders may begin and end
    inside. A span that has not ended at the end is not in the recording; one that began before it is cut. A profile
    that is dropped while it records ends its recording.

    Args:
        max_spans: so many are kept; a sample makes five. What is beyond is counted in `dropped` and warned of.

    Attributes:
        threads: what each thread did, ``headrace.insight.timeline.ThreadTimeline``.
        dropped: spans that there was no room for.
        recorded_s: how long it recorded, in seconds.
        clock_error_ns: how far the times in exported traces may be from the system's clock, in nanoseconds.

    Raises:
        RuntimeError: on beginning, where one records in this process; by what needs a recording, where none has ended.
    """

    def __init__(self, *, max_spans: int = 1_000_000) -> None:
        if max_spans < 1:
            raise ValueError(f"max_spans must be at least 1, not {max_spans}")
        self._max_spans = max_spans
        self._pid = 0
        self._recorded = False
        self.threads: tuple[ThreadTimeline, ...] = ()
        self.dropped = 0
        self._claim = object()
        weakref.finalize(self, _end, self._claim)

    def start(self) -> None:
        """Begins to record; what was recorded before is dropped."""
        pid, unix = os.getpid(), _unix_offset()
        if pid in _claims or _claims.setdefault(pid, self._claim) is not self._claim:
            raise RuntimeError("a headrace.profile() is recording in this process already; end it before the next one")
        self._pid, self._unix, self._recorded = pid, unix, False
        try:
            self._begin_ns = time.perf_counter_ns()
            core.start_recording(self._max_spans)
        except BaseException:  # an interrupt may come before the recording has begun or after
            _end(self._claim)
            raise

    def stop(self) -> None:
        """Ends the recording; nothing in a process forked inside it, which records nothing."""
        self._stop()

    def _stop(self) -> None:
        ended = _end(self._claim)
        if ended is None:
            return
        self._end_ns, threads, self.dropped = ended
        first, last = self._unix, _unix_offset()
        self._offset_ns, error = min(first, last, key=lambda one: one[1])
        self._clock_error_ns = error + abs(first[0] - last[0])
        names = {thread.native_id: thread.name for thread in threading.enumerate()}
        self.threads = tuple(
            ThreadTimeline(name or names.get(tid, f"thread {tid}"), tid, tuple(stages), *columns)
            for name, tid, stages, *columns in threads
        )
        self._recorded = True
        if self.dropped:
            warnings.warn(
                f"headrace.profile() had no room for {self.dropped} spans beyond max_spans={self._max_spans}: they "
                "are missing from the recording",
                stacklevel=3,  # the line that calls stop(), or that the with statement is in
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
        """Time by thread and stage, as ``print(prof)`` shows it; threads of one kind taken together, or each alone.

        Two loaders have threads of the same names: `StageTime.tid` tells them apart.
        """
        self._check()
        return add_up(self.threads, self.recorded_s, per_thread=per_thread)

    def __str__(self) -> str:
        if not self._recorded or self._pid != os.getpid():
            return "headrace.profile: no recording"
        return table(self.summary(), self.recorded_s, self.dropped)

    def export_chrome_trace(self, path: str | Path, torch_trace: str | Path | None = None) -> None:
        """Writes the recording as a trace for https://ui.perfetto.dev or chrome://tracing.

        Args:
            path: of the file to write; compressed where it ends in ``.gz``.
            torch_trace: a file that `torch.profiler`'s ``export_chrome_trace`` wrote for the same stretch of time, in
                the same process: `path` then holds both, on one axis of time.

        Raises:
            ValueError: `torch_trace` is no such file, or of another stretch of time. RuntimeError: nothing is recorded
                yet.
        """
        self._check()
        window = self._begin_ns + self._offset_ns, self._end_ns + self._offset_ns
        about: dict[str, Any] = {
            "recorded_s": self.recorded_s,
            "begin_unix_ns": window[0],
            "end_unix_ns": window[1],
            "dropped_spans": self.dropped,
            "clock_error_ns": self.clock_error_ns,
        }
        trace = chrome_trace.Trace(self.threads, self._pid, self._offset_ns, window, about)
        chrome_trace.write(path, trace.alone() if torch_trace is None else trace.within(chrome_trace.read(torch_trace)))


def _unix_offset() -> tuple[int, int]:
    """What time.perf_counter_ns is behind time.time_ns, and how far this may be off; both in ns."""
    best = (0, 2**62)
    for _ in range(_TRIES):
        before, unix, after = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
        best = min(best, (unix - (before + after) // 2, (after - before + 1) // 2), key=lambda one: one[1])
    return best
