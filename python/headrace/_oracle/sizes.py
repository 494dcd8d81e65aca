"""The oracle's steps that take a corner of an image, or choose its size or padding by draws."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PIL import Image

import headrace._recipe.steps.steps as S
from headrace._oracle.steps import apply_step, resize_image
from headrace._recipe.arithmetic import boxes, drawn_boxes, functional_pil, patch_grids


def _pad(image: Image.Image, padding: boxes.Padding, color: Sequence[int], mode: str = "constant") -> Image.Image:
    return functional_pil.pad(image, padding, color[: len(image.getbands())], mode) if any(padding) else image


@apply_step.register
def _apply_corner_crop(step: S.CornerCrop, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return functional_pil.crop(
        image, boxes.corner(image.height, image.width, step.height, step.width, step.bottom, step.right)
    )


@apply_step.register
def _apply_random_resize(step: S.RandomResize, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    edge = step.low + boxes.position_from(draws[step.draw])(step.high - step.low)
    return functional_pil.resize(image, *boxes.resize_by_edge(image.height, image.width, edge, None), step.filter)


@apply_step.register
def _apply_scale_shorter(step: S.ScaleShorter, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    size = drawn_boxes.scaled_shorter(image.height, image.width, step.size, step.max_size)
    return functional_pil.resize(image, *size, step.filter)


@apply_step.register
def _apply_scale_edge(step: S.ScaleEdge, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    size = drawn_boxes.scaled_edge(image.height, image.width, step.size, of_longer=step.of_longer)
    return resize_image(image, *size, step.filter)


@apply_step.register
def _apply_fit_patches(step: S.FitPatches, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    rows, columns = patch_grids.fit(image.height, image.width, step.patch, step.least, step.most)
    return functional_pil.resize(image, rows * step.patch, columns * step.patch, step.filter)


@apply_step.register
def _apply_scale_jitter(step: S.ScaleJitter, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    size = drawn_boxes.jitter_size(image.height, image.width, (step.height, step.width), draws[step.draw])
    return functional_pil.resize(image, *size, step.filter)


@apply_step.register
def _apply_zoom_out(step: S.ZoomOut, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return _pad(image, drawn_boxes.zoomed_out(image.height, image.width, *draws[step.draw : step.draw + 3]), step.fill)


@apply_step.register
def _apply_random_pad(step: S.RandomPad, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    left, top = (boxes.position_from(u) for u in draws[step.draw : step.draw + 2])
    target = step.height, step.width
    return _pad(image, drawn_boxes.random_padding(image.height, image.width, target, left, top), step.fill)


@apply_step.register
def _apply_random_crop_or_pad(step: S.RandomCropOrPad, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    top, left = (boxes.position_from(u) for u in draws[step.draw : step.draw + 2])
    padding, box = drawn_boxes.random_window(image.height, image.width, (step.height, step.width), top, left)
    return functional_pil.crop(_pad(image, padding, step.fill, step.padding_mode), box)


@apply_step.register
def _apply_random_keep_ratio(step: S.RandomKeepRatio, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    scales, drawn_scale, changes, drawn_aspect = draws[step.draw : step.draw + 4]
    scale = 1.0
    if scales < step.scale_p:
        scale = 1 / math.sqrt(drawn_scale) if step.of_area else drawn_scale
    aspect = drawn_aspect if changes < step.aspect_p else 1.0
    target = step.height, step.width
    size = drawn_boxes.random_keep_ratio(image.height, image.width, target, step.longest, scale, aspect)
    return functional_pil.resize(image, *size, step.filter)
