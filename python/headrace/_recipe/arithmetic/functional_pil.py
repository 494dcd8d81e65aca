"""What torchvision's functions do to PIL images, by the same calls of Pillow and numpy."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import IO, Any

import numpy as np
from PIL import Image, ImageOps

from headrace._recipe.arithmetic.boxes import Box

PADDING_MODES = ("constant", "edge", "reflect", "symmetric")

# Pillow's functions, under names at which deferred images put their own.
autocontrast: Callable[[Image.Image], Image.Image] = ImageOps.autocontrast
equalize: Callable[[Image.Image], Image.Image] = ImageOps.equalize
invert: Callable[[Image.Image], Image.Image] = ImageOps.invert
posterize: Callable[[Image.Image, int], Image.Image] = ImageOps.posterize
solarize: Callable[[Image.Image, float], Image.Image] = ImageOps.solarize  # type: ignore[assignment] # compares only

#: Modes in which encoded images are opened; see `open_image`.
MODES = ("RGB", "L", "P")


def open_image(
    file: IO[bytes], mode: str, *, upright: bool = False, by: Callable[[IO[bytes]], Image.Image] | None = None
) -> Image.Image:
    """Opens an encoded image.

    Args:
        file: the image; Pillow reads only the part of the file that it needs.
        mode: "RGB" or "L": the image converted to this mode; "RGB" is what torchvision's `pil_loader` does. "P": the
            palette indices of an image of mode P, or the values of one of mode L, as an image of mode L.
        upright: whether to rotate or mirror the image as its EXIF orientation says, before it is converted.
        by: the function that opens it; None: ``PIL.Image.open`` as it is now.

    Raises:
        ValueError: `mode` is "P", and the image has neither a palette nor the mode L.
        Exception: Pillow cannot open or decode the image; it raises many types.
    """
    with (by or Image.open)(file) as read:
        image: Image.Image = read
        if upright:
            image.load()
            image = ImageOps.exif_transpose(image)
        if mode != "P":
            return image.convert(mode)
        if image.mode not in ("P", "L"):
            raise ValueError(
                f"an image of mode {image.mode} has no palette indices; mode='L' or mode='RGB' converts it"
            )
        indices = Image.frombytes("L", image.size, image.tobytes())
        indices.info = dict(image.info)
        return indices


def open_rgb(data: bytes) -> Image.Image:
    """Opens encoded bytes as torchvision's `pil_loader` does: in mode RGB."""
    return open_image(BytesIO(data), "RGB")


def crop(image: Image.Image, box: Box) -> Image.Image:
    """Returns the pixels of `box`."""
    return image.crop((box.left, box.top, box.left + box.width, box.top + box.height))


def resize(image: Image.Image, height: int, width: int, filter: str) -> Image.Image:
    """Resizes to (height, width) by Pillow; returns the image itself if it already has this size."""
    if (image.width, image.height) == (width, height):
        return image
    from headrace._recipe.steps.steps import FILTERS  # only now, as in pillow_rule

    return image.resize((width, height), resample=FILTERS[filter])


def pad(image: Image.Image, padding: Sequence[int], fill: float | Sequence[float] | None, mode: str) -> Image.Image:
    """Pads an image of any mode; a negative padding crops.

    Args:
        image: the image.
        padding: (left, top, right, bottom) in pixels.
        fill: for mode "constant" only: one number or one per channel, truncated to integers except for images of mode
            F; None: 0.
        mode: "constant", "edge", "reflect" or "symmetric".

    Raises:
        ValueError: the number of values in `fill` is neither 1 nor the number of channels.
    """
    left, top, right, bottom = padding
    palette = image.getpalette() if image.mode == "P" else None
    if mode == "constant":
        padded = ImageOps.expand(image, border=(left, top, right, bottom), fill=pixel(fill, image))
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


def pixel(fill: float | Sequence[float] | None, image: Image.Image) -> Any:
    """Returns the pixel, in the image's mode, that torchvision makes from a `fill` argument."""
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
    """Mirrors left and right."""
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def flip_vertical(image: Image.Image) -> Image.Image:
    """Mirrors top and bottom."""
    return image.transpose(Image.Transpose.FLIP_TOP_BOTTOM)


def grayscale(image: Image.Image, channels: int) -> Image.Image:
    """Converts to gray (Pillow's mode L), in 1 or 3 equal channels. Raises ValueError for other `channels`."""
    if channels not in (1, 3):
        raise ValueError(f"num_output_channels must be 1 or 3, got {channels}.")
    gray = image.convert("L")
    return gray if channels == 1 else Image.merge("RGB", (gray, gray, gray))


def adjust_hue(image: Image.Image, turn: float) -> Image.Image:
    """Adds ``int(255 turn)`` modulo 256 to the H of Pillow's HSV; returns images of mode L, 1, I and F unchanged."""
    if image.mode in ("L", "1", "I", "F"):
        return image
    hue, saturation, value = image.convert("HSV").split()
    turned = (np.asarray(hue, dtype=np.int64) + int(turn * 255)) % 256
    return Image.merge("HSV", (Image.fromarray(turned.astype(np.uint8)), saturation, value)).convert(image.mode)


def four_paddings(padding: int | Sequence[int] | None) -> tuple[int, int, int, int]:
    """Returns (left, top, right, bottom) for torchvision's `padding` argument: None, one, two or four numbers.

    Raises:
        ValueError: there is another count of numbers.
        TypeError: a number is not an integer.
    """
    given = [0] if padding is None else padding if isinstance(padding, Sequence) else [padding]
    values = [operator.index(value) for value in given]
    if len(values) not in (1, 2, 4):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element of tuple or list, got {padding}.")
    if len(values) == 4:
        return values[0], values[1], values[2], values[3]
    return values[0], values[-1], values[0], values[-1]


def fill_color(fill: float | Sequence[float] | None, channels: int) -> tuple[int, int, int]:
    """Returns the colour of torchvision's `fill` argument for an image of 1 or 3 channels: three bytes.

    The bytes are equal for 1 channel.

    Raises:
        ValueError: `fill` is a sequence whose length is neither 1 nor `channels`.
    """
    values = [0.0] if fill is None else [fill] if isinstance(fill, (int, float)) else list(fill)
    if len(values) not in (1, channels):
        raise ValueError(
            "The number of elements in 'fill' does not match the number of channels of the image "
            f"({len(values)} != {channels})"
        )
    color = [min(max(int(value), 0), 255) for value in values]  # Pillow clips a pixel's colour to a byte
    return color[0], color[-1 if len(color) < 3 else 1], color[-1]
