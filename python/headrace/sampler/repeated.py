"""Repeated augmentation: a global batch holds several copies of a sample, each with its own augmentation."""

from __future__ import annotations

from collections.abc import Iterable, Sized

from headrace._base.checks import whole_number
from headrace.sampler.distributed import DistributedSampler


class RepeatedAugment(DistributedSampler):
    """Yields each sample several times in a row; its copies are in one global batch, each with its own augmentation.

    An epoch has as many items as the dataset, and so ``len(dataset) / repetitions`` different samples, which differ
    between epochs. The copies of a sample go to consecutive ranks.

    Method: Hoffer et al., "Augment your batch" (CVPR 2020), as used by DeiT. torchvision's reference RASampler and
    timm's RepeatAugSampler do the same, but drop the last items if their number is not a multiple of 256.

    Args:
        dataset, num_replicas, rank, shuffle, seed, drop_last: as for ``DistributedSampler``.
        repetitions: number of copies of each sample; 1 or more.

    Raises:
        ValueError: `repetitions` is less than 1, or as for ``DistributedSampler``.
        TypeError: an argument is not an integer.
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
        self.repetitions: int = whole_number("repetitions", repetitions, smallest=1)

    @property
    def whole(self) -> Iterable[int]:
        """The order of all ranks together in the current epoch."""
        items = len(self.dataset)  # type: ignore[arg-type]
        return [index for index in super().whole for _ in range(self.repetitions)][:items]
