"""Recipes of effects, nested steps and erased boxes, built by hand: native pixels equal those of Pillow and numpy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from headrace._engine.image_engine import ImageEngine
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps import steps as S
from headrace._recipe.steps.byte_table import Pointwise
from headrace._recipe.steps.draw_columns import Column
from headrace._recipe.steps.recipe import Recipe
from support import blobs, pictures

pytestmark = pytest.mark.pixels

ERASED = torch.tensor([[7, 8, 9], [101, 102, 103]], dtype=torch.uint8)
COLOURS = ((S.Brightness(3),), (S.Contrast(4),), (S.Saturation(5),), (S.Hue(6),))
STEPS = (
    S.Resize(40, 36, "bilinear"),
    S.When(0.6, (S.Grayscale(3),), 0),
    S.OneOf(((S.Invert(),), (S.Solarize(99.5),), (S.Posterize(3), S.Equalize())), (0.3, 0.6, 1.0), 1),
    S.Shuffled(COLOURS, 2),
    S.OneOf(((S.Sharpness(3),), (S.Sharpness(S.Constant(4.5)),), (S.PermuteChannels((2, 0, 1)),)), (0.4, 0.7, 1.0), 8),
    S.OneOf(tuple((one(S.Constant(0.3)),) for one in (S.Brightness, S.Contrast, S.Saturation)), (0.3, 0.6, 1.0), 9),
    S.When(0.5, (S.Autocontrast(),), 7),
    S.Pad((1, 2, 3, 4), (9, 80, 7), "constant"),
    S.HorizontalFlip(0.5, 8),
    S.When(0.7, (S.Erase(0.8, (7.0, 8.0, 9.0), 0, 10),), 9),
    S.Erase(0.6, (101.0, 102.0, 103.0), 0, 33),
    S.VerticalFlip(0.5, 56),
)
COLUMNS = 57


class Played:
    """Applies steps to an image with Pillow and numpy."""

    def __init__(self, image: Image.Image, draws: np.ndarray) -> None:
        self.image, self.draws = image, draws
        self.values: np.ndarray | None = None  # once a tensor: the image's bytes
        self.erasing = 0

    def play(self, steps: Sequence[S.Step]) -> None:
        for step in steps:
            getattr(self, type(step).__name__)(step)

    def Resize(self, step: Any) -> None:
        self.image = self.image.resize((step.width, step.height), Image.Resampling.BILINEAR)

    def Grayscale(self, step: Any) -> None:
        self.image = self.image.convert("L").convert("RGB")

    def Invert(self, step: Any) -> None:
        self.image = ImageOps.invert(self.image)

    def Solarize(self, step: Any) -> None:
        self.image = ImageOps.solarize(self.image, step.threshold)

    def Posterize(self, step: Any) -> None:
        self.image = ImageOps.posterize(self.image, step.bits)

    def Equalize(self, step: Any) -> None:
        self.image = ImageOps.equalize(self.image)

    def Autocontrast(self, step: Any) -> None:
        self.image = ImageOps.autocontrast(self.image)

    def Brightness(self, step: Any) -> None:
        self.image = ImageEnhance.Brightness(self.image).enhance(self.factor(step))

    def Contrast(self, step: Any) -> None:
        self.image = ImageEnhance.Contrast(self.image).enhance(self.factor(step))

    def Saturation(self, step: Any) -> None:
        self.image = ImageEnhance.Color(self.image).enhance(self.factor(step))

    def Sharpness(self, step: Any) -> None:
        self.image = ImageEnhance.Sharpness(self.image).enhance(self.factor(step))

    def PermuteChannels(self, step: Any) -> None:
        self.image = Image.merge("RGB", [self.image.getchannel(i) for i in step.order])

    def factor(self, step: Any) -> float:
        return step.draw.value if isinstance(step.draw, S.Constant) else float(self.draws[step.draw])

    def Hue(self, step: Any) -> None:
        h, s, v = (np.asarray(band) for band in self.image.convert("HSV").split())
        turned = (h.astype(int) + int(255 * self.draws[step.draw])) % 256
        bands = [Image.fromarray(band) for band in (turned.astype(np.uint8), s, v)]
        self.image = Image.merge("HSV", bands).convert("RGB")

    def Pad(self, step: Any) -> None:
        self.image = ImageOps.expand(self.image, step.padding, step.fill)

    def HorizontalFlip(self, step: Any) -> None:
        self.flip(step, Image.Transpose.FLIP_LEFT_RIGHT, np.fliplr)

    def VerticalFlip(self, step: Any) -> None:
        self.flip(step, Image.Transpose.FLIP_TOP_BOTTOM, np.flipud)

    def flip(self, step: Any, method: Image.Transpose, array_method: Callable[[np.ndarray], np.ndarray]) -> None:
        if self.draws[step.draw] < step.p:
            self.image = self.image.transpose(method)
            self.values = None if self.values is None else array_method(self.values)

    def When(self, step: Any) -> None:
        before = self.erasing
        if self.draws[step.draw] < step.p:
            self.play(step.steps)
        self.erasing = before + sum(isinstance(inner, S.Erase) for inner in step.steps)

    def OneOf(self, step: Any) -> None:
        u = self.draws[step.draw]
        self.play(next(branch for branch, bound in zip(step.branches, step.bounds, strict=True) if u < bound))

    def Shuffled(self, step: Any) -> None:
        orders = list(itertools.permutations(step.branches))
        for branch in orders[int(self.draws[step.draw] * len(orders))]:
            self.play(branch)

    def Erase(self, step: Any) -> None:
        value, self.erasing = ERASED[self.erasing].numpy(), self.erasing + 1
        own = self.draws[step.draw :]
        if self.values is None:
            self.values = np.asarray(self.image).copy()
        height, width = self.values.shape[:2]
        if own[0] >= step.p:
            return
        for area, ratio in own[1:21].reshape(10, 2):
            h, w = round(math.sqrt(height * width * area * ratio)), round(math.sqrt(height * width * area / ratio))
            if h < height and w < width:
                top, left = int(own[21] * (height - h + 1)), int(own[22] * (width - w + 1))
                self.values[top : top + h, left : left + w] = value
                return


def draws_for(rng: np.random.Generator) -> np.ndarray:
    draws = rng.uniform(size=COLUMNS)
    draws[3:6] = rng.uniform(0, 2, 3)
    draws[6] = rng.uniform(-0.5, 0.5)
    for first in (11, 34):
        draws[first : first + 20 : 2] = rng.uniform(0.02, 0.9, 10)
        draws[first + 1 : first + 20 : 2] = np.exp(rng.uniform(math.log(0.3), math.log(3.3), 10))
    return draws


def recipe_of(steps: tuple[S.Step, ...], erased: torch.Tensor | None) -> Recipe:
    lut = torch.arange(256, dtype=torch.uint8).expand(3, 256).contiguous()
    return Recipe(steps, (Column(),) * COLUMNS, 46, 40, 3, Pointwise((), None), lut, erased=erased)


@pytest.mark.parametrize("isa", ["scalar", ""])
def test_a_recipe_of_everything(isa: str) -> None:
    engine = ImageEngine(recipe_of(STEPS, ERASED), Layout.PLANAR, threads=0, slots_kept=1, isa=isa)
    encoded, rng = pictures(24), np.random.default_rng(8)
    rows = np.arange(96) % len(encoded)
    draws = np.stack([draws_for(rng) for _ in rows])
    flight = engine.submit(blobs(24).blob_table(), rows, draws)
    assert engine.wait(flight, 60) and engine.failures(flight) == []
    got = engine.tensor(flight)
    for row, one, ours in zip(rows, draws, got, strict=True):
        played = Played(Image.open(BytesIO(encoded[row])).convert("RGB"), one)
        played.play(STEPS)
        want = torch.from_numpy(np.ascontiguousarray(played.values)).permute(2, 0, 1)
        assert torch.equal(ours, want)


def test_what_is_erased_belongs_to_the_recipe() -> None:
    assert recipe_of(STEPS, ERASED).erase_bytes == bytes([7, 8, 9, 101, 102, 103])
    assert recipe_of(STEPS, ERASED).fingerprint() != recipe_of(STEPS, ERASED + 1).fingerprint()
    assert recipe_of(STEPS[:7], None).erase_bytes == b""


@pytest.mark.parametrize("erased", [None, ERASED[:1]])
def test_a_value_is_missing(erased: torch.Tensor | None) -> None:
    with pytest.raises(ValueError, match="one element a channel for each row"):
        ImageEngine(recipe_of(STEPS, erased), Layout.PLANAR, threads=0, slots_kept=1)
