"""The loaders of this process that have begun an epoch while something publishes."""

from __future__ import annotations

import threading
from typing import Any

from headrace._reports.metrics.loader_snapshot import Look
from headrace._reports.metrics.loader_tracker import Followed
from headrace._reports.metrics.process_figures import LoaderFigures
from headrace._reports.metrics.totals import Totals


class Loaders:
    """Follows loaders. It does not keep them alive. Any thread may call it.

    Attributes:
        rank, ranks: of this process, when a loader last began an epoch.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followed: dict[int, Followed] = {}  # by id: a subclass of the loader need not have a hash
        self.rank: int = 0
        self.ranks: int = 1

    def begins(self, loader: Any) -> None:
        """Called in the consumer's thread before a loader begins an epoch."""
        from headrace._base.ranks import World

        world = World.found_out()
        with self._lock:
            self.rank, self.ranks = (
                (world.rank, world.size) if world.found else (loader._own.world.rank, loader._own.world.size)
            )
            followed = self._followed.get(id(loader))
            if followed is None or followed.loader() is not loader:
                self._remove_gone()
                used = {one.number for one in self._followed.values()}
                number = next(one for one in range(len(used) + 1) if one not in used)
                self._followed[id(loader)] = followed = Followed(loader, number)
        followed.begins(loader)

    def forget(self) -> None:
        """Called in a process that was forked: its loaders are others, and a thread may have held the lock."""
        self._lock, self._followed = threading.Lock(), {}

    def _remove_gone(self) -> None:
        self._followed = {key: one for key, one in self._followed.items() if one.loader() is not None}

    def _all(self) -> list[Followed]:
        with self._lock:
            return sorted(self._followed.values(), key=lambda one: one.number)

    def figures(self) -> list[LoaderFigures]:
        """Returns the figures of each loader; see `Followed.figures`."""
        return [figures for one in self._all() if (figures := one.figures()) is not None]

    def looks(self) -> list[tuple[int, Look, Totals]]:
        """Returns number, newest epoch and totals of each loader."""
        return [(one.number, *found) for one in self._all() if (found := one.look()) is not None]
