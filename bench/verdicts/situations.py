"""The situations: how each loader and its consumer are built, what the verdict should be, and the advised changes that
can be made here."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench.verdicts import material as m
from bench.verdicts.slow_reads import set_delay
from headrace import DataLoader

Step = Callable[[], None]


@dataclass(frozen=True)
class Situation:
    """One situation.

    Attributes:
        build: makes the loader from a folder for files.
        bottleneck: names that are right.
        advice: names of changes that are right; empty: none is.
        changed: makes the loader after a change, by the change's name; called with the folder and its advice.
            "perfect loader" is the change where the loader needs none: batches that are ready.
        step: the consumer's own work for one batch.
        slow_reads: seconds that each read takes.
        pinned: cores that the process may use; 0: all.
        quota: cores as a quota of a control group; 0: none.
        burners: other programs that use a core each.
    """

    build: Callable[[Path], Any]
    bottleneck: tuple[str, ...]
    advice: tuple[str, ...] = ()
    changed: dict[str, Callable[[Path, str], Any]] = field(default_factory=dict)
    step: Callable[[], Step] = lambda: lambda: None
    slow_reads: float = 0.0
    pinned: int = 0
    quota: float = 0.0
    burners: int = 0


def setting(advice: str) -> dict[str, int]:
    """The argument that an advice names: "num_workers=4"."""
    name, _, value = advice.partition("=")
    return {name: int(value)}


def loader(dataset: Any, **options: Any) -> Any:
    return DataLoader(dataset, **{"batch_size": 8, "num_workers": 2} | options)


def variants(dataset: Callable[[Path], Any], **options: Any) -> dict[str, Callable[[Path, str], Any]]:
    """The changes of a loader's arguments."""

    def again(folder: Path, advice: str) -> Any:
        return loader(dataset(folder), **options | setting(advice))

    return {"threads": again, "prefetch": again}


def fast_storage(dataset: Callable[[Path], Any], **options: Any) -> dict[str, Callable[[Path, str], Any]]:
    def again(folder: Path, advice: str) -> Any:
        set_delay(0.0)
        return loader(dataset(folder), **options)

    return {"storage": again}


def sleeping(seconds: float) -> Callable[[], Step]:
    return lambda: partial(time.sleep, seconds)


def ready(dataset: Callable[[], Any], **options: Any) -> dict[str, Callable[[Path, str], Any]]:
    """The change of a consumer's situation: one batch again and again, which takes no time to make."""

    def perfect(folder: Path, advice: str) -> Any:
        batches = iter(loader(dataset(), **options))
        return itertools.repeat(next(batches), 100_000)

    return {"perfect loader": perfect}


def unbound(dataset: Callable[[Path], Any]) -> dict[str, Callable[[Path, str], Any]]:
    """The change of a process that was bound to one core: two, and the threads of the advice."""

    def freed(folder: Path, advice: str) -> Any:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        return loader(dataset(folder), **setting(advice.rpartition(" ")[2]))

    return {"cores": freed}


def jittery() -> Step:
    steps: Iterator[float] = itertools.cycle([0.004] * 7 + [0.1])
    return lambda: time.sleep(next(steps))


def _memory(*args: Any, **options: Any) -> Callable[[Path], Any]:
    return lambda folder: m.memory(*args, **options)


def _files(edge: int, size: int) -> Callable[[Path], Any]:
    return lambda folder: m.files(folder, edge, size)


def _of(dataset: Callable[[Path], Any], **options: Any) -> Callable[[Path], Any]:
    return lambda folder: loader(dataset(folder), **options)


def _own(*args: Any) -> Callable[[Path], Any]:
    return lambda folder: m.Own(*args)


_DECODE, _RESIZE, _SMALL = _memory(500, 64), _memory(64, 700), _memory(64, 64)
_COLLATE = {"batch_size": 8, "collate_fn": m.slow_collate}
_HALF = {"smaller images": lambda folder, advice: loader(m.memory(250, 64))}
_HALF_OF_LARGE = {"smaller images": lambda folder, advice: loader(m.memory(800, 64), batch_size=4)}
_ONE = {"batch_size": 8, "num_workers": 1}
_NATIVE_STEP = {"native step": lambda folder, advice: loader(_SMALL(folder))}

