"""A model of the pipeline: how long a batch takes if the slowest of its parts sets the pace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from headrace._engine.counters.epoch_timing import Step
from headrace._loading.bottleneck.batch_cost import RECORDS, Load, Setting

_DELAYED = 0.15  # share of the wish to run, above which other programs or threads are said to take the cores
_BUSY_INTERPRETER = 0.4  # a holder without a core keeps it, too
_ALL_THE_TIME = 0.8  # share of the time in which Python threads keep it, above which nothing else can be the limit
# Seconds on a core for which torch's workers and their parent hand a batch over (pickling, threads, descriptors),
# whatever its size. On a Zen 4 1.3 to 1.5 ms where samples cost nothing, 2.0 to 2.9 where they use caches.
_BETWEEN_PROCESSES = 0.002
_CROWDED = 1.5  # threads that want to run at the same time, per core


def seconds_by_part(load: Load) -> dict[str, float]:
    """Returns the seconds per batch below which each part cannot go, by part.

    "consumer": its own work. "workers": their threads. "pillow", "video", "python", "collate_fn": Python threads.
    "records": the threads that make images from records. "cores": all work on all cores. Without threads "turns": the
    consumer's work and the making of the batch, one after the other.
    """
    setting = load.setting
    if setting.threads == 0:
        return {"turns": load.own + load.blocked}
    found = {
        "consumer": load.own - (load.own_delayed if is_crowded(load) else 0.0),
        "workers": (load.cpu + load.delayed + load.stuck) / setting.threads,
    }
    threads = {"collate_fn": setting.collating, RECORDS: setting.making}
    for name, seconds in load.lanes.items():
        found[name] = seconds / threads.get(name, setting.threads)
    return {**found, "cores": load.all_cpu / setting.cores}


def predict_period(load: Load) -> float:
    """Returns the modelled seconds from batch to batch."""
    return max(seconds_by_part(load).values())


def is_crowded(load: Load) -> bool:
    """Whether the process itself has many more threads that want to run than cores; then even the consumer's thread has
    to wait for one."""
    wished = load.all_cpu + load.delayed + load.python_delayed + load.own_delayed
    return max(wished, load.runnable * load.period) > _CROWDED * load.setting.cores * load.period


def is_slowed(load: Load) -> bool:
    """Whether its threads wait for cores longer than they run, though there would be one for each: other programs use
    them, and the figures tell as much of these."""
    delayed = load.delayed + load.python_delayed + load.own_delayed
    return not is_crowded(load) and delayed > load.all_cpu


def free_cores(load: Load) -> float:
    """Returns the cores that the process can have. Where its threads have to wait for cores, they get the same share of
    what they wish for as now, if they wish for all cores."""
    cores, delayed = load.setting.cores, load.delayed + load.python_delayed + load.own_delayed
    wished = load.all_cpu + delayed
    if not wished or not load.period or delayed / wished < _DELAYED:
        return cores
    return min(cores, max(cores, wished / load.period) * load.all_cpu / wished)


def interpreter_share(load: Load) -> float:
    """Returns the share of the time in which Python threads of the loader compute with the interpreter, at most;
    decoders, Pillow's and others, and the threads for records let it go."""
    busy = sum(load.lanes.values())
    if not busy or not load.period:
        return 0.0
    holding = (busy - load.lanes.get(load.setting.decoder, 0.0) - load.lanes.get(RECORDS, 0.0)) / busy
    return holding * load.python_cpu / load.period


def waits_for_interpreter(load: Load) -> bool:
    """Whether the consumer's thread may wait for the interpreter, which Python threads of the loader keep."""
    return interpreter_share(load) > _BUSY_INTERPRETER


def do_steps_hold_interpreter(load: Load) -> bool:
    """Whether Python threads keep the interpreter all the time: then they are the limit, however long the consumer's
    own steps look, which wait for it."""
    return load.setting.threads > 0 and interpreter_share(load) > _ALL_THE_TIME


