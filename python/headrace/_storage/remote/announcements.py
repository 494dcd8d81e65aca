"""Announces the samples of an epoch's next batches to their source."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt


class _Batch(Protocol):
    @property
    def indices(self) -> npt.NDArray[np.int64]: ...


B = TypeVar("B", bound=_Batch)

_MOST = 64  # batches that are requested from the sampler before they are due


class RemoteSource(Protocol):
    """A source whose samples are in other machines."""

    @property
    def ahead_bytes(self) -> int:
        """Most bytes to announce before they are read; 0: the source is local."""

    def expect(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int:
        """Begins to fetch samples and returns their number of bytes; does not wait. An index that does not exist is
        left to those who read it."""


class Announced(Iterator[B]):
    """The batches of an order; those that follow are announced to their source, up to its `ahead_bytes`, as far as the
    order may be read already.

    An error of the sampler is raised after the batches before it; then the order is read again, as without this.
    """

    def __init__(self, order: Iterator[B], source: RemoteSource) -> None:
        self._order, self._source = order, source
        self._waiting: deque[tuple[B, int]] = deque()
        self._held = 0
        self._ended = False
        self._error: Exception | None = None

    @property
    def ready(self) -> bool:
        """Whether a batch may be requested now; see EpochOrder."""
        return bool(self._waiting) or self._error is not None or self._has_more_batches()

    @property
    def waiting(self) -> int:
        """Number of batches that were read and not requested yet."""
        return len(self._waiting) + int(getattr(self._order, "waiting", 0))

    @property
    def ended(self) -> bool:
        """Whether it is known that no batch follows."""
        return not self._waiting and (self._ended or bool(getattr(self._order, "ended", False)))

    def is_behind(self, delivered: int) -> bool:
        """Whether `read` would ask the sampler."""
        return hasattr(self._order, "is_behind") and bool(self._order.is_behind(delivered))

    def read(self, delivered: int) -> None:
        """Lets the order read its sampler ahead; see EpochOrder."""
        if hasattr(self._order, "read"):
            self._order.read(delivered)

    def _has_more_batches(self) -> bool:
        return not self._ended and bool(getattr(self._order, "ready", True))

    def __next__(self) -> B:
        self._announce_batches()
        if self._waiting:
            batch, size = self._waiting.popleft()
            self._held -= size
            return batch
        self._ended, error, self._error = False, self._error, None
        if error is not None:
            raise error
        raise StopIteration

    def _announce_batches(self) -> None:
        while len(self._waiting) < _MOST and self._has_more_batches():
            if self._waiting and self._held >= self._source.ahead_bytes:
                return
            try:
                batch = next(self._order)
            except StopIteration:
                self._ended = True
                return
            except Exception as error:
                self._error, self._ended = error, True
                return
            try:
                size = self._source.expect(batch.indices)
            except IndexError:  # raised again, with the sample, when the batch is made
                size = 0
            self._waiting.append((batch, size))
            self._held += size
