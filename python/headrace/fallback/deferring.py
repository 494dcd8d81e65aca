"""Opens images deferred while torch makes batches, and counts them: in worker processes, or here during a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from PIL import Image

from headrace.base.native import core
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
    """Opens images deferred in worker processes.

    Attributes:
        start: replaces worker_init_fn.
        collate: replaces collate_fn; returns a `Counted`. Tracebacks of errors in the user's functions are torch's.
    """

    def __init__(self, collate_fn: Callable[[Any], Any], init_fn: Callable[[int], None] | None) -> None:
        self._counts = ImageCounts()
        self.start = self._install if init_fn is None else core.Composed(self._install, init_fn)
        self.collate = core.Composed(collate_fn, self._finish)

    def _install(self, worker: int) -> int:
        install_for(self._counts)
        return worker

    def _finish(self, batch: Any) -> Counted:
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
