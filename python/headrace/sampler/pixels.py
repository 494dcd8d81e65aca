"""A batch sampler of images of different sizes, whose padded batches are within a budget of pixels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headrace._base.checks import whole_number
from headrace._recipe.draws.draws import Int64Array
from headrace.sampler.aspect import Int32s, checked_image_sizes, read_image_sizes
from headrace.sampler.windows import WindowedBatches

_NO_LIMIT = 2**62
_STEPS = 4  # classes of aspect ratios between 1:1 and 2:1


class PixelBudgetBatchSampler(WindowedBatches):
    """Yields every sample once per epoch, in batches whose padded size is `max_pixels` at most: the number of images
    times the largest height times the largest width.

    For models that take images of different sizes, padded to one: a batch of large images has few, one of small images
    many, and memory and time of a step stay nearly equal. The samples of a window are sorted by aspect ratio and size,
    so that little is padded, and cut into batches; the batches of an epoch are shuffled, and differ between epochs.

    The batches depend only on the arguments and the epoch, so a loader's state resumes in the middle of one. In a
    distributed job, ``DataLoader(distributed=True)`` or ``rank=`` and ``world_size=`` share out the batches of one
    order: each rank gets equally many. As with torch's DistributedSampler, call ``set_epoch`` to get other batches in
    the next epoch; headrace's DataLoader does so itself.

    Args:
        dataset: a headrace dataset, or one that headrace recognises. Its image headers are read, unless `image_sizes`
            is given; then any sized object.
        max_pixels: most pixels of a batch, padded.
        batch_size: largest number of images in a batch; None: no limit.
        multiple: heights and widths count as rounded up to a multiple of this, as models with strides pad them.
        window: number of samples that are sorted together. Larger windows pad less, and mix batches less.
        shuffle: whether to shuffle. False: windows of consecutive samples; the same batches in every epoch.
        seed: any integer; only its low 64 bits are used.
        drop_last: whether to drop the batch that is the epoch's rest.
        image_sizes: (height, width) of every image, integers (n, 2): those after the transform, where it resizes.
            Reading headers takes some seconds for a hundred thousand files: save the attribute of the same name.

    Attributes:
        image_sizes: (height, width) of every image, int32 (n, 2); (0, 0) for a file that cannot be read, which counts
            as one pixel.
        epoch: epoch of the next iterator; initially 0.

    Raises:
        TypeError: an argument is not an integer.
        ValueError: there are no samples, a number is out of range, `image_sizes` does not have one row per image, an
            image alone exceeds `max_pixels` (the message gives its index), or headrace does not know the dataset.
    """

    def __init__(
        self,
        dataset: object,
        max_pixels: int,
        *,
        batch_size: int | None = None,
        multiple: int = 1,
        window: int = 8192,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        image_sizes: npt.ArrayLike | None = None,
    ) -> None:
        self.max_pixels: int = whole_number("max_pixels", max_pixels, smallest=1)
        self.batch_size: int | None = None if batch_size is None else whole_number("batch_size", batch_size, smallest=1)
        self.multiple: int = whole_number("multiple", multiple, smallest=1)
        self.image_sizes: Int32s = (
            read_image_sizes(dataset) if image_sizes is None else checked_image_sizes(dataset, image_sizes)
        )
        if not len(self.image_sizes):
            raise ValueError("the dataset is empty: there are no samples")
        if (self.image_sizes < 0).any():
            raise ValueError("image_sizes has a negative number; (height, width) in pixels is needed")
        super().__init__(len(self.image_sizes), window, shuffle=shuffle, seed=seed, drop_last=drop_last)
        sizes = np.maximum(self.image_sizes.astype(np.int64), 1)
        self._padded = -(-sizes // self.multiple) * self.multiple
        pixels = self._padded.prod(axis=1)
        if over := np.count_nonzero(pixels > self.max_pixels):
            first = int(np.argmax(pixels > self.max_pixels))
            height, width = self._padded[first].tolist()
            raise ValueError(
                f"sample {first} has {height} x {width} pixels, more than max_pixels={self.max_pixels}: raise "
                f"max_pixels, or shrink or leave out the {over} images that are larger"
            )

    def padded_share(self) -> float:
        """Returns the share of the pixels in the current epoch's batches that is padding."""
        held = sum(int(self.image_sizes[one].astype(np.int64).prod(axis=1).sum()) for one in self._bins())
        whole = sum(self._pixels(one) for one in self._bins())
        return 1 - held / whole if whole else 0.0

    def _pixels(self, batch: Int64Array) -> int:
        height, width = self._padded[batch].max(axis=0).tolist()
        return int(len(batch) * height * width)

    def _pack_window(self, samples: Int64Array, turn: float) -> tuple[list[Int64Array], Int64Array]:
        """Returns the batches of a window, but the last, and the samples of that one.

        The samples are sorted by classes of aspect ratio, up and down in size by turns, so that neighbours are alike
        also where a class ends. Cutting begins at a random place, as what is left over must not always be alike.
        """
        heights, widths = self._padded[samples].T
        ratio = np.round(_STEPS * np.log2(heights / widths)).astype(np.int64)
        classes = np.unique(ratio, return_inverse=True)[1]
        pixels = heights * widths
        order = np.lexsort((np.where(classes % 2, -pixels, pixels), classes))
        order = np.roll(order, -int(turn * len(order)))
        cuts = self._cut(heights[order].tolist(), widths[order].tolist())
        batches = np.split(samples[order], cuts)
        return batches[:-1], batches[-1]

    def _cut(self, heights: list[int], widths: list[int]) -> list[int]:
        """Returns where the batches begin, but the first."""
        cuts: list[int] = []
        begin = tallest = widest = 0
        most = self.batch_size or _NO_LIMIT
        for place, (height, width) in enumerate(zip(heights, widths, strict=True)):
            tallest, widest = max(tallest, height), max(widest, width)
            count = place - begin + 1
            if count > 1 and (count > most or count * tallest * widest > self.max_pixels):
                cuts.append(place)
                begin, tallest, widest = place, height, width
        return cuts
