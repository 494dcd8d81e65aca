"""Opens images deferred while torch makes batches, and counts them: in worker processes, or here during a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from PIL import Image

from headrace.pillow.image_counts import ImageCounts
from headrace.pillow.installing import deferred_here, install_for


@dataclass(frozen=True)
class Counted:
    """A batch of a worker process, with the counts of the images since its last batch."""

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
        self._counts = ImageCounts()

    def start(self, worker: int) -> None:
        """Called by torch as worker_init_fn."""
        install_for(self._counts)
        if self._init_fn is not None:
            self._init_fn(worker)

    def collate(self, data: Any) -> Counted:
        """Called by torch as collate_fn."""
        batch = self._collate_fn(data)
        _make_pixels(batch)
        return Counted(batch, self._counts.take())


def call_deferring(make: Callable[[], Any], counts: ImageCounts) -> Any:
    """Returns the result of `make`; images that it opens are deferred and counted."""
    with deferred_here(counts):
        made = make()
    _make_pixels(made)
    return made


def _make_pixels(batch: Any) -> None:
    """Makes the pixels of the images in a batch: its consumer does not expect to wait for them."""
    if isinstance(batch, Image.Image):
        if batch.__dict__.get("_lazy") is not None:  # an image that was only opened has no pixels with Pillow, either
            batch.im  # noqa: B018
    elif isinstance(batch, Mapping):
        for one in batch.values():
            _make_pixels(one)
    elif isinstance(batch, (list, tuple)):
        for one in batch:
            _make_pixels(one)
