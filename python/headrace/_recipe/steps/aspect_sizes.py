"""Output sizes by aspect ratio: picks the size nearest to an image's ratio, and makes lists of sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from headrace._base.checks import whole_number

_AT_ONCE = 65536  # images

#: (height, width), in pixels.
Size = tuple[int, int]


def nearest(sizes: Sequence[Size], height: int, width: int) -> int:
    """Returns the index of the size whose aspect ratio is nearest to the image's, measured by their quotient.

    The first of several equally near sizes is taken.
    """
    return int(nearest_of(sizes, np.array([[height, width]]))[0])


def nearest_of(sizes: Sequence[Size], images: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Returns `nearest` for many images, int64 (n,), from their (height, width), (n, 2).

    Uses only + - * / and comparisons of doubles, so the result is the same on every machine.
    """
    chunks = [_nearest_of(sizes, images[at : at + _AT_ONCE]) for at in range(0, len(images), _AT_ONCE)]
    return np.concatenate(chunks) if chunks else np.zeros(0, dtype=np.int64)


def _nearest_of(sizes: Sequence[Size], images: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    height, width = (images[:, axis, None].astype(np.float64) for axis in (0, 1))
    heights, widths = np.array(sizes, dtype=np.float64).T
    upright, rotated = height * widths, width * heights
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.maximum(upright / rotated, rotated / upright)
    chosen: npt.NDArray[np.int64] = np.argmin(np.nan_to_num(off, nan=np.inf), axis=1)  # image size (0, 0): the first
    return chosen


def cropped_fractions(sizes: Sequence[Size], images: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """Returns the fraction of each image that a crop to the nearest size's aspect ratio removes, float64 (n,).

    Args:
        sizes: the output sizes.
        images: (height, width) of the images, (n, 2).
    """
    chosen = np.array(sizes, dtype=np.float64)[nearest_of(sizes, images)]
    ratio = (images[:, 0] * chosen[:, 1]) / (images[:, 1] * chosen[:, 0])
    share: npt.NDArray[np.float64] = 1 - np.minimum(ratio, 1 / ratio)
    return share


def aspect_ratio_sizes(size: int = 224, multiple: int = 32, max_ratio: float = 2.0) -> list[Size]:
    """Returns output sizes (height, width) of at most ``size * size`` pixels, from wide to tall.

    Takes the largest width for each height, unless one edge is more than `max_ratio` times the other.

    Args:
        size: edge of a square with the largest number of pixels; divisible by `multiple`.
        multiple: divisor of all edges: 32 for most networks, the patch size for a ViT.
        max_ratio: largest ratio of the longer edge to the shorter one; 1 or more.

    Returns:
        List of (height, width) in pixels, ascending in height.

    Raises:
        ValueError: `size` is not divisible by `multiple`, or a number is out of range.
        TypeError: `size` or `multiple` is not an integer.
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
