"""Attributes, static methods and options of headrace.transforms equal torchvision v2's, on the native path as well."""

from __future__ import annotations

import enum
import warnings
from types import ModuleType
from typing import Any

import pytest
import torch
from eager import both, image_of
from PIL import Image
from test_transforms import CALLS

import headrace.transforms as H
from headrace import DataLoader, EncodedImages
from headrace._lowering import LoweringError, lower
from support import assert_same, pictures, recipe_of

MORE = [
    "CenterCrop([30, 70])",
    "RandomCrop([40, 50], [3])",
    "RandomCrop(9, 0)",
    "RandomCrop(9, padding_mode='unheeded')",
    "RandomCrop(9, -3)",
    "RandomCrop(9, (1, -2), fill={PIL.Image: (1, 2, 3), 'others': 0})",
    "RandomResizedCrop([24, 30], [0.2, 0.9])",
    "Pad((-3,), {PIL.Image: 7})",
    "Pad(3, None)",
    "GaussianBlur([3, 5], 1)",
    "GaussianBlur((3,), [0.5])",
    "GaussianBlur(3, (1, 2))",
    "Grayscale(2)",
    "RandomRotation(30)",
    "RandomRotation((-3, 8.5), 2, True, (1, 2), {PIL.Image: (1, 2, 3), 'others': 0})",
    "RandomAffine(0, (0.1, 1), [1, 2], 3)",
    "RandomAffine([1, 2], shear=[1, 2, 3, 4], interpolation='bicubic', fill=[9], center=[1, 0.5])",
    "RandomPerspective()",
    "RandomPerspective(1, 0.25, 'nearest', (1, 2, 3))",
    "ToDtype({'others': None}, True)",
    "Normalize((0.5,), (0.25,), True)",
    "RandomErasing(value=3)",
]


def attributes(transform: Any) -> dict[str, Any]:
    """The public attributes: enums as their values, `transforms` as its repr."""
    public = {name: value for name, value in vars(transform).items() if not name.startswith("_")}
    shown = {name: value.value if isinstance(value, enum.Enum) else value for name, value in public.items()}
    return {name: repr(value) if name == "transforms" else (type(value), value) for name, value in shown.items()}


@pytest.mark.parametrize("call", [*CALLS, *MORE])
def test_attributes_and_repr(torchvision: ModuleType, call: str) -> None:
    ours, theirs = both(torchvision, call)
    assert attributes(ours) == attributes(theirs)
    assert repr(ours) == repr(theirs)


STATIC: dict[str, list[Any]] = {
    "RandomCrop": [((9, 8),), ((17, 23),), ((17, 9),), ((18, 9),)],
    "RandomResizedCrop": [((0.08, 1.0), (0.75, 1.5)), ((4.0, 5.0), (2.0, 3.0))],
    "RandomErasing": [((0.1, 0.4), (0.5, 2.0)), ((0.1, 0.4), (0.5, 2.0), [1.0]), ((0.9, 0.9), (9.0, 9.0), [1.0])],
    "ColorJitter": [((0.5, 1.5), None, (0.2, 0.3), (-0.1, 0.1))],
    "GaussianBlur": [(0.5, 2.0)],
    "RandomRotation": [((-30, 30),), ((5, 5),)],
    "RandomAffine": [
        ((-9, 80.5), None, None, None, (17, 23)),
        ((0, 0), (0.3, 1.0), (0.5, 2), (-3, 3), (170, 230)),
        ((0, 0), (0.0, 0.1), (1, 1), (-3, 3, 5, 6), (17, 23)),
    ],
    "RandomPerspective": [(17, 23, 0.5), (1, 2, 1.0), (200, 301, 0.33), (64, 64, 0)],
}


