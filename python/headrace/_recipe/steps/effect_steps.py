"""The steps of a recipe that change the values of an image, but move and mix no pixels, and Sharpness."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Autocontrast",
    "Brightness",
    "Constant",
    "Contrast",
    "Drawn",
    "EffectStep",
    "Equalize",
    "Hue",
    "Invert",
    "PermuteChannels",
    "Posterize",
    "Saturation",
    "ScaleShift",
    "Sharpness",
    "Solarize",
    "SolarizeAdd",
]


@dataclass(frozen=True)
class Constant:
    """A parameter that is the same for every sample, where a step may have the column of a drawn one."""

    value: float


@dataclass(frozen=True)
class Drawn:
    """A parameter that is read from a column of the draws, where a step may have a constant one."""

    column: int


@dataclass(frozen=True)
class Brightness:
    """``PIL.ImageEnhance.Brightness`` by the factor in column `draw`, or by a constant."""

    draw: int | Constant


@dataclass(frozen=True)
class Contrast:
    """``PIL.ImageEnhance.Contrast`` by the factor in column `draw`, or by a constant; depends on the image's mean."""

    draw: int | Constant


@dataclass(frozen=True)
class Saturation:
    """``PIL.ImageEnhance.Color`` by the factor in column `draw`, or by a constant."""

    draw: int | Constant


@dataclass(frozen=True)
class Sharpness:
    """``PIL.ImageEnhance.Sharpness`` by the factor in column `draw`, or by a constant."""

    draw: int | Constant


@dataclass(frozen=True)
class Hue:
    """Add ``int(255 x)`` modulo 256 to the H of Pillow's HSV; x is column `draw`."""

    draw: int


@dataclass(frozen=True)
class PermuteChannels:
    """Make channel `order[i]` of an RGB image channel i."""

    order: tuple[int, int, int]


@dataclass(frozen=True)
class Invert:
    """``PIL.ImageOps.invert``."""


@dataclass(frozen=True)
class Posterize:
    """``PIL.ImageOps.posterize``: keep the `bits` (0 to 8) most significant bits; drawn negative ones are an error."""

    bits: int | Drawn


@dataclass(frozen=True)
class Solarize:
    """``PIL.ImageOps.solarize``: invert the values that are at least `threshold`."""

    threshold: float | Drawn


@dataclass(frozen=True)
class SolarizeAdd:
    """timm's operation: add `add` (0 to 255) to the values below 128, up to 255."""

    add: int | Drawn


@dataclass(frozen=True)
class ScaleShift:
    """albumentations' RandomBrightnessContrast: multiply by column `draw`, then add column ``draw + 1``, in float32.

    Results are cut to [0, 255] and lose their fractions.
    """

    draw: int


@dataclass(frozen=True)
class Autocontrast:
    """``PIL.ImageOps.autocontrast`` with its default arguments, per channel."""


@dataclass(frozen=True)
class Equalize:
    """``PIL.ImageOps.equalize``, per channel."""


EffectStep = (
    Autocontrast
    | Brightness
    | Contrast
    | Equalize
    | Hue
    | Invert
    | PermuteChannels
    | Posterize
    | Saturation
    | ScaleShift
    | Sharpness
    | Solarize
    | SolarizeAdd
)
