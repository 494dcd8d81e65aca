"""Grids of square patches for images of any size: the image is resized to whole patches, within a number of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def fit_all(images: npt.NDArray[np.integer], patch: int, least: int, most: int) -> npt.NDArray[np.int64]:
    """Returns (rows, columns) of the grid of each image, int64 (n, 2).

    The edges are rounded to the nearest multiples of `patch`. If these are more than `most` patches, or fewer than
    `least`, both edges are scaled by one factor first, and rounded downwards or upwards: transformers' ``smart_resize``
    of Qwen2-VL. There, an image much longer than wide may have more than `most` patches; here its longer edge is cut.

    Uses only operations that IEEE 754 rounds correctly, so the result is the same on every machine.

    Args:
        images: (height, width) in pixels, (n, 2). One without pixels gets a single patch.
        patch: edge of a patch in pixels.
        least, most: number of patches of an image, 1 <= least <= most.
    """
    sizes = np.maximum(images, 1).astype(np.float64)
    area, pixels = float(patch * patch), sizes[:, 0] * sizes[:, 1]
    grids = np.rint(sizes / patch)
    counts = grids.prod(axis=1)
    large, small = counts > most, counts < least
    down = np.sqrt(pixels / (most * area))[:, None]
    up = np.sqrt(least * area / pixels)[:, None]
    grids = np.where(large[:, None], np.maximum(1, np.floor(sizes / down / patch)), grids)
    grids = np.where(small[:, None], np.ceil(sizes * up / patch), grids)
    over = np.flatnonzero(grids.prod(axis=1) > most)
    longer = np.where(grids[over, 0] > grids[over, 1], 0, 1)
    grids[over, longer] = np.maximum(1, np.floor(most / grids[over, 1 - longer]))
    made: npt.NDArray[np.int64] = grids.astype(np.int64)
    return made


def fit(height: int, width: int, patch: int, least: int, most: int) -> tuple[int, int]:
    """Returns (rows, columns) of the grid of one image; see `fit_all`."""
    rows, columns = fit_all(np.array([[height, width]]), patch, least, most)[0].tolist()
    return rows, columns
