"""Handles failed samples: raise, skip, or replace by the next sample of the dataset."""

from __future__ import annotations

import atexit
import traceback
import weakref
from collections.abc import Sequence
from typing import Any, NoReturn, Protocol, get_args

import numpy as np
import numpy.typing as npt

from headrace._base import messages
from headrace._base.errors import SampleError, choose_error_to_raise, make_native_cause, sample_error
from headrace._base.safe_exceptions import format_error, is_instance, traceback_of, walk_causes
from headrace._engine.engine import Failure
from headrace._loading.native.loader_attributes import OnError

ON_ERROR: tuple[OnError, ...] = get_args(OnError)


class Located(Protocol):
    """The part of a dataset that error messages need."""

    def location(self, index: int) -> str:
        """Returns where the sample is stored, as text for messages: its path, if it has one."""

    def part_location(self, part: str, index: int) -> str:
        """Returns the same for one field of the sample."""


class EpochErrors(Protocol):
    """The part of the current epoch's progress that is used here."""

    @property
    def epoch(self) -> int: ...

    errors: list[SampleError]


def describe_failures(failures: Sequence[Failure], indices: np.ndarray, source: Located) -> list[SampleError]:
    """Returns the exceptions for failed samples; `indices`: int64, dataset index by the sample's number."""
    return [_describe_failure(failure, int(indices[failure.sample]), source) for failure in failures]


def _describe_failure(failure: Failure, index: int, source: Located) -> SampleError:
    part = failure.part
    location = source.part_location(part, index) if part else source.location(index)
    original = failure.original
    if original is None:
        original = make_native_cause(failure.stage, failure.reason, failure.errno, location)
    return sample_error(failure.stage, index, f"{part}: {location}" if part else location, failure.reason, original)


_unsaid: list[FaultLog] = []  # of epochs with errors, until they have warned


def warn_of_dropped() -> None:
    """Warns of the errors of epochs that were left before their end, by a loop that dropped the iterator."""
    for one in _unsaid.copy():
        if one.owner is not None and one.owner() is None:
            one.warn()


atexit.register(warn_of_dropped)


def choose_exception_to_raise(error: SampleError) -> BaseException:
    """Returns what ``next()`` raises for a sample's error. With StopIteration a loop would end without a word, as with
    torch's DataLoader: a warning says why."""
    if is_instance(error, StopIteration):
        messages.warn(f"{error}; the loop ends here, since it raised StopIteration")
    return choose_error_to_raise(error)


def call_labels(source: Source, indices: npt.NDArray[np.int64]) -> None:
    """Calls the functions of labels of the samples before one that failed, as torch has by then."""
    if source.has_targets:
        for index in indices.tolist():
            source.target(index)


def error_of_collate_fn(error: BaseException, workers: int) -> Exception:
    """Returns what ``next()`` raises for an exception of a collate_fn. That of ``sys.exit`` ends the program, and is
    raised here, only in a loader without threads, as with torch's workers."""
    if isinstance(error, Exception):
        return error
    if workers == 0 or is_instance(error, KeyboardInterrupt):
        raise error
    return RuntimeError(f"collate_fn raised {format_error(error)}")


class FaultLog:
    """Records each failed sample of one epoch once, and ends the epoch when there are too many.

    Args:
        on_error, max_errors: the loader's arguments.
        progress: progress of the epoch; stores the errors.
        owner: the epoch's iterator, which has it warn at the end; None: nothing warns.

    Attributes:
        raises, skips: what is done about a failed sample; if neither, it is replaced.
    """

    def __init__(self, on_error: OnError, max_errors: int | None, progress: EpochErrors, owner: object | None) -> None:
        self.owner = None if owner is None else weakref.ref(owner)
        self.raises, self.skips = on_error == "raise", on_error == "skip"
        self._max_errors = max_errors
        self._progress = progress
        self._noted: set[tuple[int, str]] = set()  # samples: of streams and by keys, several have one index
        self._reported = False

    def add(self, errors: Sequence[SampleError]) -> None:
        """Records errors.

        Raises:
            RuntimeError: there are more errors than `max_errors`; the cause is the last one.
        """
        noted = self._progress.errors
        if self.owner is not None and not self._reported and self not in _unsaid:
            _unsaid.append(self)
        for error in errors:
            if (which := (error.index, error.location)) not in self._noted:
                self._noted.add(which)
                _forget_locals(error)
                noted.append(error)
        if self._max_errors is not None and len(noted) > self._max_errors:
            most = f"more than max_errors={self._max_errors}"
            what = "1 sample" if len(noted) == 1 else f"{len(noted)} samples"
            self.give_up(f"{what} of this epoch could not be made, {most}")

    def give_up(self, why: str) -> NoReturn:
        """Raises RuntimeError, caused by the last error, and suppresses the warning at the end of the epoch."""
        self._is_reported()
        last = self._progress.errors[-1]
        raise RuntimeError(f"{why}; the last one: {last}") from last

    def give_up_dataset(self) -> NoReturn:
        """Raises RuntimeError: with ``on_error="replace"`` no sample can take the place of a failed one."""
        self.give_up("no sample of the dataset could be made")

    def give_up_batch(self) -> NoReturn:
        """Raises RuntimeError: this rank has no sample for a batch that other ranks have."""
        self.give_up(
            "no sample of a batch could be made, and the other ranks would wait for the rank that skips a batch; use "
            'on_error="replace"'
        )

    def warn(self) -> None:
        """Warns once per epoch, naming the first error, so that no sample is dropped silently."""
        noted = self._progress.errors
        if not noted or self._reported:
            return
        self._is_reported()
        done = "skipped" if self.skips else "replaced by their neighbours"
        messages.warn(
            f"epoch {self._progress.epoch}: {len(noted)} samples could not be made and were {done}; "
            f"loader.errors lists them, the first is {noted[0]}"
        )

    def _is_reported(self) -> None:
        self._reported = True
        if self in _unsaid:
            _unsaid.remove(self)


def _forget_locals(error: BaseException) -> None:
    """Clears the locals in the tracebacks: errors are kept for the whole epoch and must not keep images alive."""
    for one in walk_causes(error):
        traceback.clear_frames(traceback_of(one))


class Source(Located, Protocol):
    """The part of a source that is used when a batch is handed out."""

    @property
    def has_targets(self) -> bool: ...

    def __len__(self) -> int: ...

    @property
    def ahead_bytes(self) -> int: ...

    def expect(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int: ...

    def metadata(self, index: int) -> dict[Any, Any]: ...

    def target(self, index: int) -> Any: ...

    def targets_of(self, indices: npt.NDArray[np.int64]) -> Any: ...

    def batch_of(self, images: Any, targets: Any) -> Any: ...
