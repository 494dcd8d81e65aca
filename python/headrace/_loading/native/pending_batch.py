"""A batch that is begun and not yet handed out, and its results."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._base.errors import SampleError
from headrace._base.safe_exceptions import is_instance
from headrace._base.types import Array
from headrace._engine.engine import Failure, Flight
from headrace._loading.epoch.delivery_tracker import Delivery
from headrace._loading.epoch.order import OrderedBatch


@dataclass(frozen=True)
class Collated:
    """What a collate_fn returned or raised."""

    batch: Any
    error: Exception | None = None


class Claim:
    """Decides which thread reads a batch's results: the first that asks.

    The consumer holds no lock meanwhile: in the main thread an interrupt may come between taking a lock and the
    ``try`` statement that would release it. Every method can be called again after an interrupt.
    """

    def __init__(self) -> None:
        self._first: dict[str, bool] = {}
        self._ended = False
        self._working = threading.Lock()
        self._working.acquire()  # until the thread that collates ahead has ended

    def claim_for_consumer(self, seconds: float) -> bool:
        """Returns True once no other thread reads the results; False after `seconds` (-1: waits without limit)."""
        if self._first.setdefault("consumer", True):  # atomic
            return True
        return self._ended or self._working.acquire(timeout=seconds)

    def ahead(self) -> bool:
        """Returns whether the calling thread, which collates ahead, was first; then it must call `end`."""
        return not self._first.setdefault("consumer", False)

    @property
    def open(self) -> bool:
        """Whether no thread has asked yet."""
        return not self._first

    @property
    def ended(self) -> bool:
        """Whether a thread has collated ahead."""
        return self._ended

    def end(self) -> None:
        """Lets the consumer go on. Called once, by the thread that collates ahead."""
        self._ended = True
        self._working.release()


@dataclass(eq=False)
class Results:
    """The flight of a batch and what was read from it.

    Attributes:
        number: the batch's number in the epoch.
        indices: int64, dataset index of each sample; of those in `images`, once these are read.
        images: handed over by the engine: a tensor, or a dict of columns.
        failures: None: not read yet.
        errors: those of the failed samples; None: not made yet.
        failed: places of the failed samples in the batch.
    """

    flight: Flight
    number: int
    indices: npt.NDArray[np.int64]
    claim: Claim = field(default_factory=Claim)
    images: Any = None
    failures: list[Failure] | None = None
    errors: list[SampleError] | None = None
    failed: list[int] = field(default_factory=list)
    collated: Collated | None = None


class Failing:
    """A context manager that gives a batch the error raised within: even a MemoryError passes the batch over.

    It sets no attribute of the error, as a generator's would.
    """

    def __init__(self, begun: Begun) -> None:
        self._begun = begun

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and is_instance(error, Exception):
            self._begun.error = error


@dataclass(eq=False)
class Begun:
    """A begun batch. Without results and an error it has still to be submitted."""

    ordered: OrderedBatch
    delivery: Delivery
    draws: Array | None = None
    results: Results | None = None
    error: BaseException | None = None  # why it cannot be begun, or handed out
    taker: object | None = None  # identifies the next() call that is about to return it
    as_torch: bool = False  # made as torch makes it, when it is due
    complete: bool = False  # it was awaited: later errors belong to this batch

    def failing(self) -> Failing:
        """Returns a context manager: an error of the caller's code, raised within, belongs to this batch."""
        return Failing(self)

    def forget(self) -> None:
        """Drops the results; the batch can be made again from the same draws."""
        self.results = None