def with_threads(load: Load, threads: int, cores: float) -> Load:
    """Returns the load with other numbers of threads and of free cores. No thread waits for a core any more: the term
    of the cores stands for that."""
    setting = load.setting
    lanes = dict(load.lanes)
    cpu, stuck, blocked = load.cpu, load.stuck, load.blocked
    if setting.threads == 0:  # what the consumer's thread made, others make
        stuck = min(load.stages.get("read", 0.0), max(0.0, load.period - load.other_cpu))
        cpu, blocked = max(0.0, load.blocked - stuck - sum(lanes.values())), 0.0
        cpu += 0.0 if setting.native else _BETWEEN_PROCESSES
    busy_interpreter = waits_for_interpreter(load)
    for name in (setting.decoder, "python"):
        if name in lanes:
            part = lanes[name] / sum(load.lanes.values())
            ran = load.python_cpu * part if setting.threads else lanes[name]
            asleep = 0.0 if busy_interpreter else max(0.0, lanes[name] - ran - load.python_delayed * part)
            lanes[name] = ran + asleep
            if name == "python":  # it may hold the interpreter all the time
                lanes[name] = max(lanes[name], ran * threads)
    ahead = replace(setting, threads=threads, cores=cores, depth=max(2, setting.depth))
    if setting.making and setting.threads:
        return _with_workers(load, ahead)
    if setting.threads == 0:
        other = max(0.0, load.other_cpu - load.blocked)
        python_cpu = sum(lanes.values())
        return replace(
            load, setting=ahead, cpu=cpu, stuck=stuck, blocked=blocked, lanes=lanes, other_cpu=other,
            python_cpu=python_cpu, delayed=0.0, python_delayed=0.0,
        )  # fmt: skip
    return replace(load, setting=ahead, lanes=lanes, delayed=0.0, python_delayed=0.0)


def _with_workers(load: Load, ahead: Setting) -> Load:
    """Returns the load with another number of workers, where the main process makes images from their records now."""
    made = load.lanes.get(RECORDS, 0.0) - load.python_delayed
    making = ahead.threads if ahead.on_device else making_threads(ahead.threads, ahead.cores)
    if making:
        lanes = {**load.lanes, RECORDS: made}
        return replace(load, setting=replace(ahead, making=making), lanes=lanes, delayed=0.0, python_delayed=0.0)
    lanes = {name: seconds for name, seconds in load.lanes.items() if name != RECORDS}
    return replace(
        load, setting=replace(ahead, making=0), cpu=load.cpu + made, lanes=lanes, python_cpu=0.0, delayed=0.0,
        python_delayed=0.0,
    )  # fmt: skip


def making_threads(workers: int, cores: float) -> int:
    """Returns the number of threads with which the main process makes the images of torch's workers from records
    (decision 0108), where batches stay in this machine's memory; 0: the workers make them.

    Records move work from a worker to threads of the main process, and add some: a file's bytes are copied, and its
    plan becomes objects under the interpreter's lock. So they pay where cores idle that the workers cannot use. With
    torchvision's training recipe on ImageNet's files, and two cores: one worker 1.64 times as fast, two workers 0.89,
    four 0.92; one worker on one core 0.94. The rule: at most half as many workers as cores. A worker that only reads
    and records takes about half of the time in which it makes the values, too, and less where files are large: so each
    feeds one thread or two, and more would only be awake.

    Args:
        cores: that this process may use, without those of other ranks.
    """
    idle = math.floor(cores) - workers
    return min(idle, 2 * workers) if 1 <= workers <= idle else 0


def simulate_consumer(steps: Sequence[Step], making: float, depth: int) -> float:
    """Returns the seconds from batch to batch of a consumer with these steps.

    Args:
        making: seconds in which the threads, all of them on one batch, make one.
        depth: batches in flight beyond the one in use. A batch is begun when the one `depth` before it is asked for.
    """
    asked: list[float] = []
    end = made = 0.0
    for number, step in enumerate(steps):
        begin = end + step.own / 1e9
        asked.append(begin)
        begun = asked[number - depth] if number >= depth else 0.0
        made = max(made, begun) + making
        end = max(begin, made) + step.handed / 1e9
    return end / len(steps) if steps else 0.0
