"""Crops, turns and nearest resizes of palette indices and 16-bit values are Pillow's, read in whatever way."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import headrace.pillow
from headrace.pillow.deferred_image import is_recorded
from headrace.pillow.files.pixel_selection import nearest
from png_samples import png, sound_pngs
from torchvision_shim import import_torchvision

pytestmark = pytest.mark.pixels

READERS: list[Callable[[Any], Any]] = [
    np.array,
    lambda image: np.asarray(image.convert("RGB")),
    lambda image: np.asarray(image.convert("L")),
    lambda image: image.tobytes(),
    lambda image: image.convert("RGBA").tobytes(),
    lambda image: image.histogram(),
    lambda image: image.getpixel((image.width - 1, image.height - 1)),
    lambda image: image.getextrema(),
    lambda image: image.getpalette() if image.mode == "P" else image.getbands(),
    lambda image: image.convert("RGB").resize((7, 5), Image.Resampling.BILINEAR).tobytes(),
    lambda image: (image.putpixel((0, 0), 1 if len(image.getbands()) == 1 else (1,) * 4), image.tobytes())[1],
]


def _draw_step(draws: random.Random) -> Callable[[Any], Any]:
    kind = draws.randrange(7)
    a, b, c, d = (draws.random() for _ in range(4))
    if kind < 2:
        over = 3 if draws.random() < 0.1 else 0  # beyond the image

        def crop(image: Any) -> Any:
            left, top = int(a * image.width) - over, int(b * image.height) - over
            right, bottom = left + 1 + int(c * (image.width - left)), top + 1 + int(d * (image.height - top))
            return image.crop((left, top, right + over, bottom + over))

        return crop
    if kind < 4:
        resample = Image.Resampling.NEAREST if c < 0.8 else Image.Resampling.BILINEAR
        return lambda image: image.resize((1 + int(a * 40), 1 + int(b * 40)), resample)
    if kind == 4:
        return lambda image: image.transpose(Image.Transpose(int(a * 7)))
    if kind == 5:
        return lambda image: image.copy()
    box = (0.5, 0.25, 1.0, 1.0) if a < 0.3 else None
    return lambda image: image.resize((1 + int(b * 20), 1 + int(c * 20)), Image.Resampling.NEAREST, box=box)


def _outcome(opened: Any, steps: list[Callable[[Any], Any]], reader: Callable[[Any], Any]) -> Any:
    try:
        image = opened
        for step in steps:
            image = step(image)
        before = opened.tobytes() if len(steps) % 2 else None  # the image that steps were recorded of stays itself
        read = reader(image)
        values = (read.dtype.str, read.shape, read.tobytes()) if isinstance(read, np.ndarray) else read
        return image.mode, image.size, values, before, opened.tobytes()
    except Exception as error:
        return type(error), str(error)


def test_chains_show_what_pillow_shows() -> None:
    draws = random.Random(5)
    files = list(sound_pngs())
    for number in range(1500):
        data = draws.choice(files)
        steps = [_draw_step(draws) for _ in range(draws.randint(1, 5))]
        reader = draws.choice(READERS)
        ours, theirs = (_outcome(one(io.BytesIO(data)), steps, reader) for one in (headrace.pillow.open, Image.open))
        assert ours == theirs, number


@pytest.mark.parametrize(("colour", "depth"), [(3, 8), (3, 2), (0, 16)])
def test_a_crop_of_a_mask_makes_no_image(colour: int, depth: int) -> None:
    data = png(40, 30, colour, depth)
    functional: Any = import_torchvision().transforms.functional
    with headrace.pillow.deferred():
        image = Image.open(io.BytesIO(data))
        image.load()
        made = functional.resized_crop(image, 3, 4, 20, 21, [9, 8], functional.InterpolationMode.NEAREST)
        made = functional.hflip(made)
        assert is_recorded(made)
        values = torch.from_numpy(np.array(made))
        assert is_recorded(made)
    wanted = Image.open(io.BytesIO(data)).crop((4, 3, 25, 23)).resize((8, 9), Image.Resampling.NEAREST)
    assert values.equal(torch.from_numpy(np.array(wanted.transpose(Image.Transpose.FLIP_LEFT_RIGHT))))


@pytest.mark.parametrize("pixel", [1, 2])
def test_nearest_pixels_are_those_of_a_large_image(pixel: int) -> None:
    draws = random.Random(6)
    for _ in range(200):
        length, made = draws.randint(1, 3000), draws.randint(1, 1500)
        numbers = np.arange(length, dtype=np.uint16)
        parts = [numbers] if pixel == 2 else [(numbers & 255).astype(np.uint8), (numbers >> 8).astype(np.uint8)]
        for upright in (False, True):
            images = [Image.fromarray(one[:, None] if upright else one[None]) for one in parts]
            size = (1, made) if upright else (made, 1)
            low, *high = (np.array(one.resize(size, Image.Resampling.NEAREST)).ravel().astype(int) for one in images)
            found = nearest(pixel, length, made, upright=upright)
            assert found is not None
            assert found.tolist() == (low + 256 * sum(high)).tolist(), (length, made)


def test_a_row_too_long_for_16_bits_is_left_to_pillow() -> None:
    assert nearest(2, 70_000, 5, upright=False) is None
    assert nearest(1, 70_000, 5, upright=False) is not None
