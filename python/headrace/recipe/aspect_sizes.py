"""Sizes by aspect ratio: which of some output sizes suits an image, and what sizes to offer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headrace.base.whole_number import whole_number

_AT_ONCE = 65536  # images

#: (height, width), in pixels.
Size = tuple[int, int]


def nearest(sizes: Sequence[Size], height: int, width: int) -> int:
    """The number of the size whose aspect ratio is nearest to the image's: by the quotient of the two, the first of
    equals."""
    return int(nearest_of(sizes, np.array([[height, width]]))[0])


def nearest_of(sizes: Sequence[Size], images: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """`nearest` for images (n, 2), (height, width) each: int64 (n,).

    Only + - * / and comparisons of doubles, so that it is the same on every machine.
    """
    chunks = [_nearest_of(sizes, images[at : at + _AT_ONCE]) for at in range(0, len(images), _AT_ONCE)]
    return np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.int64)


def _nearest_of(sizes: Sequence[Size], images: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    height, width = (images[:, axis, None].astype(np.float64) for axis in (0, 1))
    heights, widths = np.array(sizes, dtype=np.float64).T
    upright, lying = height * widths, width * heights
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.maximum(upright / lying, lying / upright)
    chosen: npt.NDArray[np.int64] = np.argmin(np.nan_to_num(off, nan=np.inf), axis=1)  # without a size: the first
    return chosen


def cut_off(sizes: Sequence[Size], images: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """The share of each image (n, 2) that its largest box of the nearest size's aspect ratio leaves out: (n,)."""
    chosen = np.array(sizes, dtype=np.float64)[nearest_of(sizes, images)]
    ratio = (images[:, 0] * chosen[:, 1]) / (images[:, 1] * chosen[:, 0])
    share: npt.NDArray[np.float64] = 1 - np.minimum(ratio, 1 / ratio)
    return share


def aspect_ratio_sizes(size: int = 224, multiple: int = 32, max_ratio: float = 2.0) -> list[Size]:
    """Sizes of at most ``size * size`` pixels, edges divisible by `multiple`, from wide to tall.

    For each height the largest width, as long as neither edge is more than `max_ratio` times the other.

    Args:
        size: edge of the square; divisible by `multiple`.
        multiple: what edges are divisible by: 32 for most networks, a patch's edge for a ViT.
        max_ratio: from 1 up.

    Raises:
        ValueError: `size` is no multiple, or `max_ratio` is below 1. TypeError: no numbers.
    """
    size, multiple = whole_number("size", size, smallest=1), whole_number("multiple", multiple, smallest=1)
    if size % multiple:
        raise ValueError(f"size must be divisible by multiple={multiple}, which {size} is not")
    if not max_ratio >= 1:
        raise ValueError(f"max_ratio must be 1 or more, not {max_ratio!r}")
    made = []
    for height in range(multiple, int(size * max_ratio) + 1, multiple):
        width = size * size // height // multiple * multiple
        if width and max(width / height, height / width) <= max_ratio:
            made.append((height, width))
    return made
