"""What was read from other machines, and what was found in the caches."""

from __future__ import annotations

from dataclasses import dataclass


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
