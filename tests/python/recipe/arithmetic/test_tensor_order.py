"""Pipelines in torchvision's tensor order: a conversion first, then geometry on the uint8 tensor.

v2 resizes by torch's kernels for bytes, v1 by those for floats, and so does v2 on some processors.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import interpolate

from against_torchvision import assert_equal_on
from headrace import DataLoader, EncodedImages, ImageFiles
from headrace._base.native import core
from headrace._lowering import LoweringError, lower
from headrace._recipe.arithmetic import tensor_rule, torch_resize_blur
from support import MEAN, PHOTOS, STD, WATCHDOG_S, assert_same, pictures
from torchvision_feed import Feeder

pytestmark = pytest.mark.slow


@pytest.fixture
def v2(torchvision: ModuleType) -> ModuleType:
    return torchvision.transforms.v2


def recipes(v2: ModuleType) -> dict[str, list]:
    bicubic = v2.InterpolationMode.BICUBIC
    tensor = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    return {
        "train": [v2.ToImage(), v2.RandomResizedCrop(48, antialias=True), v2.RandomHorizontalFlip(), *tensor],
        "evaluation": [v2.ToImage(), v2.Resize(64), v2.CenterCrop(48), *tensor],
        "bicubic": [v2.PILToTensor(), v2.RandomResizedCrop((31, 70), interpolation=bicubic), v2.ToPureTensor()],
        "enlarged": [v2.ToImage(), v2.Resize((150, 220), bicubic), v2.RandomVerticalFlip(), *tensor],
        "longer edge": [v2.ToImage(), v2.Resize(None, max_size=50), v2.CenterCrop(60), *tensor],
        "padded": [v2.ToImage(), v2.Resize(40), v2.RandomCrop(44, padding=5, fill=(1, 2, 3)), *tensor],
        "edges": [v2.ToImage(), v2.RandomCrop(50, 30, True, 0, "edge"), *tensor],
        "gray": [v2.Grayscale(1), v2.ToImage(), v2.RandomResizedCrop(33), v2.ToDtype(torch.float32, scale=True)],
        "half image, half tensor": [v2.Resize(80), v2.ToImage(), v2.Resize((40, 41)), v2.CenterCrop(32), *tensor],
    } | {f"v1, {name}": steps for name, steps in first_recipes(sys.modules["torchvision.transforms"]).items()}


def first_recipes(v1: ModuleType) -> dict[str, list]:
    bicubic = v1.InterpolationMode.BICUBIC
    tensor = [v1.ConvertImageDtype(torch.float32), v1.Normalize(MEAN, STD)]
    return {
        "train": [v1.PILToTensor(), v1.RandomResizedCrop(48, antialias=True), v1.RandomHorizontalFlip(), *tensor],
        "evaluation": [v1.PILToTensor(), v1.Resize(64), v1.CenterCrop(48), *tensor],
        "bicubic": [v1.PILToTensor(), v1.RandomResizedCrop((31, 70), interpolation=bicubic)],
        "enlarged": [v1.PILToTensor(), v1.Resize((150, 220), bicubic), v1.RandomVerticalFlip(), *tensor],
        "gray": [v1.Grayscale(1), v1.PILToTensor(), v1.RandomResizedCrop(33), v1.ConvertImageDtype(torch.float32)],
        "cropped behind it": [v1.Resize(80), v1.PILToTensor(), v1.Resize((40, 41)), v1.CenterCrop(32), *tensor],
        "with a policy": [v1.PILToTensor(), v1.RandomResizedCrop(48), v1.RandAugment(), *tensor, v1.RandomErasing(0.5)],
    }


NAMES = [
    *("train", "evaluation", "bicubic", "enlarged", "longer edge", "padded", "edges", "gray"),
    *("half image, half tensor", "v1, train", "v1, evaluation", "v1, bicubic", "v1, enlarged", "v1, gray"),
    "v1, cropped behind it",
]


def twin_of_resize(mode: str, in_bytes: bool) -> str:
    """The native kind of torch's resize; skips where there is none."""
    kind = tensor_rule.kind_of_resize(mode, in_bytes)
    if kind is None:
        pytest.skip("torch resizes tensors by another arithmetic on this processor, so they are left to it")
    return kind


