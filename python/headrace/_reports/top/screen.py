"""Draws processes and their loaders, for a terminal of any width; 80 columns show everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from headrace._reports.metrics.process_figures import LoaderFigures
from headrace._reports.top.bars import (
    BAD,
    GOOD,
    QUIET,
    bar,
    curve,
    labelled,
    milliseconds,
    per_second,
    seconds,
    strip_control_characters,
)
from headrace._reports.top.discovery import Found
from headrace._reports.top.job_table import newest_verdicts, ranks_of, render_job, share_done

_IN_FULL = 2  # of more loaders, only the one whose consumer waits most is shown in full
_LATE = 5  # a file that is this many times older than it should be is of a process that is stopped
_QUIET_S = 5.0
_LABEL = 10


class Screen:
    """What the terminal shows at one time.

    Args:
        found: the processes.
        now: seconds since 1970.
    """

    def __init__(self, found: Sequence[Found], now: float) -> None:
        self._found, self._now = found, now

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self._width, self._ascii = options.max_width, options.ascii_only
        all_loaders = [(one, loader) for one in self._found for loader in one.figures.loaders]
        in_full = {id(loader) for _, loader in all_loaders}
        if len(all_loaders) > _IN_FULL:
            waiting = max(all_loaders, key=lambda both: (not both[1].ended, -both[1].working))[1]
            in_full = {id(waiting)}
        listed: set[int] = set()  # processes of which a line says enough
        jobs = newest_verdicts(self._found)
        for number, job in enumerate(jobs):
            if number:
                yield Text()
            ranks = ranks_of(job, self._found)
            yield from render_job(job, ranks)
            if len(all_loaders) > _IN_FULL:
                slow = [loader for one in ranks if one.figures.rank == job.straggler for loader in one.figures.loaders]
                in_full |= {id(loader) for loader in slow}
                listed |= {id(one) for one in ranks if self._trouble_of(one) == ""}
        shown = [
            one
            for one in self._found
            if id(one) not in listed or any(id(loader) in in_full for loader in one.figures.loaders)
        ]
        for number, one in enumerate(shown):
            if number or jobs:
                yield Text()
            yield from self._render_process(one)
            if len(all_loaders) > _IN_FULL and one.figures.loaders:
                yield self._overview_table(one.figures.loaders)
            for loader in one.figures.loaders:
                if id(loader) in in_full:
                    yield from self._render_loader(loader)

    # ---- a process ---------------------------------------------------------------------------------------------------

    def _render_process(self, one: Found) -> RenderResult:
        figures = one.figures
        rank = f", rank {figures.rank} of {figures.ranks}" if figures.ranks > 1 else ""
        line = Text(f"process {figures.pid}{rank}", style="bold", no_wrap=True, overflow="ellipsis")
        if one.command:
            line.append(f"  {strip_control_characters(one.command)}", style="not bold")
        yield line
        if trouble := self._trouble_of(one):
            yield Text(trouble, style=BAD)
        if not figures.loaders:
            yield Text("No loader has begun an epoch since the process publishes.")

    def _trouble_of(self, one: Found) -> str:
        """Returns why the figures of a process are not those of now; "" if they are."""
        age = max(0.0, self._now - one.figures.at)
        if not one.alive:
            return f"This process has ended; its last figures, {seconds(age)} old:"
        if age > _LATE * one.figures.every_s:
            return f"No news for {seconds(age)}: it is stopped, or a call keeps its interpreter busy."
        return ""

    def _overview_table(self, loaders: Sequence[LoaderFigures]) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for name in ("loader", "epoch", "progress", "speed", "works", "bottleneck"):
            table.add_column(name, justify="left" if name in ("loader", "bottleneck") else "right", no_wrap=True)
        for one in loaders:
            table.add_row(
                f"{one.number} {strip_control_characters(one.dataset)}"[:24],
                str(one.epoch),
                share_done(one),
                "-" if one.ended else f"{per_second(one.speed)} {one.unit}/s",
                "-" if one.ended else f"{one.working:.0%}",
                strip_control_characters(one.bottleneck),
            )
        return table

    # ---- a loader ----------------------------------------------------------------------------------------------------

    def _render_loader(self, one: LoaderFigures) -> RenderResult:
        workers = ("thread" if one.route == "native" else "worker") + ("" if one.workers == 1 else "s")
        size = "" if one.samples is None else f", {one.samples:,} samples"
        rule = "-" if self._ascii else "─"
        yield Text(rule * self._width, style=QUIET)
        route = {"native": "native", "deferred": "torch, native pixels", "torch": "torch"}.get(one.route, "")
        yield Text(
            f"loader {one.number}: {strip_control_characters(one.dataset)}{size}; {route}, {one.workers} {workers}",
            style="bold",
        )
        if one.trouble:
            yield Text(f"Its figures cannot be read now: {strip_control_characters(one.trouble)}", style=BAD)
        if not one.verdict:
            return
        yield from self._render_speed(one)
        if one.stages:
            yield Text()
            yield _stage_table(one)
        helpers: Any = one.stats.get("helpers", {})
        for address, work in helpers.items():
            yield Text(strip_control_characters(f"helper {address}: {_describe_helper(work, one.stats)}"))
        yield Text()
        for line in one.verdict:
            name, _, rest = strip_control_characters(line).partition(": ")
            yield labelled(name, Text(rest, style="bold" if name == "bottleneck" else ""), len("bottleneck") + 2)

    def _render_speed(self, one: LoaderFigures) -> RenderResult:
        wide = max(10, self._width - _LABEL - 36)
        done = f"{one.batch:,}" + (f" of {one.batches:,}" if one.batches >= 0 else "") + " batches"
        if one.batches > 0:
            progress = bar(one.batch / one.batches, wide, ("cyan", QUIET), self._ascii)
            progress.append(f"  {done}")
        else:
            progress = Text(done)
        if one.ended:
            progress.append(", ended")
        yield labelled(f"epoch {one.epoch}", progress, _LABEL)
        if not one.ended:
            yield from self._now_going_on(one, wide)
        for name, (p50, p99) in (("steps", one.step_ms), ("waits", one.wait_ms)):
            yield labelled(name, Text(f"p50 {milliseconds(p50)}, p99 {milliseconds(p99)}"), _LABEL)
        read = f"{one.bytes_read / 1e6:,.1f} MB read" if one.bytes_read else ""
        failed = f"{one.failed:,} samples failed" if one.failed else ""
        if read or failed:
            style = BAD if failed else ""
            yield labelled("samples", Text(", ".join(filter(None, (read, failed))), style=style), _LABEL)

    def _now_going_on(self, one: LoaderFigures, wide: int) -> RenderResult:
        text = Text(f"{per_second(one.speed)} {one.unit}/s".ljust(22) if one.recent_s else "not known yet")
        text.append(curve(one.speeds, wide, self._ascii) if one.recent_s else "", style="cyan")
        yield labelled("speed", text, _LABEL)
        if one.quiet_s > _QUIET_S:
            yield labelled("", Text(f"no batch was handed out for {seconds(one.quiet_s)}", style=BAD), _LABEL)
        if one.working > 0:
            shares = bar(one.working, wide, (GOOD, BAD), self._ascii)
            shares.append(f"  works {one.working:.0%}, waits {1 - one.working:.0%}")
            yield labelled("consumer", shares, _LABEL)


def _describe_helper(work: Any, stats: Any) -> str:
    """Returns what a helper has done in the epoch, and at which rate."""
    if work["refused"] or not work["version"]:
        return str(work["refused"] or work["trouble"] or "has not answered yet")
    took = sum(stats.get(name, {}).get("total_s", 0.0) for name in ("steps", "waits"))
    rate = f", {per_second(work['samples'] / took)}/s" if took else ""
    wait = f", {milliseconds(1e3 * work['seconds'] / work['requests'])} a request" if work["requests"] else ""
    made = f"{work['samples']:,} samples{rate}{wait}, {work['bytes'] / 1e6:,.0f} MB"
    reads = ", reads the files" if work.get("reads") else ""
    trouble = f": {work['trouble']}" if work.get("trouble") else ""
    return f"{made}, {work['failures']} requests failed{trouble}; headrace {work['version']}{reads}"


def _stage_table(one: LoaderFigures) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style=QUIET, padding=(0, 2, 0, 0))
    table.add_column("stage", min_width=14)
    for name in ("share", "ms a sample", "p50 ms", "p99 ms"):
        table.add_column(name, justify="right", min_width=8)
    for stage in one.stages:
        values = (f"{value:.3f}" for value in (stage.ms, stage.p50_ms, stage.p99_ms))
        table.add_row(strip_control_characters(stage.name), f"{stage.share:.0%}", *values)
    return table