@pytest.mark.parametrize(("name", "arguments"), [(name, one) for name, those in STATIC.items() for one in those])
def test_get_params_is_v1s(torchvision: ModuleType, name: str, arguments: tuple[Any, ...]) -> None:
    no_image = ("ColorJitter", "GaussianBlur", "RandomRotation", "RandomAffine", "RandomPerspective")
    images: dict[str, list[Any]] = {"RandomErasing": [torch.zeros(3, 17, 23)], **{one: [] for one in no_image}}
    given = (*images.get(name, [image_of("RGB")]), *arguments)
    made: list[Any] = []
    for home in (H, torchvision.transforms.v2):
        torch.manual_seed(3)
        try:
            made.append([torch.as_tensor(one).tolist() for one in _parts(getattr(home, name).get_params(*given))])
        except ValueError as error:
            made.append(str(error))
        made.append(torch.get_rng_state().tolist())
    assert made[:2] == made[2:]


def _parts(made: Any) -> list[Any]:
    return [-1 if one is None else one for one in (made if isinstance(made, tuple) else (made,))]


REFUSED = [
    "Pad(1, {PIL.Image: 'red'})",
    "RandomCrop(8, pad_if_needed=True, padding_mode='wrap')",
    "GaussianBlur(3, 'soft')",
    "GaussianBlur(3, ('a', 'b'))",
    "GaussianBlur((3, 3, 3))",
    "RandomRotation(-1)",
    "RandomRotation((1, 2, 3))",
    "RandomRotation('ab', center=3)",
    "RandomRotation(9, center=3)",
    "RandomRotation(9, center=(3, 4, 5))",
    "RandomRotation(9, fill='red')",
    "RandomAffine(3, (0.1, 1.1))",
    "RandomAffine(3, 0.1)",
    "RandomAffine(3, scale=(0, 1))",
    "RandomAffine(3, scale=(1, 1, 1))",
    "RandomAffine(3, shear=(1, 2, 3))",
    "RandomAffine(3, shear=-1)",
    "RandomAffine(3, center=9)",
    "RandomPerspective(1.5)",
    "RandomPerspective(p=2)",
    "ToDtype('float32')",
    "CenterCrop(None)",
]


@pytest.mark.parametrize("call", REFUSED)
def test_refusals_are_torchvisions(torchvision: ModuleType, call: str) -> None:
    raised = []
    for home in (H, torchvision.transforms.v2):
        with pytest.raises((TypeError, ValueError)) as info:
            eval(call, {**vars(home), "PIL": Image})
        raised.append((info.type, str(info.value)))
    assert raised[0] == raised[1]


def test_a_dict_of_dtypes_warns_as_torchvisions(torchvision: ModuleType) -> None:
    tv = torchvision.tv_tensors
    with pytest.warns(UserWarning, match="Got `dtype` values for `torch.Tensor` and either `tv_tensors.Image`"):
        H.ToDtype({torch.Tensor: torch.float32, tv.Image: torch.float32})
    with pytest.warns(UserWarning, match="scale was set to True but no dtype was specified"):
        H.ToDtype({"others": None}, scale=True)(torch.zeros(3, 4, 4))
    with pytest.raises(ValueError, match=r'No dtype was specified for an image made by ToImage. .*"others": None'):
        H.Compose([H.ToImage(), H.ToDtype({tv.Mask: torch.int64})])(image_of("RGB"))


# With uncommon options a loader delivers the pixels of the transform itself, native or not.


def batches(torchvision: ModuleType, call: str) -> tuple[torch.Tensor, torch.Tensor, bool]:
    """(a batch of the loader, the stacked samples of torchvision's transform, whether all steps are native)."""
    ours, theirs = both(torchvision, f"Compose([CenterCrop(40), {call}])")
    loader = DataLoader(EncodedImages(pictures(6), None, ours), 6, num_workers=1)
    assert loader.native
    assert_same(loader, list(loader.reference()))
    plain = EncodedImages(pictures(6), None, None)
    expected = torch.stack([theirs(plain[i]).as_subclass(torch.Tensor) for i in range(6)])
    return next(iter(loader)), expected, not recipe_of(loader).calls


