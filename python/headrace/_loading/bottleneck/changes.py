"""The changes that a user could make, and what the model expects of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from headrace._engine.counters.epoch_timing import Step
from headrace._loading.bottleneck.batch_cost import Load
from headrace._loading.bottleneck.model import (
    do_steps_hold_interpreter,
    free_cores,
    is_crowded,
    predict_period,
    seconds_by_part,
    simulate_consumer,
    waits_for_interpreter,
    with_threads,
)
from headrace._loading.bottleneck.verdict_reasons import cores_in_words
from headrace._media.video.decoding_cost import SHORT_GROUP

_SENT = 0.37  # of the time of making a sample: what it costs this machine if a helper makes it (decision 0110)
_OTHER_MACHINES = 0.8  # more cores of this machine are advised before them if they bring that share of the gain
_ENOUGH = 0.03  # a smaller setting is advised if it comes this close to the best
_OF_PILLOW = 0.07  # share of Pillow's time for PNG files of 300 x 300 that the native path takes for JPEG files of them
_EXPLAINED = 0.9  # share of the period that the slowest part makes up if steps hardly vary
_DEPTHS = (2, 4, 8, 16, 32)
_SAVED = 0.75  # share of the pixels, and of the bytes, that images of half the edge length lack
#: Of a resize, the part that reads pixels; one that takes a larger share of the decoding time enlarges images.
_SAVED_BY_RESIZE, _OF_DECODING = 0.4, 0.35
_OF_FRAMES = 0.9  # share of the time of a clip that decoding its frames takes (`python -m bench.video_limits`)


@dataclass(frozen=True)
class Change:
    """One change and the speed-up that the model expects of it.

    Attributes:
        name: "threads", "prefetch", "storage", "smaller images", "plain JPEG", "plain WAV", "key frames",
            "native step", "collate_fn", "out_transform", "submit", "hand_over", "cores" (more of them), "free cores"
            (other programs use them now) or "helpers" (other machines).
        advice: what to do, in words.
        gain: the time from batch to batch now, divided by that after the change.
    """

    name: str
    advice: str
    gain: float


def list_changes(load: Load, steps: Sequence[Step]) -> list[Change]:
    """Returns the changes that apply, the greatest gain first.

    Args:
        load: the mean of the epoch.
        steps: the newest steps of the consumer.
    """
    here = replace(load, setting=replace(load.setting, cores=free_cores(load)))
    found = [
        *_suggest_threads(load, steps),
        *_suggest_prefetch(load, steps),
        *_suggest_less_work(here, steps),
        *_suggest_key_frames(here, steps),
        *_suggest_cores(load),
        *_suggest_helpers(load),
    ]
    return sorted(found, key=lambda one: -one.gain * (_OTHER_MACHINES if one.name == "helpers" else 1.0))


def _predict_gain(load: Load, after: Load, steps: Sequence[Step] = ()) -> float:
    """Returns the expected speed-up of a change that turns `load` into `after`.

    Time that the model does not explain is assumed to remain, except where Python threads keep the interpreter.

    Args:
        steps: the newest steps of the consumer, which the change leaves as they are. They count where their mean does
            not explain the period.
    """
    vary = not is_crowded(load) and predict_period(load) < _EXPLAINED * load.period
    now, then = (_predict_period(one, steps if vary else ()) for one in (load, after))
    unexplained = 0.0 if do_steps_hold_interpreter(load) else max(0.0, load.period - now)
    return load.period / (then + unexplained)


def _predict_period(load: Load, steps: Sequence[Step]) -> float:
    """Returns the seconds from batch to batch: at least those of the slowest part, and longer where steps vary."""
    if not steps or load.setting.threads == 0 or not load.setting.native:
        return predict_period(load)
    return max(predict_period(load), simulate_consumer(steps, slowest_part_s(load), load.setting.depth))


def _suggest_threads(load: Load, steps: Sequence[Step]) -> Iterator[Change]:
    now, cores = load.setting.threads, free_cores(load)
    most = max(1, math.ceil(load.setting.cores))
    waits = load.stuck > load.cpu or sum(load.lanes.values()) > 2 * load.python_cpu
    tried = sorted({one for one in (now + 1, 2, most, *((2 * most, 4 * most, 8 * most) if waits else ())) if one > now})
    gains = {one: _predict_gain(load, with_threads(load, one, cores), steps) for one in tried if one <= most or waits}
    if gains:
        best = max(gains.values())
        threads = next(one for one, gain in gains.items() if gain >= best * (1 - _ENOUGH))
        yield Change("threads", f"num_workers={threads}", gains[threads])


def _suggest_prefetch(load: Load, steps: Sequence[Step]) -> Iterator[Change]:
    setting = load.setting
    if not steps or setting.threads == 0 or not setting.native:
        return
    making = slowest_part_s(load)
    now = simulate_consumer(steps, making, setting.depth)
    gains = {one: now / simulate_consumer(steps, making, one) for one in _DEPTHS if one > setting.depth}
    if gains and now:
        best = max(gains.values())
        depth = next(one for one, gain in gains.items() if gain >= best * (1 - _ENOUGH))
        yield Change("prefetch", f"prefetch_factor={depth}", gains[depth])


def slowest_part_s(load: Load) -> float:
    """Returns the seconds per batch of the slowest part other than the consumer."""
    return max((seconds for name, seconds in seconds_by_part(load).items() if name != "consumer"), default=0.0)


#: By the stage of the files that Python threads decode: that stage, and the files that native threads decode instead.
_PLAIN_FILES = {
    "pillow": ("pillow", "plain JPEG", "the files that Pillow decodes stored as plain JPEG"),
    "codecs": ("codecs", "plain WAV", "the files that codecs decode stored as WAV, of the rate and channels asked for"),
}


def _suggest_less_work(load: Load, steps: Sequence[Step]) -> Iterator[Change]:
    setting, lanes = load.setting, load.lanes
    busy = sum(lanes.values())
    if load.stuck:
        where = "the data in the page cache, on a faster disk, or packed into few large files" if setting.native else (
            "no waiting in the dataset's own code: a faster disk or network, or the page cache"
        )  # fmt: skip
        yield Change("storage", where, _predict_gain(load, replace(load, stuck=0.0), steps))
    if native := sum(load.stages.values()):
        memory, decode, resize = (load.stages.get(name, 0.0) for name in ("memory", "decode", "resize"))
        saved = _SAVED * (native - memory - resize) + _SAVED_BY_RESIZE * min(resize, _OF_DECODING * decode)
        left = 1 - saved / native
        after = replace(load, cpu=load.cpu * left, delayed=load.delayed * left)
        if setting.threads == 0:
            after = replace(load, blocked=load.blocked - saved)
        advice = "images stored at half the edge length, if they stay larger than what the transforms need"
        yield Change("smaller images", advice, _predict_gain(load, after, steps))
    for lane, name, advice in (
        *([_PLAIN_FILES[setting.decoder]] if setting.decoder in _PLAIN_FILES else []),
        ("python", "native step", "a transform with a native form in place of the Python steps that explain() lists"),
        ("collate_fn", "collate_fn", "a lighter collate_fn"),
    ):
        if lane in lanes:
            rest = 1 - lanes[lane] / busy
            after = replace(
                load,
                step=load.step if lane == setting.decoder else _find_own_step(load, steps),
                handed=_predict_handed_on_free_core(load)
                if lane == setting.decoder
                else _predict_handed_without_waits(load, steps),
                cpu=load.cpu + (_OF_PILLOW * lanes[lane] if lane == setting.decoder else 0.0),
                lanes={one: seconds for one, seconds in lanes.items() if one != lane},
                python_cpu=load.python_cpu * rest,
                python_delayed=load.python_delayed * rest,
                blocked=max(0.0, load.blocked - lanes[lane]) if setting.threads == 0 else load.blocked,
            )
            yield Change(name, advice, _predict_gain(load, after))
    for part, advice in (
        ("collate_fn", "a lighter collate_fn"),
        ("out_transform", "a lighter out_transform"),
        ("submit", "a sampler that computes less for each index"),
        ("hand_over", "a lighter target_transform, or labels as an array of integers"),
    ):
        users = part in ("collate_fn", "out_transform")  # of the loader's own parts only a large one is the user's code
        if load.handed.get(part, 0.0) > (0.0 if users else load.step) and (users or not is_crowded(load)):
            rest_of = {one: seconds for one, seconds in load.handed.items() if one != part}
            after = replace(load, handed=rest_of, other_cpu=max(0.0, load.other_cpu - load.handed[part]))
            yield Change(part, advice, _predict_gain(load, after))


def _suggest_key_frames(load: Load, steps: Sequence[Step]) -> Iterator[Change]:
    """Decoding takes time in proportion to the frames."""
    setting, lanes = load.setting, load.lanes
    if "video" not in lanes or setting.frames <= setting.frames_of_short:
        return
    saved = _OF_FRAMES * (1 - setting.frames_of_short / setting.frames) * lanes["video"]
    rest = 1 - saved / sum(lanes.values())
    after = replace(
        load,
        lanes={**lanes, "video": lanes["video"] - saved},
        python_cpu=load.python_cpu * rest,
        python_delayed=load.python_delayed * rest,
        blocked=max(0.0, load.blocked - saved) if setting.threads == 0 else load.blocked,
    )
    advice = (
        f"videos with a key frame every {SHORT_GROUP} frames (ffmpeg -g {SHORT_GROUP}; headrace pack --video --gop "
        f"{SHORT_GROUP}), for {setting.frames_of_short:.1f} decoded frames for each one of a clip instead of "
        f"{setting.frames:.1f}"
    )
    yield Change("key frames", advice, _predict_gain(load, after, steps))


def _find_own_step(load: Load, steps: Sequence[Step]) -> float:
    """Returns the consumer's own work if no Python thread keeps the interpreter: where one does, its steps contain
    waits for the interpreter, and its shortest one the fewest."""
    if not steps or not waits_for_interpreter(load):
        return load.step
    return min(load.step, min(step.own for step in steps) / 1e9)


def _predict_handed_on_free_core(load: Load) -> dict[str, float]:
    """Returns what the consumer's thread does in ``next()`` if a core is free for it."""
    share = max(0.0, 1 - load.own_delayed / load.own) if load.own else 1.0
    return {name: seconds * share for name, seconds in load.handed.items()}


