"""Opens images deferred while torch makes batches, and counts them: in worker processes, or during a call in this one.

Before a batch leaves, the images in it get their pixels: errors belong to the batch, and a worker's queue pickles it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.pillow.installing import deferred_here, install_for
from headrace.pillow.opened_images import ImageCounts, OpenedImages


@dataclass(frozen=True)
class Counted:
    """A batch of a worker process, with the counts of the images opened since its last batch."""

    batch: Any
    counts: ImageCounts

    def pin_memory(self) -> Counted:
        """Pins the batch as torch does; called by torch."""
        from torch.utils.data._utils.pin_memory import pin_memory

        return Counted(pin_memory(self.batch), self.counts)  # type: ignore[no-untyped-call]


class InWorkers:
    """Its methods `start` and `collate` replace worker_init_fn and collate_fn."""

    def __init__(self, collate_fn: Callable[[Any], Any], init_fn: Callable[[int], None] | None) -> None:
        self._collate_fn, self._init_fn = collate_fn, init_fn
        self._opened = OpenedImages(tracks=True)

    def start(self, worker: int) -> None:
        """Called by torch as worker_init_fn."""
        install_for(self._opened)
        if self._init_fn is not None:
            self._init_fn(worker)

    def collate(self, data: Any) -> Counted:
        """Called by torch as collate_fn."""
        batch = self._collate_fn(data)
        self._opened.make_all()
        return Counted(batch, self._opened.take())


class InCalls:
    """Opens images deferred during calls in this process."""

    def __init__(self) -> None:
        self._opened = OpenedImages(tracks=True)

    def call(self, make: Callable[[], Any], counts: ImageCounts) -> Any:
        """Returns the result of `make`, which may open images.

        Args:
            counts: the images are added to these.
        """
        try:
            with deferred_here(self._opened):
                made = make()
            self._opened.make_all()
            return made
        finally:
            counts.add(self._opened.take())
