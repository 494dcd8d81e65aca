"""Which batches of one iterator are being made before their turn."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from headrace._loading.records.record_batch import AHEAD, RecordedBatch

if TYPE_CHECKING:
    from headrace._loading.records.device_batches import DeviceBatches


class Refused:
    """What came from the workers instead of a batch.

    Attributes:
        error: raised when torch asks for the batch.
        workers_status: which workers torch has found alive then.
    """

    def __init__(self, error: Exception, workers_status: list[bool]) -> None:
        self.error, self.workers_status = error, workers_status


class BegunBatches:
    """The batches of records that were begun and not handed out yet: `AHEAD` of them, and the one that is due."""

    def __init__(self) -> None:
        self._begun: list[tuple[DeviceBatches, RecordedBatch]] = []
        self._process = os.getpid()

    def begin(self, device_batches: DeviceBatches | None, data: object, *, is_due: bool = False) -> None:
        """Begins to make a batch, unless it was begun before.

        Args:
            data: the batch. One without records is left as it is.
            is_due: whether it is handed out next. One that is not is begun only if there is room.
        """
        if device_batches is None or not isinstance(data, RecordedBatch):
            return
        if any(one is data for _, one in self._begun) or not (is_due or len(self._begun) < AHEAD):
            return
        self._begun.append((device_batches, data))  # first: Ctrl-C may come at any time
        device_batches.begin(data)

    def keep(self, waiting: Iterable[object]) -> None:
        """Forgets the batches that were handed out, and gives up those that are lost: all that wait no longer."""
        if self._begun:
            ids = {id(one) for one in waiting}
            self._drop([one for one in self._begun if id(one[1]) not in ids])

    def drop(self) -> None:
        """Gives up all of them."""
        self._drop(self._begun)

    def rest(self, device_batches: DeviceBatches | None) -> None:
        """Called when the workers have ended: the threads that make batches end, too."""
        if device_batches is not None and self._has_threads():
            device_batches.rest(self)

    # The defaults, because the globals may be gone when the interpreter ends.
    def _has_threads(
        self, ends: Callable[[], bool] = sys.is_finalizing, process: Callable[[], int] = os.getpid
    ) -> bool:
        """Whether the threads that make batches are in this process, and have not ended with it."""
        return not ends() and process() == self._process

    def _drop(self, given_up: list[tuple[DeviceBatches, RecordedBatch]]) -> None:
        ids = {id(one) for _, one in given_up}
        self._begun = [one for one in self._begun if id(one[1]) not in ids]
        if not self._has_threads():
            return
        for device_batches, data in given_up:
            device_batches.drop(data)  # nothing is left to drop of one that was handed out
