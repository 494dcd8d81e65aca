"""Arithmetic of texture channels: CIE LAB, gradients, positions and frequency bands of an image's bytes.

Only tables and + - * / and square roots are used, whose results are exactly rounded: they depend neither on the number
of torch's threads nor on its instruction set. Each step is one torch operation, so nothing is contracted into a fused
multiply-add. `csrc/core/textures` does the same operations in the same order, with the same tables.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
import torch

from headrace._base.native import core
from headrace._recipe.arithmetic import fourier

Band = tuple[float, float]
Bands = tuple[Band, Band]

_LINEAR_RGB_TO_XYZ = ((0.412453, 0.357580, 0.180423), (0.212671, 0.715160, 0.072169), (0.019334, 0.119193, 0.950227))
_WHITE = (0.95047, 1.0, 1.08883)  # D65, for an observer of 2 degrees
_DELTA = 6 / 29
_LUMA = (0.299, 0.587, 0.114)
_STARTS = 1024  # entries of the table that Halley's iteration starts from: within 2% above _DELTA**3
_ROUNDS = 2  # of the iteration; they take 2% below float64's precision


@functools.cache
def linear_table() -> torch.Tensor:
    """The linear intensity of each byte of sRGB, float64 (256,)."""
    values = [byte / 255 for byte in range(256)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in values]
    return torch.tensor(linear, dtype=torch.float64, device="cpu")


@functools.cache
def root_table() -> torch.Tensor:
    """Cube roots of the middles of the intervals of [0, 1 + 1 / 1024], float64 (1025,)."""
    roots = [((i + 0.5) / _STARTS) ** (1 / 3) for i in range(_STARTS + 1)]
    return torch.tensor(roots, dtype=torch.float64, device="cpu")


def _cube_root(ratio: torch.Tensor) -> torch.Tensor:
    """Returns cube roots of float64 values from _DELTA**3 to 1, within 2 units in the last place."""
    root = root_table()[(ratio * _STARTS).long()]
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
    red, green, blue = linear_table()[image.long()]
    bent = []
    for weights, white in zip(_LINEAR_RGB_TO_XYZ, _WHITE, strict=True):
        ratio = red * (weights[0] / white) + green * (weights[1] / white) + blue * (weights[2] / white)
        straight = ratio * (1 / (3 * _DELTA * _DELTA)) + 4 / 29
        bent.append(torch.where(ratio > _DELTA * _DELTA * _DELTA, _cube_root(ratio), straight))
    x, y, z = bent
    return torch.stack([y * 1.16 - 0.16, (x - y) * 500 / 128, (y - z) * 200 / 128])


def luma_plane(image: torch.Tensor) -> torch.Tensor:
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
def pixel_positions(height: int, width: int) -> torch.Tensor:
    """Returns x, y and eccentricity of each pixel's centre, float64 (3, H, W); do not change it.

    x and y are in (-1, 1), 0 in the middle of the image. The eccentricity is the distance from there, 1 in a corner.
    """
    y, x = ((torch.arange(n, dtype=torch.float64, device="cpu") * 2 + 1) / n - 1 for n in (height, width))
    x, y = x.expand(height, width), y[:, None].expand(height, width)
    return torch.stack([x, y, ((x * x + y * y) / 2).sqrt()])


@functools.lru_cache(maxsize=16)
def _band_filters(height: int, width: int, bands: Bands) -> torch.Tensor:
    """1 for the frequencies that each band passes, else 0: float64 (2, W, H // 2 + 1), rows from frequency 0 on."""
    fx, fy = (torch.arange(n, dtype=torch.float64, device="cpu") for n in (width, height // 2 + 1))
    fx = torch.minimum(fx, width - fx) / width
    fy = fy / height
    frequency = ((fx * fx)[:, None] + fy * fy).sqrt()
    return torch.stack([(low <= frequency) & (frequency < high) for low, high in bands]).double()


def bands_of(gray: torch.Tensor, bands: Bands) -> torch.Tensor:
    """Returns the parts of an image in two bands of spatial frequency.

    Columns are transformed in pairs, as the real and the imaginary part of one; the spectrum of a real column is
    symmetric, which separates the two again, at twice their values. Then rows are transformed, of the frequencies from
    0 to H / 2 only, and back in each band. The last transform makes both bands at once, one as the real part.

    Args:
        gray: float64 (H, W); continued periodically.
        bands: (low, high) in cycles per pixel, `high` excluded.

    Returns:
        float64 (2, H, W).
    """
    height, width = gray.shape
    half, kept = (width + 1) // 2, height // 2 + 1
    right = torch.nn.functional.pad(gray[:, half:], (0, 2 * half - width))
    a, b = fourier.fourier_transform(gray[:, :half], right)
    mirrored = -torch.arange(kept, device="cpu") % height
    a, b, a_mirrored, b_mirrored = a[:kept], b[:kept], a[mirrored], b[mirrored]
    real = torch.cat([a + a_mirrored, b + b_mirrored], dim=1)[:, :width].t()
    imaginary = torch.cat([b - b_mirrored, a_mirrored - a], dim=1)[:, :width].t()
    real, imaginary = fourier.fourier_transform(real, imaginary)
    scale = 1 / (2 * height * width)
    parts = []
    for passes in _band_filters(height, width, bands):
        made = fourier.fourier_transform(imaginary * (passes * scale), real * (passes * scale))
        parts.append([part.t() for part in made])
    (i0, r0), (i1, r1) = parts
    inner = slice(1, (height + 1) // 2)  # the frequencies below 0 are mirrored ones, with the other sign of i
    real = torch.cat([r0 - i1, (r0 + i1)[inner].flip(0)])
    imaginary = torch.cat([i0 + r1, (r1 - i0)[inner].flip(0)])
    second, first = fourier.fourier_transform(imaginary, real)
    return torch.stack([first, second])


def channels(image: torch.Tensor, bands: Bands) -> torch.Tensor:
    """Returns all channels by torch: the definition, which the native loops equal.

    Args:
        image: uint8 (1 or 3, H, W).
        bands: (low, high) in cycles per pixel, `high` excluded.

    Returns:
        float32 (13, H, W).
    """
    image = image.expand(3, -1, -1)
    gray = luma_plane(image)
    parts = [image.double() / 255, lab(image), sobel(gray), pixel_positions(*gray.shape), bands_of(gray, bands)]
    return torch.cat(parts).float()


def tables_for_native(height: int, width: int) -> tuple[npt.NDArray[np.float64], ...]:
    """Returns what the native loops for images of this size get from here: powers, roots and angles.

    Their last bits may differ between mathematical libraries.
    """
    turns = [fourier.cosine_and_sine_table(length).flatten() for length in (width, height)]
    return tuple(table.numpy() for table in (linear_table(), root_table(), *turns))


@functools.lru_cache(maxsize=16)
def make_native_texture(height: int, width: int, bands: Bands) -> core.Texture:
    """Returns the native loops for images of this size. Any thread may use them."""
    return core.Texture(height, width, bands, tables_for_native(height, width))
