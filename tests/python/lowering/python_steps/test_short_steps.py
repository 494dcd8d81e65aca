"""Which Python steps count as short: a function of few calls without a loop, of packages whose functions are known."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch
from PIL import ImageEnhance, ImageOps

from headrace._lowering.python_steps.short_steps import is_short
from torchvision_shim import import_torchvision

transforms = import_torchvision().transforms
MEAN = np.array([0.5, 0.4, 0.3], np.float32)
STEPS: list[Any] = []


class Step:
    """An object with ``__call__``, as albumentations' and most users' own."""

    def __call__(self, image: Any) -> Any:
        return image


STEP = Step()


def centred(image: Any) -> Any:
    return torch.from_numpy(((np.asarray(image, np.float32) / 255 - MEAN) / 0.2).transpose(2, 0, 1))


def called_by_the_dozen(image: Any) -> Any:
    image = image.convert("RGB").convert("RGB").convert("RGB").convert("RGB").convert("RGB")
    return image.convert("RGB").convert("RGB").convert("RGB").convert("RGB").convert("RGB")


def with_a_loop(image: Any) -> Any:
    for _ in range(3):
        image = ImageOps.mirror(image)
    return image


def with_another_loop(image: Any) -> Any:
    while image.width > 100:
        image = image.reduce(2)
    return image


def all_steps(image: Any) -> Any:
    return functools.reduce(lambda made, step: step(made), STEPS, image)


@pytest.mark.parametrize(
    "step",
    [
        lambda image: image.convert("RGB"),
        lambda image: ImageEnhance.Color(image).enhance(1.3),
        lambda values: values.repeat(3, 1, 1) if len(values) == 1 else values,
        transforms.Lambda(lambda values: values * 2 - 1),
        transforms.functional.hflip,
        centred,
        abs,
        str.upper,
    ],
)
def test_short_ones(step: Any) -> None:
    assert is_short(step)


@pytest.mark.parametrize(
    "step",
    [
        Step(),
        transforms.ElasticTransform(),
        transforms.Lambda(Step()),
        lambda image: Step()(image),
        lambda image, step=STEP: step(image),
        lambda image: [one for one in (image,)][0],  # noqa: C416, RUF015 - a loop
        functools.partial(with_a_loop),
        called_by_the_dozen,
        with_a_loop,
        with_another_loop,
        all_steps,
    ],
)
def test_long_ones(step: Any) -> None:
    assert not is_short(step)


def test_one_that_calls_a_closed_over_object() -> None:
    step, by_name, size = Step(), {"step": Step()}, (32, [16])
    several: list[Any] = [Step()]
    assert not is_short(lambda image: step(image))
    assert not is_short(lambda image: several[0](image))
    assert not is_short(lambda image: by_name["step"](image))
    assert is_short(lambda image: image.resize((size[0], size[1][0])))
    several[0] = several
    assert not is_short(lambda image: several[0](image))
