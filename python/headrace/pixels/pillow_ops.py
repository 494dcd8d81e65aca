"""The operations of several lines on a PIL image, through the same Pillow and numpy calls that torchvision makes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from headrace.pixels.boxes import Box
from headrace.recipe.steps import FILTERS

PADDING_MODES = ("constant", "edge", "reflect", "symmetric")


def open_rgb(data: bytes) -> Image.Image:
    """Encoded bytes as torchvision's `pil_loader` sees them: opened by Pillow, in mode RGB, not rotated by EXIF."""
    with Image.open(BytesIO(data)) as image:
        return image.convert("RGB")


def open_rgb_file(path: bytes) -> Image.Image:
    """The same of a file, of which Pillow reads what it needs."""
    with open(path, "rb") as file, Image.open(file) as image:  # noqa: PTH123 - pathlib knows no bytes
        return image.convert("RGB")


def crop(image: Image.Image, box: Box) -> Image.Image:
    """The pixels of `box`."""
    return image.crop((box.left, box.top, box.left + box.width, box.top + box.height))


def resize(image: Image.Image, height: int, width: int, filter: str) -> Image.Image:
    """Pillow's resize to (height, width); the image itself where it has that size already."""
    if (image.width, image.height) == (width, height):
        return image
    return image.resize((width, height), resample=FILTERS[filter])


def pad(image: Image.Image, padding: Sequence[int], fill: float | Sequence[float] | None, mode: str) -> Image.Image:
    """Adds `padding` (left, top, right, bottom) pixels, or crops where it is negative, in an image of any mode.

    Args:
        fill: for mode "constant" alone: one number or one a channel, cut to whole numbers; None is 0.

    Raises:
        ValueError: a fill of neither 1 number nor as many as the image has channels.
    """
    left, top, right, bottom = padding
    palette = image.getpalette() if image.mode == "P" else None
    if mode == "constant":
        padded = ImageOps.expand(image, border=(left, top, right, bottom), fill=_pixel(fill, image))
    else:
        if min(padding) < 0:
            first = max(-left, 0), max(-top, 0)
            image = image.crop((*first, image.width - max(-right, 0), image.height - max(-bottom, 0)))
            left, top, right, bottom = (max(one, 0) for one in (left, top, right, bottom))
        pixels = np.asarray(image)
        widths = [(top, bottom), (left, right)] + [(0, 0)] * (pixels.ndim - 2)
        padded = Image.fromarray(np.pad(pixels, widths, mode=mode))  # type: ignore[call-overload]
    if image.mode == "P":
        padded.putpalette(palette)  # type: ignore[arg-type]  # an image of mode P has one
    return padded


def _pixel(fill: float | Sequence[float] | None, image: Image.Image) -> Any:
    """A pixel of the image's mode: torchvision's reading of a `fill` argument."""
    channels = len(image.getbands())
    values: list[float] = [0] if fill is None else [fill] if isinstance(fill, (int, float)) else list(fill)
    if len(values) not in (1, channels):
        raise ValueError(
            "The number of elements in 'fill' does not match the number of channels of the image "
            f"({len(values)} != {channels})"
        )
    pixel = [value if image.mode == "F" else int(value) for value in values] * (channels // len(values))
    return pixel[0] if channels == 1 else tuple(pixel)


def flip_horizontal(image: Image.Image) -> Image.Image:
    """Left and right exchanged."""
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def flip_vertical(image: Image.Image) -> Image.Image:
    """Top and bottom exchanged."""
    return image.transpose(Image.Transpose.FLIP_TOP_BOTTOM)


def grayscale(image: Image.Image, channels: int) -> Image.Image:
    """Pillow's mode L, as one channel or three equal ones; ValueError for another number of `channels`."""
    if channels not in (1, 3):
        raise ValueError(f"num_output_channels must be 1 or 3, got {channels}.")
    gray = image.convert("L")
    return gray if channels == 1 else Image.merge("RGB", (gray, gray, gray))


def turn_hue(image: Image.Image, turn: float) -> Image.Image:
    """The H of Pillow's HSV plus ``int(255 turn)``, modulo 256; an image of mode L, 1, I or F as it is."""
    if image.mode in ("L", "1", "I", "F"):
        return image
    hue, saturation, value = image.convert("HSV").split()
    turned = (np.asarray(hue, dtype=np.int64) + int(turn * 255)) % 256
    return Image.merge("HSV", (Image.fromarray(turned.astype(np.uint8)), saturation, value)).convert(image.mode)


def four_paddings(padding: int | Sequence[int] | None) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) of torchvision's `padding` argument: None, one, two or four numbers.

    Raises:
        ValueError: another count. TypeError: numbers that are not integers.
    """
    given = [0] if padding is None else padding if isinstance(padding, Sequence) else [padding]
    values = [operator.index(value) for value in given]
    if len(values) not in (1, 2, 4):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element of tuple or list, got {padding}.")
    if len(values) == 4:
        return values[0], values[1], values[2], values[3]
    return values[0], values[-1], values[0], values[-1]


def fill_color(fill: float | Sequence[float] | None, channels: int) -> tuple[int, int, int]:
    """The colour of torchvision's `fill` argument on an image of 1 or 3 channels: three bytes, equal for 1 channel.

    Raises:
        ValueError: a sequence whose length is neither 1 nor `channels`.
    """
    values = [0.0] if fill is None else [fill] if isinstance(fill, (int, float)) else list(fill)
    if len(values) not in (1, channels):
        raise ValueError(
            "The number of elements in 'fill' does not match the number of channels of the image "
            f"({len(values)} != {channels})"
        )
    color = [min(max(int(value), 0), 255) for value in values]  # Pillow clips a pixel's colour to a byte
    return color[0], color[-1 if len(color) < 3 else 1], color[-1]
