"""The operations of each policy, and how their magnitudes follow from the number of bins and the image's size."""

from __future__ import annotations

from collections.abc import Callable

import torch

#: (bins, height, width) -> the magnitude of each bin, (bins,); None: the operation has no magnitude.
Magnitudes = Callable[[int, int, int], torch.Tensor | None]
#: Name of an operation -> (its magnitudes, whether their sign is random).
Space = dict[str, tuple[Magnitudes, bool]]

_SHARE = 150.0 / 331.0  # AutoAugment moves images of 331 pixels by up to 150


def _evenly_spaced(first: float, last: float) -> Magnitudes:
    return lambda bins, height, width: torch.linspace(first, last, bins)


def _posterize_magnitudes(fewest: int) -> Magnitudes:
    span = 8 - fewest
    return lambda bins, height, width: (8 - torch.arange(bins) / ((bins - 1) / span)).round().int()


def _no_magnitudes(bins: int, height: int, width: int) -> None:
    return None


def _along_x(bins: int, height: int, width: int) -> torch.Tensor:
    return torch.linspace(0.0, _SHARE * width, bins)


def _along_y(bins: int, height: int, width: int) -> torch.Tensor:
    return torch.linspace(0.0, _SHARE * height, bins)


def _augmentation_space(
    shear: float, x: Magnitudes, y: Magnitudes, degrees: float, enhancement: float, fewest_bits: int
) -> Space:
    """Returns the 13 operations that all policies have, in torchvision's order, which decides what is drawn."""
    enhanced: Space = {
        name: (_evenly_spaced(0.0, enhancement), True) for name in ("Brightness", "Color", "Contrast", "Sharpness")
    }
    return {
        **{name: (_evenly_spaced(0.0, shear), True) for name in ("ShearX", "ShearY")},
        "TranslateX": (x, True),
        "TranslateY": (y, True),
        "Rotate": (_evenly_spaced(0.0, degrees), True),
        **enhanced,
        "Posterize": (_posterize_magnitudes(fewest_bits), False),
        "Solarize": (_evenly_spaced(1.0, 0.0), False),  # shares of 255
        "AutoContrast": (_no_magnitudes, False),
        "Equalize": (_no_magnitudes, False),
    }


_IDENTITY: Space = {"Identity": (_no_magnitudes, False)}
_MODERATE = _augmentation_space(0.3, _along_x, _along_y, 30.0, 0.9, 4)
_WIDE = _augmentation_space(0.99, _evenly_spaced(0.0, 32.0), _evenly_spaced(0.0, 32.0), 135.0, 0.99, 2)

RAND_AUGMENT: Space = {**_IDENTITY, **_MODERATE}
TRIVIAL_AUGMENT_WIDE: Space = {**_IDENTITY, **_WIDE}
AUTO_AUGMENT: Space = {**_MODERATE, "Invert": (_no_magnitudes, False)}
