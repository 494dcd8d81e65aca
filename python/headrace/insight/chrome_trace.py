"""A recording in the trace-event format of Chrome and Perfetto, alone or within a trace of torch's."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from headrace.insight.timeline import ThreadTimeline

# Of times in ns since 1970; what is left, in microseconds with three decimals, is exact in a float.
_BASE = "baseTimeNanoseconds"
_BLOCK = 4096  # spans made into text at once: Python's objects of all of them would take 800 bytes a span


def read(path: str | Path) -> dict[str, Any]:
    """A trace that torch.profiler wrote.

    Raises:
        ValueError: it is something else.
    """
    data = Path(path).read_bytes()
    try:
        trace = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a trace that torch.profiler wrote: {error}") from None
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list) or _BASE not in trace:
        raise ValueError(f"{path} is not a trace that torch.profiler wrote: it has no traceEvents or no {_BASE}")
    return trace


def write(path: str | Path, text: Iterable[str]) -> None:
    """Writes a trace piece by piece, compressed where the name ends in .gz."""
    if str(path).endswith(".gz"):
        with gzip.open(path, "wt", compresslevel=6, encoding="ascii") as file:
            file.writelines(text)
    else:
        with Path(path).open("w", encoding="ascii") as file:
            file.writelines(text)


@dataclass(frozen=True)
class Trace:
    """What is to be written.

    Attributes:
        pid: of the process.
        offset_ns: from the threads' clock to the system's, which counts from 1970.
        window_ns: when the recording began and ended, on the system's clock.
        about: what else a reader should know.
    """

    threads: Sequence[ThreadTimeline]
    pid: int
    offset_ns: int
    window_ns: tuple[int, int]
    about: dict[str, Any]

    def alone(self) -> Iterator[str]:
        """JSON, in pieces."""
        base = self.window_ns[0] // 10**9 * 10**9
        name = {"ph": "M", "name": "process_name", "pid": self.pid, "args": {"name": "headrace"}}
        return self._document({"displayTimeUnit": "ms", _BASE: base}, [name])

    def within(self, torch: dict[str, Any]) -> Iterator[str]:
        """The same in a trace of torch's, whose axis counts. Threads that both know are called what headrace says.

        Raises:
            ValueError: the two are of different stretches of time.
        """
        base, events = int(torch[_BASE]), torch["traceEvents"]
        timed = [one for one in events if one.get("ph") == "X"]
        begin = min((base + one["ts"] * 1e3 for one in timed), default=0.0)
        end = max((base + (one["ts"] + one["dur"]) * 1e3 for one in timed), default=0.0)
        if end < self.window_ns[0] or begin > self.window_ns[1]:
            raise ValueError("torch's trace and this recording are of different stretches of time")
        tids = {one.tid for one in self.threads}
        renamed = ("thread_name", "thread_sort_index")
        kept = (
            one
            for one in events
            if not (one.get("name") in renamed and one.get("pid") == self.pid and one.get("tid") in tids)
        )
        return self._document({key: value for key, value in torch.items() if key != "traceEvents"}, kept)

    def _document(self, head: dict[str, Any], events: Iterable[dict[str, Any]]) -> Iterator[str]:
        """One line an event: those given, and behind them the threads' names and spans."""
        yield json.dumps({**head, "headrace": self.about})[:-1] + ', "traceEvents": ['
        before = "\n"
        for event in chain(events, self._names()):
            yield before + json.dumps(event)
            before = ",\n"
        for block in self._blocks(self.offset_ns - int(head[_BASE])):
            yield before + block
            before = ",\n"
        yield "\n]}\n"

    def _names(self) -> Iterator[dict[str, Any]]:
        """Names and order of the threads."""
        for place, one in enumerate(sorted(self.threads, key=lambda one: (one.thread, one.tid))):
            for what, value in (("name", one.thread), ("sort_index", place)):
                name = f"thread_{what}"
                yield {"ph": "M", "name": name, "pid": self.pid, "tid": one.tid, "args": {what: value}}

    def _blocks(self, shift: int) -> Iterator[str]:
        """The spans, one a line; times of the threads' clock are `shift` ns behind those of the axis."""
        for one in self.threads:
            heads = [json.dumps({"ph": "X", "cat": "headrace", "name": name})[:-1] for name in one.stages]
            where = f', "pid": {self.pid}, "tid": {one.tid}, "ts": '
            for first in range(0, len(one.stage), _BLOCK):
                columns = (one.stage, one.begin_ns, one.end_ns, one.items)
                rows = zip(*(column[first : first + _BLOCK].tolist() for column in columns), strict=True)
                yield ",\n".join(
                    f'{heads[stage]}{where}{(begin + shift) / 1e3}, "dur": {(end - begin) / 1e3}, '
                    f'"args": {{"items": {items}}}}}'
                    for stage, begin, end, items in rows
                )
