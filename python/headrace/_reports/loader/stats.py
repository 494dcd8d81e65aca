"""Time statistics of a loader: each stage, the waits on both sides, and the verdict on them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from headrace._base.control_group import cpu_quota
from headrace._base.cores import allowed_cores
from headrace._engine.counters.counters import Counters
from headrace._engine.counters.epoch_timing import EpochTiming
from headrace._engine.counters.helper_work import HelperWork
from headrace._engine.counters.percentiles import Durations, percentile
from headrace._engine.engine import Engine
from headrace._loading.autotune.tuner_summary import Tuned
from headrace._loading.bottleneck.batch_cost import STAGES, Setting
from headrace._loading.bottleneck.verdict import Verdict, judge
from headrace._loading.epoch.checkpoint import Progress
from headrace._loading.native.settings import Settings
from headrace._media.video.decoding_cost import DecodingCost
from headrace._reports.loader.markup import preformatted, table
from headrace._reports.loader.notebook_views import NotebookView
from headrace._storage.entry_points.entry_points import Entries
from headrace._storage.local_cache.local_caches import Kept, sum_caches
from headrace._storage.remote.fetcher_registry import Traffic, traffic
from headrace.pillow.recording.image_counts import ImageCounts

# The core times these stages for one sample in sixteen; `read` is timed for all samples.
_SAMPLED = ("header", "memory", "decode", "resize")
_ON_DEVICE = "device decode"
_CALLS = "python"


@dataclass(frozen=True)
class Stage:
    """One stage's work over all threads.

    Attributes:
        items: samples.
        busy_s: seconds, summed over threads.
        p50_ms, p99_ms: half of the samples and 99 in 100 took no longer, within 12%; 0 where they are not counted.
    """

    name: str
    items: int
    busy_s: float
    p50_ms: float = 0.0
    p99_ms: float = 0.0

    @property
    def ms_per_item(self) -> float:
        return 1e3 * self.busy_s / self.items if self.items else 0.0


@dataclass(frozen=True)
class Spread:
    """Durations of one kind in the consumer's thread, one a batch.

    Attributes:
        total_s: their sum, in seconds.
        p50_ms, p99_ms: as in `Stage`.
    """

    batches: int = 0
    total_s: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0

    @classmethod
    def of(cls, durations: Durations, total_ns: int) -> Spread:
        """Returns the summary of counted durations."""
        halves = (1e3 * percentile(durations.counts, share) for share in (0.5, 0.99))
        return cls(sum(durations.counts), total_ns / 1e9, *halves)


_HEADS = ("stage", "samples", "busy s", "ms each", "p50 ms", "p99 ms")


@dataclass(frozen=True, repr=False)
class Stats(NotebookView):
    """See ``DataLoader.stats``.

    Attributes:
        stages: of images read, header (with the plan), memory (the system clears each page of new batch memory when it
            is first written to; left out where there was none), decode, resize (with everything fused into it), pillow.
            With transforms called in Python also "python"; "decode" then includes all native steps before the first of
            them. With a GPU also "device decode": the GPU's own decoders. Of audio read, which makes the samples of
            plain WAV files, and codecs: torchcodec and libsndfile. Of videos only "video": frames decoded, resized and
            stored by Python threads. Where torch delivers, only what this process and a device make from records.
        idle_s: seconds that native threads waited for work, summed over threads: all batches in flight were made, and
            the consumer had not requested the next one.
        waited_s: seconds that the consumer spent in ``next()``.
        threads: number of native threads, or of torch's workers.
        verdict: the bottleneck, how sure that is, and what would help most.
        images: if torch delivers: how many of the images that were opened deferred got native pixels, and why others
            did not.
        bytes_read: bytes of the samples' files or memory.
        steps: the consumer's own work between two batches.
        waits: its calls of ``next()``.
        python_s: seconds in Python, summed over threads: "pillow" or "codecs", "python", "collate_fn", "out_transform",
            and "submit", which is the order and the random numbers.
        remote: if samples were read from other machines: requests, retries, and how many samples the caches had; of all
            loaders of this process.
        cache: if a dataset of this process keeps the bytes of local files: how many samples were found; of all loaders
            of the process.
        tuned: with ``num_workers="auto"``: the numbers that were chosen, and why.
        entry_points: of all loaders that share them.
        samples: handed out; 0 where torch delivers, whose batches may be anything.
        videos: if frames of videos were decoded by an index of their packets: how many, and how many were wanted.
        helpers: what other machines have made, by their addresses. The stages count what was made here.
        mixture: of a Mixture: how many samples of each dataset the epoch has had, on all ranks together, by name.
    """

    stages: tuple[Stage, ...]
    idle_s: float
    waited_s: float
    threads: int
    verdict: Verdict
    images: ImageCounts | None = None
    bytes_read: int = 0
    steps: Spread = Spread()
    waits: Spread = Spread()
    python_s: dict[str, float] = field(default_factory=dict)

    @property
    def bottleneck(self) -> str:
        """The verdict's bottleneck."""
        return self.verdict.bottleneck

    @property
    def records(self) -> dict[str, int]:
        """If torch delivers and the main process makes images from records: how many were decoded there by its threads
        ("native"), by the device's decoder ("device"), and, of damaged files, by the library whose function the
        program called ("library"). A file is decoded once for each tensor that is made of it."""
        if self.images is None or not self.stages:
            return {}
        items = {one.name: one.items for one in self.stages}
        device, library = items.get(_ON_DEVICE, 0), items["pillow"]
        return {"native": items["read"] - device - library, "device": device, "library": library}

    def _write_records(self) -> str:
        """Returns `records` as words."""
        named = {"native": "native threads", "device": "the device's decoder", "library": "the program's library"}
        return ", ".join(f"{count} by {named[what]}" for what, count in self.records.items() if count) or "none yet"

    def as_dict(self) -> dict[str, Any]:
        """Returns all values as nested dicts, for a logger or JSON."""
        values = asdict(replace(self, images=None))
        if self.images is not None:
            values["images"] = {
                "native": self.images.native,
                "by_door": dict(self.images.natively + self.images.recorded),
                "recorded": self.images.recorded.total(),
                "made_from_records": self.records,
                "not_recorded": dict(self.images.here),
                "fields": dict(self.images.fields),
                "by_library": self.images.by_library(),
                "indexes": dict(self.images.origins),
            }
        return values

    remote: Traffic | None = None
    cache: Kept | None = None
    tuned: Tuned | None = None
    entry_points: Entries | None = None
    samples: int = 0
    videos: DecodingCost | None = None
    helpers: dict[str, HelperWork] = field(default_factory=dict)
    mixture: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        rows = [] if self.images is not None and not self.stages else [_HEADS, *self._rows()]
        lines = [f"{first:<10}" + "".join(f"{cell:>10}" for cell in rest) for first, *rest in rows]
        return "\n".join((*lines, *self._sentences()))

    def _repr_html_(self) -> str:
        stages = table(_HEADS, self._rows(), numbers=5) if self.stages else ""
        sentences = "\n".join(self._sentences())
        return stages + preformatted(sentences)

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (one.name, str(one.items), *(f"{n:.3f}" for n in (one.busy_s, one.ms_per_item, one.p50_ms, one.p99_ms)))
            for one in self.stages
        ]

    def _sentences(self) -> list[str]:
        helped = [f"helper {address} {work}" for address, work in self.helpers.items()]
        if self.images is not None:
            learned = [] if self.entry_points is None else [str(self.entry_points)]
            delivers = "torch's DataLoader delivers"
            fields = [f"batch{name}: {where}" for name, where in self.images.fields.items()]
            made = [f"from records, in this process: {self._write_records()}"] if self.records else []
            said = [str(self.images), *fields, *made, *helped, delivers, *learned]
            return [*said, *self._consumer_sentences(), str(self.verdict)]
        read = f"{self.bytes_read / 1e6:,.1f} MB read; "
        idle = (
            f"{read}{self.threads} threads idle {self.idle_s:.3f} s in all; the consumer waited {self.waited_s:.3f} s"
        )
        more = [str(one) for one in (self.remote, self.cache, self.entry_points, self.videos) if one is not None]
        return [idle, *more, *helped, *self._consumer_sentences(), str(self.verdict)]

    def _consumer_sentences(self) -> list[str]:
        named = (("the consumer's own steps", self.steps), ("its calls of next()", self.waits))
        chosen = [] if self.tuned is None else [str(self.tuned)]
        if self.mixture:
            counts = ", ".join(f"{name} {count:,}" for name, count in self.mixture.items())
            chosen.append(f"samples of the epoch so far, on all ranks: {counts}")
        return chosen + [
            f"{name}: {one.total_s:.3f} s, p50 {one.p50_ms:.3f} ms, p99 {one.p99_ms:.3f} ms"
            for name, one in named
            if one.batches
        ]


