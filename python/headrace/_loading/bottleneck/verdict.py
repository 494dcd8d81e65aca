"""The verdict: which part is the bottleneck, how sure that is, why, and what would help most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from headrace._engine.counters.epoch_timing import History, Mark, Step
from headrace._loading.bottleneck.batch_cost import Load, Setting, mean_load_between
from headrace._loading.bottleneck.changes import Change, list_changes, slowest_part_s
from headrace._loading.bottleneck.model import (
    do_steps_hold_interpreter,
    is_crowded,
    is_slowed,
    predict_period,
    seconds_by_part,
    simulate_consumer,
)
from headrace._loading.bottleneck.verdict_reasons import reasons

#: With fewer batches, or fewer windows of them, a verdict is unsure.
BATCHES, WINDOWS = 12, 3
_PLAIN = 4  # times as much time in the consumer's own steps as in ``next()``: so few steps tell what limits the speed
NOTHING_YET = "nothing yet"
#: Larger gains are shown as "more than 10x": the model is not accurate there.
MANY = 10
_WORTH, _MUCH = 1.05, 1.15  # gains below the first are not advised
_EXPLAINS = 0.85  # share of the period that an explanation has to cover
_OF_THE_WORK = 0.3
_UNEXPLAINED = 1.15  # a period this much longer than every part's has another reason


_NO_HISTORY = History()


@dataclass(frozen=True)
class Verdict:
    """What limits the speed; ``str()`` gives three lines.

    Attributes:
        bottleneck: "consumer": the program's own work between batches. "read", "header", "memory", "decode", "resize":
            a stage of the native threads; "memory" is the clearing of new batch memory, "read" also a wait for storage.
            "pillow", "video" (frames of videos), "codecs" (of audio), "python", "collate_fn", "out_transform",
            "submit", "hand_over": Python's parts. "prefetch": the consumer's steps vary, and too few
            batches are ready. "workers": the work of torch's workers; "waiting workers": they wait more than they work.
            "records": the threads of the main process that make images from these workers' records.
            "dataset": the making of batches in the caller's thread by torch. "nothing yet": not enough data.
        certainty: "sure", "likely", "unsure" (also of a few batches) or "not enough data".
        why: the figures.
        change: the change that would help most; None: none is worth it, or none is known.
        others: the other changes that the model knows, the greatest gain first.
        agreement: share of the epoch whose parts, each on its own, give this bottleneck.
        ceiling: the speed-up with a loader that takes no time: the time from batch to batch divided by the consumer's
            own work.
        explained: the modelled time from batch to batch, divided by the measured one.
        preliminary: whether more batches are needed for a verdict that is not "unsure" for their number alone.
    """

    bottleneck: str
    certainty: str
    why: str
    change: Change | None = None
    others: tuple[Change, ...] = ()
    agreement: float = 0.0
    ceiling: float = 1.0
    explained: float = 0.0
    preliminary: bool = False

    def __str__(self) -> str:
        if self.bottleneck == NOTHING_YET:
            return f"bottleneck: nothing yet ({self.certainty})\nwhy: {self.why}\nchange: nothing yet"
        sure = f"{self.certainty}: {self.agreement:.0%} of the epoch agree"
        return f"bottleneck: {self.bottleneck} ({sure})\nwhy: {self.why}\nchange: {self._advice()}"

    def _advice(self) -> str:
        best = f"a perfect loader would give {self.ceiling:.2f}x"
        if self.bottleneck == "consumer":
            if self.change is None:
                return f"the training step, not the loader: {best}"
            return f"the training step first; {best}, and {self.change.advice} {_speedup_text(self.change)}"
        if self.change is None:
            return f"none is known; {best}"
        worth = [one for one in self.others if one.gain >= _WORTH]
        more = worth[:1]
        if more and more[0].name == "cores":  # of this machine, or of others
            more += [one for one in worth if one.name == "helpers"]
        text = f"{self.change.advice}: {_speedup_text(self.change)}"
        return text + "".join(f"; or {one.advice}: {_speedup_text(one)}" for one in more)


def _speedup_text(change: Change) -> str:
    return f"about {change.gain:.2f}x" if change.gain < MANY else f"more than {MANY}x"


def judge(
    marks: Sequence[Mark],
    steps: Sequence[Step],
    setting: Setting,
    typical: dict[str, float] | None = None,
    earlier: History = _NO_HISTORY,
) -> Verdict:
    """Returns the verdict on the batches between the first and the last mark. An epoch that is too short to be judged
    alone is judged together with the earlier ones; and where these are too few, too, the verdict is unsure.

    Args:
        steps: the newest steps of the consumer.
        typical: by native stage, the median duration times the samples: its share where other programs, a quota or each
            other interrupt the threads, which makes a few of the timed samples take much longer.
        earlier: the epochs before.
    """
    scope = ""
    if not _is_enough(marks) and earlier.marks:
        joined = earlier.followed_by(marks, steps)
        marks, steps, scope = joined.marks, joined.steps, "the newest epochs together: "
    if len(marks) < 2:
        return _judge_steps(steps)
    load = mean_load_between(marks[0], marks[-1], setting)
    interrupted = is_slowed(load) or setting.cores < setting.threads
    if typical and sum(typical.values()) and interrupted:
        scale = sum(load.stages.values()) / sum(typical.values())
        load = replace(load, stages={name: scale * share for name, share in typical.items()})
    windows = [mean_load_between(begin, end, setting) for begin, end in pairwise(marks)]
    found = judge_load(load, windows, steps)
    if _is_enough(marks):
        if scope and found.certainty == "sure":  # the starts of the epochs are left out
            found = replace(found, certainty="likely")
        return replace(found, why=scope + found.why)
    if load.step > _PLAIN * (load.period - load.step):  # in so short a time the threads' own times say little
        found = replace(found, bottleneck="consumer", change=None, why=reasons(load, "consumer"))
    return replace(found, certainty="unsure", why=f"{scope}few batches so far; {found.why}", preliminary=True)


def _is_enough(marks: Sequence[Mark]) -> bool:
    return len(marks) > WINDOWS and marks[-1].batches - marks[0].batches >= BATCHES


def _judge_steps(steps: Sequence[Step]) -> Verdict:
    """Returns the verdict on an epoch of which only the consumer's steps are known, one a batch after the first."""
    own = sum(step.own for step in steps)
    waited = sum(step.blocked + step.handed for step in steps)
    if own > _PLAIN * waited:
        why = f"the consumer works {own / 1e9:.3g} s and waits {waited / 1e9:.3g} s; few batches so far"
        return Verdict("consumer", "unsure", why, None, (), 1.0, (own + waited) / own, 1.0, preliminary=True)
    first = "no batch after the first" if not steps else f"{len(steps) + 1} batches"
    why = f"{first}; it takes {BATCHES}, of one epoch or of several"
    return Verdict(NOTHING_YET, "not enough data", why, preliminary=True)