NATIVE = [
    "Pad(2, {PIL.Image: (1, 2, 3), 'others': 9}), PILToTensor()",
    "Pad(2, {'others': 9}), PILToTensor()",
    "Pad(2, {torch.Tensor: 9}), PILToTensor()",
    "RandomCrop(46, (1, 2, 5, 4), fill={PIL.Image: 7}), PILToTensor()",
    "ToImage(), ToDtype({tv.Image: torch.float32, 'others': None}, True)",
    "ToImage(), ToDtype({torch.Tensor: torch.uint8, 'others': torch.float32}, True)",
    "PILToTensor(), ToDtype({torch.Tensor: torch.float32, 'others': None}, True)",
    "PILToTensor(), ToDtype({tv.Image: torch.uint8, 'others': torch.float32}, True)",
    "ToImage(), ToPureTensor(), ToDtype({torch.Tensor: torch.float32, 'others': None}, True)",
]
IN_PYTHON = [
    "Pad(-3), PILToTensor()",
    "Pad((-3, 2, 4, -5), 9, 'edge'), PILToTensor()",
    "RandomCrop(30, -5), PILToTensor()",
    "RandomErasing(0.0), PILToTensor()",
]


@pytest.mark.filterwarnings("ignore:Got `dtype` values for")
@pytest.mark.parametrize("call", NATIVE)
def test_lowered_exactly(torchvision: ModuleType, call: str) -> None:
    made, expected, native = batches(torchvision, call)
    assert native and torch.equal(made, expected) and made.dtype == expected.dtype


@pytest.mark.parametrize("call", IN_PYTHON)
def test_left_to_python(torchvision: ModuleType, call: str) -> None:
    ours, _ = both(torchvision, f"Compose([CenterCrop(40), {call}])")
    with pytest.raises(LoweringError):
        lower(ours, native_only=True)
    made, expected, native = batches(torchvision, call)
    assert not native and torch.equal(made, expected)


def test_what_is_erased_is_an_image_too(torchvision: ModuleType) -> None:
    """The values that RandomErasing writes pass through a ToDtype that depends on the class of the tensor."""
    tv = torchvision.tv_tensors
    dtypes = {tv.Image: torch.float32, "others": None}
    steps = [H.Resize((8, 8)), H.ToImage(), H.RandomErasing(1.0, value=7.5), H.ToDtype(dtypes, scale=True)]
    loader = DataLoader(EncodedImages(pictures(6), None, H.Compose(steps)), 6, num_workers=1)
    assert loader.native and not recipe_of(loader).calls
    assert float(next(iter(loader)).max()) <= 1.0
    assert_same(loader, list(loader.reference()))


class Kinds:
    """A user's step that depends on the class of the tensor."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return image + 100.0 * isinstance(image, self.kind)


def test_a_step_of_ones_own_sees_the_tensor_that_it_would_have_seen(torchvision: ModuleType) -> None:
    v2, tv = torchvision.transforms.v2, torchvision.tv_tensors
    to_float = v2.ToDtype(torch.float32, scale=True)
    for convert, most in ((v2.ToImage(), 101.0), (v2.PILToTensor(), 1.0)):
        transform = v2.Compose([v2.CenterCrop(20), convert, to_float, Kinds(tv.Image)])
        loader = DataLoader(EncodedImages(pictures(6), None, transform), 6, num_workers=1)
        assert loader.native
        values = next(iter(loader))
        assert most - 1 <= float(values.min()) and float(values.max()) <= most
        assert_same(loader, list(loader.reference()))


def test_a_headrace_image_stays_one_on_the_native_path(torchvision: ModuleType) -> None:
    tv = torchvision.tv_tensors

    class Touched:
        def __call__(self, image: torch.Tensor) -> torch.Tensor:
            return image.add_(0)  # in place: it is the same tensor

    dtypes = {tv.Image: torch.float16, torch.Tensor: torch.float32, "others": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        last = H.ToDtype(dtypes)
    steps: list[Any] = [H.CenterCrop(20), H.ToImage(), H.ToDtype(torch.float32, scale=True), Touched(), last]
    loader = DataLoader(EncodedImages(pictures(6), None, H.Compose(steps)), 6, num_workers=1)
    assert loader.native and next(iter(loader)).dtype == torch.float16
    assert_same(loader, list(loader.reference()))
