"""Native warps equal Pillow's transform and rotate to the byte: every filter, path and instruction set, any matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from PIL import Image

from headrace import _core

ISAS = _core.isas()
IDENTITY = np.tile(np.arange(256, dtype=np.uint8), (3, 1))
FILTERS = (Image.Resampling.NEAREST, Image.Resampling.BILINEAR, Image.Resampling.BICUBIC)
FILLS = ((0, 0, 0), (255, 255, 255), (124, 116, 104))

pytestmark = pytest.mark.pixels
each_filter = pytest.mark.parametrize("filter", FILTERS, ids=lambda filter: filter.name)


def noise(width: int, height: int, seed: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


def native(
    image: Image.Image,
    size: tuple[int, int],
    numbers: Sequence[float],
    filter: Image.Resampling,
    fill: tuple[int, int, int],
    isa: str,
) -> bytes:
    """The warp to an image of another size by the native pipeline: bytes of RGB."""
    rgbx = np.dstack([np.asarray(image), np.full(image.size[::-1], 0x5A, np.uint8)])
    padded = (*numbers, *[0.0] * (8 - len(numbers)))
    warp = (len(numbers) == 8, int(filter), padded, fill, size)
    stage = {"box": (0, 0, *image.size), "resize": image.size, "effects": [("Warp", warp)], "made": size}
    plan = {"stages": [stage], "last": {"box": (0, 0, *size)}}
    out = np.empty((size[1], size[0], 3), np.uint8)
    _core.fuse(np.ascontiguousarray(rgbx), plan, IDENTITY, out, "channels_last", isa)
    return out.tobytes()


def check(
    image: Image.Image,
    numbers: Sequence[float],
    filter: Image.Resampling,
    fill: tuple[int, int, int],
    size: tuple[int, int] | None = None,
) -> None:
    """Compares the native warp with Pillow's: affine for six numbers, perspective for eight."""
    size = size or image.size
    method = Image.Transform.PERSPECTIVE if len(numbers) == 8 else Image.Transform.AFFINE
    expected = image.transform(size, method, numbers, filter, fillcolor=fill)
    for isa in ISAS:
        assert native(image, size, numbers, filter, fill, isa) == expected.tobytes(), (isa, image.size, size, numbers)


def affine(rng: np.random.Generator, width: int, height: int) -> list[float]:
    """A matrix like those of policies, or of any numbers."""
    kind = rng.integers(0, 6)
    if kind == 0:
        return [*rng.normal(0, 2, 2), rng.normal(0, width), *rng.normal(0, 2, 2), rng.normal(0, height)]
    if kind == 1:  # scale alone
        return [rng.normal(0, 2), 0.0, rng.normal(0, width), -0.0, rng.normal(0, 2), rng.normal(0, height)]
    if kind == 2:  # whole numbers and halves: positions on the borders between pixels
        return [float(n) / 2 for n in rng.integers(-4, 5, 6)]
    if kind == 3:  # a shift
        return [1.0, 0.0, float(rng.integers(-width, width + 1)), 0.0, 1.0, float(rng.integers(-height, height + 1))]
    if kind == 4:  # a shear
        return [1.0, rng.uniform(-1, 1), 0.0, 0.0, 1.0, 0.0]
    angle = rng.uniform(0, 2 * math.pi)
    c, s, x, y = math.cos(angle), math.sin(angle), width / 2, height / 2
    return [c, s, x - c * x - s * y, -s, c, y + s * x - c * y]


@each_filter
def test_affine_maps_of_small_images(filter: Image.Resampling) -> None:
    rng = np.random.default_rng(int(filter))
    for seed in range(1500):
        width, height = (int(edge) for edge in rng.integers(1, 18, 2))
        fill = FILLS[seed % 3]
        check(noise(width, height, seed), affine(rng, width, height), filter, fill)


@each_filter
@pytest.mark.parametrize("size", [(1, 1), (1, 400), (400, 1), (3, 900), (1200, 2), (97, 64)], ids=str)
def test_affine_maps_of_extreme_shapes(filter: Image.Resampling, size: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(size) + int(filter))
    for seed in range(60):
        check(noise(*size, seed), affine(rng, *size), filter, FILLS[seed % 3])


@each_filter
def test_perspectives(filter: Image.Resampling) -> None:
    rng = np.random.default_rng(5 + int(filter))
    for seed in range(1000):
        width, height = (int(edge) for edge in rng.integers(1, 40, 2))
        depth = rng.normal(0, 1 / max(width, height), 2)
        check(noise(width, height, seed), [*affine(rng, width, height), *depth], filter, FILLS[seed % 3])


@each_filter
def test_perspectives_through_the_horizon(filter: Image.Resampling) -> None:
    """The divisor is exactly zero at some pixels: they come from infinity, or from no place at all."""
    image = noise(8, 8, 0)
    rng = np.random.default_rng(1)
    for k in range(8):
        flat = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1 / (k + 0.5), 0.0)
        through = (1.0, 0.0, -(k + 0.5), 0.0, 1.0, 0.0, -1 / (k + 0.5), 0.0)
        for numbers in (flat, through, (*rng.normal(0, 3, 6), -1 / (k + 0.5), 0.0)):
            check(image, numbers, filter, (9, 200, 77))


@each_filter
@pytest.mark.parametrize("scale", [1e2, 1e4, 32767.0, 32768.0, 65535.9, 1e6, 2.0**31, 1e10, 1e300])
def test_numbers_beyond_fixed_point_and_beyond_integers(filter: Image.Resampling, scale: float) -> None:
    rng = np.random.default_rng(8)
    for seed in range(80):
        width, height = (int(edge) for edge in rng.integers(1, 12, 2))
        numbers = rng.uniform(-scale, scale, 6)
        numbers[rng.random(6) < 0.3] = 0.0
        check(noise(width, height, seed), numbers.tolist(), filter, FILLS[seed % 3])
        near = [scale - 0.25, 0.5, -scale + 1.5, -0.5, scale, -scale + float(rng.uniform(-2, 2))]
        check(noise(width, height, seed), near, filter, FILLS[seed % 3])


@each_filter
def test_images_of_another_size(filter: Image.Resampling) -> None:
    rng = np.random.default_rng(20 + int(filter))
    for seed in range(500):
        width, height, *size = (int(edge) for edge in rng.integers(1, 30, 4))
        numbers = affine(rng, width, height) + ([] if seed % 3 else [0.01, -0.02])
        check(noise(width, height, seed), numbers, filter, FILLS[seed % 3], (size[0], size[1]))


@each_filter
def test_matrices_of_no_rank(filter: Image.Resampling) -> None:
    for numbers in ([0.0] * 6, [0.0, 0.0, 3.5, 0.0, 0.0, 2.5], [1.0, 1.0, 0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.0] * 2):
        for size in ((1, 1), (7, 5), (5, 7)):
            check(noise(*size, 3), numbers, filter, (1, 2, 3))


@pytest.mark.slow
@each_filter
def test_an_edge_at_the_limit_of_fixed_point(filter: Image.Resampling) -> None:
    for width in (32766, 32767, 32768, 32769):
        image = noise(width, 2, width)
        for shear in (0.0, 1e-5, -1e-5):
            check(image, [1.0, shear, 0.0, shear, 1.0, 0.0], filter, (5, 6, 7))
            check(image, [0.99999, shear, 0.3, 0.0, 1.0, shear], filter, (5, 6, 7))