def judge_load(load: Load, windows: Sequence[Load], steps: Sequence[Step]) -> Verdict:
    """Returns the verdict on an epoch from its mean and from its parts."""
    found = bottleneck(load, steps)
    votes: Counter[str] = Counter()
    for one in windows:
        votes[_group(bottleneck(one, steps))] += one.batches
    agreement = votes[_group(found)] / max(1, votes.total())
    explained = (
        simulate_consumer(steps, slowest_part_s(load), load.setting.depth)
        if found == "prefetch"
        else predict_period(load)
    ) / (load.period)
    certainty = "unsure"
    if agreement >= 0.85 and _EXPLAINS <= explained <= 1.1 and len(windows) >= 5 and not is_slowed(load):
        certainty = "sure"
    elif agreement >= 0.6 and 0.65 <= explained <= 1.2:
        certainty = "likely"
    known = list_changes(load, steps)
    ceiling = load.period / load.step if load.step else 1.0
    # What a loader gains by where the training step takes nearly all of the time is within the model's error.
    best = None if found == "consumer" and load.setting.threads and ceiling < _MUCH else _best(known)
    others = tuple(one for one in known if one is not best)
    return Verdict(found, certainty, reasons(load, found), best, others, agreement, ceiling, explained)


def _best(known: Sequence[Change]) -> Change | None:
    """Returns the change to advise, of those that are sorted by gain: one that asks for other files or another machine
    only if no other helps much."""
    files, machines = ("smaller images", "key frames"), ("cores", "helpers")
    both = files + machines
    for least, left_out in ((_MUCH, both), (_MUCH, machines), (_WORTH, both), (_WORTH, ())):
        for one in known:
            if one.gain >= least and one.name not in left_out:
                return one
    return None


