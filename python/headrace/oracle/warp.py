"""The oracle's rotations and affine maps, by Pillow's own methods."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

import headrace.recipe.steps as S
from headrace.oracle.steps import apply


def _ink(fill: Sequence[int], image: Image.Image) -> int | tuple[int, ...]:
    """Returns a step's fill of three bytes as a pixel of the image's mode."""
    return fill[0] if image.mode == "L" else tuple(fill)


def _filter(name: str) -> Image.Resampling:
    return Image.Resampling(S.FILTERS[name])


@apply.register
def _apply_affine(step: S.Affine, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    fill = _ink(step.fill, image)
    return image.transform(image.size, Image.Transform.AFFINE, step.matrix, _filter(step.filter), fillcolor=fill)


@apply.register
def _apply_rotate(step: S.Rotate, image: Image.Image, draws: Sequence[float]) -> Image.Image:
    return image.rotate(step.angle, _filter(step.filter), fillcolor=_ink(step.fill, image))
