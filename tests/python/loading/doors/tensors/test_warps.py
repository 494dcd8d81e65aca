"""Affine maps, rotations and resizes to the nearest pixel of deferred tensors: recorded, and equal to torchvision's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from door_files import opened_jpeg

from headrace._loading.doors.tensors import warp_functions
from headrace._loading.doors.tensors.deferred_tensor import Deferred, recording_of
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision.transforms import InterpolationMode  # noqa: E402 - after the shim
from torchvision.transforms import functional as v1  # noqa: E402
from torchvision.transforms.v2 import functional as f2  # noqa: E402

pytestmark = pytest.mark.usefixtures("open_doors")

MODULES: dict[str, Any] = {"v1": v1, "v2": f2}
SIZES = [(47, 61), (64, 64)]
NEAREST, BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR


def opened(size: tuple[int, int], mode: str) -> Any:
    return v1.pil_to_tensor(opened_jpeg(mode, size[::-1]))


def compare(function: Callable[..., Any], mode: str, *given: Any, is_recorded: bool = True, **named: Any) -> None:
    for size in SIZES:
        expected = function(opened(size, mode), *given, **named)
        with deferred_here(ImageCounts()):
            made = function(opened(size, mode), *given, **named)
            assert (isinstance(made, Deferred) and recording_of(made) is not None) == is_recorded
        assert made.stride() == expected.stride() and torch.equal(made, expected)


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("filter", [NEAREST, BILINEAR])
@pytest.mark.parametrize("name", MODULES)
def test_maps_are_equal(name: str, filter: InterpolationMode, mode: str) -> None:
    module = MODULES[name]
    for fill in (None, 0, 7.5, [3, 250, 0][: 3 if mode == "RGB" else 1]):
        compare(module.affine, mode, 20, [3, -2], 1.1, [5.0, 9.0], filter, fill)
        compare(module.affine, mode, -75.5, [0, 0], 0.6, [0.0, 0.0], filter, fill, [4, 30])
        compare(module.rotate, mode, 33, filter, False, [2, 3], fill)
    compare(lambda t: f2.normalize(f2.to_dtype(module.rotate(t, -9), torch.float32), [0.5], [0.5]), mode)


@pytest.mark.parametrize("name", MODULES)
def test_turns_that_move_pixels(name: str) -> None:
    module = MODULES[name]
    for angle in (0, 180, 360, -180):
        compare(module.rotate, "RGB", angle)
    compare(module.rotate, "RGB", 30, expand=True, is_recorded=False)


@pytest.mark.parametrize("filter", [NEAREST, InterpolationMode.NEAREST_EXACT])
@pytest.mark.parametrize("name", MODULES)
def test_nearest_pixels_are_equal(name: str, filter: InterpolationMode) -> None:
    for size in ([33, 70], [100, 9], [40, 40], [2, 2], [131, 61], [63, 65]):
        for mode in ("RGB", "L"):
            compare(MODULES[name].resize, mode, size, filter)


def test_only_some_sizes_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs milliseconds: a program whose images have all sizes is torch's from some number on."""
    monkeypatch.setattr(warp_functions, "_roundings", {(1, number): None for number in range(99)})
    compare(f2.rotate, "RGB", 33, is_recorded=False)
