"""What each transform is lowered to; every refusal names the step, the reason and a remedy."""

from __future__ import annotations

import pickle
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

import headrace.transforms as H
from headrace._lowering import LoweringError, lower
from headrace._recipe.steps import steps as S
from headrace._recipe.steps.draw_columns import Column

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def train(T: ModuleType) -> list:
    """The usual steps of training, in headrace's, v1's or v2's classes."""
    to_tensor = [T.ToTensor()] if T.__name__.endswith(".transforms") else [T.ToImage(), T.ToDtype(torch.float32, True)]
    return [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), *to_tensor, T.Normalize(MEAN, STD)]


@pytest.fixture(params=["headrace", "v1", "v2"])
def T(request: pytest.FixtureRequest, torchvision: ModuleType) -> ModuleType:
    homes = {"headrace": H, "v1": torchvision.transforms, "v2": torchvision.transforms.v2}
    return homes[request.param]


def test_train_recipe(T: ModuleType) -> None:
    recipe = lower(T.Compose(train(T)))
    assert recipe.steps == (
        S.RandomResizedCrop(224, 224, (0.08, 1.0), (0.75, 4 / 3), "bilinear", 0),
        S.HorizontalFlip(0.5, 22),
    )
    # The logarithms of the float64 numbers 3 / 4 and 4 / 3, each rounded to the nearest float64.
    ratio = Column(-0.2876820724517809, 0.28768207245178085, exp=True)
    assert recipe.columns[:2] == (Column(0.08, 1.0), ratio)
    assert recipe.columns[2:] == recipe.columns[:2] * 9 + (Column(), Column(), Column())
    assert (recipe.channels, recipe.height, recipe.width, recipe.dtype) == (3, 224, 224, torch.float32)
    assert recipe.lut.shape == (3, 256) and recipe.lut.is_contiguous() and type(recipe.lut) is torch.Tensor
    assert len(recipe.names) == len(train(T)) and all(lowered for _, lowered in recipe.names)


def test_one_recipe_whoever_wrote_the_transforms(torchvision: ModuleType) -> None:
    v1, v2 = torchvision.transforms, torchvision.transforms.v2
    ours = lower(H.Compose(train(H)))
    assert ours.fingerprint() == lower(v1.Compose(train(v1))).fingerprint()
    assert ours.fingerprint() != lower(v2.Compose(train(v2))).fingerprint()  # 1 / 255 is rounded first
    tensor = [H.ToImage(), H.ToDtype(torch.float32, scale=True), H.Normalize(MEAN, STD)]
    theirs = lower(v2.Compose(train(v2)))
    assert lower(H.Compose([*train(H)[:2], *tensor])).fingerprint() == theirs.fingerprint()


def test_everything_that_decides_pixels_is_in_the_fingerprint() -> None:
    variants = [
        [H.CenterCrop(8), H.ToTensor()],
        [H.CenterCrop(9), H.ToTensor()],
        [H.CenterCrop((8, 9)), H.ToTensor()],
        [H.Resize((8, 8)), H.ToTensor()],
        [H.Resize((8, 8), "bicubic"), H.ToTensor()],
        [H.CenterCrop(8), H.Grayscale(), H.ToTensor()],
        [H.CenterCrop(8), H.Grayscale(3), H.ToTensor()],
        [H.CenterCrop(8), H.RandomHorizontalFlip(), H.ToTensor()],
        [H.CenterCrop(8), H.RandomHorizontalFlip(0.4), H.ToTensor()],
        [H.CenterCrop(8), H.RandomVerticalFlip(), H.ToTensor()],
        [H.CenterCrop(8), H.ToTensor(), H.Normalize([0.5], [0.5])],
        [H.CenterCrop(8), H.ToImage()],
    ]
    assert len({lower(H.Compose(steps)).fingerprint() for steps in variants}) == len(variants)
    steps = H.Compose(variants[0])
    assert len({lower(steps, dtype=dtype).fingerprint() for dtype in (None, torch.float16, torch.bfloat16)}) == 3


