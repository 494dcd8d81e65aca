"""Direct calls of headrace.transforms equal torchvision v2's under the same seed, and need no torchvision."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import headrace.transforms as H

CALLS = [
    "Resize(20)",
    "Resize([20])",
    "Resize((20, 30), interpolation=3)",
    "Resize(20, 'lanczos', max_size=25)",
    "Resize(None, max_size=50)",
    "Resize(20, InterpolationMode.NEAREST_EXACT)",
    "CenterCrop(40)",
    "CenterCrop((30, 70))",
    "RandomCrop(1)",
    "RandomCrop((40, 50), padding=30)",
    "RandomCrop(40, [30, 20], fill=(1, 2, 3))",
    "RandomCrop(90, [1, 2, 3, 4], True, 7, 'edge')",
    "RandomCrop(90, None, True, padding_mode='reflect')",
    "RandomCrop(90, pad_if_needed=True, padding_mode='symmetric')",
    "RandomResizedCrop(24)",
    "RandomResizedCrop((24, 30), (0.2, 0.9), (0.5, 3.0), InterpolationMode.BICUBIC)",
    "RandomResizedCrop(24, (0.9, 1.0), (0.1, 0.2), 5)",
    "RandomResize(9, 40)",
    "RandomResize(20, 21, 'nearest')",
    "RandomShortestSize([20, 30, 50], 60)",
    "RandomShortestSize(30, interpolation=3)",
    "ScaleJitter((40, 60))",
    "ScaleJitter([90, 30], (0.5, 0.6), InterpolationMode.BICUBIC)",
    "RandomZoomOut()",
    "RandomZoomOut([300], [1.5, 2.0], 0.8)",
    "RandomZoomOut({PIL.Image: 7, 'others': 0}, p=1.0)",
    "RandomHorizontalFlip()",
    "RandomVerticalFlip(0.7)",
    "Grayscale()",
    "Grayscale(3)",
    "Pad(3)",
    "Pad([4, 2], (1, 2, 300))",
    "Pad([4, 2, 0, 9], padding_mode='reflect')",
    "ColorJitter()",
    "ColorJitter(0.4, 0.4, 0.4, 0.1)",
    "ColorJitter((0.2, 3), hue=(-0.5, 0.5))",
    "ColorJitter(contrast=2.0, saturation=[0.0, 1.0])",
    "RandomGrayscale(0.4)",
    "RandomInvert()",
    "RandomPosterize(2, 0.6)",
    "RandomSolarize(99.5, p=0.6)",
    "RandomAutocontrast(0.7)",
    "RandomEqualize()",
    "RandomAdjustSharpness(2.5)",
    "RandomAdjustSharpness(0, 0.8)",
    "RandomChannelPermutation()",
    "RandomPhotometricDistort()",
    "RandomPhotometricDistort((0.1, 3), (0, 2), (0.5, 0.5), (-0.5, 0.5), 0.7)",
    "RandomApply([RandomHorizontalFlip(), ColorJitter(0.4)], 0.6)",
    "RandomApply(torch.nn.ModuleList([RandomVerticalFlip(), Pad(1)]))",
    "RandomChoice([RandomInvert(), Pad(2), RandomHorizontalFlip()])",
    "RandomChoice([RandomInvert(), Pad(2)], p=[1, 3])",
    "RandomOrder([RandomInvert(), RandomSolarize(128), RandomCrop(50, pad_if_needed=True)])",
    "RandAugment()",
    "RandAugment(3, 30, interpolation=2, fill=(9, 300, -1))",
    "RandAugment(0)",
    "RandAugment(1, 4, 10, InterpolationMode.BICUBIC, [7])",
    "TrivialAugmentWide()",
    "TrivialAugmentWide(10, 'nearest-exact', 99)",
    "AutoAugment()",
    "AutoAugment(AutoAugmentPolicy.CIFAR10, 'bilinear')",
    "AutoAugment(AutoAugmentPolicy.SVHN, fill={PIL.Image: 7, 'others': 0})",
    "PILToTensor()",
    "ToImage()",
    "Compose([Resize((30, 31)), ToImage(), RandomErasing(0.7)])",
    "Compose([Resize((30, 31)), ToImage(), RandomErasing(1, (0.5, 1.0), (0.1, 0.4), (5, 6, 7))])",
    "Compose([Resize((30, 31)), ToImage(), ToDtype(torch.float32), RandomErasing(1, value='random', inplace=True)])",
    "Compose([RandomHorizontalFlip(), Resize((30, 31)), RandomCrop(20), ToImage(), RandomVerticalFlip(), "
    "ToDtype(torch.float32, scale=True), Normalize([0.5], [0.25]), ToPureTensor()])",
]


def both(torchvision: ModuleType, call: str) -> list[Any]:
    v2 = torchvision.transforms.v2
    return [eval(call, {**vars(home), "torch": torch, "PIL": Image}) for home in (H, v2)]


def as_array(image: Any) -> np.ndarray:
    return np.asarray(image)


@pytest.mark.parametrize("call", CALLS)
def test_equals_torchvision_under_the_same_seed(torchvision: ModuleType, images: list[Image.Image], call: str) -> None:
    ours, theirs = both(torchvision, call)
    for image in images:
        if "Resize" in call and max(image.size) / min(image.size) > 30:
            continue
        outcomes = []
        for transform in (ours, theirs):
            torch.manual_seed(1)
            made: list[Any]
            try:
                made = [as_array(transform(image)) for _ in range(24 if "Augment" in call else 3)]
            except ValueError as error:
                made = [str(error)]
            outcomes.append((made, torch.get_rng_state()))
        (ours_made, our_state), (their_made, their_state) = outcomes
        for a, b in zip(ours_made, their_made, strict=True):
            assert type(a) is type(b) and getattr(a, "dtype", None) == getattr(b, "dtype", None)
            assert np.array_equal(a, b)
        assert torch.equal(our_state, their_state)  # the same count of random numbers was drawn


def test_to_tensor_is_v1s(torchvision: ModuleType, images: list[Image.Image]) -> None:
    v1 = torchvision.transforms.ToTensor()
    for image in [*images, images[0].convert("L"), images[0].convert("1"), images[0].convert("F")]:
        assert torch.equal(H.ToTensor()(image), v1(image))
        assert torch.equal(H.ToTensor()(np.array(image)), v1(np.array(image)))


INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
DTYPES = (*INTEGERS, torch.float16, torch.bfloat16, torch.float32, torch.float64)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_to_dtype_equals_torchvision(
    torchvision: ModuleType, source: torch.dtype, target: torch.dtype, scale: bool
) -> None:
    ours, theirs = H.ToDtype(target, scale), torchvision.transforms.v2.ToDtype(target, scale)
    values = torch.arange(256).reshape(1, 1, 256)
    tensor = (values / 255).to(source) if source.is_floating_point else (values % 128).to(source)
    try:
        expected = theirs(tensor)
    except RuntimeError as error:
        with pytest.raises(RuntimeError) as raised:
            ours(tensor)
        assert str(raised.value) == str(error)
    else:
        made = ours(tensor)
        assert made.dtype == expected.dtype and torch.equal(made, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("inplace", [False, True])
def test_normalize_equals_torchvision(torchvision: ModuleType, dtype: torch.dtype, inplace: bool) -> None:
    arguments = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), inplace)
    ours, theirs = H.Normalize(*arguments), torchvision.transforms.v2.Normalize(*arguments)
    tensor = torch.rand(2, 3, 5, 7, generator=torch.Generator().manual_seed(0)).to(dtype)
    mine, yours = tensor.clone(), tensor.clone()
    assert torch.equal(ours(mine), theirs(yours))
    assert torch.equal(mine, yours) and torch.equal(mine, tensor) is not inplace


REFUSED = [
    ("Resize(2.5)", None),
    ("Resize([1, 2, 3])", None),
    ("Resize(None)", None),
    ("Resize((20, 30), max_size=40)", "image"),
    ("Resize(20, max_size=20)", "image"),
    ("Resize(20, interpolation='cubic')", "image"),
    ("CenterCrop([1, 2, 3])", None),
    ("RandomCrop([1, 2, 3])", None),
    ("RandomCrop(8, padding=(1, 2, 3))", None),
    ("RandomCrop(8, padding=1.5)", None),
    ("RandomCrop(8, padding=1, padding_mode='wrap')", None),
    ("RandomCrop(8, fill='red')", None),
    ("RandomCrop(8, 2, fill=(1, 2))", "image"),
    ("RandomCrop(8000)", "image"),
    ("RandomCrop(8000, 2)", "image"),
    ("RandomResizedCrop([1, 2, 3])", None),
    ("RandomResizedCrop(8, scale=0.5)", None),
    ("RandomResizedCrop(8, ratio=(1.0,))", None),
    ("RandomHorizontalFlip(1.5)", None),
    ("RandomVerticalFlip(-0.1)", None),
    ("Grayscale(2)", "image"),
    ("Pad(None)", None),
    ("Pad((1, 2, 3))", None),
    ("Pad(1.5)", None),
    ("Pad(1, padding_mode='wrap')", None),
    ("Pad(1, fill='red')", None),
    ("Pad(1, fill=(1, 2))", "image"),
    ("ColorJitter(-0.1)", None),
    ("ColorJitter(contrast='much')", None),
    ("ColorJitter(saturation=(0.2, 0.1))", None),
    ("ColorJitter(hue=0.6)", None),
    ("ColorJitter(hue=(-0.6, 0.1))", None),
    ("ColorJitter((1, 2, 3))", None),
    ("RandomInvert(1.5)", None),
    ("RandomPosterize(4, -1)", None),
    ("RandomAdjustSharpness(4, -1)", None),
    ("RandomPhotometricDistort(hue=(0.75, 0.75), p=1)", "image"),
    ("RandAugment(-1)", None),
    ("RandAugment(8, magnitude=None)", "image"),
    ("RandAugment(8, magnitude=31)", "image"),
    ("RandAugment(1.5)", None),
    ("RandomPhotometricDistort(contrast=None, p=1)", "image"),
    ("ScaleJitter((8, 8), scale_range=2)", "image"),
    ("ScaleJitter(8)", "image"),
    ("RandomZoomOut(side_range=2)", None),
    ("RandomZoomOut(side_range=(0.5, 2))", None),
    ("RandomZoomOut(fill='red')", None),
    ("RandomResize(9, 8)", "image"),
    ("RandomShortestSize('x')", "image"),
    ("FiveCrop((1, 2, 3))", None),
    ("FiveCrop(8000)", "image"),
    ("TenCrop(None)", None),
    ("TenCrop(8000)", "image"),
    ("RandomGrayscale(-1)", None),
    ("RandomSolarize(128, 2)", None),
    ("RandomSolarize('x', 1)", "image"),
    ("RandomEqualize(2)", None),
    ("RandomAutocontrast(2)", None),
    ("RandAugment(fill='red')", None),
    ("RandAugment(8, fill=(1, 2))", "image"),
    ("RandAugment(8, interpolation='cubic')", "image"),
    ("RandAugment(8, interpolation='lanczos')", "image"),
    ("AutoAugment('imagenet')", None),
    ("TrivialAugmentWide()", "sample without an image"),
    ("RandAugment()", "two images"),
    ("RandomApply(3)", None),
    ("RandomApply([])", None),
    ("RandomApply([Pad(1)], 1.5)", None),
    ("RandomChoice(torch.nn.ModuleList([Pad(1)]))", None),
    ("RandomChoice([])", None),
    ("RandomChoice([Pad(1)], [1, 2])", None),
    ("RandomOrder(3)", None),
    ("RandomOrder([])", None),
    ("RandomErasing(2)", None),
    ("RandomErasing(value=None)", None),
    ("RandomErasing(value='red')", None),
    ("RandomErasing(scale=0.5)", None),
    ("RandomErasing(ratio=0.5)", None),
    ("RandomErasing(scale=(-0.1, 0.5))", None),
    ("RandomErasing(scale=(0.1, 1.5))", None),
    ("RandomErasing(1, value=(1, 2))", "floats"),
    ("Compose(3)", None),
    ("Compose([])", None),
    ("Normalize([0.5], [0.5])", "image"),
    ("Normalize([0.5], [0.5])", "bytes"),
    ("Normalize([0.5], [0.0])", "floats"),
    ("Normalize([0.5], [0.5])", "flat"),
]


@pytest.mark.parametrize(("call", "on"), REFUSED)
def test_refusals_are_torchvisions(
    torchvision: ModuleType, images: list[Image.Image], call: str, on: str | None
) -> None:
    inputs = {
        "image": images[0],
        "bytes": torch.zeros(3, 2, 2, dtype=torch.uint8),
        "floats": torch.zeros(3, 2, 2),
        "flat": torch.zeros(2, 2),
        "sample without an image": (3, "label"),
        "two images": (images[0], images[1]),
    }
    raised = []
    for home in (H, torchvision.transforms.v2):
        with pytest.raises((IndexError, RuntimeError, TypeError, ValueError)) as info:
            transform = eval(call, {**vars(home), "torch": torch})
            torch.manual_seed(5)
            assert on is not None, "the constructor raises nothing"
            transform(inputs[on])
        raised.append((info.type, str(info.value)))
    assert raised[0] == raised[1]


def test_warnings_are_torchvisions(images: list[Image.Image]) -> None:
    with pytest.warns(UserWarning, match="Anti-alias option is always applied for PIL Image input"):
        H.Resize(20, antialias=False)(images[0])
    with pytest.warns(UserWarning, match="Anti-alias option is always applied for PIL Image input"):
        H.RandomResizedCrop(20, antialias=False)(images[0])
    with pytest.warns(UserWarning, match=r"Scale and ratio should be of kind \(min, max\)"):
        H.RandomResizedCrop(20, scale=(1.0, 0.5))
    with pytest.warns(UserWarning, match=r"Scale and ratio should be of kind \(min, max\)"):
        H.RandomErasing(ratio=(1.0, 0.5))


GEOMETRY = ["Resize(4)", "CenterCrop(4)", "RandomCrop(4)", "RandomResizedCrop(4)", "Grayscale()", "Pad(1)"]
COLOURS = ["ColorJitter(0.1)", "RandomGrayscale()", "RandomInvert()", "RandomPosterize(3)", "RandomSolarize(9)"]


@pytest.mark.parametrize("call", [*GEOMETRY, *COLOURS, "RandomAutocontrast()", "RandomEqualize()", "RandAugment()"])
def test_images_only_refuses_tensors_with_a_remedy(call: str) -> None:
    transform = eval(call, vars(H))
    with pytest.raises(
        TypeError, match=rf"img should be PIL Image. Got <class 'torch.Tensor'>; put {call.split('(')[0]} "
    ):
        transform(torch.zeros(3, 8, 8))


@pytest.mark.parametrize(
    "call", [call for call in CALLS if call.startswith(("ColorJitter", "Random")) and "Crop" not in call]
)
def test_gray_images_too(torchvision: ModuleType, images: list[Image.Image], call: str) -> None:
    ours, theirs = both(torchvision, call)
    for image in images[:4]:
        made = []
        for transform in (ours, theirs):
            torch.manual_seed(2)
            made.append([as_array(transform(image.convert("L"))) for _ in range(5)])
        assert all(np.array_equal(a, b) for a, b in zip(*made, strict=True))


def test_erasing_in_place_or_not() -> None:
    for inplace in (False, True):
        tensor = torch.zeros(3, 9, 9)
        made = H.RandomErasing(1, (0.2, 0.3), value=1, inplace=inplace)(tensor)
        assert made.any() and (made is tensor) == inplace == bool(tensor.any())


OWN: tuple[str, ...] = (
    "ByAspectRatio",
    "ResizeToPatches",
    "ResizedCenterCrop",
    "TextureChannels",
    "Views",
    "aspect_ratio_sizes",
)  # not torchvision's
OWN += ("ProcessorTransform", "from_processor", "AlbumentationsTransform", "from_albumentations")


def test_names_and_signatures_are_torchvisions(torchvision: ModuleType) -> None:
    home = torchvision.transforms.v2
    for name in H.__all__:
        if name not in ("Transform", "InterpolationMode", "filter_name", *OWN):
            shown = [
                [
                    (p.name, type(p.default).__name__, str(p.default))
                    for p in list(inspect.signature(cls.__init__).parameters.values())[1:]
                    if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)  # of classes without an __init__ of their own
                ]
                for cls in (getattr(H, name), getattr(home, name))
            ]
            assert shown[0] == shown[1], name
    assert {m.name: m.value for m in H.InterpolationMode} == {
        m.name: m.value for m in torchvision.transforms.InterpolationMode
    }


@pytest.mark.parametrize("call", CALLS)
def test_pickles(call: str) -> None:
    transform = eval(call, {**vars(H), "torch": torch, "PIL": Image})
    assert repr(pickle.loads(pickle.dumps(transform))) == repr(transform)


@pytest.mark.parametrize("said", [2, "bilinear", H.InterpolationMode.BILINEAR, Image.Resampling.BILINEAR])
def test_filter_names(torchvision: ModuleType, said: Any) -> None:
    assert H.filter_name(said) == "bilinear"
    assert H.filter_name(torchvision.transforms.InterpolationMode.LANCZOS) == "lanczos"
    assert H.filter_name("nearest-exact") == "nearest"


@pytest.mark.parametrize("said", [9, True, None, 1.0])
def test_filter_refusal(said: bool | float | None) -> None:
    with pytest.raises(ValueError, match=f"corresponding Pillow integer constant, but got {said}"):
        H.filter_name(said)  # type: ignore[arg-type]


@pytest.mark.processes
def test_torchvision_is_not_imported() -> None:
    script = (
        "import sys; sys.modules['torchvision'] = None\n"
        "import headrace.transforms as H; from headrace._lowering import lower\n"
        "lower(H.Compose([H.RandomResizedCrop(8), H.ToTensor()]))\n"
        "from PIL import Image; import torch\n"
        "last = H.ToDtype({torch.Tensor: torch.float64, 'others': torch.float32})\n"
        "sample = H.Compose([H.ToImage(), H.RandomHorizontalFlip(1.0), last])(Image.new('RGB', (4, 5)), 3)\n"
        "assert sample[0].dtype == torch.float32 and sample[1] == 3\n"
        "assert not any(name.startswith('torchvision.') for name in sys.modules)\n"
    )
    home = str(Path(H.__file__).parents[2])
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": home, "PATH": ""})
