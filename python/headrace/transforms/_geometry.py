"""Transforms that resize, centre-crop, pad, flip and gray PIL images; flips also take tensors (..., H, W)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from PIL import Image

from headrace._recipe.arithmetic import boxes, functional_pil
from headrace._recipe.images.part_kinds import Kind, map_values
from headrace.transforms._arguments import (
    Fills,
    Interpolation,
    Size,
    check_padding,
    check_padding_mode,
    fill_of,
    fills_by_class,
    filter_name,
    pair,
)
from headrace.transforms._base import BESIDE_IMAGES, PIL_ALONE, Params, RandomTransform, Transform


def warn_if_not_antialiased(antialias: bool | None) -> None:
    """Warns about ``antialias=False``, which has no effect on PIL images."""
    if antialias is False:
        warnings.warn(
            "Anti-alias option is always applied for PIL Image input. Argument antialias is ignored.", stacklevel=3
        )


class Resize(Transform):
    """Resizes an image.

    Args:
        size: (height, width) in pixels, or one number: the length of the shorter edge, keeping the aspect ratio. None:
            the longer edge becomes `max_size`.
        interpolation: the filter: a mode of `InterpolationMode`, its name, or Pillow's number.
        max_size: largest length of the longer edge if `size` is one number or None.
        antialias: no effect, since Pillow always antialiases.

    Raises:
        ValueError: `size` is not one of these, it does not go with `max_size`, or the filter is unknown.
    """

    _takes = PIL_ALONE

    def __init__(
        self,
        size: Size | None,
        interpolation: Interpolation = "bilinear",
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if isinstance(size, int):
            size = [size]
        elif isinstance(size, Sequence) and len(size) in {1, 2}:
            size = list(size)
        elif size is None:
            if not isinstance(max_size, int):
                raise ValueError(f"max_size must be an integer when size is None, but got {max_size} instead.")
        else:
            raise ValueError(
                f"size can be an integer, a sequence of one or two integers, or None, but got {size} instead."
            )
        if max_size is not None and size is not None and len(size) != 1:
            raise ValueError(
                "max_size should only be passed if size is None or specifies the length of the smaller edge, "
                "i.e. size should be an int or a sequence of length 1 in torchscript mode."
            )
        filter_name(interpolation)
        self.size = size
        self.interpolation = interpolation
        self.max_size = max_size
        self.antialias = antialias

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        warn_if_not_antialiased(self.antialias)
        if self.size is not None and len(self.size) == 2:
            height, width = self.size
        else:
            edge = None if self.size is None else self.size[0]
            height, width = boxes.resize_by_edge(inpt.height, inpt.width, edge, self.max_size)
        return functional_pil.resize(inpt, height, width, filter_name(self.interpolation))


class CenterCrop(Transform):
    """Crops the central box of `size`, (height, width) or one number for both. Pads a smaller image with 0 first."""

    _takes = PIL_ALONE

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size: Sequence[int] = pair(size)

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        height, width = self.size
        padding, box = boxes.center_crop(inpt.height, inpt.width, height, width)
        return functional_pil.crop(functional_pil.pad(inpt, padding, 0, "constant") if any(padding) else inpt, box)


class Pad(Transform):
    """Pads the borders; a negative padding crops.

    Args:
        padding: in pixels: one number, (left and right, top and bottom) or (left, top, right, bottom).
        fill: one number or one per channel, for padding_mode "constant"; or a dict of image class to fill, with
            "others" for all other classes. Subclasses do not match.
        padding_mode: "constant", "edge", "reflect" or "symmetric".

    Raises:
        ValueError: `padding` or `padding_mode` is not one of these.
        TypeError: `fill` has the wrong type.
    """

    _takes = PIL_ALONE

    def __init__(self, padding: int | Sequence[int], fill: Fills = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        check_padding(padding)
        check_padding_mode(padding_mode)
        self.padding: int | list[int] = padding if isinstance(padding, int) else list(padding)
        self._fill = fills_by_class(fill)
        self.fill: Fills = self._fill if isinstance(fill, dict) else fill
        self.padding_mode = padding_mode

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        padding = functional_pil.four_paddings(self.padding)
        return functional_pil.pad(inpt, padding, fill_of(self._fill, type(inpt)), self.padding_mode)


class _Flip(RandomTransform):
    _takes = frozenset({Kind.PIL, Kind.PURE, Kind.IMAGE, Kind.VIDEO, Kind.MASK})


class RandomHorizontalFlip(_Flip):
    """Mirrors left and right, with probability `p`."""

    def transform(self, inpt: Image.Image | torch.Tensor, params: Params) -> Image.Image | torch.Tensor:
        if isinstance(inpt, Image.Image):
            return functional_pil.flip_horizontal(inpt)
        return map_values(lambda tensor: tensor.flip(-1), inpt)


class RandomVerticalFlip(_Flip):
    """Mirrors top and bottom, with probability `p`."""

    def transform(self, inpt: Image.Image | torch.Tensor, params: Params) -> Image.Image | torch.Tensor:
        if isinstance(inpt, Image.Image):
            return functional_pil.flip_vertical(inpt)
        return map_values(lambda tensor: tensor.flip(-2), inpt)


class Grayscale(Transform):
    """Converts to gray (Pillow's mode L), in `num_output_channels` (1 or 3) equal channels."""

    _takes = PIL_ALONE
    _passes = BESIDE_IMAGES

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        return functional_pil.grayscale(inpt, self.num_output_channels)
