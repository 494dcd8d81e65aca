"""The oracle's colour steps, by Pillow's own functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

import headrace._recipe.steps.steps as S
from headrace._oracle.steps import apply_step, resolve_number
from headrace._recipe.arithmetic import functional_pil, torch_resize_blur


def _factor(draw: int | S.Constant, draws: Sequence[float]) -> float:
    return draw.value if isinstance(draw, S.Constant) else draws[draw]


@apply_step.register
def _apply_brightness(step: S.Brightness, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageEnhance.Brightness(image).enhance(_factor(step.draw, draws))


@apply_step.register
def _apply_contrast(step: S.Contrast, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageEnhance.Contrast(image).enhance(_factor(step.draw, draws))


@apply_step.register
def _apply_saturation(step: S.Saturation, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageEnhance.Color(image).enhance(_factor(step.draw, draws))


@apply_step.register
def _apply_sharpness(step: S.Sharpness, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageEnhance.Sharpness(image).enhance(_factor(step.draw, draws))


@apply_step.register
def _apply_scale_shift(step: S.ScaleShift, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    factor, shift = draws[step.draw : step.draw + 2]
    values = np.clip(np.arange(256, dtype=np.float32) * factor + shift, 0, 255).astype(np.uint8)
    return Image.fromarray(values[np.asarray(image)])


@apply_step.register
def _apply_permute_channels(step: S.PermuteChannels, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return Image.fromarray(np.ascontiguousarray(np.asarray(image)[..., list(step.order)]))


@apply_step.register
def _apply_hue(step: S.Hue, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return functional_pil.adjust_hue(image, draws[step.draw])


@apply_step.register
def _apply_invert(step: S.Invert, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageOps.invert(image)


@apply_step.register
def _apply_posterize(step: S.Posterize, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageOps.posterize(image, int(resolve_number(step.bits, draws)))


@apply_step.register
def _apply_solarize(step: S.Solarize, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    threshold: Any = resolve_number(step.threshold, draws)  # torchvision passes a float as well
    return ImageOps.solarize(image, threshold)


@apply_step.register
def _apply_solarize_add(step: S.SolarizeAdd, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    add = int(resolve_number(step.add, draws))
    table = [min(value + add, 255) if value < 128 else value for value in range(256)]
    return image.point(table * len(image.getbands()))


@apply_step.register
def _apply_autocontrast(step: S.Autocontrast, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageOps.autocontrast(image)


@apply_step.register
def _apply_equalize(step: S.Equalize, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return ImageOps.equalize(image)


@apply_step.register
def _apply_pillow_blur(step: S.PillowBlur, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return image.filter(ImageFilter.GaussianBlur(resolve_number(step.radius, draws)))


@apply_step.register
def _apply_gaussian_blur(step: S.GaussianBlur, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    try:
        return torch_resize_blur.gaussian_blur(image, step.width, step.height, draws[step.draw], softmax=step.softmax)
    except RuntimeError as error:  # too few pixels to mirror; a ValueError, because the native plan raises one
        raise ValueError(str(error)) from error
