"""What one batch costs whom: the measured quantities that the model and the verdict work with."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace._engine.counters.epoch_timing import Mark

#: Stages of native threads. All but the first are timed for one sample in sixteen, so only their shares count.
STAGES = ("read", "header", "memory", "decode", "resize")
# A consumer that waits for a smaller share has batches that are ready: torch's workers have no work then.
_HARDLY = 0.1
# Threads that make images from records and are busy for a larger share have batches that wait for them: nor have they.
_NEARLY_ALL = 0.8
RECORDS = "records"


@dataclass(frozen=True)
class Setting:
    """How a loader runs.

    Attributes:
        threads: native threads or worker processes; 0: the consumer's thread makes each batch.
        cores: CPU cores that the process may use; a fraction under a quota.
        depth: batches in flight beyond the one in use.
        collating: threads that call the collate_fn; 0: the consumer's thread does.
        native: whether headrace's threads deliver, not torch's DataLoader.
        decoder: the stage of the files that Python threads decode: "pillow", "video", or "codecs" of audio.
        making: threads of the main process that make images from records of torch's workers.
        on_device: whether these end on a device, where the main process makes them with any number of workers.
        helpers: other machines that make a part of the samples; None: none can.
        frames: that are decoded for each one of a clip; 0: no videos.
        frames_of_short: the same with a key frame every `decoding_cost.SHORT_GROUP` frames.
    """

    threads: int
    cores: float
    depth: int = 2
    collating: int = 0
    native: bool = True
    decoder: str = "pillow"
    making: int = 0
    on_device: bool = False
    helpers: int | None = None
    frames: float = 0.0
    frames_of_short: float = 0.0


@dataclass(frozen=True)
class Load:
    """Seconds per batch, each summed over its threads.

    Attributes:
        batches: number of batches that this is the mean of.
        period: time from batch to batch.
        step: the consumer's own work.
        blocked: the consumer's wait for the threads; without threads, the making of the batch.
        handed: the rest of ``next()``, in the consumer's thread, by part.
        cpu, delayed, stuck, idle: what the workers do: run on a core; ready to run, without a core; neither, which is a
            wait for storage or, in torch's workers, also for work; wait for work.
        stages: the workers' busy time by stage.
        lanes: time of Python threads by job, the decoder's stage, "python", "collate_fn"; with waits for a core between
            jobs. "records": that of the threads that make images from records.
        python_cpu, python_delayed: what these threads ran on a core, and waited for one.
        runnable: mean number of the process's threads that run or could, also of those that are woken in vain.
        own_delayed: part of the consumer's own time in which it waited for a core.
        other_cpu: time on cores of all other threads of the process, the consumer's and its libraries'.
    """

    setting: Setting
    batches: int
    period: float
    step: float
    blocked: float = 0.0
    handed: dict[str, float] = field(default_factory=dict)
    cpu: float = 0.0
    delayed: float = 0.0
    stuck: float = 0.0
    idle: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    lanes: dict[str, float] = field(default_factory=dict)
    python_cpu: float = 0.0
    python_delayed: float = 0.0
    other_cpu: float = 0.0
    own_delayed: float = 0.0
    runnable: float = 0.0

    @property
    def own(self) -> float:
        """Time of the consumer's thread that is not a wait."""
        return self.step + sum(self.handed.values())

    @property
    def all_cpu(self) -> float:
        """Time on cores of the process and its workers."""
        return self.cpu + self.python_cpu + self.other_cpu


def mean_load_between(begin: Mark, end: Mark, setting: Setting) -> Load:
    """Returns the mean load of the batches between two marks."""
    batches = end.batches - begin.batches
    each = 1.0 / (1e9 * batches)
    elapsed = end.at_ns - begin.at_ns
    own, blocked, handed = (now - then for now, then in zip(end.steps, begin.steps, strict=True))
    parts = {name: ns - begin.parts.get(name, 0) for name, ns in end.parts.items()}
    counted = {name: ns - begin.seen.stages.get(name, 0) for name, ns in end.seen.stages.items()}
    items = {name: count - begin.seen.items.get(name, 0) for name, count in end.seen.items.items()}
    lanes = {name: float(counted[name]) for name in (setting.decoder, "python", RECORDS) if counted.get(name)}
    if setting.collating and "collate_fn" in parts:
        lanes["collate_fn"] = float(parts.pop("collate_fn"))
    named = min(handed, sum(parts.values()))
    handing = {**parts, "hand_over": handed - named}
    workers = end.seen.workers.since(begin.seen.workers)
    python = end.seen.python.since(begin.seen.python)
    taken, caller = sum(python), end.caller.since(begin.caller).delayed_ns
    if taken > sum(lanes.values()) > 0:  # between two jobs a thread may wait for a core, too
        lanes = {name: ns * taken / sum(lanes.values()) for name, ns in lanes.items()}
    process = end.process_ns - begin.process_ns
    there = elapsed * (end.seen.count or setting.threads)
    if setting.native:
        idle = min(there, counted.get("idle", 0))
        other = process - workers.ran_ns - python.ran_ns
    else:
        idle, other = 0, process - python.ran_ns
    ran = min(workers.ran_ns, there - idle)
    delayed = min(workers.delayed_ns, there - idle - ran)
    stuck = there - idle - ran - delayed if setting.threads else 0
    are_ready = blocked < _HARDLY * elapsed or lanes.get(RECORDS, 0) > _NEARLY_ALL * setting.making * elapsed
    if not setting.native and are_ready:
        idle, stuck = stuck, 0
    return Load(
        setting,
        batches,
        elapsed * each,
        own * each,
        blocked * each,
        {name: ns * each for name, ns in handing.items()},
        ran * each,
        delayed * each,
        stuck * each,
        idle * each,
        {name: ns * each for name, ns in _scale_stages(counted, items, setting.decoder).items()},
        {name: ns * each for name, ns in lanes.items()},
        python.ran_ns * each,
        python.delayed_ns * each,
        max(0, other) * each,
        min(own + handed, caller) * each,
        (max(0, other) + caller + sum(workers) + taken) / elapsed,
    )


def _scale_stages(counted: dict[str, int], items: dict[str, int], decoder: str) -> dict[str, float]:
    """Returns the busy time of each native stage, scaled from the timed samples to all that were decoded natively."""
    planned = items.get("read", 0) - items.get(decoder, 0) - items.get("device decode", 0)
    found: dict[str, float] = {}
    for name in STAGES:
        if name in counted:
            timed = items["decode" if name == "memory" else name]  # new memory is among the timed samples at times
            scale = 1.0 if name == "read" else max(0, planned) / max(1, timed)
            found[name] = counted[name] * scale
    return found
