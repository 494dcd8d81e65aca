"""Time statistics of a loader: busy time per stage, waiting on both sides, and the bottleneck."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.engine.engine import Engine
from headrace.epochs.state import Progress
from headrace.pillow.image_counts import ImageCounts
from headrace.remote.fetchers import traffic
from headrace.remote.traffic import Traffic

# The core times these stages for one sample in sixteen; `read` is timed for all samples.
_SAMPLED = ("header", "decode", "resize")
_ON_DEVICE = "device decode"
_CALLS = "python"


@dataclass(frozen=True)
class Stage:
    """One stage's work over all threads."""

    name: str
    items: int
    busy_s: float

    @property
    def ms_per_item(self) -> float:
        return 1e3 * self.busy_s / self.items if self.items else 0.0


@dataclass(frozen=True)
class Stats:
    """See ``DataLoader.stats``.

    Attributes:
        stages: read, header (with the plan), decode, resize (with everything fused into it), pillow. With transforms
            called in Python also "python"; "decode" then includes all native steps before the first of them. With a
            GPU also "device decode": the GPU's own decoders.
        idle_s: seconds that native threads waited for work, summed over threads.
        waited_s: seconds that the consumer waited for batches.
        threads: number of native threads.
        bottleneck: ``"consumer"``, a stage's name, ``"nothing yet"``, or a note that torch delivers.
        images: if torch delivers: how many of the images that were opened deferred got native pixels, and why others
            did not.
        remote: if samples were read from other machines: requests, retries, and how many samples the caches had; of all
            loaders of this process.
    """

    stages: tuple[Stage, ...]
    idle_s: float
    waited_s: float
    threads: int
    bottleneck: str
    images: ImageCounts | None = None
    remote: Traffic | None = None

    def __str__(self) -> str:
        if self.images is not None:
            return f"{self.images}\nbottleneck: {self.bottleneck}"
        lines = [f"{'stage':<10}{'samples':>10}{'busy s':>10}{'ms each':>10}"]
        lines += [f"{one.name:<10}{one.items:>10}{one.busy_s:>10.3f}{one.ms_per_item:>10.3f}" for one in self.stages]
        lines.append(
            f"{self.threads} threads idle {self.idle_s:.3f} s in all; the consumer waited {self.waited_s:.3f} s"
        )
        if self.remote is not None:
            lines.append(str(self.remote))
        lines.append(f"bottleneck: {self.bottleneck}")
        return "\n".join(lines)


def collect(engine: Engine | None, progress: Progress | None, threads: int) -> Stats:
    """Returns the statistics of an epoch from the counters of an engine, which may be closed.

    Args:
        threads: the loader's number of threads; an engine of several parts has as many for each.
    """
    if engine is None or progress is None:
        return Stats((), 0.0, 0.0, threads, "nothing yet")
    now = engine.stages()
    threads *= engine.engines
    if not now:  # a VariantEngine without a batch has no engines
        return Stats((), 0.0, 0.0, threads, "nothing yet")
    before = {name: (items, ns) for name, items, ns in progress.before}
    raw = {name: (items - before.get(name, (0, 0))[0], ns - before.get(name, (0, 0))[1]) for name, items, ns in now}
    on_device = raw.get(_ON_DEVICE, (0, 0))
    planned = max(0, raw["read"][0] - raw["pillow"][0])
    native = max(0, planned - on_device[0])
    stages = []
    for name in ("read", *_SAMPLED, "pillow", *([_CALLS] if _CALLS in raw else [])):
        items, ns = raw[name]
        if name in _SAMPLED and (items or raw["header"][0]):  # scaled from the timed samples to all native ones
            timed, items = max(1, items), planned if name == "header" else native
            ns = ns * items // timed
        stages.append(Stage(name, items, ns / 1e9))
    if on_device[0]:
        stages.append(Stage(_ON_DEVICE, on_device[0], on_device[1] / 1e9))
    idle, waited = raw["idle"][1] / 1e9, progress.waited_ns / 1e9
    busy = sum(one.busy_s for one in stages)
    if not busy:
        bottleneck = "nothing yet"
    elif progress.waited_ns < progress.lasted_ns / 2:  # the consumer was busy for most of the time
        bottleneck = "consumer"
    else:
        bottleneck = max(stages, key=lambda one: one.busy_s).name
    return Stats(tuple(stages), idle, waited, threads, bottleneck, remote=traffic())


def of_torch(workers: int, images: ImageCounts) -> Stats:
    """Returns the statistics of a loader whose batches torch delivers: counts of images alone."""
    return Stats((), 0.0, 0.0, workers, "not measured: torch's DataLoader delivers", images)