def test_the_options_of_a_centre_crop_are_in_the_fingerprint_unless_they_are_the_defaults() -> None:
    """Recipes without them keep the fingerprints that saved states of older versions hold."""
    assert repr(S.CenterCrop(8, 9)) == "CenterCrop(height=8, width=9)"
    options: list[dict[str, Any]] = [{}, {"fill": (0, 0, 1)}, {"rounding": "down"}, {"rounding": "towards_zero"}]
    recipe = lower(H.Compose([H.CenterCrop((8, 9)), H.ToTensor()]))
    made = {replace(recipe, steps=(S.CenterCrop(8, 9, **one),)).fingerprint() for one in options}
    assert len(made) == len(options) and recipe.fingerprint() in made


def test_nesting_is_opened(torchvision: ModuleType) -> None:
    v1, v2 = torchvision.transforms, torchvision.transforms.v2
    flat = lower(v2.Compose(train(v2)))
    crop, flip, image, dtype, normalize = train(v2)
    nested = v1.Compose([nn.Sequential(crop, v2.Compose([flip, nn.Identity()])), H.Compose([image, dtype]), normalize])
    recipe = lower(nested)
    assert recipe.fingerprint() == flat.fingerprint()
    assert [lowered for _, lowered in recipe.names].count("nothing") == 1


def test_a_single_transform_needs_no_compose() -> None:
    with pytest.raises(LoweringError, match="no step makes a tensor"):
        lower(H.CenterCrop(8), native_only=True)
    assert lower(nn.Sequential(H.CenterCrop(8), H.ToImage())).dtype == torch.uint8


def test_columns_of_several_steps_follow_one_another() -> None:
    recipe = lower(
        H.Compose(
            [H.RandomVerticalFlip(), H.RandomCrop(20), H.RandomResizedCrop(8), H.RandomHorizontalFlip(), H.ToTensor()]
        )
    )
    steps: tuple[Any, ...] = recipe.steps
    assert [step.draw for step in steps] == [0, 1, 3, 25] and len(recipe.columns) == 26


def test_options_of_random_crop(T: ModuleType) -> None:
    crop = T.RandomCrop((20, 30), [1, 2], True, (4, 5, 6), "constant")
    step = lower(T.Compose([crop, T.PILToTensor()])).steps[0]
    assert step == S.RandomCrop(20, 30, (1, 2, 1, 2), True, (4, 5, 6), "constant", 0)
    four = T.RandomCrop(20, [1, 2, 3, 4], fill=7, padding_mode="edge")
    step = lower(T.Compose([four, T.PILToTensor()])).steps[0]
    assert step == S.RandomCrop(20, 20, (1, 2, 3, 4), False, (7, 7, 7), "edge", 0)


def test_options_of_resize(T: ModuleType) -> None:
    for resize, step in (
        (T.Resize(16), S.ResizeShorter(16, None, "bilinear")),
        (T.Resize([16], max_size=20), S.ResizeShorter(16, 20, "bilinear")),
        (T.Resize((16, 20), interpolation=T.InterpolationMode.BOX), S.Resize(16, 20, "box")),
        (T.Resize((16, 20), interpolation=3), S.Resize(16, 20, "bicubic")),
        (T.Resize((16, 20), interpolation=T.InterpolationMode.NEAREST_EXACT), S.Resize(16, 20, "nearest")),
    ):
        assert lower(T.Compose([resize, T.CenterCrop(12), T.PILToTensor()])).steps[0] == step


