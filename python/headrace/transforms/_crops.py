"""Transforms that crop a PIL image at a random position, or return several crops of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import torch
from PIL import Image

from headrace._recipe.arithmetic import boxes, functional_pil
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
from headrace.transforms._base import PIL_ALONE, Params, Transform, channels_height_width, common_size, torch_position
from headrace.transforms._geometry import warn_if_not_antialiased

#: (bottom, right) of the corners, in torchvision's order.
CORNERS = ((False, False), (False, True), (True, False), (True, True))


def _make_five_crops(image: Image.Image, size: Sequence[int]) -> tuple[Image.Image, ...]:
    height, width = size
    found = [boxes.corner(image.height, image.width, height, width, *corner) for corner in CORNERS]
    found.append(boxes.center_crop(image.height, image.width, height, width)[1])
    return tuple(functional_pil.crop(image, box) for box in found)


class FiveCrop(Transform):
    """Crops the four corners and the centre of an image.

    Called directly, it returns a tuple of five images in its place: top left, top right, bottom left, bottom right,
    centre. A loader decodes the image once, if every step is native, and yields a list of five batches (n, C, H, W), as
    torch collates the tuples; or one batch (n, 5, C, H, W), if a function after the crops stacks them.

    Args:
        size: (height, width) of a crop in pixels, or one number for both.

    Raises:
        ValueError: `size` has another length. When called: the image is smaller than a crop.
    """

    _takes = PIL_ALONE

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size: Sequence[int] = pair(size)

    def transform(self, inpt: Image.Image, params: Params) -> tuple[Image.Image, ...]:
        return _make_five_crops(inpt, self.size)


class TenCrop(Transform):
    """Crops the four corners and the centre of an image, and those of the mirrored image.

    Called directly, it returns a tuple of ten images in its place. A loader makes ten views of it, as of `FiveCrop`.

    Args:
        size: (height, width) of a crop in pixels, or one number for both.
        vertical_flip: whether top and bottom are mirrored, instead of left and right.

    Raises:
        ValueError: `size` has another length. When called: the image is smaller than a crop.
    """

    _takes = PIL_ALONE

    def __init__(self, size: Size, vertical_flip: bool = False) -> None:
        super().__init__()
        self.size: Sequence[int] = pair(size)
        self.vertical_flip = vertical_flip

    def transform(self, inpt: Image.Image, params: Params) -> tuple[Image.Image, ...]:
        mirrored = functional_pil.flip_vertical(inpt) if self.vertical_flip else functional_pil.flip_horizontal(inpt)
        return (*_make_five_crops(inpt, self.size), *_make_five_crops(mirrored, self.size))


class RandomCrop(Transform):
    """Crops a box of `size` at a random position of the padded image.

    Args:
        size: (height, width) in pixels, or one number for both.
        padding: in pixels: one number, (left and right, top and bottom) or (left, top, right, bottom). Negative
            values crop. The attribute holds (left, right, top, bottom), as in torchvision v2.
        pad_if_needed: whether to pad an image that is too small, on both sides by the number of missing pixels.
        fill: one number or one per channel, for padding_mode "constant"; or a dict of image class to fill, with
            "others" for all other classes. Subclasses do not match.
        padding_mode: "constant", "edge", "reflect" or "symmetric".

    Raises:
        ValueError: an argument is not one of these. When called: the image is too small, or the sample holds images of
            different sizes.
        TypeError: `fill` has the wrong type.
    """

    _takes = PIL_ALONE

    def __init__(
        self,
        size: Size,
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: Fills = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size: Sequence[int] = pair(size)
        if padding is not None:
            check_padding(padding)
        if pad_if_needed or padding is not None:
            check_padding_mode(padding_mode)
        self.padding: list[int] | None = None
        if padding:
            left, top, right, bottom = functional_pil.four_paddings(padding)
            self.padding = [left, right, top, bottom]
        self.pad_if_needed = pad_if_needed
        self._fill = fills_by_class(fill)
        self.fill: Fills = self._fill if isinstance(fill, dict) else fill
        self.padding_mode = padding_mode

    @staticmethod
    def get_params(img: object, output_size: Sequence[int]) -> tuple[int, int, int, int]:
        """Draws (top, left, height, width) of a crop as torchvision v1's static method does."""
        _, height, width = channels_height_width(img)
        crop_height, crop_width = output_size
        if height < crop_height or width < crop_width:
            raise ValueError(
                f"Required crop size {(crop_height, crop_width)} is larger than input image size {(height, width)}"
            )
        if (height, width) == (crop_height, crop_width):
            return 0, 0, height, width
        top = torch_position(height - crop_height + 1)
        return top, torch_position(width - crop_width + 1), crop_height, crop_width

    def make_params(self, flat_inputs: list[object]) -> Params:
        height, width = common_size(flat_inputs)
        left, right, top, bottom = self.padding or (0, 0, 0, 0)
        padding, box = boxes.random_crop(
            height,
            width,
            self.size[0],
            self.size[1],
            (left, top, right, bottom),
            self.pad_if_needed,
            torch_position,
            torch_position,
        )
        return {"padding": padding, "box": box}

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        padding, box = params["padding"], params["box"]
        if any(padding):
            inpt = functional_pil.pad(inpt, padding, fill_of(self._fill, type(inpt)), self.padding_mode)
        return inpt if (inpt.height, inpt.width) == (box.height, box.width) else functional_pil.crop(inpt, box)