def _cores_available() -> float:
    quota = cpu_quota()
    return float(allowed_cores()) if quota is None else min(float(allowed_cores()), quota)


def collect(
    engine: Engine | None,
    progress: Progress | None,
    settings: Settings,
    collating: int,
    far: bool,
    judged: bool = True,
    *,
    helpable: bool = False,
) -> Stats:
    """Returns the statistics of an epoch from the counters of an engine, which may be closed.

    Args:
        settings: of the loader; an engine of several parts has as many threads for each.
        collating: number of threads that call the collate_fn.
        far: whether samples are in other machines.
        judged: whether there is a verdict; otherwise that is "nothing yet".
        helpable: whether other machines can make a part of the samples.
    """
    threads = settings.num_workers * (1 if engine is None else engine.engines)
    decoder = "pillow" if engine is None else engine.decoder
    nothing = judge([], [], Setting(threads, _cores_available()))
    if engine is None or progress is None or progress.pace is None:
        return Stats((), 0.0, 0.0, threads, nothing)
    counted, pace = engine.counters().since(progress.before), progress.pace
    if not counted.stages:  # a BucketedEngine without a batch has no engines
        return Stats((), 0.0, 0.0, threads, nothing)
    # Of samples of several fields only the threads for images are counted; of engines for each size, one works.
    counting = min(threads, counted.working) if counted.working else threads
    helpers = len(counted.helpers) if helpable else None
    setting = Setting(
        counting,
        _cores_available(),
        settings.depth,
        collating,
        decoder=decoder,
        helpers=helpers,
        frames=counted.videos.of_each,
        frames_of_short=counted.videos.of_each_with_short,
    )
    stages = _stages_from_counters(counted, decoder)
    typical = {one.name: one.items * one.p50_ms for one in stages if one.name in STAGES}
    python = {name: counted.stages[name][1] / 1e9 for name in (decoder, _CALLS) if name in counted.stages}
    return Stats(
        stages,
        counted.stages["idle"][1] / 1e9,
        pace.waited_ns / 1e9,
        threads,
        judge(list(pace.marks), list(pace.recent), setting, typical, pace.earlier) if judged else nothing,
        None,
        counted.bytes_read,
        *_step_and_wait_spreads(pace),
        {**python, **{name: ns / 1e9 for name, ns in pace.parts().items()}},
        traffic() if far else None,
        sum_caches(),
        samples=pace.samples,
        videos=counted.videos if counted.videos.wanted or counted.videos.on_device else None,
        helpers=counted.helpers,
    )