def test_size_is_known_after_a_crop() -> None:
    recipe = lower(H.Compose([H.CenterCrop((40, 60)), H.Resize(20), H.ToTensor()]))
    assert (recipe.height, recipe.width) == (20, 30)
    recipe = lower(H.Compose([H.CenterCrop((40, 60)), H.Resize(None, max_size=30), H.ToTensor()]))
    assert (recipe.height, recipe.width) == (20, 30)
    assert recipe.steps[1] == S.ResizeShorter(0, 30, "bilinear")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_dtype_is_a_last_conversion(T: ModuleType, dtype: torch.dtype) -> None:
    steps = T.Compose(train(T))
    assert torch.equal(lower(steps, dtype=dtype).lut, lower(steps).lut.to(dtype))
    raw = T.Compose([T.CenterCrop(8), T.PILToTensor()])
    assert torch.equal(lower(raw, dtype=dtype).lut[1], torch.arange(256).to(dtype))
    assert lower(raw).dtype == lower(raw, dtype=torch.uint8).dtype == torch.uint8


def test_pointwise_pickles_and_leaves_its_input_alone(T: ModuleType) -> None:
    recipe = pickle.loads(pickle.dumps(lower(T.Compose(train(T)), dtype=torch.float16)))
    image = torch.arange(256, dtype=torch.uint8).repeat(3, 2, 1)
    before = image.clone()
    made = recipe.pointwise(image)
    assert torch.equal(image, before) and type(made) is torch.Tensor
    assert torch.equal(made[:, 0], recipe.lut) and torch.equal(made[:, 1], recipe.lut)


def test_lowering_uses_no_random_numbers(T: ModuleType) -> None:
    before = torch.get_rng_state()
    lower(T.Compose(train(T)))
    assert torch.equal(torch.get_rng_state(), before)


def test_antialias_false_is_warned_of_as_on_pil_images(T: ModuleType) -> None:
    for step in (T.Resize((8, 8), antialias=False), T.RandomResizedCrop(8, antialias=False)):
        with pytest.warns(UserWarning, match="Argument antialias is ignored"):
            lower(T.Compose([step, T.PILToTensor()]))


def test_v2_steps_that_do_nothing_to_a_pil_image(torchvision: ModuleType) -> None:
    T = torchvision.transforms.v2
    recipe = lower(
        T.Compose([T.ToDtype(torch.float32, scale=True), T.CenterCrop(8), T.ToPureTensor(), T.ToImage(), T.Identity()])
    )
    assert recipe.dtype == torch.uint8 and len(recipe.steps) == 1
    assert [lowered.startswith("nothing") for _, lowered in recipe.names] == [True, False, True, False, True]


class Brighter(H.ToTensor):
    """A subclass that does something else."""

    def forward(self, *inputs: Any) -> Any:
        made: Any = super().forward(*inputs)
        return made * 2


def hooked() -> H.CenterCrop:
    crop = H.CenterCrop(8)
    crop.register_forward_hook(lambda module, args, output: output)
    return crop


def hooked_compose() -> H.Compose:
    compose = H.Compose([H.CenterCrop(8), H.ToTensor()])
    compose.register_forward_pre_hook(lambda module, args: args)
    return compose


def replaced() -> Any:
    crop: Any = H.CenterCrop(8)
    crop.forward = lambda image: image
    return crop


