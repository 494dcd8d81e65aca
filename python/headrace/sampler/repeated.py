"""Repeated augmentation: several copies of a sample in a global batch, each augmented anew."""

from __future__ import annotations

from collections.abc import Iterable, Sized

from headrace.base.whole_number import whole_number
from headrace.sampler.distributed import DistributedSampler


class RepeatedAugment(DistributedSampler):
    """Each sample several times in a row, so that its copies, all augmented differently, meet in one global batch.

    An epoch has as many items as the dataset: ``len(dataset) / repetitions`` samples, others in each epoch. Copies
    are dealt out like any items: with several ranks each copy is another rank's. Without a job, there is one rank.
    After Hoffer et al., "Augment your batch" (CVPR 2020), as DeiT trains; torchvision's reference RASampler and timm's
    RepeatAugSampler do the same, but leave out the last items where 256 does not divide their number.

    Args:
        dataset, num_replicas, rank, shuffle, seed, drop_last: as for ``DistributedSampler``.
        repetitions: copies of each sample.

    Raises:
        ValueError: fewer than one repetition, a rank outside the world. TypeError: no whole number.
    """

    unique = False

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        repetitions: int = 3,
        drop_last: bool = False,
    ) -> None:
        super().__init__(dataset, num_replicas, rank, shuffle, seed, drop_last)
        self.repetitions = whole_number("repetitions", repetitions, smallest=1)

    @property
    def whole(self) -> Iterable[int]:
        """The order of all ranks together, of the epoch at hand."""
        items = len(self.dataset)  # type: ignore[arg-type]
        return [index for index in super().whole for _ in range(self.repetitions)][:items]
