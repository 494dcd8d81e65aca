"""What was found in the caches of local files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kept:
    """Counts of all caches of local files that datasets of this process use, since they were made.

    Attributes:
        read: samples that were read from their files.
        from_memory, from_disk: samples that were found in a cache.
        bytes: bytes in memory now.
    """

    read: int
    from_memory: int
    from_disk: int
    bytes: int

    @property
    def hit_rate(self) -> float:
        """The share of samples that the caches had."""
        hits = self.from_disk + self.from_memory
        return hits / (hits + self.read) if hits + self.read else 0.0

    def __str__(self) -> str:
        return (
            f"cache: {self.hit_rate:.1%} of {self.read + self.from_disk + self.from_memory} samples found "
            f"(memory {self.from_memory}, disk {self.from_disk}), {self.bytes:,} bytes in memory"
        )