C = H.CenterCrop(8)
REFUSED = [
    (None, r"the dataset has no transform.*; give it one that ends in ToTensor\(\)"),
    (lambda image: image, r"step 1, <function.*has no native twin"),
    (H.Compose([C]), r"no step makes a tensor, so the dataset would return PIL images; end the transforms with ToTen"),
    (H.Compose([H.ToTensor()]), r"the images' sizes vary after the last step.*; add CenterCrop\(size\)"),
    (H.Compose([H.Resize(256), H.ToTensor()]), r"the images' sizes vary after the last step.*; add CenterCrop\(size\)"),
    (
        H.Compose([H.ToTensor(), H.Resize(8)]),
        r"step 2, Resize\(size=\[8\].*works on a tensor here.*other pixels than Pillow's; put it before ToTensor\(\)",
    ),
    (H.Compose([C, H.ToImage(), H.RandomCrop(4)]), r"step 3, RandomCrop\(.*; put it before ToImage\(\)"),
    (H.Compose([C, H.ToImage(), H.Grayscale()]), r"step 3, Grayscale\(.*; put it before ToImage\(\)"),
    (
        H.Compose([C, H.Normalize(MEAN, STD), H.ToTensor()]),
        r"step 2, Normalize\(.*: Normalize\(\) does not support PIL",
    ),
    (
        H.Compose([C, H.ToImage(), H.Normalize(MEAN, STD)]),
        r"step 3, Normalize\(.*should be a float tensor. Got torch.u",
    ),
    (H.Compose([C, H.ToTensor(), H.Normalize(MEAN, [0, 1, 1])]), r"step 3, Normalize\(.*std evaluated to zero"),
    (
        H.Compose([C, H.ToTensor(), H.Normalize(MEAN[:2], STD[:2])]),
        r"step 3, Normalize\(.*must match the size of tensor",
    ),
    (
        H.Compose([C, H.Grayscale(), H.ToTensor(), H.Normalize(MEAN, STD)]),
        r"step 4, Normalize\(.*turns 1 channels into 3 by broadcasting; .*Grayscale\(num_output_channels=3\)",
    ),
    (
        H.Compose([C, Brighter()]),
        r"step 2, Brighter\(\): is a subclass that may behave differently from ToTensor; use T",
    ),
    (H.Compose([hooked(), H.ToTensor()]), r"step 1, CenterCrop.*has forward hooks or a replaced method"),
    (hooked_compose(), r"step 1, Compose.*has forward hooks or a replaced method"),
    (H.Compose([replaced(), H.ToTensor()]), r"step 1, CenterCrop.*has forward hooks or a replaced method"),
    (H.Compose([H.CenterCrop(0), H.ToTensor()]), r"step 1, CenterCrop\(.*sizes must be positive numbers of pixels"),
    (H.Compose([H.CenterCrop((8, 2.5)), H.ToTensor()]), r"step 1, CenterCrop\(.*'float' object cannot be interpreted"),  # type: ignore[arg-type]
    (
        H.Compose([H.Resize(8, max_size=8), H.ToTensor()]),
        r"step 1, Resize\(.*must be strictly greater than the request",
    ),
    (
        H.Compose([H.RandomResizedCrop(8, (0, 9e999)), H.ToTensor()]),
        r"step 1, Rand.*scale and ratio must be finite \(smallest, la",
    ),
    (
        H.Compose([H.RandomResizedCrop(8, ratio=(0, 1)), H.ToTensor()]),
        r"step 1, Rand.*scale and ratio must be finite \(smallest, ",
    ),
    (H.Compose([H.RandomCrop(8, -2), H.ToTensor()]), r"step 1, RandomCrop\(.*a negative padding crops; use CenterCrop"),
    (H.Compose([H.RandomCrop(8, 2, fill=(1, 2)), H.ToTensor()]), r"step 1, RandomCrop.*'fill' does not match.*2 != 3"),
    (H.Compose([H.Grayscale(), H.RandomCrop(8, 2, fill=(1, 2, 3)), H.ToTensor()]), r"step 2, RandomCrop.*3 != 1"),
    (
        H.Compose([C, H.ToImage(), H.ToDtype(torch.int64)]),
        r"the transforms make torch.int64, which is not one of .*dty",
    ),
]


