"""The geometric transforms, run by Pillow on a PIL image; flips also take tensors (..., H, W)."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from PIL import Image

from headrace import boxes, pillow_ops
from headrace.transforms._base import RandomTransform, Transform, pil_image, torch_place
from headrace.transforms._interpolation import Interpolation, filter_name

Size = int | Sequence[int]


def height_width(size: Size) -> tuple[int, int]:
    """A transform's `size` as (height, width)."""
    if isinstance(size, numbers.Number):
        return int(cast(int, size)), int(cast(int, size))
    size = cast(Sequence[int], size)
    if len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError("Please provide only two dimensions (h, w) for size.")
    return size[0], size[1]


def _warn_if_not_antialiased(antialias: bool | None) -> None:
    if antialias is False:
        warnings.warn(
            "Anti-alias option is always applied for PIL Image input. Argument antialias is ignored.", stacklevel=3
        )


def _check_padding(padding: int | Sequence[int] | None, fill: Any, mode: str) -> None:
    try:
        pillow_ops.four_paddings(padding)
    except TypeError:
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element of tuple or list, got {padding}.") from None
    if mode not in pillow_ops.PADDING_MODES:
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    if fill is not None and not isinstance(fill, (numbers.Number, tuple, list)):
        raise TypeError("Got inappropriate fill arg, only Numbers, tuples, lists and dicts are allowed.")


class Resize(Transform):
    """Resizes to `size`: (height, width), or the length of the shorter edge, the longer then at most `max_size`.

    With `size` None the longer edge becomes `max_size`. `antialias` has no effect: Pillow always antialiases.
    """

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

    def forward(self, image: Any) -> Image.Image:
        image = pil_image(image, self)
        _warn_if_not_antialiased(self.antialias)
        if self.size is not None and len(self.size) == 2:
            height, width = self.size
        else:
            edge = None if self.size is None else self.size[0]
            height, width = boxes.resize_by_edge(image.height, image.width, edge, self.max_size)
        return pillow_ops.resize(image, height, width, filter_name(self.interpolation))


class CenterCrop(Transform):
    """Crops `size`, (height, width) or one number for both, at the centre; a smaller image is first padded with 0."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = height_width(size)

    def forward(self, image: Any) -> Image.Image:
        image = pil_image(image, self)
        padding, box = boxes.center_crop(image.height, image.width, *self.size)
        return pillow_ops.crop(pillow_ops.pad(image, padding, (0, 0, 0), "constant"), box)


class Pad(Transform):
    """Adds `padding` pixels at the borders.

    Args:
        padding: pixels, not below 0: one number, (left and right, top and bottom) or (left, top, right, bottom).
        fill: one number or (R, G, B), for padding_mode "constant".
        padding_mode: "constant", "edge", "reflect" or "symmetric".
    """

    def __init__(
        self, padding: int | Sequence[int], fill: float | Sequence[float] | None = 0, padding_mode: str = "constant"
    ) -> None:
        super().__init__()
        if padding is None:
            raise ValueError("Padding must be an int or a 1, 2, or 4 element of tuple or list, got None.")
        _check_padding(padding, fill, padding_mode)
        if min(pillow_ops.four_paddings(padding)) < 0:
            raise ValueError(f"a negative padding ({padding}) crops; use CenterCrop")
        self.padding = padding if isinstance(padding, int) else list(padding)
        self.fill = fill
        self.padding_mode = padding_mode

    def forward(self, image: Any) -> Image.Image:
        image = pil_image(image, self)
        fill = pillow_ops.fill_color(self.fill, len(image.getbands()))
        return pillow_ops.pad(image, pillow_ops.four_paddings(self.padding), fill, self.padding_mode)


class RandomCrop(Transform):
    """Crops `size` at a random place of the padded image.

    Args:
        size: (height, width) or one number for both.
        padding: pixels: one number, (left and right, top and bottom) or (left, top, right, bottom).
        pad_if_needed: pads a too small image on both sides by what it lacks.
        fill: one number or (R, G, B), for padding_mode "constant".
        padding_mode: "constant", "edge", "reflect" or "symmetric".
    """

    def __init__(
        self,
        size: Size,
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: float | Sequence[float] | None = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size = height_width(size)
        _check_padding(padding, fill, padding_mode)
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    def forward(self, image: Any) -> Image.Image:
        image = pil_image(image, self)
        padding, box = boxes.random_crop(
            image.height,
            image.width,
            *self.size,
            pillow_ops.four_paddings(self.padding),
            self.pad_if_needed,
            torch_place,
            torch_place,
        )
        fill = pillow_ops.fill_color(self.fill, len(image.getbands()))
        return pillow_ops.crop(pillow_ops.pad(image, padding, fill, self.padding_mode), box)


class RandomResizedCrop(Transform):
    """Crops a random share of the area at a random aspect ratio and resizes it to `size`.

    Args:
        size: (height, width) or one number for both.
        scale: smallest and largest share of the area.
        ratio: smallest and largest width / height of the crop; log-uniform between them.
        interpolation: the filter. antialias: no effect, Pillow always antialiases.
    """

    def __init__(
        self,
        size: Size,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size = height_width(size)
        if not isinstance(scale, Sequence) or len(scale) != 2:
            raise TypeError("Scale should be a sequence of two floats.")
        if not isinstance(ratio, Sequence) or len(ratio) != 2:
            raise TypeError("Ratio should be a sequence of two floats.")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=2)
        filter_name(interpolation)
        self.scale = scale
        self.ratio = ratio
        self.interpolation = interpolation
        self.antialias = antialias

    def _tries(self) -> Iterator[tuple[float, float]]:
        # In float32, as torchvision draws them, so that a seed gives torchvision's crops.
        low, high = torch.log(torch.tensor(self.ratio)).tolist()
        for _ in range(10):
            share = torch.empty(1).uniform_(self.scale[0], self.scale[1]).item()
            yield share, torch.exp(torch.empty(1).uniform_(low, high)).item()

    def forward(self, image: Any) -> Image.Image:
        image = pil_image(image, self)
        _warn_if_not_antialiased(self.antialias)
        box = boxes.random_resized_crop(image.height, image.width, self.ratio, self._tries(), torch_place, torch_place)
        return pillow_ops.resize(pillow_ops.crop(image, box), *self.size, filter_name(self.interpolation))


class RandomHorizontalFlip(RandomTransform):
    """Exchanges left and right with probability `p`."""

    def forward(self, image: Any) -> Any:
        if torch.rand(1) >= self.p:
            return image
        return image.flip(-1) if isinstance(image, torch.Tensor) else pillow_ops.flip_horizontal(pil_image(image, self))


class RandomVerticalFlip(RandomTransform):
    """Exchanges top and bottom with probability `p`."""

    def forward(self, image: Any) -> Any:
        if torch.rand(1) >= self.p:
            return image
        return image.flip(-2) if isinstance(image, torch.Tensor) else pillow_ops.flip_vertical(pil_image(image, self))


class Grayscale(Transform):
    """Pillow's mode L, in `num_output_channels` (1 or 3) equal channels."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        if num_output_channels not in (1, 3):
            raise ValueError(f"num_output_channels must be 1 or 3, got {num_output_channels}.")
        self.num_output_channels = num_output_channels

    def forward(self, image: Any) -> Image.Image:
        return pillow_ops.grayscale(pil_image(image, self), self.num_output_channels)
