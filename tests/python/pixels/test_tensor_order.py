"""Pipelines in torchvision v2's tensor order: ToImage first, then geometry on the uint8 tensor, by torch's kernels."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
import torch
from PIL import Image

from against_torchvision import assert_equal_on
from headrace import Blobs, DataLoader, ImageFiles
from headrace.base.native import core
from headrace.lowering import LoweringError, lower
from support import MEAN, PHOTOS, STD, assert_same, pictures

pytestmark = pytest.mark.slow

native_bytes = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
    reason="torchvision resizes byte tensors through floats on this processor, so they are left to it",
)


@pytest.fixture
def v2(torchvision) -> ModuleType:
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
    }


NAMES = [
    *("train", "evaluation", "bicubic", "enlarged", "longer edge", "padded", "edges", "gray"),
    "half image, half tensor",
]


@native_bytes
@pytest.mark.parametrize("name", NAMES)
def test_lowered_and_equal_to_torchvision(v2, feeder, images, name):
    transform = v2.Compose(recipes(v2)[name])
    assert not lower(transform).calls
    resizable = [image for image in images if max(image.size) / min(image.size) < 30]
    assert_equal_on(resizable, feeder, transform, 4)


@native_bytes
@pytest.mark.parametrize("name", [name for name in NAMES if name != "longer edge"])  # some files are slivers
@pytest.mark.parametrize("device", [None, "emulated"])
def test_batches_equal_the_oracle(v2, files, name, device):
    if device:
        pytest.importorskip("headrace._gpu")
    small = [path for path in files if path.stat().st_size < 200_000 and "jpegdec" not in path.name][::4]
    loader = DataLoader(
        ImageFiles(small, None, v2.Compose(recipes(v2)[name])), 16, seed=4, num_workers=2, device=device
    )
    assert_same(loader, list(loader.reference()))


@native_bytes
@pytest.mark.parametrize("isa", core.isas())
def test_every_size_equals_torchs_kernel(isa):
    random = np.random.default_rng(2)
    lut = np.arange(256, dtype=np.uint8)[None].repeat(3, 0).copy()
    for number in range(400):
        height, width = (int(edge) for edge in random.integers(1, 300, 2))
        out = tuple(int(edge) for edge in random.integers(1, 260, 2))
        # Noise, and black and white: the latter finds clipping.
        pixels = random.integers(0, 256, (height, width, 4), dtype=np.uint8)
        pixels = pixels if number % 2 else (pixels // 128 * 255).astype(np.uint8)
        tensor = torch.from_numpy(pixels[..., :3].copy()).permute(2, 0, 1)
        for mode, filter in (("bilinear", 6), ("bicubic", 7)):
            expected = torch.nn.functional.interpolate(tensor[None], out, mode=mode, antialias=True)[0]
            made = np.empty((3, *out), np.uint8)
            stage = {"box": (0, 0, width, height), "resize": (out[1], out[0]), "filter": filter}
            plan = {"stages": [stage], "last": {"box": (0, 0, out[1], out[0])}}
            core.fuse(pixels, plan, lut, made, isa=isa)
            assert np.array_equal(made, expected.numpy()), (height, width, out, mode)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (lambda v2: [v2.ToImage(), v2.Resize((9, 9), antialias=False)], "use antialias=True with bilinear or bicubic"),
        (lambda v2: [v2.ToImage(), v2.Resize((9, 9), v2.InterpolationMode.NEAREST)], "antialias=True with bilinear"),
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
def test_what_torch_does_otherwise_is_left_to_python(v2, steps, words):
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


def test_v1_on_tensors_is_left_to_python(torchvision):
    v1 = torchvision.transforms
    steps = [v1.PILToTensor(), v1.Resize((20, 20)), v1.ConvertImageDtype(torch.float32)]
    recipe = lower(v1.Compose(steps))
    assert len(recipe.calls) == 1

    loader = DataLoader(Blobs(pictures(), None, v1.Compose(steps)), 8, num_workers=2)
    assert_same(loader, list(loader.reference()))
