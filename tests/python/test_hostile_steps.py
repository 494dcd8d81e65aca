"""Python steps that misbehave: none makes the loader wait for ever, or deliver other pixels than plain Python's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from PIL import Image

import headrace
from headrace import Blobs, DataLoader
from headrace import transforms as T
from support import assert_same, pictures


def loader_of(*steps: Callable[[Any], Any], **options: Any) -> DataLoader:
    if options.get("num_workers"):
        options = {"timeout": 20} | options
    return DataLoader(Blobs(pictures(8), None, T.Compose(steps)), 4, seed=0, **options)


def third(image: Image.Image) -> bool:
    """Whether it is the third of the pictures, whose size no made-up image has."""
    return image.size == (104, 72)


def quits(image: Image.Image) -> Image.Image:
    if third(image):
        sys.exit("no more")
    return image


def test_a_step_that_exits_is_an_error_of_its_sample():
    with pytest.raises(headrace.SampleError, match=r"sample 2 .*quits: SystemExit\('no more'\)") as raised:
        list(loader_of(quits, T.Resize((20, 20)), T.ToTensor(), num_workers=2))
    assert not isinstance(raised.value, SystemExit)  # which would end the program without a word


def test_a_step_that_exits_in_the_callers_thread_exits():
    with pytest.raises(SystemExit, match="no more"):
        list(loader_of(quits, T.Resize((20, 20)), T.ToTensor()))


@pytest.mark.parametrize("size", [(1, 1), (1, 30), (30, 1), (30, 20)])
@pytest.mark.parametrize("channels", [1, 3])
def test_axes_of_length_one(size, channels):
    steps = [T.Resize(size), T.ToTensor(), lambda image: 2 * image[:channels]]
    loader = loader_of(*steps, num_workers=2, memory_format=torch.channels_last)
    assert assert_same(loader, list(loader.reference())) == 2