def skip_without_twin(name: str) -> None:
    for mode in ("bilinear", "bicubic"):
        twin_of_resize(mode, not name.startswith("v1") and torch_resize_blur.resizes_bytes(mode))


@pytest.mark.parametrize("name", NAMES)
def test_lowered_and_equal_to_torchvision(v2: ModuleType, feeder: Feeder, images: list[Image.Image], name: str) -> None:
    skip_without_twin(name)
    if name == "longer edge" and not torch_resize_blur.has_kernel_for_bytes():
        pytest.skip("a width of 1, which torch makes in another way on this processor, is Python's")
    transform = v2.Compose(recipes(v2)[name])
    assert not lower(transform).calls
    resizable = [image for image in images if max(image.size) / min(image.size) < 30]
    assert_equal_on(resizable, feeder, transform, 4)


@pytest.mark.parametrize("name", [*(name for name in NAMES if name != "longer edge"), "v1, with a policy"])
@pytest.mark.parametrize("device", [None, "emulated"])
def test_batches_equal_the_oracle(v2: ModuleType, files: list[Path], name: str, device: str | None) -> None:
    if device:
        pytest.importorskip("headrace._gpu")
    # Some files are slivers, which a limit to the longer edge makes empty.
    small = [path for path in files if path.stat().st_size < 200_000 and "jpegdec" not in path.name][::4]
    loader = DataLoader(
        ImageFiles(small, None, v2.Compose(recipes(v2)[name])), 16, seed=4, num_workers=2, device=device
    )
    assert_same(loader, list(loader.reference()))


