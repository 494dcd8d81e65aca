"""The oracle's rotations, affine maps and perspectives, by Pillow's own methods."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

import headrace._recipe.steps.steps as S
from headrace._oracle.steps import apply_step, resolve_number
from headrace._recipe.arithmetic import boxes, warps


def _fill_colour(fill: Sequence[int], image: Image.Image) -> int | tuple[int, ...]:
    """Returns a step's fill of three bytes as a pixel of the image's mode."""
    return fill[0] if image.mode == "L" else tuple(fill)


def _resampling_filter(name: str) -> Image.Resampling:
    return Image.Resampling(S.FILTERS[name])


def _warp_image(
    image: Image.Image, method: Image.Transform, numbers: Sequence[float], filter: str, fill: Sequence[int]
) -> Image.Image:
    return image.transform(image.size, method, numbers, _resampling_filter(filter), fillcolor=_fill_colour(fill, image))


@apply_step.register
def _apply_affine(step: S.Affine, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    matrix = [resolve_number(one, draws) for one in step.matrix]
    return _warp_image(image, Image.Transform.AFFINE, matrix, step.filter, step.fill)


@apply_step.register
def _apply_rotate(step: S.Rotate, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return image.rotate(step.angle, _resampling_filter(step.filter), fillcolor=_fill_colour(step.fill, image))


@apply_step.register
def _apply_random_rotate(step: S.RandomRotate, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    fill = _fill_colour(step.fill, image)
    return image.rotate(draws[step.draw], _resampling_filter(step.filter), step.expand, step.center, fillcolor=fill)


@apply_step.register
def _apply_random_affine(step: S.RandomAffine, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    angle, x, y, scale, shear_x, shear_y = draws[step.draw : step.draw + 6]
    center = step.center or (image.width * 0.5, image.height * 0.5)
    shift = round(x * image.width), round(y * image.height)
    matrix = warps.inverse_affine_matrix(center, angle, shift, scale, (shear_x, shear_y), step.version)
    return _warp_image(image, Image.Transform.AFFINE, matrix, step.filter, step.fill)


@apply_step.register
def _apply_random_perspective(step: S.RandomPerspective, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    most = warps.perspective_moves(image.height, image.width, step.distortion)
    start = warps.corners(image.height, image.width)
    x = [boxes.position_from(u)(most[0] + 1) for u in draws[step.draw : step.draw + 8 : 2]]
    y = [boxes.position_from(u)(most[1] + 1) for u in draws[step.draw + 1 : step.draw + 8 : 2]]
    right, bottom = image.width - 1 - most[0], image.height - 1 - most[1]
    end = [[x[0], y[0]], [right + x[1], y[1]], [right + x[2], bottom + y[2]], [x[3], bottom + y[3]]]
    try:
        numbers = warps.perspective_coefficients(start, end)
    except RuntimeError as error:  # a ValueError, because the native plan raises one
        raise ValueError(str(error)) from error
    return _warp_image(image, Image.Transform.PERSPECTIVE, numbers, step.filter, step.fill)