SITUATIONS: dict[str, Situation] = {
    "decode": Situation(_of(_DECODE), ("decode",), ("smaller images", "cores", "free cores"), _HALF),
    "one thread": Situation(
        _of(_DECODE, num_workers=1), ("decode",), ("threads", "smaller images", "free cores"), variants(_DECODE) | _HALF
    ),
    "no threads": Situation(
        _of(_DECODE, num_workers=0), ("decode",), ("threads", "smaller images", "free cores"), variants(_DECODE)
    ),
    "large files": Situation(
        _of(_memory(1600, 64), batch_size=4), ("decode",), ("smaller images", "cores", "free cores"), _HALF_OF_LARGE
    ),
    "resize": Situation(_of(_RESIZE), ("resize",), ("cores", "free cores")),
    "resize on one core": Situation(
        _of(_RESIZE, **_ONE), ("resize",), ("cores", "free cores"), unbound(_RESIZE), pinned=1
    ),
    "slow disk": Situation(
        _of(_files(96, 64)), ("read",), ("threads", "storage"), variants(_files(96, 64)) | fast_storage(_files(96, 64)),
        slow_reads=0.004,
    ),
    "slow network": Situation(
        _of(_files(96, 64), num_workers=8), ("read",), ("threads", "storage"),
        variants(_files(96, 64)) | fast_storage(_files(96, 64), num_workers=8), slow_reads=0.04,
    ),
    "computing step": Situation(
        _of(_memory(64, 64, m.Burning(0.003))), ("python",), ("native step", "free cores"), _NATIVE_STEP
    ),
    "waiting step": Situation(
        _of(_memory(64, 64, m.Sleeping(0.005))), ("python",), ("threads", "native step"),
        variants(_memory(64, 64, m.Sleeping(0.005))) | _NATIVE_STEP,
    ),
    "collate": Situation(
        _of(_SMALL, **_COLLATE), ("collate_fn",), ("collate_fn", "free cores"),
        {"collate_fn": lambda folder, advice: loader(_SMALL(folder))},
    ),
    "collate in the caller": Situation(
        _of(_SMALL, num_workers=0, collate_fn=m.slow_collate), ("collate_fn",), ("collate_fn", "threads", "free cores"),
        {"collate_fn": lambda folder, advice: loader(_SMALL(folder), num_workers=0)},
    ),
    "waiting consumer": Situation(
        _of(_SMALL), ("consumer",), (), ready(lambda: m.memory(64, 64)), step=sleeping(0.02)
    ),
    "computing consumer": Situation(
        _of(_SMALL), ("consumer",), (), ready(lambda: m.memory(64, 64)), step=lambda: partial(m.burn, 0.02)
    ),
    "jittery consumer": Situation(
        _of(_files(64, 64), prefetch_factor=1), ("prefetch",), ("prefetch", "storage", "threads"),
        variants(_files(64, 64)) | fast_storage(_files(64, 64), prefetch_factor=1), step=jittery, slow_reads=0.0038,
    ),
    "too many threads": Situation(
        _of(_DECODE, num_workers=32), ("decode",), ("smaller images", "cores", "free cores"),
        {"smaller images": lambda folder, advice: loader(m.memory(250, 64), num_workers=32)},
    ),
    "one core": Situation(_of(_DECODE), ("decode",), ("smaller images", "cores", "free cores"), _HALF, pinned=1),
    "quota": Situation(_of(_DECODE), ("decode",), ("smaller images", "cores", "free cores"), _HALF, quota=0.5),
    "out_transform": Situation(
        _of(_SMALL, out_transform=m.slow_mixing), ("out_transform",), ("out_transform",),
        {"out_transform": lambda folder, advice: loader(_SMALL(folder))},
    ),
    "png": Situation(
        _of(_memory(300, 64, kind="PNG")), ("pillow",), ("plain JPEG", "free cores"),
        {"plain JPEG": lambda folder, advice: loader(m.memory(300, 64))},
    ),
    "slow sampler": Situation(
        _of(_SMALL, sampler=m.SlowSampler()), ("submit",), ("submit",),
        {"submit": lambda folder, advice: loader(_SMALL(folder))},
    ),
    "slow labels": Situation(
        _of(lambda folder: m.labelled(m.slow_label)), ("hand_over",), ("hand_over",),
        {"hand_over": lambda folder, advice: loader(m.labelled())},
    ),
    "torch's workers": Situation(_of(_own(500, 64)), ("workers",), ("cores", "free cores", "threads")),
    "one of torch's workers": Situation(
        _of(_own(500, 64), num_workers=1), ("workers",), ("threads", "free cores"), variants(_own(500, 64))
    ),
    "torch's workers wait": Situation(
        _of(_own(64, 64, 0.01)), ("waiting workers",), ("threads", "storage"), variants(_own(64, 64, 0.01))
    ),
    "torch, slow consumer": Situation(_of(_own(64, 64)), ("consumer",), (), step=sleeping(0.04)),
    "torch alone": Situation(
        _of(_own(500, 64), num_workers=0), ("dataset",), ("threads", "free cores"), variants(_own(500, 64))
    ),
    "columns, slow consumer": Situation(_of(lambda folder: m.columns()), ("consumer",), (), step=sleeping(0.01)),
    "other programs": Situation(
        _of(_DECODE), ("decode",), ("free cores", "smaller images", "cores"), _HALF, burners=3
    ),
}  # fmt: skip
