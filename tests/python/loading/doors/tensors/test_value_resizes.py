"""Resizes of floats that bytes stand for equal torch's, for all sizes, orders in memory and instruction sets."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import torch
from tensor_chains import see
from torch.nn.functional import interpolate

from headrace._base.native import core
from headrace._loading.doors.tensors import pixel_snapshots, value_resizes
from headrace._loading.doors.tensors.deferred_tensor import recording_of
from headrace._recipe.arithmetic import tensor_rule
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision.transforms import functional as v1  # noqa: E402 - after the shim
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as f2  # noqa: E402

#: More of them, outside of the daily run: HEADRACE_CHAINS=20000.
SIZES = int(os.environ.get("HEADRACE_CHAINS", "400")) // 10


@pytest.mark.parametrize("isa", core.isas())
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_every_size_equals_torchs_kernel(isa: str, mode: str) -> None:
    kind = tensor_rule.kind_of_resize(mode, in_bytes=False)
    if kind is None:
        pytest.skip("torch resizes floats by another arithmetic on this processor, so they are left to it")
    random = np.random.default_rng(11)
    for number in range(SIZES):
        height, width = (int(edge) for edge in random.integers(2, 400, 2))
        out = int(random.integers(2, 260)), int(random.integers(2, 260))
        if number % 7 == 0:  # one edge stays
            out = (height, out[1]) if number % 2 else (out[0], width)
        table = random.normal(0, 10.0 ** random.integers(-3, 4), (3, 256)).astype(np.float32)
        pixels = random.integers(0, 256, (height, width, 3 + number % 2), dtype=np.uint8)
        channels = [torch.from_numpy(table[c][pixels[..., c]]) for c in range(3)]
        values = torch.stack(channels)[None] if number % 3 else torch.stack(channels, -1).permute(2, 0, 1)[None]
        expected = interpolate(values, out, mode=mode, antialias=True)[0]
        for layout, shape in (("planar", (3, *out)), ("channels_last", (*out, 3))):
            made = np.full(shape, np.nan, np.float32)
            core.resize_values(pixels, table, mode == "bicubic", kind == "fused", made, layout, isa)
            planar = made if layout == "planar" else made.transpose(2, 0, 1)
            assert np.array_equal(planar, expected.numpy()), (height, width, out, layout)


def test_arguments_that_do_not_fit() -> None:
    pixels, table = np.zeros((5, 6, 3), np.uint8), np.zeros((3, 256), np.float32)
    out = np.zeros((3, 4, 4), np.float32)
    for wrong, message in (
        ((pixels[..., :2], table, False, False, out), "image"),
        ((pixels[..., 0], table, False, False, out), "image"),
        ((pixels[:0], table, False, False, out), "sizes"),
        ((pixels, table[:2], False, False, out), "map"),
        ((pixels, table[:, :9], False, False, out), "map"),
        ((pixels, table, False, False, out[:2]), "out"),
        ((pixels, table, False, False, out[0]), "out"),
        ((pixels, table, False, False, out[:, :0]), "sizes"),
    ):
        with pytest.raises(ValueError, match=message):
            core.resize_values(*wrong)
    for other in (table.astype(np.float64), table.astype(np.int32)):
        with pytest.raises(TypeError):
            core.resize_values(pixels, other, False, False, out)


def _interpolate(values: Any, **options: Any) -> Any:
    return interpolate(values, **{"mode": "bilinear", "antialias": True, **options})


#: (what a program makes of an array, whether the resize is native)
CALLS: dict[str, tuple[Any, bool]] = {
    "to_dtype, resize": (lambda a: f2.resize(f2.to_dtype(f2.to_image(a), torch.float32, scale=True), [33, 20]), True),
    "to_tensor, v1": (lambda a: v1.resize(v1.to_tensor(a), [20, 33]), True),
    "normalised": (lambda a: f2.resize(v1.normalize(v1.to_tensor(a), [0.5] * 3, [0.1, 0.2, 0.3]), [20]), True),
    "cropped": (lambda a: f2.resized_crop(v1.to_tensor(a), 3, 4, 30, 31, [40, 20]), True),
    "bicubic": (lambda a: f2.resize(v1.to_tensor(a), [25, 26], v2.InterpolationMode.BICUBIC), True),
    "to a longer edge": (lambda a: f2.resize(v1.to_tensor(a), None, max_size=30), True),
    "numbers": (lambda a: f2.resize(f2.to_image(a).float(), [20, 21]), True),
    "interpolate": (lambda a: _interpolate(f2.to_image(a).float().div(255)[None], size=(20, 30)), True),
    "interpolate, one number": (lambda a: _interpolate(v1.to_tensor(a)[None], size=25), True),
    "interpolate, bicubic": (lambda a: _interpolate(v1.to_tensor(a)[None], size=[25, 9], mode="bicubic"), True),
    "part, interpolate": (lambda a: _interpolate(v1.to_tensor(a)[:, 2:30, 5:40][None], size=(20, 30)), True),
    "flipped, interpolate": (lambda a: _interpolate(v1.to_tensor(a).flip(-1)[None], size=(20, 30)), True),
    "by a factor": (lambda a: _interpolate(v1.to_tensor(a)[None], scale_factor=0.5), False),
    "corners": (lambda a: _interpolate(v1.to_tensor(a)[None], size=(20, 30), align_corners=True), False),
    "not antialiased": (lambda a: _interpolate(v1.to_tensor(a)[None], size=(20, 30), antialias=False), False),
    "nearest": (lambda a: interpolate(v1.to_tensor(a)[None], size=(20, 30)), False),
    "to one row": (lambda a: _interpolate(v1.to_tensor(a)[None], size=(1, 30)), False),
    "the same size": (lambda a: _interpolate(v1.to_tensor(a)[None], size=a.shape[:2]), False),
    "doubles": (lambda a: f2.resize(v1.to_tensor(a).double(), [20, 30]), False),
    "halves": (lambda a: f2.resize(v1.to_tensor(a).half(), [20, 30]), False),
    "no batch": (lambda a: _interpolate(v1.to_tensor(a), size=(20, 30)), False),
    "nothing asked": (lambda a: _interpolate(v1.to_tensor(a)[None]), False),
    "no size": (lambda a: _interpolate(v1.to_tensor(a)[None], size=(0, 30)), False),
    "erased": (lambda a: f2.resize(f2.erase(v1.to_tensor(a), 1, 2, 3, 4, torch.zeros(1)), [9, 20]), False),
}


@pytest.mark.usefixtures("open_doors")
@pytest.mark.parametrize("name", CALLS)
def test_calls_are_equal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixel_snapshots, "LEAST", 1)
    call, is_native = CALLS[name]
    array = np.random.default_rng(5).integers(0, 256, (47, 61, 3), np.uint8)
    outcomes: list[Any] = []
    made: list[Any] = []
    plain = value_resizes._make

    def make(*arguments: Any) -> Any:
        made.append(plain(*arguments))
        return made[-1]

    monkeypatch.setattr(value_resizes, "_make", make)

    def observe() -> Any:
        try:
            result = call(array)
        except Exception as error:  # compared
            return type(error), str(error)
        return see(result), type(result)

    outcomes.append(observe())
    with deferred_here(ImageCounts()):
        outcomes.append(observe())
    assert outcomes[0] == outcomes[1]
    if tensor_rule.kind_of_resize("bilinear", in_bytes=False) is not None:
        assert (bool(made) and made[0] is not None) is is_native


@pytest.mark.usefixtures("open_doors")
def test_arithmetic_of_images_gives_tensors_as_torchvision_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixel_snapshots, "LEAST", 1)
    array = np.random.default_rng(5).integers(0, 256, (47, 61, 3), np.uint8)
    steps: list[Any] = [
        lambda t: t.float(),
        lambda t: t / 255,
        lambda t: 2 * t,
        lambda t: t.float().float(),
        lambda t: t.to(torch.float32),
        lambda t: t.sub(1.5),
        lambda t: t.add(t),
    ]
    for returned in ("Tensor", "TVTensor"):
        for number, step in enumerate(steps):
            with torchvision.tv_tensors.set_return_type(returned):
                expected = step(f2.to_image(array))
                with deferred_here(ImageCounts()):
                    found = step(f2.to_image(array))
                    is_recorded = recording_of(found) is not None
            assert see(found) == see(expected) and type(found) is type(expected)
            assert is_recorded is (returned == "Tensor" and number not in (4, 6))
