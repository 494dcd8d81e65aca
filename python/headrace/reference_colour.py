"""The oracle's steps that change colours, through Pillow's own functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

import headrace.steps as S
from headrace.reference_steps import apply


@apply.register
def _(step: S.Brightness, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageEnhance.Brightness(image).enhance(draws[step.draw])


@apply.register
def _(step: S.Contrast, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageEnhance.Contrast(image).enhance(draws[step.draw])


@apply.register
def _(step: S.Saturation, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageEnhance.Color(image).enhance(draws[step.draw])


@apply.register
def _(step: S.Hue, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    hue, saturation, value = image.convert("HSV").split()
    turned = (np.asarray(hue, dtype=np.int64) + int(draws[step.draw] * 255)) % 256
    return Image.merge("HSV", (Image.fromarray(turned.astype(np.uint8)), saturation, value)).convert(image.mode)


@apply.register
def _(step: S.Invert, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageOps.invert(image)


@apply.register
def _(step: S.Posterize, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageOps.posterize(image, step.bits)


@apply.register
def _(step: S.Solarize, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageOps.solarize(image, step.threshold)  # type: ignore[arg-type]  # torchvision passes a float as well


@apply.register
def _(step: S.Autocontrast, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageOps.autocontrast(image)


@apply.register
def _(step: S.Equalize, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageOps.equalize(image)
