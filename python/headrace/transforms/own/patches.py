"""Resize of images of any size to whole patches within a budget, for vision transformers of native resolution."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image

from headrace._base.checks import whole_number
from headrace._recipe.arithmetic import functional_pil, patch_grids
from headrace.transforms._arguments import Interpolation, filter_name
from headrace.transforms._base import PIL_ALONE, Params, Transform


class ResizeToPatches(Transform):
    """Resizes an image so that whole patches cover it, `max_patches` at most, and its aspect ratio is nearly kept.

    The edges are rounded to the nearest multiples of `patch`. If that makes more than `max_patches` patches, or fewer
    than `min_patches`, both edges are scaled by one factor first, and rounded downwards or upwards. This is
    transformers' ``smart_resize`` of Qwen2-VL with ``factor=patch``, ``max_pixels=max_patches * patch ** 2`` and
    ``min_pixels=min_patches * patch ** 2``, except that an image much longer than wide never gets more than
    `max_patches`.

    Outputs have different sizes: collate them with ``headrace.sampler.PatchPackingCollate``.

    Args:
        patch: edge of a patch in pixels; with merged patches, as Qwen2-VL has them, that of a merged one (28).
        max_patches, min_patches: number of patches of an image.
        interpolation, antialias: as for ``Resize``.

    Raises:
        TypeError: a number is not an integer.
        ValueError: a number is not positive, `min_patches` exceeds `max_patches`, or the filter is unknown.
    """

    _takes = PIL_ALONE
    _in_torchvision = False

    def __init__(
        self,
        patch: int,
        max_patches: int,
        min_patches: int = 1,
        interpolation: Interpolation = "bicubic",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.patch: int = whole_number("patch", patch, smallest=1)
        self.max_patches: int = whole_number("max_patches", max_patches, smallest=1)
        self.min_patches: int = whole_number("min_patches", min_patches, smallest=1)
        if self.min_patches > self.max_patches:
            raise ValueError(f"min_patches={min_patches} exceeds max_patches={max_patches}")
        filter_name(interpolation)
        self.interpolation = interpolation
        self.antialias = antialias

    def grids(self, image_sizes: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Returns (rows, columns) in patches of each image, int64 (n, 2), from (height, width) in pixels, (n, 2)."""
        return patch_grids.fit_all(np.asarray(image_sizes), self.patch, self.min_patches, self.max_patches)

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        rows, columns = patch_grids.fit(inpt.height, inpt.width, self.patch, self.min_patches, self.max_patches)
        return functional_pil.resize(inpt, rows * self.patch, columns * self.patch, filter_name(self.interpolation))
