"""Facts of a trace that ``headrace.profile`` exported."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from headrace._reports.html.report_data import Facts, Progress
from headrace._reports.loader import chrome_trace
from headrace._reports.loader.timeline import ThreadTimeline, sum_stage_times


def facts_of(path: Path) -> Facts:
    """Returns what a trace shows: timeline, sums of the stages, batches over time.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no trace of ``headrace.profile``.
    """
    try:
        trace = chrome_trace.read_trace(path)
        about = trace["headrace"]
        threads = _threads(trace["traceEvents"])
        recorded = float(about["recorded_s"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a trace that headrace.profile exported: {error}") from None
    facts = Facts(path.name, [("recorded", f"{recorded:.3f} s")], threads=threads, recorded_s=recorded)
    facts.stages = sum_stage_times(threads, max(recorded, 1e-9), per_thread=False)
    facts.progress = _progress(threads)
    if about.get("dropped_spans"):
        facts.notes.append(f"{about['dropped_spans']:,} spans are missing from the trace: there were too many.")
    facts.notes.append("The trace holds neither the loader nor its files, so the page has no verdict and no pictures.")
    return facts


def _threads(events: list[chrome_trace.JsonObject]) -> list[ThreadTimeline]:
    names: dict[tuple[Any, Any], str] = {}
    spans: dict[tuple[Any, Any], list[tuple[str, float, float, int]]] = defaultdict(list)
    for one in events:
        who = (one.get("pid"), one.get("tid"))
        if one.get("ph") == "M" and one.get("name") == "thread_name":
            names[who] = str(one["args"]["name"])
        elif one.get("ph") == "X" and one.get("cat") == "headrace":
            spans[who].append((str(one["name"]), float(one["ts"]), float(one["dur"]), int(one["args"]["items"])))
    made = []
    for who, held in spans.items():
        stages = tuple(dict.fromkeys(name for name, *_ in held))
        begins = np.array([1e3 * begin for _, begin, _, _ in held]).round().astype(np.int64)
        durations = np.array([1e3 * length for _, _, length, _ in held]).round().astype(np.int64)
        made.append(
            ThreadTimeline(
                names.get(who, f"thread {who[1]}"),
                int(who[1]),
                stages,
                np.array([stages.index(name) for name, *_ in held], np.int64),
                begins,
                begins + durations,
                np.array([items for *_, items in held], np.int64),
            )
        )
    return made


def _progress(threads: list[ThreadTimeline]) -> Progress:
    ends = [one.spans_of("__next__")[1] for one in threads]
    handed = np.sort(np.concatenate(ends)) if ends else np.empty(0, np.int64)
    begin = min((int(one.begin_ns.min()) for one in threads if len(one.begin_ns)), default=0)
    return Progress("batches", ((handed - begin) / 1e9).tolist(), [1] * len(handed))
