"""Arithmetic of texture channels: CIE LAB, gradients, places and frequency bands of an image's bytes.

Except for the Fourier transform, only tables and + - * / and square roots are used, whose results are exactly rounded:
they depend neither on the number of torch's threads nor on its instruction set. Each step is one torch operation, so
nothing is contracted into a fused multiply-add.
"""

from __future__ import annotations

import functools

import torch

Band = tuple[float, float]

_LINEAR_RGB_TO_XYZ = ((0.412453, 0.357580, 0.180423), (0.212671, 0.715160, 0.072169), (0.019334, 0.119193, 0.950227))
_WHITE = (0.95047, 1.0, 1.08883)  # D65, for an observer of 2 degrees
_DELTA = 6 / 29
_LUMA = (0.299, 0.587, 0.114)
_ROUNDS = 5  # of Halley's iteration; from its start, four reach float64's precision for ratios from _DELTA**3 to 1


@functools.cache
def _linear_table() -> torch.Tensor:
    """The linear intensity of each byte of sRGB, float64 (256,)."""
    values = [byte / 255 for byte in range(256)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in values]
    return torch.tensor(linear, dtype=torch.float64, device="cpu")


def _cube_root(ratio: torch.Tensor) -> torch.Tensor:
    """Returns cube roots of float64 values from 0.008 to 1.1, within 2 units in the last place."""
    root = ratio * 0.6 + 0.4
    for _ in range(_ROUNDS):
        cube = root * root * root
        root = root * (cube + ratio * 2) / (cube * 2 + ratio)
    return root


def lab(image: torch.Tensor) -> torch.Tensor:
    """Returns L / 100, a / 128 and b / 128 of CIE LAB.

    Args:
        image: sRGB, uint8 (3, H, W).

    Returns:
        float64 (3, H, W).
    """
    red, green, blue = _linear_table()[image.long()]
    bent = []
    for weights, white in zip(_LINEAR_RGB_TO_XYZ, _WHITE, strict=True):
        ratio = (red * weights[0] + green * weights[1] + blue * weights[2]) / white
        straight = ratio / (3 * _DELTA * _DELTA) + 4 / 29
        bent.append(torch.where(ratio > _DELTA**3, _cube_root(ratio.clamp(min=_DELTA**3)), straight))
    x, y, z = bent
    return torch.stack([(y * 116 - 16) / 100, (x - y) * 500 / 128, (y - z) * 200 / 128])


def luma(image: torch.Tensor) -> torch.Tensor:
    """Returns 0.299 R + 0.587 G + 0.114 B in [0, 1], float64 (H, W), of uint8 (3, H, W)."""
    red, green, blue = image.double() / 255
    made: torch.Tensor = red * _LUMA[0] + green * _LUMA[1] + blue * _LUMA[2]
    return made


def sobel(gray: torch.Tensor) -> torch.Tensor:
    """Returns the derivatives along x and y by Sobel's kernels, divided by 4; pixels outside repeat the edge.

    Args:
        gray: float (H, W).

    Returns:
        (2, H, W) in the dtype of `gray`; in [-1, 1] for values in [0, 1].
    """
    wide = torch.nn.functional.pad(gray[None], (1, 1, 1, 1), mode="replicate")[0]
    down = wide[:-2] + wide[1:-1] * 2 + wide[2:]
    across = wide[:, :-2] + wide[:, 1:-1] * 2 + wide[:, 2:]
    made: torch.Tensor = torch.stack([down[:, 2:] - down[:, :-2], across[2:] - across[:-2]]) / 4
    return made


@functools.lru_cache(maxsize=16)
def places(height: int, width: int) -> torch.Tensor:
    """Returns x, y and eccentricity of each pixel's centre, float64 (3, H, W); do not change it.

    x and y are in (-1, 1), 0 in the middle of the image. The eccentricity is the distance from there, 1 in a corner.
    """
    y, x = ((torch.arange(n, dtype=torch.float64, device="cpu") * 2 + 1) / n - 1 for n in (height, width))
    x, y = x.expand(height, width), y[:, None].expand(height, width)
    return torch.stack([x, y, ((x * x + y * y) / 2).sqrt()])


@functools.lru_cache(maxsize=16)
def _passes(height: int, width: int, bands: tuple[Band, ...]) -> torch.Tensor:
    """The frequencies that each band passes, bool (bands, H, W // 2 + 1), as torch.fft.rfft2 lays them out."""
    fy = torch.fft.fftfreq(height, dtype=torch.float64, device="cpu")
    fx = torch.fft.rfftfreq(width, dtype=torch.float64, device="cpu")
    frequency = (fx * fx + (fy * fy)[:, None]).sqrt()
    return torch.stack([(low <= frequency) & (frequency < high) for low, high in bands])


def bands_of(gray: torch.Tensor, bands: tuple[Band, ...]) -> torch.Tensor:
    """Returns the parts of an image in bands of spatial frequency.

    Args:
        gray: float (H, W); continued periodically.
        bands: (low, high) in cycles per pixel, `high` excluded.

    Returns:
        (bands, H, W) in the dtype of `gray`.
    """
    height, width = gray.shape
    spectrum = torch.fft.rfft2(gray) * _passes(height, width, bands)
    made: torch.Tensor = torch.fft.irfft2(spectrum, s=(height, width))
    return made
