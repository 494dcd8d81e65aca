"""Base class of headrace's samplers: an order that follows from (seed, epoch), and how the epoch is set. Functions that
walk from a sampler to the samplers inside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace._base.checks import whole_number


class Seeded:
    """A sampler whose order follows from its seed and `epoch`.

    headrace's DataLoader sets the epoch of its samplers when an epoch begins, so calling ``set_epoch`` is optional. If
    the caller does call it, the loader adopts that epoch, also for augmentation: for the current iterator if no batch
    was requested from it yet, otherwise for the next one. With any other loader the caller must call ``set_epoch``, as
    for ``torch.utils.data.DistributedSampler``.
    """

    epoch: int = 0
    unique = True  # whether an epoch yields no sample twice
    # Rank and number of ranks where each rank has an order of its own, instead of a share of one order of all.
    of_rank: tuple[int, int] = (0, 1)
    _requested: int | None = None  # the argument of set_epoch, until a loader has adopted it

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next ``iter(sampler)``; 0 or more."""
        self.epoch = self._requested = whole_number("epoch", epoch, smallest=0)

    def describe(self) -> str:
        """Returns what its order follows from beside its public attributes, as text."""
        return ""

    @property
    def requested(self) -> int | None:
        """The epoch passed to ``set_epoch`` that no loader has adopted yet; None if there is none."""
        return self._requested

    def adopt(self, epoch: int) -> None:
        """Sets the epoch on behalf of a loader; discards an epoch requested by ``set_epoch``."""
        self.epoch, self._requested = epoch, None


def sampler_chain(sampler: object) -> Iterator[object]:
    """Yields a sampler or batch sampler, then the sampler that it draws from, and so on, outermost first, each once.

    Some samplers name themselves as the sampler that they draw from.
    """
    seen: list[object] = []
    while sampler is not None and all(sampler is not one for one in seen):
        seen.append(sampler)
        yield sampler
        batches = getattr(sampler, "batch_sampler", None)
        sampler = getattr(sampler, "sampler", None) if batches is None else batches


def set_epoch_of_samplers(samplers: Iterable[object], epoch: int) -> None:
    """Calls ``set_epoch`` on the samplers that have it."""
    for sampler in samplers:
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(epoch)