def _step_and_wait_spreads(pace: EpochTiming) -> tuple[Spread, Spread]:
    return Spread.of(pace.steps, pace.stepped_ns), Spread.of(pace.waits, pace.waited_ns)


def _stages_from_counters(counted: Counters, decoder: str) -> tuple[Stage, ...]:
    raw = counted.stages
    if decoder == "video":
        items, ns = raw["video"]
        halves = (1e3 * percentile(counted.durations.get("video", ()), share) for share in (0.5, 0.99))
        return (Stage("video", items, ns / 1e9, *halves),)
    on_device = raw.get(_ON_DEVICE, (0, 0))
    planned = max(0, raw["read"][0] - raw[decoder][0])
    native = max(0, planned - on_device[0])
    stages = []
    for name in ("read", *(_SAMPLED if decoder == "pillow" else ()), decoder, *([_CALLS] if _CALLS in raw else [])):
        items, ns = raw[name]
        if name == "memory":  # of the timed samples, those in new memory
            if not items:
                continue
            timed = max(1, raw["decode"][0])
            items, ns = items * native // timed, ns * native // timed
        elif name in _SAMPLED and (items or raw["header"][0]):  # scaled from the timed samples to all native ones
            timed, items = max(1, items), planned if name == "header" else native
            ns = ns * items // timed
        halves = (1e3 * percentile(counted.durations.get(name, ()), share) for share in (0.5, 0.99))
        stages.append(Stage(name, items, ns / 1e9, *halves))
    if on_device[0]:
        stages.append(Stage(_ON_DEVICE, on_device[0], on_device[1] / 1e9))
    return tuple(stages)


def stats_of_torch(
    workers: int,
    images: ImageCounts,
    pace: EpochTiming | None,
    judged: bool = True,
    from_records: Counters | None = None,
    *,
    making: int = 0,
    on_device: bool = False,
) -> Stats:
    """Returns the statistics of a loader whose batches torch delivers: counts of images, and the consumer's times.

    Args:
        from_records: what was counted where this process and a device make images from records; None: they make none.
        making, on_device: the threads that do, and whether these images end on a device.
    """
    setting = Setting(workers, _cores_available(), native=False, making=making, on_device=on_device)
    found = _stats_of_torch(setting, images, pace, judged)
    if from_records is None or not from_records.stages:
        return found
    stages = _stages_from_counters(from_records, "pillow")
    idle_s, python = from_records.stages["idle"][1] / 1e9, from_records.stages["pillow"][1] / 1e9
    return replace(
        found,
        stages=stages,
        idle_s=idle_s,
        bytes_read=from_records.bytes_read,
        python_s={"pillow": python},
        helpers=from_records.helpers,
    )


def _stats_of_torch(setting: Setting, images: ImageCounts, pace: EpochTiming | None, judged: bool) -> Stats:
    nothing = judge([], [], setting)
    if pace is None:
        return Stats((), 0.0, 0.0, setting.threads, nothing, images)
    verdict = judge(list(pace.marks), list(pace.recent), setting, None, pace.earlier) if judged else nothing
    steps, waits = _step_and_wait_spreads(pace)
    return Stats((), 0.0, waits.total_s, setting.threads, verdict, images, 0, steps, waits)
