"""A batch sampler that groups images of similar aspect ratio; the output size varies from batch to batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Sampler

from headrace._base.checks import whole_number
from headrace._recipe.draws.draws import epoch_seed
from headrace._recipe.draws.seeded_sampler import Seeded
from headrace._recipe.steps.aspect_sizes import nearest_of
from headrace.datasets.sources import NotNative, as_source, image_sizes
from headrace.transforms import ByAspectRatio

Int32s = npt.NDArray[np.int32]


class AspectRatioBatchSampler(Seeded, Sampler[list[int]]):
    """Yields batches of images that share an output size: the size whose aspect ratio is nearest to the image's.

    An epoch holds every sample once. All batches of a size have equally many samples, except the last one. The
    composition and the order of the batches follow from (seed, epoch). Use it with a dataset whose transform is a
    ``headrace.transforms.ByAspectRatio`` of the same sizes. In a distributed job, ``DataLoader(rank=, world_size=)``
    splits the batches among the ranks.

    Args:
        dataset: a headrace dataset, or one that headrace recognises. Its image headers are read, unless `image_sizes`
            is given.
        batch_size: number of samples in a batch; with `max_pixels` the largest. None: as `max_pixels` says.
        sizes: (height, width) of each output size in pixels. None: those of the dataset's ``ByAspectRatio`` transform.
        shuffle: whether to shuffle samples and batches. False: the dataset's order, one size after the other.
        seed: seed of the shuffle; any integer.
        drop_last: whether to drop the incomplete batch of each size.
        image_sizes: (height, width) of every image, integers (n, 2), if they are known. Reading the headers of a
            hundred thousand files takes some seconds, and more from a cold disk: save the attribute of the same name.
        max_pixels: most pixels of a batch: those of larger sizes have fewer samples, and at least one. None: no limit.

    Attributes:
        image_sizes: (height, width) of every image, int32 (n, 2); (0, 0) for a file that cannot be read.
        sizes: (height, width) of each output size.

    Raises:
        ValueError: the output sizes are unknown, `image_sizes` does not have one row per image, or a number is out of
            range.
        TypeError: an argument is not an integer.
    """

    def __init__(
        self,
        dataset: object,
        batch_size: int | None = None,
        sizes: Sequence[tuple[int, int]] | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        image_sizes: npt.ArrayLike | None = None,
        max_pixels: int | None = None,
    ) -> None:
        if batch_size is None and max_pixels is None:
            raise ValueError("give batch_size, max_pixels, or both: one of them must end a batch")
        self.batch_size: int | None = None if batch_size is None else whole_number("batch_size", batch_size, smallest=1)
        self.max_pixels: int | None = None if max_pixels is None else whole_number("max_pixels", max_pixels, smallest=1)
        self.sizes: list[tuple[int, int]] = _output_sizes(dataset, sizes)
        self.shuffle = shuffle
        self.seed: int = whole_number("seed", seed)
        self.drop_last = drop_last
        self.image_sizes: Int32s = (
            read_image_sizes(dataset) if image_sizes is None else checked_image_sizes(dataset, image_sizes)
        )
        size_of = nearest_of(self.sizes, self.image_sizes)
        self._members = [np.flatnonzero(size_of == number) for number in range(len(self.sizes))]
        self._counts = [self._room(height * width) for height, width in self.sizes]

    def _room(self, pixels: int) -> int:
        """Returns the number of samples in a full batch of images of this number of pixels."""
        room = max(1, (self.max_pixels or 2**62) // pixels)
        return room if self.batch_size is None else min(room, self.batch_size)

    def __len__(self) -> int:
        parts = [divmod(len(members), count) for members, count in zip(self._members, self._counts, strict=True)]
        return sum(whole + (rest > 0 and not self.drop_last) for whole, rest in parts)

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator("cpu").manual_seed(epoch_seed(self.seed, self.epoch))
        batches = []
        for members, count in zip(self._members, self._counts, strict=True):
            if self.shuffle:
                members = members[torch.randperm(len(members), generator=generator, device="cpu").numpy()]
            end = len(members) // count * count if self.drop_last else len(members)
            batches += [members[at : at + count] for at in range(0, end, count)]
        order = (
            torch.randperm(len(batches), generator=generator, device="cpu").tolist()
            if self.shuffle
            else range(len(batches))
        )
        return (batches[number].tolist() for number in order)


def _output_sizes(dataset: object, given: Sequence[tuple[int, int]] | None) -> list[tuple[int, int]]:
    if given is None:
        transform = getattr(dataset, "transform", None)
        first = getattr(transform, "transforms", [None])
        first = first[0] if isinstance(first, Sequence) and first else None
        by_ratio = next((one for one in (transform, first) if isinstance(one, ByAspectRatio)), None)
        if by_ratio is None:
            raise ValueError("give sizes=[(height, width), ...], or the dataset a ByAspectRatio as its transform")
        return by_ratio.sizes
    sizes = [(whole_number("height", h, smallest=1), whole_number("width", w, smallest=1)) for h, w in given]
    if not sizes:
        raise ValueError("sizes is empty: there is no output size")
    return sizes


def read_image_sizes(dataset: object) -> Int32s:
    """Returns (height, width) of every image, int32 (n, 2), from the headers; (0, 0) for a file that cannot be read.

    Raises:
        ValueError: headrace does not know the dataset.
    """
    try:
        return image_sizes(as_source(dataset))
    except NotNative as error:
        raise ValueError(f"{error}; give the sizes of its images as image_sizes=") from None


def checked_image_sizes(dataset: Any, sizes: npt.ArrayLike) -> Int32s:
    """Returns given sizes as int32 (n, 2). Raises ValueError if they are not integers, one row per image."""
    known = np.asarray(sizes)
    if known.shape != (len(dataset), 2) or known.dtype.kind not in "iu":
        raise ValueError(
            f"image_sizes are {known.dtype} {known.shape}; (height, width) as integers ({len(dataset)}, 2) is needed"
        )
    return known.astype(np.int32)