class RandomResizedCrop(Transform):
    """Crops a box of random area and aspect ratio and resizes it to `size`.

    Args:
        size: (height, width) in pixels, or one number for both.
        scale: (smallest, largest) fraction of the image area; drawn uniformly.
        ratio: (smallest, largest) width / height of the crop; drawn log-uniformly.
        interpolation: the filter: a mode of `InterpolationMode`, its name, or Pillow's number.
        antialias: no effect, since Pillow always antialiases.

    Raises:
        TypeError: `scale` or `ratio` is not a sequence of two numbers.
        ValueError: `size` or the filter is invalid. When called: the sample holds images of different sizes.
    """

    _takes = PIL_ALONE

    def __init__(
        self,
        size: Size,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Interpolation = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size: Sequence[int] = pair(size)
        if not isinstance(scale, Sequence) or len(scale) != 2:
            raise TypeError("Scale should be a sequence of two floats.")
        if not isinstance(ratio, Sequence) or len(ratio) != 2:
            raise TypeError("Ratio should be a sequence of two floats.")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=3)
        filter_name(interpolation)
        self.scale = scale
        self.ratio = ratio
        self.interpolation = interpolation
        self.antialias = antialias

    @staticmethod
    def get_params(img: object, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
        """Draws (top, left, height, width) of a crop as torchvision v1's static method does."""
        _, height, width = channels_height_width(img)
        return _random_box(height, width, scale, ratio)

    def make_params(self, flat_inputs: list[object]) -> Params:
        return {"box": _random_box(*common_size(flat_inputs), self.scale, self.ratio)}

    def transform(self, inpt: Image.Image, params: Params) -> Image.Image:
        warn_if_not_antialiased(self.antialias)
        height, width = self.size
        return functional_pil.resize(
            functional_pil.crop(inpt, params["box"]), height, width, filter_name(self.interpolation)
        )


def _random_box(height: int, width: int, scale: Sequence[float], ratio: Sequence[float]) -> boxes.Box:
    low_high = (ratio[0], ratio[1])
    return boxes.random_resized_crop(height, width, low_high, area_tries(scale, ratio), torch_position, torch_position)


def area_tries(scale: Sequence[float], ratio: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Draws ten pairs of an area fraction, uniform in `scale`, and an edge ratio, log-uniform in `ratio`."""
    # In float32, as torchvision does: the same seed then gives the same crops.
    low, high = torch.log(torch.tensor(ratio)).tolist()
    for _ in range(10):
        share = torch.empty(1).uniform_(scale[0], scale[1]).item()
        yield share, torch.exp(torch.empty(1).uniform_(low, high)).item()
