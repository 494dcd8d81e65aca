"""What happens to samples that cannot be made: raised, skipped, or replaced by their neighbours."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Protocol

from headrace.engine import Failure
from headrace.errors import SampleError, native_cause, sample_error

POLICIES = ("raise", "skip", "replace")


class Located(Protocol):
    """What a message needs to know of a dataset."""

    def location(self, index: int) -> str: ...


def describe(failure: Failure, index: int, source: Located) -> SampleError:
    """The exception for one failed sample of the dataset."""
    location = source.location(index)
    original = failure.original or native_cause(failure.stage, failure.reason, failure.errno, location)
    return sample_error(failure.stage, index, location, failure.reason, original)


class FaultLog:
    """Counts the samples of one epoch that were skipped or replaced, and ends the epoch when there are too many.

    Args:
        policy: ``"skip"`` or ``"replace"``, for the words of its warning.
        limit: most errors an epoch; None: no limit.
    """

    def __init__(self, policy: str, limit: int | None) -> None:
        self._policy = policy
        self._limit = limit
        self.errors: list[SampleError] = []

    def add(self, errors: Sequence[SampleError]) -> None:
        """Notes errors.

        Raises:
            RuntimeError: there are more than the limit; its cause is the last one.
        """
        self.errors.extend(errors)
        if self._limit is not None and len(self.errors) > self._limit:
            raise RuntimeError(
                f"{len(self.errors)} samples of this epoch could not be made, more than max_errors={self._limit}; "
                f"the last one: {self.errors[-1]}"
            ) from self.errors[-1]

    def warn(self, epoch: int) -> None:
        """One warning an epoch that names the first of them: nothing is dropped silently."""
        if self.errors:
            done = "skipped" if self._policy == "skip" else "replaced by their neighbours"
            warnings.warn(
                f"epoch {epoch}: {len(self.errors)} samples could not be made and were {done}; loader.errors lists "
                f"them, the first is {self.errors[0]}",
                UserWarning,
                stacklevel=4,
            )
