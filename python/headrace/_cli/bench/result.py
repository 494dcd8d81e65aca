"""What a comparison found: the conditions, each loader's speeds, and their summary as values for JSON."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from headrace._cli.bench.loaders import BASELINE, OURS


@dataclass
class Series:
    """The speeds of one loader with one number of workers, one a round."""

    samples_per_s: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.samples_per_s)

    @property
    def least(self) -> float:
        return min(self.samples_per_s)

    @property
    def most(self) -> float:
        return max(self.samples_per_s)


@dataclass
class Result:
    """A comparison, complete or interrupted.

    Attributes:
        dataset: what the user named.
        kind: class of the dataset.
        samples, timed: numbers of samples of the dataset, and of those in a timed epoch.
        recipe: name of the transforms.
        equality: what was compared before.
        machine: facts about it; see `_reports.loader.machine`.
        series: by (loader, number of workers).
        notes: sentences about what was left out.
        interrupted: whether the user ended the measurement early.
    """

    dataset: str
    kind: str
    samples: int
    timed: int
    recipe: str
    batch_size: int
    equality: str
    machine: dict[str, object]
    series: dict[tuple[str, int], Series] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def rounds(self) -> int:
        """Number of rounds that all loaders have completed."""
        return min((len(one.samples_per_s) for one in self.series.values()), default=0)

    def drop(self, name: str, why: str) -> None:
        """Leaves a loader out, with a note."""
        self.series = {place: one for place, one in self.series.items() if place[0] != name}
        self.notes.append(why)

    def sort_series(self) -> list[tuple[str, int, Series]]:
        """Returns (loader, workers, speeds): by workers, torch's first and headrace's last."""
        order = {BASELINE: 0, OURS: 2}
        places = sorted(self.series, key=lambda place: (place[1], order.get(place[0], 1), place[0]))
        return [(name, count, self.series[name, count]) for name, count in places]

    def ratio(self, name: str, count: int) -> float | None:
        """Returns the median over the rounds of speed / torch's speed in the same round; None without torch's."""
        theirs = self.series.get((BASELINE, count))
        if theirs is None:
            return None
        pairs = zip(self.series[name, count].samples_per_s, theirs.samples_per_s, strict=False)
        ratios = [ours / other for ours, other in pairs]
        return statistics.median(ratios) if ratios else None

    def as_dict(self) -> dict[str, object]:
        """Returns everything as values for JSON."""
        kept = ("dataset", "kind", "samples", "timed", "recipe", "batch_size", "equality", "machine", "notes")
        figures = [
            {
                "loader": name,
                "workers": count,
                "samples_per_s": one.samples_per_s,
                "median": one.median,
                "min": one.least,
                "max": one.most,
                "times_torch": self.ratio(name, count),
            }
            for name, count, one in self.sort_series()
        ]
        about = {name: getattr(self, name) for name in kept}
        return {**about, "rounds": self.rounds, "interrupted": self.interrupted, "figures": figures}
