"""The fetchers of this process: one for all datasets with equal settings, none that another process started.
Counts of what they read."""

from __future__ import annotations

import atexit
import os
import threading
from collections import Counter
from dataclasses import dataclass, fields

from headrace._storage.remote.cache import Cache
from headrace._storage.remote.fetcher import Fetcher
from headrace._storage.remote.network import Network


@dataclass(frozen=True)
class Traffic:
    """Counts of all loaders of this process, since its first one.

    Attributes:
        requests, bytes: requests made, and bytes of their answers.
        retries, hedged, failed: requests made again after an error; made twice because the first one took long; ranges
            that were given up.
        fetched, from_disk, from_memory: samples (and labels) that were fetched, or found in the caches.
    """

    requests: int
    bytes: int
    retries: int
    hedged: int
    failed: int
    fetched: int
    from_disk: int
    from_memory: int

    @property
    def hit_rate(self) -> float:
        """The share of samples that the caches had."""
        hits = self.from_disk + self.from_memory
        return hits / (hits + self.fetched) if hits + self.fetched else 0.0

    def __str__(self) -> str:
        return (
            f"remote: {self.requests} requests ({self.retries} retries, {self.hedged} hedged, {self.failed} failed), "
            f"{self.bytes:,} bytes; {self.hit_rate:.1%} of {self.fetched + self.from_disk + self.from_memory} samples "
            f"from the caches (memory {self.from_memory}, disk {self.from_disk})"
        )


_lock = threading.Lock()
_fetchers: dict[tuple[Network, Cache | None], Fetcher] = {}
_of_parents: list[Fetcher] = []  # never destroyed: their threads do not exist here


def fetcher_of(network: Network, cache: Cache | None) -> Fetcher:
    """Returns this process's fetcher."""
    with _lock:
        if (network, cache) not in _fetchers:
            _fetchers[network, cache] = Fetcher(network, cache)
        return _fetchers[network, cache]


def traffic() -> Traffic | None:
    """Returns what all fetchers of this process did; None if there is none."""
    with _lock:
        fetchers = list(_fetchers.values())
    if not fetchers:
        return None
    done: Counter[str] = Counter()
    for one in fetchers:
        held = one.store.counts()
        done.update(one.counts())
        done.update({name: held[name] for name in ("fetched", "from_disk", "from_memory")})
    return Traffic(**{field.name: done[field.name] for field in fields(Traffic)})


def close_all() -> None:
    """Ends the fetchers; those who wait for bytes get an error. The next use makes new ones."""
    with _lock:
        fetchers = list(_fetchers.values())
        _fetchers.clear()
    for one in fetchers:
        one.close()


def _forget_the_parents() -> None:
    global _lock
    _lock = threading.Lock()
    _of_parents.extend(_fetchers.values())
    _fetchers.clear()


atexit.register(close_all)
os.register_at_fork(after_in_child=_forget_the_parents)