@pytest.mark.parametrize(("transform", "message"), REFUSED)
def test_refusal(transform: Any, message: str) -> None:
    with pytest.raises(LoweringError, match=message) as info:
        lower(transform, native_only=True)
    assert isinstance(info.value, TypeError)
    assert len(str(info.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        (torch.float64, "dtype=torch.float64 is not one of torch.float32, torch.float16, torch.bfloat16, torch.uint8"),
        (
            torch.uint8,
            r"dtype=torch.uint8 would cut the transforms' torch.float32 values to whole numbers; for bytes, ",
        ),
    ],
)
def test_refusal_of_a_dtype(dtype: torch.dtype, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        lower(H.Compose([H.CenterCrop(8), H.ToTensor()]), dtype=dtype, native_only=True)


def test_refusals_of_torchvisions_own(torchvision: ModuleType) -> None:
    v1, v2 = torchvision.transforms, torchvision.transforms.v2

    class MyCrop(v2.CenterCrop):  # type: ignore[name-defined]
        pass

    for steps, message in (
        ([v1.ElasticTransform(), v1.ToTensor()], r"step 1, ElasticTransform\(.*has no native twin"),
        ([v2.RandomApply([v2.JPEG(50)])], r"step 1, RandomApply: step 1, JPEG\(.*has no native twin"),
        ([v2.ToImage(), v2.ToPILImage()], r"step 2, ToPILImage\(\): has no native twin"),
        ([v2.Lambda(lambda x: x)], r"step 1, Lambda\(.*has no native twin"),
        ([MyCrop(8), v2.ToImage()], r"step 1, MyCrop\(.*is a subclass that may behave differently from CenterCrop"),
        (
            [v1.CenterCrop(8), v1.Normalize(MEAN, STD)],
            r"step 2, Normalize\(.*img should be Tensor Image. Got <class 'PIL",
        ),
        ([v1.ConvertImageDtype(torch.float32)], r"step 1, ConvertImageDtype\(\): Input img should be Tensor Image"),
        ([v2.Normalize(MEAN, STD)], r"step 1, Normalize\(.*Normalize\(\) does not support PIL images"),
        ([v2.ToImage(), v2.Normalize(MEAN, STD)], r"step 2, Normalize\(.*Input tensor should be a float tensor"),
        ([v1.CenterCrop(8), v1.ToTensor(), v1.ToTensor()], r"step 3, ToTensor\(\): pic should be PIL Image or ndarray"),
        ([v1.ToTensor(), v1.Resize(8)], r"step 2, Resize\(.*other pixels than Pillow's; put it before ToTensor\(\)"),
        ([v2.Grayscale(), v2.ToImage(), v2.RGB()], r"step 3, RGB\(\).*put it before ToImage\(\)"),
        (
            [v1.Resize((8, 9), max_size=20)],
            r"step 1, Resize\(.*max_size requires a size of one number, the shorter edge",
        ),
        ([v1.Grayscale(2)], r"step 1, Grayscale\(.*num_output_channels must be 1 or 3, got 2"),
        ([v1.RandomCrop(8, (1, 2, 3))], r"step 1, RandomCrop\(.*Padding must be an int or a 1, 2, or 4 element"),
        (
            [v1.CenterCrop(256), v1.ToTensor(), v1.Normalize(torch.rand(3, 1, 256), torch.ones(3, 1, 256))],
            r"step 3, Normalize\(.*output with shape \[3, 256, 1\] doesn't match the broadcast shape \[3, 256, 256\]",
        ),
        ([v1.RandomCrop(8, 1.5)], r"step 1, RandomCrop\(.*'float' object cannot be interpreted as an integer"),
        (
            [v1.RandomResizedCrop(8, (0.5, 0.6, 0.7)), v1.ToTensor()],
            r"step 1, Rand.*scale and ratio must be two numbers each",
        ),
        ([v1.RandomCrop(8, 2, padding_mode="wrap")], r"step 1, RandomCrop\(.*padding_mode must be constant, edge"),
        (
            [v1.RandomCrop(8, 2, True, 0, "reflect")],
            r"step 1, RandomCrop\(.*v1 pads a small image twice.*v2.RandomCrop",
        ),
        (
            [v1.RandomCrop(8, 2, True, 0, "symmetric")],
            r"step 1, RandomCrop\(.*v1 pads a small image twice.*v2.RandomCrop",
        ),
        ([v2.CenterCrop(8), v2.ToImage(), v2.ToDtype(torch.float64)], r"the transforms make torch.float64"),
    ):
        with pytest.raises(LoweringError, match=message):
            lower(v1.Compose(steps), native_only=True)
