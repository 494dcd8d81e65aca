"""Runs a training loop on batches that are ready, to measure how fast it would be with a perfect loader."""

from __future__ import annotations

import itertools
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from headrace._reports.loader.notebook_views import NotebookView

_KEPT = 4
_WARM_UP = 3
_LEAST = 4


@dataclass(frozen=True, repr=False)
class Headroom(NotebookView):
    """What `HeadroomLoop` measured.

    Attributes:
        batches: steps that were timed with each: the loader's batches, and ready ones.
        loader_ms: mean time of a step with the loader, in milliseconds.
        ready_ms: the same with batches that are ready, which is the time with a perfect loader.
    """

    batches: int
    loader_ms: float
    ready_ms: float

    @property
    def gain(self) -> float:
        """The greatest speed-up that a better loader could give."""
        return self.loader_ms / self.ready_ms if self.ready_ms else 1.0

    def __str__(self) -> str:
        return (
            f"{self.loader_ms:.2f} ms a step with this loader, {self.ready_ms:.2f} ms with batches that are ready: "
            f"a perfect loader would give {self.gain:.2f}x"
        )


class HeadroomLoop:
    """See ``DataLoader.headroom``.

    Iterating yields up to `batches` batches of the loader, then as many of the newest ones again. The first steps
    are not timed. Where CUDA is in use, the clock is read when the device has done its work.

    Args:
        loader: the batches; an epoch of it is begun.
        batches: number of batches of each kind.
    """

    def __init__(self, loader: Iterable[object], batches: int) -> None:
        if isinstance(batches, bool) or not isinstance(batches, int) or batches < _LEAST:
            raise ValueError(f"batches must be a number of batches from {_LEAST} up, not {batches!r}")
        self._loader, self._batches = loader, batches
        self._result: Headroom | None = None

    def __iter__(self) -> Iterator[Any]:
        self._result = None
        kept: deque[object] = deque(maxlen=_KEPT)
        taken, begin = 0, 0.0
        batches = iter(self._loader)
        for batch in itertools.islice(batches, self._batches):
            taken += 1
            kept.append(batch)
            yield batch
            del batch
            if taken == _WARM_UP:
                begin = _now_with_gpu_idle()
        steps = taken - _WARM_UP
        with_loader = _now_with_gpu_idle() - begin
        if steps < 1:
            raise RuntimeError(f"the epoch has {taken} batches; headroom needs {_LEAST} at least")
        del batches  # its threads would go on to make batches ahead
        begin = _now_with_gpu_idle()
        yield from itertools.islice(itertools.cycle(kept), steps)
        self._result = Headroom(steps, 1e3 * with_loader / steps, 1e3 * (_now_with_gpu_idle() - begin) / steps)

    @property
    def result(self) -> Headroom:
        """What was measured.

        Raises:
            RuntimeError: the loop has not run to its end.
        """
        if self._result is None:
            raise RuntimeError("the loop over headroom() has not run to its end")
        return self._result


def _now_with_gpu_idle() -> float:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        cuda.synchronize()
    return time.perf_counter()