def _group(name: str) -> str:
    """Returns a name that the native stages share: in a short window only few of their samples are timed."""
    return "cpu" if name in ("header", "decode", "resize") else name


def bottleneck(load: Load, steps: Sequence[Step]) -> str:
    """Returns the part that sets the pace."""
    if load.setting.threads == 0:
        if load.own >= load.blocked:
            return _find_consumer_part(load)
        parts = {**load.stages, **load.lanes}
        return _greatest(parts) if any(parts.values()) else "dataset"
    if do_steps_hold_interpreter(load):
        return _greatest({name: seconds for name, seconds in load.lanes.items() if name != load.setting.decoder})
    parts = {name: seconds for name, seconds in seconds_by_part(load).items() if name != "cores"}
    slowest = _greatest(parts)
    if load.setting.native and load.period > _UNEXPLAINED * parts[slowest] and _varies(load, steps):
        return "prefetch"
    if is_crowded(load) and parts[slowest] + load.own_delayed > load.period / _UNEXPLAINED > parts[slowest]:
        return _find_user_of_cores(load)
    if slowest == "consumer":
        found = _find_consumer_part(load)
        # A crowd of threads holds up the loader's own work: a thread without a core may keep a lock.
        return _find_user_of_cores(load) if found in ("submit", "hand_over") and is_crowded(load) else found
    if slowest != "workers":
        return slowest
    if not load.setting.native:
        return "waiting workers" if _waits(load) else "workers"
    if _waits(load) or not any(load.stages.values()):
        return "read"
    return _greatest(load.stages)


def _waits(load: Load) -> bool:
    """Whether the workers wait for data more than they work. On a busy machine each wait ends with another for a core,
    which is not for their work's sake."""
    return load.stuck > load.cpu + _OF_THE_WORK * load.delayed


def _find_user_of_cores(load: Load) -> str:
    """Returns the part that takes most of the cores, which even the consumer's thread does not always get."""
    users = {"workers": load.cpu, "lanes": load.python_cpu, "consumer": load.other_cpu}
    most = _greatest(users)
    if most == "consumer":
        return _find_consumer_part(load)
    if most == "lanes":
        return _greatest(load.lanes)
    return _greatest(load.stages) if load.setting.native else "workers"


def _find_consumer_part(load: Load) -> str:
    part = _greatest(load.handed)
    return part if part and load.handed[part] > load.step else "consumer"


def _greatest(parts: dict[str, float]) -> str:
    return max(parts, key=lambda name: parts[name], default="")


def _varies(load: Load, steps: Sequence[Step]) -> bool:
    """Whether the consumer's own steps explain that both sides wait."""
    if load.blocked < 0.05 * load.period or load.idle < 0.05 * load.setting.threads * load.period:
        return False
    making = slowest_part_s(load)
    now, ample = (simulate_consumer(steps, making, depth) for depth in (load.setting.depth, 64))
    return now > 1.15 * ample and now > _EXPLAINS * load.period
