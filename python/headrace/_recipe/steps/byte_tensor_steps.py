"""The steps of a recipe that change an image as torchvision's functions change a byte tensor; `steps` has all steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace._recipe.steps.effect_steps import Drawn

__all__ = [
    "Rounding",
    "TensorAutocontrast",
    "TensorContrast",
    "TensorHue",
    "TensorSaturation",
    "TensorSharpness",
    "TensorStep",
    "TensorWarp",
]


@dataclass(frozen=True)
class Rounding:
    """Where torch rounds a sum with a product once instead of twice, on this processor.

    Attributes:
        sums: in ``tensor.add_(other, alpha=number)``.
        samples: in ``grid_sample``.
        positions: in ``bmm`` with a matrix of 3 x 2.
    """

    sums: bool
    samples: bool
    positions: bool


@dataclass(frozen=True)
class _TensorStep:
    """
    Attributes:
        version: 1 or 2, of torchvision's transforms.
        rounding: for the native core alone; a property of the machine, not of the step.
    """

    version: int
    rounding: Rounding = field(repr=False, compare=False)


@dataclass(frozen=True)
class TensorSaturation(_TensorStep):
    """``adjust_saturation`` of an image of three channels."""

    factor: float | Drawn


@dataclass(frozen=True)
class TensorContrast(_TensorStep):
    """``adjust_contrast``. `channels`: of the image, 1 or 3."""

    factor: float | Drawn
    channels: int


@dataclass(frozen=True)
class TensorHue(_TensorStep):
    """``adjust_hue`` of an image of three channels by a share of a turn, from -0.5 to 0.5."""

    factor: float | Drawn


@dataclass(frozen=True)
class TensorSharpness(_TensorStep):
    """``adjust_sharpness`` by a constant factor."""

    factor: float


@dataclass(frozen=True)
class TensorAutocontrast(_TensorStep):
    """``autocontrast``."""


@dataclass(frozen=True)
class TensorWarp(_TensorStep):
    """``affine`` to an image of the same size.

    Attributes:
        matrix: six coefficients, finite: pixel (x, y), counted from the centre of the image, comes from
            (a x + b y + c, d x + e y + f).
        filter: ``"nearest"`` or ``"bilinear"``.
        fill: values from 0 to 255 outside the image, three equal ones for one channel; None: zeros, which torchvision
            mixes in another way.
    """

    matrix: tuple[float, ...]
    filter: str
    fill: tuple[float, float, float] | None


TensorStep = TensorAutocontrast | TensorContrast | TensorHue | TensorSaturation | TensorSharpness | TensorWarp
