"""Writes a recording in the trace-event format of Chrome and Perfetto, alone or merged into a trace of torch's."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from headrace._reports.loader.timeline import ThreadTimeline

JsonObject: TypeAlias = dict[str, Any]

# Key of the base time in ns since 1970. Times relative to it, in microseconds with three decimals, are exact floats.
_BASE = "baseTimeNanoseconds"
_BLOCK = 4096  # spans converted to text at a time: the Python objects take 800 bytes per span


def read_trace(path: str | Path) -> JsonObject:
    """Reads a trace that torch.profiler wrote.

    Raises:
        ValueError: the file is something else.
    """
    data = Path(path).read_bytes()
    try:
        trace = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a trace that torch.profiler wrote: {error}") from None
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list) or _BASE not in trace:
        raise ValueError(f"{path} is not a trace that torch.profiler wrote: it has no traceEvents or no {_BASE}")
    return trace


def write_trace(path: str | Path, text: Iterable[str]) -> None:
    """Writes a trace piece by piece, compressed if the name ends in .gz."""
    if str(path).endswith(".gz"):
        with gzip.open(path, "wt", compresslevel=6, encoding="ascii") as file:
            file.writelines(text)
    else:
        with Path(path).open("w", encoding="ascii") as file:
            file.writelines(text)


@dataclass(frozen=True)
class Trace:
    """A recording to be written.

    Attributes:
        pid: id of the process.
        offset_ns: system clock (ns since 1970) minus the threads' clock.
        window_ns: begin and end of the recording on the system clock.
        about: further facts about the recording, stored in the file.
    """

    threads: Sequence[ThreadTimeline]
    pid: int
    offset_ns: int
    window_ns: tuple[int, int]
    about: dict[str, object]

    def alone(self) -> Iterator[str]:
        """Yields the trace as JSON, in pieces."""
        base = self.window_ns[0] // 10**9 * 10**9
        name = {"ph": "M", "name": "process_name", "pid": self.pid, "args": {"name": "headrace"}}
        return self._document({"displayTimeUnit": "ms", _BASE: base}, [name])

    def within(self, torch: JsonObject) -> Iterator[str]:
        """Yields torch's trace with this recording merged in, on torch's time axis and with headrace's thread names.

        Raises:
            ValueError: the two do not overlap in time.
        """
        base, events = int(torch[_BASE]), torch["traceEvents"]
        timed = [one for one in events if one.get("ph") == "X"]
        begin = min((base + one["ts"] * 1e3 for one in timed), default=0.0)
        end = max((base + (one["ts"] + one["dur"]) * 1e3 for one in timed), default=0.0)
        if end < self.window_ns[0] or begin > self.window_ns[1]:
            raise ValueError("torch's trace and this recording do not overlap in time")
        tids = {one.tid for one in self.threads}
        renamed = ("thread_name", "thread_sort_index")
        kept = (
            one
            for one in events
            if not (one.get("name") in renamed and one.get("pid") == self.pid and one.get("tid") in tids)
        )
        return self._document({key: value for key, value in torch.items() if key != "traceEvents"}, kept)

    def _document(self, head: JsonObject, events: Iterable[JsonObject]) -> Iterator[str]:
        """Yields one line per event: first `events`, then the threads' names and spans."""
        yield json.dumps({**head, "headrace": self.about})[:-1] + ', "traceEvents": ['
        before = "\n"
        for event in chain(events, self._names()):
            yield before + json.dumps(event)
            before = ",\n"
        for block in self._blocks(self.offset_ns - int(head[_BASE])):
            yield before + block
            before = ",\n"
        yield "\n]}\n"

    def _names(self) -> Iterator[JsonObject]:
        """Yields the events that set names and order of the threads."""
        for place, one in enumerate(sorted(self.threads, key=lambda one: (one.thread, one.tid))):
            for what, value in (("name", one.thread), ("sort_index", place)):
                name = f"thread_{what}"
                yield {"ph": "M", "name": name, "pid": self.pid, "tid": one.tid, "args": {what: value}}

    def _blocks(self, shift: int) -> Iterator[str]:
        """Yields the spans, one per line; `shift` (ns) is added to the threads' clock to get times on the axis."""
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
