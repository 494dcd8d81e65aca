"""Images of different sizes as patches: how many each has, and a collate function that packs those of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from headrace._base.checks import whole_number
from headrace.sampler.aspect import checked_image_sizes, read_image_sizes
from headrace.sampler.packed import Packed
from headrace.transforms import ResizeToPatches


def patch_counts(dataset: Any, image_sizes: npt.ArrayLike | None = None) -> npt.NDArray[np.int64]:
    """Returns the number of patches of every image of a dataset, int64 (n,): lengths for `PackingBatchSampler`.

    Args:
        dataset: a headrace dataset, or one that headrace recognises, whose transform is a
            ``headrace.transforms.ResizeToPatches`` or begins with one. Its image headers are read, unless `image_sizes`
            is given. An image whose header cannot be read has the patches of an image of one pixel.
        image_sizes: (height, width) of every image, integers (n, 2), if they are known.

    Raises:
        ValueError: the transforms do not begin with ResizeToPatches, headrace does not know the dataset, or
            `image_sizes` does not have one row per image.
    """
    transform = getattr(dataset, "transform", None)
    steps = getattr(transform, "transforms", [transform])
    if not (isinstance(steps, Sequence) and steps and isinstance(steps[0], ResizeToPatches)):
        raise ValueError("the transforms of the dataset must begin with ResizeToPatches, which tells the patches")
    sizes = read_image_sizes(dataset) if image_sizes is None else checked_image_sizes(dataset, image_sizes)
    counts: npt.NDArray[np.int64] = steps[0].grids(sizes).prod(axis=1)
    return counts


class PackedPatches(NamedTuple):
    """The patches of the images of a batch, one image after another, T patches in all, row by row.

    Attributes:
        values: (T, C * patch * patch), in the dtype of the images; a patch is flattened as (channel, row, column), so
            ``values @ conv.weight.flatten(1).T`` is what ``torch.nn.Conv2d(C, D, patch, patch)`` makes of it.
        cu_seqlens: where each image begins, and T, int32 (n + 1,).
        position_ids: (row, column) of each patch in its image, int64 (T, 2).
        max_seqlen: most patches of an image.
        grids: (rows, columns) of each image in patches, int64 (n, 2).
    """

    values: torch.Tensor
    cu_seqlens: torch.Tensor
    position_ids: torch.Tensor
    max_seqlen: int
    grids: torch.Tensor

    @property
    def mask(self) -> torch.Tensor:
        """As that of `Packed`."""
        return Packed(*self[:4]).mask


class PatchPackingCollate:
    """Cuts images of different sizes into patches and puts those of a batch one after another, as NaViT does.

    A sample is an image, or a tuple that begins with one: a tensor (C, H, W) whose edges are multiples of the patch, as
    ``headrace.transforms.ResizeToPatches`` makes them. The batch is `PackedPatches`, or a list that begins with them;
    the rest of the tuples is collated by torch's ``default_collate``.

    Args:
        patch: edge of a patch in pixels.

    Raises:
        TypeError: `patch` is not an integer; when called, if a sample does not begin with a tensor (C, H, W).
        ValueError: `patch` is not positive; when called, if an edge is no multiple of the patch, or images differ in
            dtype or channels.
    """

    def __init__(self, patch: int) -> None:
        self.patch: int = whole_number("patch", patch, smallest=1)

    def __call__(self, samples: Sequence[Any]) -> Any:
        """Collates one sample or more into a batch."""
        if not isinstance(samples[0], tuple):
            return self._pack(samples)
        images, *others = zip(*samples, strict=True)
        return [self._pack(images), *(torch.utils.data.default_collate(list(one)) for one in others)]

    def _pack(self, images: Sequence[torch.Tensor]) -> PackedPatches:
        grids = [self._grid(number, image, images[0]) for number, image in enumerate(images)]
        counts = torch.tensor([rows * columns for rows, columns in grids])
        edge, channels = self.patch, len(images[0])
        # Written once: each image's patches go to their place in the batch.
        values = images[0].new_empty(int(counts.sum()), channels * edge * edge)
        positions = torch.empty(len(values), 2, dtype=torch.int64)
        begin = 0
        for image, (rows, columns) in zip(images, grids, strict=True):
            end = begin + rows * columns
            patches = image.reshape(channels, rows, edge, columns, edge).permute(1, 3, 0, 2, 4)
            values[begin:end].view(rows, columns, channels, edge, edge).copy_(patches)
            positions[begin:end, 0] = torch.arange(rows).repeat_interleave(columns)
            positions[begin:end, 1] = torch.arange(columns).repeat(rows)
            begin = end
        ends = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).to(torch.int32)
        return PackedPatches(values, ends, positions, int(counts.max()), torch.tensor(grids))

    def _grid(self, number: int, image: object, first: torch.Tensor) -> tuple[int, int]:
        """Returns (rows, columns) of an image in patches."""
        if not isinstance(image, torch.Tensor) or image.ndim != 3:
            raise TypeError(f"sample {number} does not begin with an image, a tensor (C, H, W)")
        if image.dtype != first.dtype or len(image) != len(first):
            raise ValueError(
                f"sample {number} is of {image.dtype} and {len(image)} channels, but sample 0 of {first.dtype} and "
                f"{len(first)}"
            )
        height, width = image.shape[1:]
        if height % self.patch or width % self.patch:
            raise ValueError(
                f"sample {number} is {height} x {width}, whose edges are no multiples of patch={self.patch}; put "
                "ResizeToPatches at the beginning of the transforms"
            )
        return height // self.patch, width // self.patch
