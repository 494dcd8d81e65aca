"""The metrics of this process's loaders, for every system that collects metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from headrace._reports.metrics.loader_registry import Loaders
from headrace._reports.metrics.loader_snapshot import Look
from headrace._reports.metrics.totals import Totals
from headrace._reports.ranks.rank_figures import JobVerdict

Labels = dict[str, str]


class Metric(NamedTuple):
    """One metric.

    Attributes:
        name: in words separated by ".", without prefix and unit.
        kind: "counter" only grows while a loader lives.
        unit: "s", "By" (bytes), "1", or what is counted in braces, as OpenTelemetry writes units.
        text: one line.
        points: values by labels.
    """

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    text: str
    points: list[tuple[Labels, float]]


_COUNTERS = (
    ("epochs", "epochs", "{epoch}", "Epochs begun."),
    ("batches", "batches", "{batch}", "Batches handed out."),
    ("samples", "samples", "{sample}", "Samples handed out; 0 where the samples of a batch are not known."),
    ("failed", "failed.samples", "{sample}", "Samples that were skipped or replaced."),
    ("bytes_read", "read", "By", "Bytes of samples that were read."),
    ("worked_s", "step", "s", "Time of the consumer's own steps."),
    ("waited_s", "wait", "s", "Time of the consumer in next()."),
    ("idle_s", "idle", "s", "Time that native threads waited for work, summed over threads."),
)
_BY_STAGE = (
    ("stage_s", "stage.busy", "s", "stage", "Time of the native threads by stage, summed over threads."),
    ("stage_samples", "stage.samples", "{sample}", "stage", "Samples by stage of the native threads."),
    ("python_s", "python.busy", "s", "part", "Time in Python by part, summed over threads."),
    ("helper_samples", "helper.samples", "{sample}", "helper", "Samples that other machines made."),
    ("helper_bytes", "helper.transferred", "By", "helper", "Bytes sent to other machines, and received from them."),
    ("helper_requests", "helper.requests", "{request}", "helper", "Requests that other machines answered."),
    ("helper_s", "helper.request", "s", "helper", "Time of these requests, summed over connections."),
    ("helper_failures", "helper.failures", "{request}", "helper", "Requests that other machines did not answer."),
)


def collect_metrics(loaders: Loaders) -> list[Metric]:
    """Returns all metrics of now. Counters count all epochs."""
    found = [(_labels(loaders, number, look), look, totals) for number, look, totals in loaders.looks()]
    counters = _counters([(labels, totals) for labels, _, totals in found])
    return [*counters, *_gauges(found), *_of_the_job(loaders.job if loaders.consumer.rank == 0 else None)]


def _labels(loaders: Loaders, number: int, look: Look) -> Labels:
    return {"loader": str(number), "dataset": look.dataset, "rank": str(loaders.consumer.rank)}


def _counters(found: list[tuple[Labels, Totals]]) -> Iterator[Metric]:
    for field, name, unit, text in _COUNTERS:
        yield Metric(name, "counter", unit, text, [(labels, getattr(totals, field)) for labels, totals in found])
    for field, name, unit, label, text in _BY_STAGE:
        points = [
            ({**labels, label: part}, value)
            for labels, totals in found
            for part, value in getattr(totals, field).items()
        ]
        yield Metric(name, "counter", unit, text, points)


def _gauges(found: list[tuple[Labels, Look, Totals]]) -> Iterator[Metric]:
    seen = [(labels, look) for labels, look, _ in found if look.stats is not None]
    workers = [(labels, float(look.workers)) for labels, look in seen]
    yield Metric("workers", "gauge", "{worker}", "Native threads, or torch's worker processes.", workers)
    yield Metric("epoch", "gauge", "1", "Number of the newest epoch.", [(one, float(look.epoch)) for one, look in seen])
    done = [(labels, look.batch / look.batches) for labels, look in seen if look.batches > 0]
    yield Metric("progress", "gauge", "1", "Share of the newest epoch that was handed out.", done)
    verdicts = [
        ({**labels, "bottleneck": look.stats.bottleneck, "certainty": look.stats.verdict.certainty}, 1.0)
        for labels, look in seen
    ]
    yield Metric("bottleneck", "gauge", "1", "1 for the bottleneck of the newest epoch.", verdicts)
    helpers = [
        ({**labels, "helper": address, "version": work.version}, float(work.works))
        for labels, look in seen
        for address, work in look.stats.helpers.items()
    ]
    yield Metric(
        "helper.works",
        "gauge",
        "1",
        "1 for a helper that has not failed since its last answer, otherwise 0.",
        helpers,
    )


def _of_the_job(job: JobVerdict | None) -> Iterator[Metric]:
    """The verdict on all ranks, which rank 0 reports; the label is the rank that each value is about."""
    costs = [] if job is None else [({"rank": rank}, float(str(share))) for rank, share in job.costs.items()]
    text = "Share of the time in which all other ranks waited for a rank."
    yield Metric("rank.cost", "gauge", "1", text, costs)
    found = [] if job is None or job.straggler < 0 else [job]
    labels = [{"rank": str(one.straggler), "reason": one.reason, "certainty": one.certainty} for one in found]
    text = "1 for the rank that all others wait for."
    yield Metric("straggler", "gauge", "1", text, [(one, 1.0) for one in labels])