def _predict_handed_without_waits(load: Load, steps: Sequence[Step]) -> dict[str, float]:
    """Returns what the consumer's thread does in ``next()`` if no Python thread keeps the interpreter: the loader's own
    parts then take no longer than its time on a core, nor than the shortest tenth of its steps. The first alone is too
    long: each wait for the interpreter ends with work of the kernel's."""
    parts = {name: seconds for name, seconds in load.handed.items() if name in ("submit", "hand_over")}
    takes = sum(parts.values())
    bounds = [takes, load.other_cpu]
    if steps and len(parts) == len(load.handed):
        bounds.append(sorted(step.handed for step in steps)[(len(steps) - 1) // 10] / 1e9)
    share = min(bounds) / takes if takes else 1.0
    return {**load.handed, **{name: seconds * share for name, seconds in parts.items()}}


def _suggest_cores(load: Load) -> Iterator[Change]:
    have, free = load.setting.cores, free_cores(load)
    if free < 0.9 * have:
        threads = max(load.setting.threads, math.ceil(have))
        more = f" and num_workers={threads}" if threads > load.setting.threads else ""
        advice = f"the {cores_in_words(have)} free of other programs{more}"
        yield Change("free cores", advice, _predict_gain(load, with_threads(load, threads, have)))
        return
    threads = max(2 * load.setting.threads, math.ceil(2 * have))
    after = with_threads(load, threads, 2 * have)
    yield Change("cores", f"{cores_in_words(2 * have)} and num_workers={threads}", _predict_gain(load, after))


def _suggest_helpers(load: Load) -> Iterator[Change]:
    """Two machines with as many cores each, on a network that carries their samples: what they and the cores here make
    is shared so that all are busy."""
    setting = load.setting
    if setting.helpers is None:
        return
    here = (0.5 - _SENT) / (1.5 - _SENT)
    after = with_threads(load, max(setting.threads, math.ceil(setting.cores)), setting.cores)
    after = replace(after, cpu=after.cpu * (1 - here) / 2)
    more = "two more helpers" if setting.helpers else "two helpers"
    yield Change("helpers", f"{more} with {cores_in_words(setting.cores)} each", _predict_gain(load, after))