@pytest.mark.parametrize("isa", core.isas())
@pytest.mark.parametrize("kind", ["bytes", "floats"])
def test_every_size_equals_torchs_kernel(isa: str, kind: str) -> None:
    random = np.random.default_rng(2)
    lut = np.arange(256, dtype=np.uint8)[None].repeat(3, 0).copy()
    for number in range(400):
        height, width = (int(edge) for edge in random.integers(1, 300, 2))
        # To one column, torch repeats its first row, except in its vectors of bytes.
        narrowest = 1 if kind == "bytes" and torch_resize_blur.has_kernel_for_bytes() else 2
        out = (int(random.integers(1, 260)), int(random.integers(narrowest, 260)))
        # Noise, and black and white: the latter finds clipping.
        pixels = random.integers(0, 256, (height, width, 4), dtype=np.uint8)
        pixels = pixels if number % 2 else (pixels // 128 * 255).astype(np.uint8)
        tensor = torch.from_numpy(pixels[..., :3].copy()).permute(2, 0, 1)[None]
        for mode, filter in (("bilinear", 6), ("bicubic", 7)):
            twin = twin_of_resize(mode, kind == "bytes")
            if kind == "bytes":
                expected = interpolate(tensor, out, mode=mode, antialias=True)[0]
            else:
                floats = interpolate(tensor.float(), out, mode=mode, align_corners=False, antialias=True)[0]
                expected = floats.clamp(0, 255).round().to(torch.uint8)
                filter += 4 if twin == "fused" else 2
                made = core.float_resize(pixels, *out, mode == "bicubic", twin == "fused", isa)
                assert np.array_equal(made[..., :3], floats.permute(1, 2, 0).numpy()), (height, width, out, mode)
            made = np.empty((3, *out), np.uint8)
            stage = {"box": (0, 0, width, height), "resize": (out[1], out[0]), "filter": filter}
            plan = {"stages": [stage], "last": {"box": (0, 0, out[1], out[0])}}
            core.fuse(pixels, plan, lut, made, isa=isa)
            assert np.array_equal(made, expected.numpy()), (height, width, out, mode)


@pytest.mark.parametrize("capability", ["default", "avx2"])
def test_every_capability_of_torch(capability: str) -> None:
    """The tests above, with torch's kernels of another instruction set; one that the processor lacks is lowered."""
    skip_without_twin("v1")
    if capability == torch.backends.cpu.get_cpu_capability().lower():
        pytest.skip("the tests above run with these kernels")
    chosen = "test_lowered_and_equal or test_every_size"
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", chosen],
        env={**os.environ, "ATEN_CPU_CAPABILITY": capability},
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
    )
    assert ran.returncode == 0, ran.stdout
    assert " passed" in ran.stdout and ran.stdout.count("SKIPPED") <= 1, ran.stdout


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (lambda v2: [v2.ToImage(), v2.Resize((9, 9), antialias=False)], "native twin; use antialias=True"),
        (
            lambda v2: [v2.ToImage(), v2.Resize((9, 9), v2.InterpolationMode.NEAREST)],
            "native twin; use bilinear or bicubic",
        ),
        (lambda v2: [v2.ToImage(), v2.RandomCrop(9, 4, padding_mode="reflect")], "mirrors a tensor's border"),
        (lambda v2: [v2.ToImage(), v2.RandomCrop(9, 4, fill=0.5)], "fill depends on the class or is not of bytes"),
        (lambda v2: [v2.ToImage(), v2.Grayscale(3), v2.CenterCrop(9)], "put it before ToImage"),
        (lambda v2: [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Resize((9, 9))], "put it before ToImage"),
        (
            lambda v2: [v2.ToImage(), v2.RandomResizedCrop(9, ratio=(0.1, 0.2))],
            "crop an empty box from a very thin image",
        ),
    ],
)
def test_what_torch_does_otherwise_is_left_to_python(v2: ModuleType, steps: Callable[..., Any], words: str) -> None:
    transform = v2.Compose([v2.CenterCrop(40), *steps(v2)])
    with pytest.raises(LoweringError, match=words):
        lower(transform, native_only=True)
    recipe = lower(transform)
    assert recipe.calls
    blobs = ImageFiles(sorted(PHOTOS.glob("*.jpg"))[:6], None, transform)
    loader = DataLoader(blobs, 3, seed=1, num_workers=2)
    assert_same(loader, list(loader.reference()))
    if not any("Random" in type(step).__name__ for step in transform.transforms):
        expected = transform(Image.open(blobs.location(0)).convert("RGB")).as_subclass(torch.Tensor)
        assert torch.equal(next(iter(loader))[0], expected)


def test_what_v1_does_otherwise_is_left_to_python(torchvision: ModuleType) -> None:
    v1 = torchvision.transforms
    for steps in (
        [v1.Resize((20, 20), antialias=False)],
        [v1.Resize((20, 1))],
        [v1.Resize((20, 20)), v1.RandomCrop(18, 2)],
        [v1.ConvertImageDtype(torch.float32), v1.Resize((20, 20))],
    ):
        transform = v1.Compose([v1.PILToTensor(), *steps])
        assert len(lower(transform).calls) == 1
        loader = DataLoader(EncodedImages(pictures(), None, transform), 8, num_workers=2)
        assert_same(loader, list(loader.reference()))


def test_a_width_of_one(torchvision: ModuleType) -> None:
    v1 = torchvision.transforms
    for resize in (v1.Resize((20, 1)), v1.Resize(1), v1.Resize(20, max_size=90), v1.RandomResizedCrop((9, 1))):
        with pytest.raises(LoweringError, match="a width of 1, where torch's kernel repeats the first row"):
            lower(v1.Compose([v1.PILToTensor(), resize, v1.CenterCrop(9)]), native_only=True)
    lower(v1.Compose([v1.PILToTensor(), v1.Resize((1, 20))]), native_only=True)


def test_another_arithmetic_is_pythons(torchvision: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    v1 = torchvision.transforms
    monkeypatch.setattr(tensor_rule, "kind_of_resize", lambda mode, in_bytes: None)
    with pytest.raises(LoweringError, match="by another arithmetic than the native code's"):
        lower(v1.Compose([v1.PILToTensor(), v1.Resize((9, 9))]), native_only=True)
