"""The oracle's dispatch of steps; its geometric steps on a PIL image, by the calls that torchvision makes; texture
channels, by torch; calls of the user's own transforms."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

import headrace._recipe.steps.steps as S
from headrace._recipe.arithmetic import boxes, functional_pil, textures, torch_resize_blur
from headrace._recipe.draws.python_randomness import sample_randomness
from headrace._recipe.images.pil_tensor import pil_to_tensor


@functools.singledispatch
def apply_step(step: S.Step, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    """Returns the image after a step; `draws` are all draws of the sample."""
    raise TypeError(f"the oracle does not know the step {step}")


def resolve_number(parameter: float | S.Drawn, draws: Sequence[float]) -> float:
    """Returns a parameter of a step: a constant, or the number that was drawn for it."""
    return draws[parameter.column] if isinstance(parameter, S.Drawn) else parameter


_TRIES = 10  # of RandomResizedCrop, two draws each; the two draws of the position follow


def resize_image(image: Image.Image, height: int, width: int, filter: str) -> Image.Image:
    """Returns the image resized by a step's filter."""
    if filter in S.TENSOR_FILTERS:
        return torch_resize_blur.resize(image, height, width, S.TENSOR_FILTERS[filter])
    if filter in S.FLOAT_FILTERS:
        return torch_resize_blur.resize_in_floats(image, height, width, S.FLOAT_FILTERS[filter])
    if filter == S.OPENCV_FILTER:
        return _resize_by_opencv(image, height, width)
    return functional_pil.resize(image, height, width, filter)


def _resize_by_opencv(image: Image.Image, height: int, width: int) -> Image.Image:
    import cv2

    return Image.fromarray(cv2.resize(np.array(image), (width, height), interpolation=cv2.INTER_LINEAR))


def _pad(image: Image.Image, padding: Sequence[int], color: Sequence[int], mode: str) -> Image.Image:
    """Pads with a step's colour of three bytes; an image of mode L uses the first of them."""
    return functional_pil.pad(image, padding, color[: len(image.getbands())], mode) if any(padding) else image


@apply_step.register
def _apply_random_resized_crop(step: S.RandomResizedCrop, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    position = step.draw + 2 * _TRIES
    tries = [(draws[i], draws[i + 1]) for i in range(step.draw, position, 2)]
    top, left = (boxes.position_from(u) for u in draws[position : position + 2])
    box = boxes.random_resized_crop(image.height, image.width, step.ratio, tries, top, left)
    return resize_image(functional_pil.crop(image, box), step.height, step.width, step.filter)


@apply_step.register
def _apply_resize(step: S.Resize, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return resize_image(image, step.height, step.width, step.filter)


@apply_step.register
def _apply_resize_shorter(step: S.ResizeShorter, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    height, width = boxes.resize_by_edge(image.height, image.width, step.size or None, step.max_size)
    return resize_image(image, height, width, step.filter)


@apply_step.register
def _apply_resize_keep_ratio(step: S.ResizeKeepRatio, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    target = (step.height, step.width)
    height, width = boxes.resize_keep_ratio(image.height, image.width, target, step.longest)
    return resize_image(image, height, width, step.filter)


@apply_step.register
def _apply_center_crop(step: S.CenterCrop, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    padding, box = boxes.center_crop(image.height, image.width, step.height, step.width, step.rounding)
    return functional_pil.crop(_pad(image, padding, step.fill, step.padding_mode), box)


@apply_step.register
def _apply_random_crop(step: S.RandomCrop, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    top, left = (boxes.position_from(u) for u in draws[step.draw : step.draw + 2])
    padding, box = boxes.random_crop(
        image.height, image.width, step.height, step.width, step.padding, step.pad_if_needed, top, left
    )
    return functional_pil.crop(_pad(image, padding, step.fill, step.padding_mode), box)


@apply_step.register
def _apply_pad(step: S.Pad, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return _pad(image, step.padding, step.fill, step.padding_mode)


@apply_step.register
def _apply_horizontal_flip(step: S.HorizontalFlip, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return functional_pil.flip_horizontal(image) if draws[step.draw] < step.p else image


@apply_step.register
def _apply_vertical_flip(step: S.VerticalFlip, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return functional_pil.flip_vertical(image) if draws[step.draw] < step.p else image


@apply_step.register
def _apply_grayscale(step: S.Grayscale, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return functional_pil.grayscale(image, step.channels)


@apply_step.register
def _apply_texture(step: S.Texture, image: Image.Image, draws: Sequence[float]) -> Any:
    made = textures.channels(pil_to_tensor(image), step.bands)
    return made if step.layout == "CHW" else made.permute(1, 2, 0)


@apply_step.register
def _apply_call(step: S.Call, image: Image.Image, draws: Sequence[float]) -> Any:
    if not step.metadata:
        image = image.copy()
        image.info = {}
    with sample_randomness(draws[step.draw], process_wide=step.process_wide):
        return step.function.call_image(image)
