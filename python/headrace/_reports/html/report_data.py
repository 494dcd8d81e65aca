"""What a report shows: a recording of batches, the files that they are from, and pictures; sections may be missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace._reports.loader.timeline import StageTime, ThreadTimeline


@dataclass(frozen=True)
class Progress:
    """What was delivered over time.

    Attributes:
        unit: what `counts` are: ``"samples"`` or ``"batches"``.
        times_s: when each batch was handed out, in seconds from the beginning.
        counts: how many units each brought.
    """

    unit: str
    times_s: Sequence[float]
    counts: Sequence[int]

    @property
    def per_second(self) -> float:
        """The mean over the whole time."""
        return sum(self.counts) / self.times_s[-1] if self.times_s and self.times_s[-1] > 0 else 0.0


@dataclass(frozen=True)
class SlowFile:
    """A file, and how long one thread took for it."""

    location: str
    format: str
    megapixels: float
    kilobytes: float
    read_ms: float
    decode_ms: float


@dataclass(frozen=True)
class Picture:
    """An image of the contact sheet: a ``data:`` address, and its label."""

    address: str
    caption: str


@dataclass
class Facts:
    """The content of a report.

    Attributes:
        title: what the report is about.
        about: (name, value) of the loader, for a table.
        verdict: lines; the first is the shortest.
        job: the lines of the verdict on all ranks of the job, where they publish.
        stages: sums by kind of thread and stage.
        recorded_s: duration of the recording.
        threads: the timeline.
        machine: facts about it, by name.
        explanation: what runs where, as a table of text.
        samples: number of samples of the dataset.
        slowest: the slowest of `examined` files.
        widths, heights, bytes: of the examined files.
        failed: (location, reason).
        notes: sentences about what is missing, and why.
    """

    title: str
    about: list[tuple[str, str]] = field(default_factory=list)
    verdict: list[str] = field(default_factory=list)
    job: list[str] = field(default_factory=list)
    progress: Progress = field(default_factory=lambda: Progress("samples", (), ()))
    stages: Sequence[StageTime] = ()
    recorded_s: float = 0.0
    threads: Sequence[ThreadTimeline] = ()
    machine: dict[str, object] = field(default_factory=dict)
    explanation: str = ""
    pictures: list[Picture] = field(default_factory=list)
    slowest: list[SlowFile] = field(default_factory=list)
    samples: int = 0
    examined: int = 0
    formats: dict[str, int] = field(default_factory=dict)
    widths: list[int] = field(default_factory=list)
    heights: list[int] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
