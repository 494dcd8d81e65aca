"""Native effects equal Pillow's ImageEnhance and ImageOps to the byte, on every instruction set."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

from headrace import _core

ISAS = _core.isas()
IDENTITY = np.tile(np.arange(256, dtype=np.uint8), (3, 1))
FACTORS = (0.0, 1e-4, 0.3, 0.5, 0.6000001, 0.999999, 1.0, 1.0000001, 1.25, 1.7, 2.0, 3.0)

pytestmark = [pytest.mark.pixels, pytest.mark.slow]
each_isa = pytest.mark.parametrize("isa", ISAS)

Effect = tuple[str, float]


def native(image: Image.Image, effects: list[Effect], isa: str) -> np.ndarray:
    """The effects by the native pipeline: H x W x 3 bytes."""
    rgbx = np.dstack([np.asarray(image), np.full(image.size[::-1], 0x5A, np.uint8)])
    box = (0, 0, *image.size)
    stage = {"box": box, "resize": image.size, "effects": effects}
    out = np.empty((image.height, image.width, 3), np.uint8)
    plan = {"stages": [stage], "last": {"box": box}}
    _core.fuse(np.ascontiguousarray(rgbx), plan, IDENTITY, out, "channels_last", isa)
    return out


def turn_hue(image: Image.Image, turn: int) -> Image.Image:
    h, s, v = (np.asarray(band) for band in image.convert("HSV").split())
    bands = [Image.fromarray(band) for band in (h + np.uint8(turn), s, v)]
    return Image.merge("HSV", bands).convert("RGB")


def hue(turn: int) -> Effect:
    """A turn by 1 / 255 of the circle, `turn` times."""
    return "Hue", (turn + 0.5) / 255


def gray(image: Image.Image) -> Image.Image:
    return image.convert("L").convert("RGB")


def posterized(bits: int) -> tuple[Effect, Callable[[Image.Image], Image.Image]]:
    return ("Posterize", bits), lambda image: ImageOps.posterize(image, bits)


def solarized(threshold: int) -> tuple[Effect, Callable[[Image.Image], Image.Image]]:
    return ("Solarize", threshold), lambda image: ImageOps.solarize(image, threshold)


def enhanced(name: str, factor: float) -> tuple[Effect, Callable[[Image.Image], Image.Image]]:
    kind = {
        "Brightness": ImageEnhance.Brightness,
        "Contrast": ImageEnhance.Contrast,
        "Saturation": ImageEnhance.Color,
        "Sharpness": ImageEnhance.Sharpness,
    }[name]
    return (name, factor), lambda image: kind(image).enhance(factor)


def turned(turn: int) -> tuple[Effect, Callable[[Image.Image], Image.Image]]:
    return hue(turn), lambda image: turn_hue(image, turn)


def permuted(*order: int) -> tuple[Effect, Callable[[Image.Image], Image.Image]]:
    amount = order[0] | order[1] << 2 | order[2] << 4
    return ("PermuteChannels", amount), lambda image: Image.merge("RGB", [image.getchannel(i) for i in order])


def brightened(add: int) -> tuple[Effect, Callable[[Image.Image], Image.Image]]:
    table = [min(value + add, 255) if value < 128 else value for value in range(256)]
    return ("SolarizeAdd", add), lambda image: image.point(table * 3)


CASES = [
    *(enhanced(name, factor) for name in ("Brightness", "Contrast", "Saturation", "Sharpness") for factor in FACTORS),
    *(turned(turn) for turn in (0, 1, 25, 100, 127, 128, 200, 255)),
    *(posterized(bits) for bits in (1, 2, 5, 7, 8)),
    *(solarized(threshold) for threshold in (0, 1, 128, 200, 255, 256)),
    *(permuted(*order) for order in itertools.permutations(range(3))),
    *(brightened(add) for add in (0, 1, 33, 110, 255)),
    (("Gray", 0), gray),
    (("Invert", 0), ImageOps.invert),
    (("Autocontrast", 0), ImageOps.autocontrast),
    (("Equalize", 0), ImageOps.equalize),
]


def low_contrast(image: Image.Image, seed: int) -> Image.Image:
    """A copy in which each channel has its own range of values, down to one value."""
    low, high = np.sort(np.random.default_rng(seed).integers(0, 256, (2, 3)), axis=0)
    squeezed = low + np.asarray(image).astype(int) * (high - low) // 255
    return Image.fromarray(squeezed.astype(np.uint8))


@pytest.fixture(scope="module")
def pictures(images: list[Image.Image]) -> list[Image.Image]:
    """Photographs, noise, plain colours, and channels of little contrast."""
    rng = np.random.default_rng(5)
    sizes = ((1, 1), (5, 9), (61, 83), (2, 40), (40, 2), (3, 3), (3, 90), (70, 3), (4, 18), (7, 35))
    noise = [Image.fromarray(rng.integers(0, 256, (h, w, 3), dtype=np.uint8)) for h, w in sizes]
    plain = [Image.new("RGB", (17, 3), colour) for colour in ((0, 0, 0), (255, 255, 255), (3, 200, 90))]
    everything = [*images, *noise, *plain]
    return everything + [low_contrast(image, seed) for seed, image in enumerate(everything)]


@each_isa
@pytest.mark.parametrize(
    ("effect", "pillow"), CASES, ids=lambda case: "-".join(map(str, case)) if isinstance(case, tuple) else ""
)
def test_each_effect(
    isa: str, effect: tuple[Any, ...], pillow: Callable[..., Any], pictures: list[Image.Image]
) -> None:
    for image in pictures:
        np.testing.assert_array_equal(native(image, [effect], isa), np.asarray(pillow(image)))


@each_isa
def test_effects_one_after_the_other(isa: str, pictures: list[Image.Image]) -> None:
    rng = np.random.default_rng(6)
    for i in range(60):
        image = pictures[i % len(pictures)]
        chosen = [CASES[k] for k in rng.integers(0, len(CASES), rng.integers(2, 7))]
        got = native(image, [effect for effect, _ in chosen], isa)
        for _, pillow in chosen:
            image = pillow(image)
        np.testing.assert_array_equal(got, np.asarray(image))


@pytest.fixture(scope="module")
def every_colour() -> Image.Image:
    """All 2^24 colours."""
    n = np.arange(1 << 24, dtype=np.uint32)
    return Image.fromarray(np.stack([n >> 16, n >> 8 & 255, n & 255], -1).astype(np.uint8).reshape(4096, 4096, 3))


@each_isa
def test_hue_on_every_colour(isa: str, every_colour: Image.Image) -> None:
    """A turn by 0 converts to HSV and back: it covers all colours, and all HSV values that colours have."""
    for turn in (0, 37):
        np.testing.assert_array_equal(native(every_colour, [hue(turn)], isa), np.asarray(turn_hue(every_colour, turn)))


@each_isa
def test_saturation_on_every_colour(isa: str, every_colour: Image.Image) -> None:
    for factor in (0.62, 1.38):
        want = ImageEnhance.Color(every_colour).enhance(factor)
        np.testing.assert_array_equal(native(every_colour, [("Saturation", factor)], isa), np.asarray(want))


def test_blend_of_every_pair_of_bytes() -> None:
    """Contrast of each mean with each value: a ramp of all values above rows that make the mean."""
    ramp = np.arange(256, dtype=np.uint8)
    factors = [*FACTORS, *np.random.default_rng(7).uniform(0, 3, 12)]
    for mean in range(256):
        gray = np.vstack([ramp, np.full((256, 256), mean, np.uint8)])
        image = Image.fromarray(np.dstack([gray] * 3))
        flat = Image.new("L", (256, 1), mean)
        for factor in factors:
            want = np.asarray(Image.blend(flat, Image.fromarray(ramp[None]), float(factor)))[0]
            got = native(image, [("Contrast", float(factor))], ISAS[-1])[0]
            np.testing.assert_array_equal(got, np.stack([want] * 3, -1))
