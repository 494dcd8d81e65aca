"""The steps of a recipe that rotate and warp an image; `steps` has all steps."""

from __future__ import annotations

from dataclasses import dataclass

from headrace._recipe.steps.effect_steps import Drawn
from headrace._recipe.steps.step_numbers import turn_of

__all__ = ["Affine", "RandomAffine", "RandomPerspective", "RandomRotate", "Rotate", "WarpStep"]


@dataclass(frozen=True)
class Affine:
    """``PIL.Image.transform`` by AFFINE to an image of the same size.

    Attributes:
        matrix: Pillow's six coefficients, finite: pixel (x, y) comes from (a x + b y + c, d x + e y + f).
            At most one of them is drawn.
        filter: ``"nearest"``, ``"bilinear"`` or ``"bicubic"``.
        fill: colour of the pixels that come from outside the image; three equal bytes for one channel.
    """

    matrix: tuple[float | Drawn, ...]
    filter: str
    fill: tuple[int, int, int]


@dataclass(frozen=True)
class Rotate:
    """``PIL.Image.rotate`` about the centre of the image, which keeps its size.

    Attributes:
        angle: in degrees, counter-clockwise; finite.
        filter, fill: as in `Affine`.
    """

    angle: float
    filter: str
    fill: tuple[int, int, int]

    @property
    def turn(self) -> tuple[float, float, float]:
        """The angle in [0, 360), and the cosine and sine in Pillow's matrix."""
        return turn_of(self.angle)


@dataclass(frozen=True)
class RandomRotate:
    """``PIL.Image.rotate`` by the angle in column `draw`, in degrees.

    The next three columns are the numbers of rule ``"turn"`` (`draw_columns.WarpNumber`).

    Attributes:
        filter, fill: as in `Affine`.
        expand: whether the output is as large as the whole rotated image; otherwise it keeps the size.
        center: (x, y) of the fixed point in pixels; None: the centre of the image.
    """

    filter: str
    fill: tuple[int, int, int]
    expand: bool
    center: tuple[float, float] | None
    draw: int


@dataclass(frozen=True)
class RandomAffine:
    """torchvision's affine map of a PIL image: rotation, shift, scale and shears.

    Draw columns: `draw` is the angle in degrees; the next two are the shifts as shares of the width and the height,
    rounded to whole pixels; then the scale, and the shears along x and y in degrees. The next four columns are the
    numbers of rule ``"affine"`` (`draw_columns.WarpNumber`).

    Attributes:
        filter, fill: as in `Affine`.
        center: as in `RandomRotate`.
        version: major version of torchvision's transforms, 1 or 2: they order the operations differently.
    """

    filter: str
    fill: tuple[int, int, int]
    center: tuple[float, float] | None
    version: int
    draw: int


@dataclass(frozen=True)
class RandomPerspective:
    """torchvision's perspective of a PIL image of a size that is known before.

    Draw columns: the first eight, uniform in [0, 1), are the moves inwards (x, y) of the corners at the top left, top
    right, bottom right and bottom left. The next eight are the numbers of rule ``"perspective"``
    (`draw_columns.WarpNumber`).

    Attributes:
        distortion: largest move, as a share of half the width and half the height.
        filter, fill: as in `Affine`.
    """

    distortion: float
    filter: str
    fill: tuple[int, int, int]
    draw: int


WarpStep = Affine | RandomAffine | RandomPerspective | RandomRotate | Rotate
