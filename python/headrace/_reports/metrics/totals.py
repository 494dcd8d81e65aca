"""Sums over the epochs of a loader, which only grow while `stats()` begins again with each epoch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Totals:
    """What a loader has done.

    Attributes:
        epochs: number of epochs begun.
        batches, samples: handed out; `samples` is 0 where the samples of a batch are not known.
        bytes_read: of samples.
        failed: samples that were skipped or replaced.
        worked_s, waited_s: seconds of the consumer's own steps, and in ``next()``.
        idle_s: seconds that native threads waited for work, summed over threads.
        stage_s, stage_samples: seconds and samples by native stage, summed over threads.
        python_s: seconds in Python by part, as in ``Stats.python_s``.
        helper_samples, helper_bytes, helper_requests, helper_s, helper_failures: samples that other machines made,
            bytes there and back, requests that were answered, their seconds, and requests that failed, by addresses.
    """

    epochs: int = 0
    batches: int = 0
    samples: int = 0
    bytes_read: int = 0
    failed: int = 0
    worked_s: float = 0.0
    waited_s: float = 0.0
    idle_s: float = 0.0
    stage_s: dict[str, float] = field(default_factory=dict)
    stage_samples: dict[str, int] = field(default_factory=dict)
    python_s: dict[str, float] = field(default_factory=dict)
    helper_samples: dict[str, int] = field(default_factory=dict)
    helper_bytes: dict[str, int] = field(default_factory=dict)
    helper_requests: dict[str, int] = field(default_factory=dict)
    helper_s: dict[str, float] = field(default_factory=dict)
    helper_failures: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of_epoch(cls, stats: Any, samples: int, failed: int) -> Totals:
        """Returns the totals of one epoch, from its ``Stats``; `plus` adds epochs."""
        return cls(
            1,
            stats.waits.batches,
            samples,
            stats.bytes_read,
            failed,
            stats.steps.total_s,
            stats.waits.total_s,
            stats.idle_s,
            {one.name: one.busy_s for one in stats.stages},
            {one.name: one.items for one in stats.stages},
            dict(stats.python_s),
            {address: one.samples for address, one in stats.helpers.items()},
            {address: one.bytes for address, one in stats.helpers.items()},
            {address: one.requests for address, one in stats.helpers.items()},
            {address: one.seconds for address, one in stats.helpers.items()},
            {address: one.failures for address, one in stats.helpers.items()},
        )

    def plus(self, more: Totals) -> Totals:
        """Returns the sum of both."""
        return Totals(*(_sum_totals(getattr(self, one.name), getattr(more, one.name)) for one in fields(self)))

    def at_least(self, before: Totals) -> Totals:
        """Returns these totals, with no value below that of `before`."""
        return Totals(*(_greater_totals(getattr(self, one.name), getattr(before, one.name)) for one in fields(self)))


def _greater_totals(now: Any, before: Any) -> Any:
    if isinstance(now, dict):
        return {name: max(now.get(name, 0), before.get(name, 0)) for name in {**before, **now}}
    return max(now, before)


def _sum_totals(first: Any, second: Any) -> Any:
    if isinstance(first, dict):
        both: Counter[str] = Counter(first)
        for name, value in second.items():
            both[name] += value
        return dict(both)
    return first + second
