"""Colours of deferred tensors: recorded, and equal to torchvision's for images of many sizes and orders in memory."""

from __future__ import annotations

import functools
import io
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headrace._loading.doors.tensors.colour_functions import COLOURS
from headrace._loading.doors.tensors.deferred_tensor import Deferred, recording_of
from headrace._recipe.arithmetic import tensor_rule
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision import tv_tensors  # noqa: E402 - after the shim
from torchvision.transforms import functional as v1  # noqa: E402
from torchvision.transforms.v2 import functional as f2  # noqa: E402

pytestmark = pytest.mark.usefixtures("open_doors")

FUNCTIONS = [(name, version) for name in COLOURS for version in (1, 2) if (name, version) != ("permute_channels", 1)]
SIZES = [(40, 31), (64, 64), (17, 90), (224, 224)]


def photo(size: tuple[int, int], mode: str) -> bytes:
    """A JPEG of (height, width)."""
    values = np.random.default_rng(size[0]).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    made = io.BytesIO()
    image = Image.fromarray(values).resize(size[::-1], Image.Resampling.BICUBIC).convert(mode)
    image.save(made, "JPEG", quality=90)
    return made.getvalue()


def opened(data: bytes, planar: bool) -> Any:
    """A tensor in Pillow's order of values, or one whose channels follow one another."""
    tensor = v1.pil_to_tensor(Image.open(io.BytesIO(data)))
    return f2.resize(tensor, [tensor.shape[1] - 3, tensor.shape[2]], antialias=True) if planar else tensor


@pytest.mark.parametrize(("name", "version"), FUNCTIONS)
def test_colours_are_recorded_and_equal(name: str, version: int) -> None:
    function, random = getattr(v1 if version == 1 else f2, name), np.random.default_rng(2)
    recorded = 0
    for size in SIZES:
        for mode in ("RGB", "L"):
            data = photo(size, mode)
            for planar in (False, True):
                for value in (*COLOURS[name].compared, float(random.uniform(0, 0.5))):
                    given = () if None in COLOURS[name].compared else (value,)
                    try:
                        expected = function(opened(data, planar), *given)
                    except (TypeError, ValueError, IndexError, RuntimeError):
                        continue
                    with deferred_here(ImageCounts()):
                        made = function(opened(data, planar), *given)
                    recorded += isinstance(made, Deferred) and recording_of(made) is not None
                    assert made.stride() == expected.stride() and torch.equal(made, expected), (size, mode, given)
    assert recorded >= 8


def test_the_image_of_a_chain_is_made_in_one_pass() -> None:
    data = photo((90, 120), "RGB")
    counts = ImageCounts()
    with deferred_here(counts):
        image = tv_tensors.Image(v1.pil_to_tensor(Image.open(io.BytesIO(data))))
        image = f2.resized_crop(image, 3, 4, 70, 80, [64, 64], antialias=True)
        image = f2.adjust_hue(f2.adjust_contrast(f2.adjust_brightness(image, 1.2), 0.8), 0.1)
        image = f2.normalize(f2.to_dtype(f2.horizontal_flip(image), torch.float32, scale=True), [0.5] * 3, [0.2] * 3)
        assert recording_of(image) is not None and counts.total == 0
        assert image.mean() < 9
    assert counts.native == counts.total == 1


def test_an_erased_part_is_written_to_the_finished_values() -> None:
    data, counts = photo((90, 120), "RGB"), ImageCounts()

    def made() -> Any:
        torch.manual_seed(3)
        image = f2.to_dtype(v1.pil_to_tensor(Image.open(io.BytesIO(data))), torch.float32, scale=True)
        noise = torch.randn(3, 20, 30)
        erased = f2.erase(image, 10, 20, 20, 30, noise)
        noise.zero_()  # the program's own from here on
        return erased

    expected = made()
    with deferred_here(counts):
        ours = made()
    assert recording_of(ours) is not None and counts.total == 0
    assert torch.equal(ours, expected) and counts.native == 1


def made_by(function: Any, data: bytes, *, planar: bool, threads: int) -> tuple[Any, bool]:
    """Returns what a function makes with this many of torch's threads, and whether it was recorded."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        made = function(opened(data, planar))
        return made, isinstance(made, Deferred) and recording_of(made) is not None
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("size", [(304, 260), (480, 640), (375, 500)])
def test_sums_of_large_images_are_rounded_as_torch_rounds_them(size: tuple[int, int]) -> None:
    if tensor_rule.find_lanes_of_sums() is None:
        pytest.skip("this torch adds in another order")
    data, recorded = photo(size, "RGB"), []
    for function in (v1.adjust_contrast, f2.adjust_contrast):
        for factor in (0.0, 0.55, 1.7):
            call = functools.partial(_contrast, function, factor)
            expected, _ = made_by(call, data, planar=False, threads=1)
            with deferred_here(ImageCounts()):
                made, is_recorded = made_by(call, data, planar=False, threads=1)
            recorded.append(is_recorded)
            assert torch.equal(made, expected), (function, factor)
    assert any(recorded)


def _contrast(function: Any, factor: float, image: Any) -> Any:
    return function(image, factor)


def test_torch_sums_up_large_images_itself_on_several_threads() -> None:
    data, call = photo((300, 260), "RGB"), functools.partial(_contrast, f2.adjust_contrast, 0.5)
    expected, _ = made_by(call, data, planar=False, threads=2)
    with deferred_here(ImageCounts()):
        made, is_recorded = made_by(call, data, planar=False, threads=2)
    assert not is_recorded and torch.equal(made, expected)


@pytest.mark.parametrize("version", [1, 2])
def test_gray_tensors_have_one_channel_in_memory(version: int) -> None:
    gray, counts = (v1 if version == 1 else f2).rgb_to_grayscale, ImageCounts()
    steps: list[Any] = [
        lambda t: gray(t, 3),
        lambda t: gray(t, 1),
        lambda t: f2.crop(gray(t, 3), 2, 3, 10, 11),
        lambda t: f2.normalize(f2.to_dtype(gray(t, 3), torch.float32, scale=True), [0.1, 0.2, 0.3], [0.4, 0.5, 0.6]),
        lambda t: f2.pad(f2.horizontal_flip(gray(t, 3)), [2], fill=[1, 2, 3]),
        lambda t: gray(t, 3).unsqueeze(0),
    ]
    for size in SIZES:
        for planar in (False, True):
            for step in steps:
                expected = step(opened(photo(size, "RGB"), planar))
                with deferred_here(counts):
                    made = step(opened(photo(size, "RGB"), planar))
                    assert recording_of(made) is not None
                assert made.stride() == expected.stride() and torch.equal(made, expected)
    assert counts.native == counts.total
