"""The loaders of this process that have begun an epoch while something publishes."""

from __future__ import annotations

import threading
from typing import Any

from headrace._reports.metrics.loader_snapshot import Look
from headrace._reports.metrics.loader_tracker import Followed
from headrace._reports.metrics.process_figures import LoaderFigures
from headrace._reports.metrics.totals import Totals
from headrace._reports.ranks.job_watch import Consumer
from headrace._reports.ranks.machine_look import device_in_use
from headrace._reports.ranks.rank_figures import JobVerdict, Load, sum_loads


class Loaders:
    """Follows loaders. It does not keep them alive. Any thread may call it.

    Attributes:
        consumer: the thread in which a loader last began an epoch, with the rank of the process then.
        job: the newest verdict on all ranks of the job; None if there is none.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followed: dict[int, Followed] = {}  # by id: a subclass of the loader need not have a hash
        self.consumer: Consumer = Consumer()
        self.job: JobVerdict | None = None

    def begins(self, loader: Any) -> None:
        """Called in the consumer's thread before a loader begins an epoch."""
        from headrace._base.ranks import World

        found = World.found_out()
        world = found if found.found else loader._own.world
        consumer = Consumer(world.rank, world.size, threading.get_native_id(), device_in_use())
        with self._lock:
            self.consumer = consumer
            followed = self._followed.get(id(loader))
            if followed is None or followed.loader() is not loader:
                self._remove_gone()
                used = {one.number for one in self._followed.values()}
                number = next(one for one in range(len(used) + 1) if one not in used)
                self._followed[id(loader)] = followed = Followed(loader, number)
        followed.begins(loader)

    def forget(self) -> None:
        """Called in a process that was forked: its loaders are others, and a thread may have held the lock."""
        self._lock, self._followed, self.job = threading.Lock(), {}, None

    def _remove_gone(self) -> None:
        self._followed = {key: one for key, one in self._followed.items() if one.loader() is not None}

    def _all(self) -> list[Followed]:
        with self._lock:
            return sorted(self._followed.values(), key=lambda one: one.number)

    def figures(self) -> list[LoaderFigures]:
        """Returns the figures of each loader; see `Followed.figures`."""
        return [figures for one in self._all() if (figures := one.figures()) is not None]

    def load(self) -> Load:
        """Returns what all loaders have done, as of the newest call of `figures`."""
        return sum_loads([one.load for one in self._all()])

    def looks(self) -> list[tuple[int, Look, Totals]]:
        """Returns number, newest epoch and totals of each loader."""
        return [(one.number, *found) for one in self._all() if (found := one.look()) is not None]
