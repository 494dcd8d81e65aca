"""Transforms that heed an image's aspect ratio: crops of the least waste, and other sizes for other ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from PIL import Image
from torch.utils._pytree import tree_flatten

from headrace.pixels import boxes, pillow_ops
from headrace.recipe.aspect_sizes import nearest
from headrace.transforms._base import PIL_ALONE, Transform, common_size
from headrace.transforms._interpolation import Interpolation, filter_name
from headrace.transforms._shapes import Size, pair


class ResizedCenterCrop(Transform):
    """Cuts out the largest centred box of `size`'s aspect ratio and resizes it to `size`.

    What a ``RandomResizedCrop`` does where none of its tries fits: of all crops of that ratio the one that leaves out
    least. An image of that very ratio is only resized.

    Args:
        size: (height, width), or one number for both.
        interpolation, antialias: as for ``Resize``.
    """

    _takes = PIL_ALONE
    _in_torchvision = False

    def __init__(self, size: Size, interpolation: Interpolation = "bilinear", antialias: bool | None = True) -> None:
        super().__init__()
        self.size = pair(size)
        if min(self.size) < 1:
            raise ValueError(f"size must be positive numbers of pixels, not {size!r}")
        filter_name(interpolation)
        self.interpolation = interpolation
        self.antialias = antialias

    def transform(self, inpt: Any, params: dict[str, Any]) -> Image.Image:
        height, width = self.size
        ratio = width / height
        box = boxes.random_resized_crop(inpt.height, inpt.width, (ratio, ratio), (), int, int)
        return pillow_ops.resize(pillow_ops.crop(inpt, box), height, width, filter_name(self.interpolation))


class ByAspectRatio(Transform):
    """Applies the one of `transforms` whose output's aspect ratio is nearest to the image's.

    Stands first, since it looks at the image's own size. Batches hold images of one size: give the loader a
    ``headrace.sampler.AspectRatioBatchSampler``.

    Args:
        transforms: (height, width) of the output -> the transform that makes it.

    Raises:
        TypeError: not a mapping of sizes. ValueError: an empty one, or a size that is not positive. Where it is called:
            TypeError for a sample without a PIL image, ValueError for images of several sizes.
    """

    _takes = PIL_ALONE
    _in_torchvision = False

    def __init__(self, transforms: Mapping[tuple[int, int], Callable[[Any], Any]]) -> None:
        super().__init__()
        if not isinstance(transforms, Mapping):
            raise TypeError("Argument transforms should be a mapping of (height, width) to callables")
        if not transforms:
            raise ValueError("Pass at least one transform")
        for size in transforms:
            if not (isinstance(size, tuple) and len(size) == 2 and all(isinstance(edge, int) for edge in size)):
                raise TypeError(f"the keys of transforms should be (height, width), not {size!r}")
            if min(size) < 1:
                raise ValueError(f"sizes should be positive numbers of pixels, not {size!r}")
        self.transforms = dict(transforms)

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """(height, width) of the outputs."""
        return list(self.transforms)

    def forward(self, *inputs: Any) -> Any:
        parts, _ = tree_flatten(inputs)
        height, width = common_size([part for part, yes in zip(parts, self._changed(parts), strict=True) if yes])
        return self.transforms[self.sizes[nearest(self.sizes, height, width)]](*inputs)

    def extra_repr(self) -> str:
        return "\n".join(f"    {size}: {transform}" for size, transform in self.transforms.items())
