"""The iterator of a loader with persistent workers: the same object in each epoch."""

from __future__ import annotations

from typing import Any

from headrace.delivery.iterator import NativeIterator


class PersistentIterator:
    """Iterator over the newest epoch of a loader with ``persistent_workers=True``.

    torch's loader has one iterator then, which ``iter(loader)`` sets to the beginning of the next epoch. Whoever holds
    it goes on with that epoch.
    """

    _current: NativeIterator

    def begin(self, epoch: NativeIterator) -> None:
        """Goes on with another epoch."""
        self._current = epoch

    def __iter__(self) -> PersistentIterator:
        return self

    def __next__(self) -> Any:
        return self._current.__next__()

    def __len__(self) -> int:
        return len(self._current)

    def close(self) -> None:
        """Discards the batches in flight; a later ``next()`` raises RuntimeError. Idempotent."""
        self._current.close()

    @property
    def loader(self) -> Any:
        """See NativeIterator."""
        return self._current.loader

    def __reduce__(self) -> Any:
        return self._current.__reduce__()
