"""What a loader's threads have done since an epoch began."""

from __future__ import annotations

from headrace._engine.counters.counters import Counters
from headrace._engine.counters.epoch_timing import Seen
from headrace._engine.counters.thread_times import scheduler_times_of_threads
from headrace._engine.engine import Engine
from headrace._loading.collate.collate_threads import CollateThreads
from headrace._loading.native.pending_batch import Results


class Looking:
    """Reads the counters of an engine and the times of its threads. It does not keep the iterator alive.

    Args:
        before: the engine's counters when the epoch began.
    """

    def __init__(self, engine: Engine, collating: CollateThreads[Results], before: Counters) -> None:
        self._engine, self._collating, self._before = engine, collating, before

    def __call__(self) -> Seen:
        counted = self._engine.counters().since(self._before)
        workers, python = (
            scheduler_times_of_threads(counted.workers),
            scheduler_times_of_threads([*counted.python, *self._collating.thread_ids()]),
        )
        stages, items = ({name: both[i] for name, both in counted.stages.items()} for i in (1, 0))
        return Seen(stages, items, workers, python, counted.working)
