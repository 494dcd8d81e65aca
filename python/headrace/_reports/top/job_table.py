"""One job in a terminal: the verdict on its ranks, and a line for each rank."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderResult
from rich.table import Table
from rich.text import Text

from headrace._reports.metrics.process_figures import LoaderFigures
from headrace._reports.ranks.rank_figures import JobVerdict
from headrace._reports.top.bars import BAD, QUIET, labelled, per_second, strip_control_characters
from headrace._reports.top.discovery import Found

_LABEL = len("straggler") + 2


def newest_verdicts(found: Sequence[Found]) -> list[JobVerdict]:
    """Returns the newest verdict on each job."""
    newest: dict[str, JobVerdict] = {}
    for job in (one.figures.job for one in found if one.alive):
        if job is not None and (job.job not in newest or job.at > newest[job.job].at):
            newest[job.job] = job
    return list(newest.values())


def ranks_of(job: JobVerdict, found: Sequence[Found]) -> list[Found]:
    """Returns the processes of a job, by rank."""
    ours = [one for one in found if one.figures.job is not None and one.figures.job.job == job.job]
    return sorted(ours, key=lambda one: one.figures.rank)


def render_job(job: JobVerdict, ranks: Sequence[Found]) -> RenderResult:
    """Yields the verdict on a job, and its ranks.

    Args:
        ranks: those of this machine, in order.
    """
    yield Text(f"job of {job.ranks} ranks", style="bold")
    for line in str(job).splitlines():
        name, _, rest = strip_control_characters(line).partition(": ")
        bad = name == "straggler" and job.straggler >= 0
        yield labelled(name, Text(rest, style=BAD if bad else ""), _LABEL)
    if len(ranks) < 2:
        return
    yield Text()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=QUIET)
    for name in ("rank", "process", "progress", "speed", "works", "costs all", "bottleneck"):
        table.add_column(name, justify="left" if name == "bottleneck" else "right", no_wrap=True)
    for one in ranks:
        style = BAD if one.figures.rank == job.straggler else ""
        loader = _busiest(one)
        cost = job.costs.get(str(one.figures.rank))
        table.add_row(
            str(one.figures.rank),
            str(one.figures.pid),
            "-" if loader is None else share_done(loader),
            "-" if loader is None or loader.ended else f"{per_second(loader.speed)}/s",
            "-" if loader is None or loader.ended else f"{loader.working:.0%}",
            f"{cost:.0%}" if isinstance(cost, (int, float)) else "-",
            "-" if loader is None else strip_control_characters(loader.bottleneck),
            style=style,
        )
    yield table


def _busiest(one: Found) -> LoaderFigures | None:
    return max(one.figures.loaders, key=lambda loader: (not loader.ended, loader.batch), default=None)


def share_done(one: LoaderFigures) -> str:
    """Returns how much of its epoch a loader has handed out."""
    if one.ended:
        return "ended"
    return f"{one.batch / one.batches:.0%}" if one.batches > 0 else f"{one.batch:,}"
