"""What headrace's samplers have in common: an order that follows from (seed, epoch), and who says which epoch it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from headrace.base.whole_number import whole_number


class Seeded:
    """A sampler whose order follows from its seed and `epoch`.

    headrace's DataLoader tells it the epoch each time that one begins, so that ``set_epoch`` need not be called; where
    it is called, the loader takes the number over, for augmentation too: for an iterator of which no batch was asked
    for yet, or else for the next one. Any other loader leaves that to its user, as with
    ``torch.utils.data.DistributedSampler``.
    """

    epoch = 0
    unique = True  # whether an epoch names no sample twice
    _asked: int | None = None  # by set_epoch, and no loader knows of it yet

    def set_epoch(self, epoch: int) -> None:
        """The next ``iter(sampler)`` is of this epoch."""
        self.epoch = self._asked = whole_number("epoch", epoch, smallest=0)

    @property
    def asked(self) -> int | None:
        """The epoch that ``set_epoch`` has asked for since a loader told one; None: none."""
        return self._asked

    def told(self, epoch: int) -> None:
        """A loader says that this epoch begins."""
        self.epoch, self._asked = epoch, None


def chain_of(sampler: Any) -> Iterator[Any]:
    """A sampler or batch sampler, the one that it draws from, and so on: the outer ones first."""
    while sampler is not None:
        yield sampler
        batches = getattr(sampler, "batch_sampler", None)
        sampler = getattr(sampler, "sampler", None) if batches is None else batches


def tell(samplers: Iterable[Any], epoch: int) -> None:
    """Calls ``set_epoch`` of those that have it."""
    for sampler in samplers:
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(epoch)
