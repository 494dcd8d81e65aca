"""The steps of a recipe that take a corner of an image, or choose its size or padding by draws.

Resize, Pad and the other crops are in `steps`, which has all steps.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "CornerCrop",
    "FitPatches",
    "RandomCropOrPad",
    "RandomKeepRatio",
    "RandomPad",
    "RandomResize",
    "ScaleEdge",
    "ScaleJitter",
    "ScaleShorter",
    "ZoomOut",
]


@dataclass(frozen=True)
class CornerCrop:
    """Crop (height, width) in a corner: at the bottom or the top, at the right or the left."""

    height: int
    width: int
    bottom: bool
    right: bool


@dataclass(frozen=True)
class RandomResize:
    """Resize so that the shorter edge is ``low + floor(u (high - low))``, keeping the ratio.

    Draw column: `draw`, u, uniform in [0, 1).
    """

    low: int
    high: int
    filter: str
    draw: int


@dataclass(frozen=True)
class ScaleShorter:
    """Multiply both edges by one factor and drop fractions.

    The factor is `size` over the shorter edge; at most `max_size` over the longer one (None: no limit).
    """

    size: int
    max_size: int | None
    filter: str


@dataclass(frozen=True)
class ScaleEdge:
    """Multiply both edges by `size` over the shorter edge, or over the longer one, and round halves to the even number.

    No edge gets shorter than 1.
    """

    size: int
    of_longer: bool
    filter: str


@dataclass(frozen=True)
class FitPatches:
    """Resize to multiples of `patch`, with `least` to `most` patches: see `patch_grids.fit`."""

    patch: int
    least: int
    most: int
    filter: str


@dataclass(frozen=True)
class ScaleJitter:
    """Multiply both edges by one factor and drop fractions.

    The factor is that of the largest image in (height, width), times column `draw`.
    """

    height: int
    width: int
    filter: str
    draw: int


@dataclass(frozen=True)
class ZoomOut:
    """Pad with `fill` to `draw` times the size, without fractions.

    Draw columns: `draw` is the factor; `draw + 1` (left) and `draw + 2` (top), uniform in [0, 1), are the shares of the
    padding on these sides.
    """

    fill: tuple[int, int, int]
    draw: int


@dataclass(frozen=True)
class RandomPad:
    """Pad with `fill` to at least (height, width), with the image at a random place.

    Draw columns: `draw` (left) and `draw + 1` (top), uniform in [0, 1).
    """

    height: int
    width: int
    fill: tuple[int, int, int]
    draw: int


@dataclass(frozen=True)
class RandomCropOrPad:
    """Crop or pad each edge to (height, width): a random place in the image, or of the image.

    Draw columns: `draw` (top) and `draw + 1` (left), uniform in [0, 1).
    """

    height: int
    width: int
    fill: tuple[int, int, int]
    padding_mode: str  # constant, edge, reflect, symmetric
    draw: int


@dataclass(frozen=True)
class RandomKeepRatio:
    """`ResizeKeepRatio` times a scale, with probability `scale_p`, and to another ratio, with `aspect_p`.

    Draw columns: `draw` (uniform in [0, 1): whether to scale) and `draw + 1` (the scale, or one over its root if
    `of_area`); `draw + 2` (whether to change the ratio) and `draw + 3` (width over height, relative to the image's).
    """

    height: int
    width: int
    longest: float
    filter: str
    scale_p: float
    of_area: bool
    aspect_p: float
    draw: int


SizeStep = (
    CornerCrop
    | RandomResize
    | ScaleShorter
    | ScaleEdge
    | FitPatches
    | ScaleJitter
    | ZoomOut
    | RandomPad
    | RandomCropOrPad
    | RandomKeepRatio
)
