"""What a process reports about its loaders, as values that fit into JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FORMAT = 1


@dataclass(frozen=True)
class StageFigures:
    """One stage of the native threads in the newest epoch.

    Attributes:
        share: of the time of all stages, from 0 to 1.
        ms, p50_ms, p99_ms: of one sample; see ``headrace._reports.loader.stats.Stage``.
    """

    name: str
    share: float
    ms: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class LoaderFigures:
    """One loader. All values are those of its newest epoch, unless they are called recent.

    Attributes:
        number: distinguishes the loaders of a process; that of a loader that is gone is used again.
        dataset: its class.
        samples: of the dataset; None: not known.
        route: as ``DataLoader.route``.
        workers: native threads, or torch's worker processes.
        epoch: its number.
        batch, batches: handed out so far, and of the whole epoch; -1: not known.
        ended: whether the epoch has ended.
        unit: what `speed` and `speeds` count: "samples", or "batches" where the samples of one are not known.
        recent_s: seconds that the next two values are the mean of.
        speed: recent number of units a second.
        working: recent share of the consumer's time in which it worked; in the rest it waited for the loader.
        speeds: units a second of the last minute, in steps of the time between two files, the newest last.
        quiet_s: seconds since it handed out a batch.
        step_ms, wait_ms: p50 and p99 of the consumer's own steps and of its waits.
        bytes_read: of samples.
        failed: samples that were skipped or replaced.
        bottleneck, verdict: of ``stats()``; the verdict's lines.
        stages: the native stages.
        trouble: why figures are missing; "" if none are.
        stats: all of ``stats().as_dict()``.
    """

    number: int
    dataset: str
    samples: int | None
    route: str
    workers: int
    epoch: int = 0
    batch: int = 0
    batches: int = -1
    ended: bool = False
    unit: str = "batches"
    recent_s: float = 0.0
    speed: float = 0.0
    working: float = 0.0
    speeds: list[float] = field(default_factory=list)
    quiet_s: float = 0.0
    step_ms: list[float] = field(default_factory=lambda: [0.0, 0.0])
    wait_ms: list[float] = field(default_factory=lambda: [0.0, 0.0])
    bytes_read: int = 0
    failed: int = 0
    bottleneck: str = ""
    verdict: list[str] = field(default_factory=list)
    stages: list[StageFigures] = field(default_factory=list)
    trouble: str = ""
    stats: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class ProcessFigures:
    """One process.

    Attributes:
        started: identifies the process together with `pid`; see ``processes.Process``.
        at: when this was written, in seconds since 1970.
        every_s: seconds until the next file.
        rank, ranks: of torch.distributed or torchrun, when a loader last began an epoch; 0 of 1 without them.
        version: of headrace.
    """

    pid: int
    started: int
    at: float
    every_s: float
    rank: int
    ranks: int
    version: str
    loaders: list[LoaderFigures] = field(default_factory=list)

    def as_text(self) -> str:
        """Returns it as JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)})

    @classmethod
    def of_text(cls, text: str) -> ProcessFigures:
        """Returns what `as_text` wrote.

        Raises:
            ValueError: another version of headrace wrote it, or it is damaged.
        """
        raw = json.loads(text)
        if not isinstance(raw, dict) or raw.pop("format", None) != FORMAT:
            raise ValueError("another version of headrace wrote it")
        return _build_object(cls, raw)


_T = TypeVar("_T", bound="DataclassInstance")

_PLAIN: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "bool": (bool,),
    "int | None": (int, type(None)),
    "dict[str, object]": (dict,),
}


def _build_object(cls: type[_T], raw: object) -> _T:
    """Returns an object of a class of this file from its fields, each of which is checked."""
    if not isinstance(raw, dict) or set(raw) != {one.name for one in fields(cls)}:
        raise ValueError(f"it does not have the fields of {cls.__name__}")
    values: dict[str, Any] = {one.name: _checked_value(one.name, str(one.type), raw[one.name]) for one in fields(cls)}
    return cls(**values)


def _checked_value(name: str, kind: str, value: object) -> object:
    if kind in _PLAIN:
        if not isinstance(value, _PLAIN[kind]):
            raise ValueError(f"its field {name} is no {kind}")
        return value
    inner = kind.removeprefix("list[").removesuffix("]")
    if not isinstance(value, list):
        raise ValueError(f"its field {name} is no list")
    nested = {"LoaderFigures": LoaderFigures, "StageFigures": StageFigures}.get(inner)
    return [_build_object(nested, one) if nested else _checked_value(name, inner, one) for one in value]
