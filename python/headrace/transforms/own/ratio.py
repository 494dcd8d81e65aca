"""Transforms that depend on the image's aspect ratio: the largest crop of a ratio, and a transform per ratio."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from PIL import Image
from torch.utils._pytree import tree_flatten

from headrace._recipe.arithmetic import boxes, functional_pil
from headrace._recipe.steps.aspect_sizes import nearest
from headrace.transforms._arguments import Interpolation, Size, Step, filter_name, pair
from headrace.transforms._base import PIL_ALONE, Params, Transform, common_size


class ResizedCenterCrop(Transform):
    """Crops the largest centred box that has `size`'s aspect ratio and resizes it to `size`.

    This is ``RandomResizedCrop``'s fall-back for the case that no try fits. An image that already has this aspect ratio
    is only resized.

    Args:
        size: (height, width) in pixels, or one number for both.
        interpolation, antialias: as for ``Resize``.

    Raises:
        ValueError: `size` is not positive, or the filter is unknown.
    """

    _takes = PIL_ALONE
    _in_torchvision = False

    def __init__(self, size: Size, interpolation: Interpolation = "bilinear", antialias: bool | None = True) -> None:
        super().__init__()
        self.size: Sequence[int] = pair(size)
        if min(self.size) < 1:
            raise ValueError(f"size must be positive numbers of pixels, not {size!r}")
        filter_name(interpolation)
        self.interpolation = interpolation
        self.antialias = antialias

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        height, width = self.size
        ratio = width / height
        box = boxes.random_resized_crop(inpt.height, inpt.width, (ratio, ratio), (), int, int)
        return functional_pil.resize(functional_pil.crop(inpt, box), height, width, filter_name(self.interpolation))


class ByAspectRatio(Transform):
    """Applies the transform whose output aspect ratio is nearest to the image's.

    It must be the first transform of a dataset, since it depends on the size of the original image. All images of a
    batch must have the same size: use a ``headrace.sampler.AspectRatioBatchSampler``.

    Args:
        transforms: dict of output (height, width) in pixels to the transform that makes outputs of that size.

    Raises:
        TypeError: `transforms` is not a mapping of sizes. When called: the sample has no PIL image.
        ValueError: `transforms` is empty, or a size is not positive. When called: the sample holds images of different
            sizes.
    """

    _takes = PIL_ALONE
    _in_torchvision = False

    def __init__(self, transforms: Mapping[tuple[int, int], Step]) -> None:
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
        self.transforms: dict[tuple[int, int], Callable[..., object]] = dict(transforms)

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """(height, width) of each possible output."""
        return list(self.transforms)

    def forward(self, *inputs: object) -> object:
        parts, _ = tree_flatten(inputs)
        height, width = common_size([part for part, yes in zip(parts, self._find_changed(parts), strict=True) if yes])
        return self.transforms[self.sizes[nearest(self.sizes, height, width)]](*inputs)

    def extra_repr(self) -> str:
        return "\n".join(f"    {size}: {transform}" for size, transform in self.transforms.items())
