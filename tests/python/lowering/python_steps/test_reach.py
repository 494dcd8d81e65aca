"""What the analysis of a step's code finds: generators of the process, shared objects, metadata."""

from __future__ import annotations

import functools
import os
import random
import threading
from collections.abc import Callable
from random import uniform
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from headrace._lowering.python_steps.bytecode_analysis import Reach
from support import pictures

MEAN = [0.4, 0.5, 0.6]
SEEN: list[Any] = []
OWN = random.Random(3)
counter = 0


class Keeps:
    """Stores what it drew in an attribute."""

    def __call__(self, image: Any) -> Any:
        self.level = torch.rand(())
        return image


class KeepsNothing:
    scale = 2

    def __call__(self, image: Any) -> Any:
        return image * self.scale


KEEPS, KEEPS_NOTHING = Keeps(), KeepsNothing()


class Helper:
    """Draws in a method that only some calls reach."""

    def __call__(self, image: Any) -> Any:
        return self.turned(image) if image.width > 10_000 else image

    def turned(self, image: Any) -> Any:
        return image.rotate(random.uniform(0, 90))


class OnlyMadeAtRandom:
    def __init__(self) -> None:
        self.angle = random.uniform(0, 90)

    def __call__(self, image: Any) -> Any:
        return image.rotate(self.angle)


def counts(image: Any) -> Any:
    global counter
    counter += 1
    return image


def imports(image: Any) -> Any:
    import random as generator

    return image.rotate(generator.uniform(0, 9))


def indirect(image: Any) -> Any:
    return imports(image)


def remembers(image: Any) -> Any:
    SEEN.append(image)
    return image


def of_closure() -> Any:
    calls = 0

    def step(image: Any) -> Any:
        nonlocal calls
        calls += 1
        return image

    return step


@pytest.mark.parametrize(
    ("step", "draws", "shares"),
    [
        (lambda image: image, False, False),
        (lambda image: image * torch.rand(()), False, False),
        (lambda image: image - torch.tensor(MEAN)[:, None, None], False, False),
        (lambda image: KEEPS_NOTHING(image), False, False),
        (KEEPS, False, False),  # each thread has a copy
        (lambda image: KEEPS(image), False, True),
        (functools.partial(KEEPS), False, False),
        (lambda image: image.rotate(uniform(0, 9)), True, False),
        (lambda image: image.rotate(OWN.random()), True, False),
        (lambda image: np.random.rand() * image, True, False),  # noqa: NPY002
        (lambda image: np.array(image) <= 3, False, False),
        (lambda image: Image.effect_noise(image.size, 3), True, False),
        (lambda image: torch.nn.functional.dropout(image), True, False),
        (torch.nn.Sequential(torch.nn.Dropout(0.1)), True, False),
        (lambda image: image[: os.urandom(1)[0]], True, False),
        (lambda image: eval("image"), True, False),
        (Helper(), True, False),
        (OnlyMadeAtRandom(), False, False),
        (counts, False, True),
        (imports, True, False),
        (indirect, True, False),
        (remembers, False, True),
        (of_closure(), False, True),
        (ImageOps.invert, False, False),
        (np.array, False, False),
    ],
)
def test_what_a_step_may_do(step: Any, draws: bool, shares: bool) -> None:
    assert (Reach(step).draws, Reach(step).shares) == (draws, shares)


def test_policies_of_torchvision_run_in_threads(torchvision: ModuleType) -> None:
    v1, v2 = torchvision.transforms, torchvision.transforms.v2
    for step in (v1.RandAugment(), v2.RandAugment(), v2.TrivialAugmentWide(), v1.AutoAugment(), v2.AugMix()):
        assert not (Reach(step).draws or Reach(step).shares or Reach(step).reads_metadata)
    assert Reach(v1.RandomOrder([v1.RandAugment()])).draws  # by the module random
    assert Reach(v1.RandomApply([v1.Lambda(imports)], p=0.0)).draws


@pytest.mark.parametrize(
    ("step", "looks"),
    [
        (lambda image: image.info.get("icc_profile"), True),
        (lambda image: image.getexif(), True),
        (lambda image: getattr(image, "info", {}), True),
        (lambda image: ImageOps.exif_transpose(image), True),
        (ImageOps.exif_transpose, True),
        (lambda image: image.rotate(90), False),
    ],
)
def test_who_may_look_at_metadata(step: Callable[..., Any], looks: bool) -> None:
    assert Reach(step).reads_metadata is looks


def test_a_changed_value_outside_shows() -> None:
    size = 64

    def step(image: Any) -> Any:
        return image.resize((size, size))

    before = Reach(step).values
    size = 96
    assert Reach(step).values != before
    means = torch.zeros(3)
    shifted = lambda image: image - means  # noqa: E731
    before = Reach(shifted).values
    means[1] = 1e-7
    assert Reach(shifted).values != before


def test_what_reaches_itself_or_very_much_ends() -> None:
    class Ring:
        def __init__(self) -> None:
            self.ring = self
            self.lock = threading.Lock()

        def __call__(self, image: Any) -> Any:
            return image

    assert not Reach(Ring()).draws and not Reach(Ring()).shares
    assert Reach(functools.partial(lambda *values: values, *(Ring() for _ in range(4000)))).draws


@pytest.mark.parametrize("step", [lambda image: KEEPS(image), remembers])
def test_what_shares_an_object_that_it_changes_is_torchs(step: Callable[..., Any]) -> None:
    """A trial would change the object, and threads would see each other's values in it."""
    SEEN.clear()
    dataset = EncodedImages(pictures(4), None, T.Compose([step, T.Resize((4, 4)), T.ToTensor()]))
    loader = DataLoader(dataset, 2)
    assert not loader.native and SEEN == []
    assert "may change an object that it shares with other code" in str(loader.explain())
