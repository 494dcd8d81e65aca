"""FiveCrop and TenCrop: batches equal what torchvision and torch make, and what cannot be proven is refused."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader
from headrace import transforms as T
from headrace._lowering import LoweringError, lower
from headrace._lowering.multi_output.stacked_crops import functions_stacked_by
from support import MEAN, STD, assert_same, blobs, same

TO_TENSOR = T.ToTensor()
SHUT = T.Normalize(MEAN, STD)


def stacks(home: Any) -> dict[str, Any]:
    """Functions that stack crops, as people write them."""
    normalize = home.Normalize(MEAN, STD)
    tensor = home.ToTensor()
    chain = home.Compose([tensor, normalize])
    return {
        "made there": lambda crops: torch.stack([home.ToTensor()(crop) for crop in crops]),
        "free names": lambda crops: torch.stack([normalize(tensor(crop)) for crop in crops]),
        "a chain": lambda views: torch.stack([chain(one) for one in views]),
        "arguments": lambda crops: torch.stack([T.Normalize([0.5, 0.4, 0.3], (0.2, 0.1, 1))(tensor(c)) for c in crops]),
        "global names": lambda crops: torch.stack([SHUT(TO_TENSOR(crop)) for crop in crops]),
    }


def torchs(dataset: Any, batch: int) -> list[Any]:
    """What torch's DataLoader makes of the dataset."""
    return list(TorchDataLoader(dataset, batch))


@pytest.mark.parametrize("name", stacks(T))
@pytest.mark.parametrize("crop", ["FiveCrop((20, 33))", "TenCrop(32)", "TenCrop((40, 9), vertical_flip=True)"])
@pytest.mark.parametrize("wrapped", [True, False])
def test_stacked_crops_are_torchvisions(torchvision: ModuleType, name: str, crop: str, wrapped: bool) -> None:
    v1 = torchvision.transforms
    function = stacks(v1)[name]
    steps = [v1.Resize(45), eval(crop, vars(v1)), v1.Lambda(function) if wrapped else function]
    dataset = blobs(9, v1.Compose(steps))
    loader = DataLoader(dataset, 4, num_workers=2)
    assert loader.native
    expected = torchs(dataset, 4)
    assert expected[0][0].shape[:2] == (4, 5 if crop.startswith("Five") else 10)
    for batch, theirs in zip(loader, expected, strict=True):
        assert same(batch, theirs)
        assert batch[0].is_contiguous()  # so view(-1, C, H, W) works, as torchvision's documentation has it
    assert "0 differ" in str(loader.verify())


@pytest.mark.parametrize("module", ["headrace", "v2"])
@pytest.mark.parametrize("device", [None, "emulated"])
@pytest.mark.parametrize("crop", ["FiveCrop(32)", "TenCrop((32, 41), True)"])
def test_tuples_of_crops_are_lists_of_batches(
    torchvision: ModuleType, module: str, device: str | None, crop: str
) -> None:
    if device:
        pytest.importorskip("headrace._gpu")
    home = T if module == "headrace" else torchvision.transforms.v2
    floats = home.ToDtype(torch.float32, scale=True)
    steps = [home.Resize(50), eval(crop, vars(home)), home.ToImage(), floats, home.Normalize(MEAN, STD)]
    dataset = blobs(9, home.Compose(steps))
    loader = DataLoader(dataset, 4, num_workers=2, device=device)
    assert loader.native
    expected = torchs(dataset, 4)
    assert type(expected[0][0]) is list
    assert all(same(batch, theirs) for batch, theirs in zip(loader, expected, strict=True))


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("device", [None, "emulated"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.uint8])
def test_random_steps_before_the_crops_draw_once(
    layout: torch.memory_format, device: str | None, dtype: torch.dtype
) -> None:
    if device:
        pytest.importorskip("headrace._gpu")
    last = T.PILToTensor() if dtype == torch.uint8 else TO_TENSOR
    chain = [T.RandomResizedCrop(50), T.ColorJitter(0.4), T.TenCrop(32)]
    for stacked in (True, False):
        end = (lambda crops: torch.stack([last(crop) for crop in crops])) if stacked else last
        options: dict[str, Any] = {"memory_format": layout, "device": device, "dtype": dtype}
        loader = DataLoader(blobs(9, T.Compose([*chain, end])), 4, shuffle=True, seed=4, num_workers=2, **options)
        assert loader.native
        assert assert_same(loader, list(loader.reference())) == 3
        crops = next(iter(loader))[0]
        crops = crops if stacked else torch.stack(crops, 1)
        assert torch.equal(crops[:, :5, ..., 8:24, :].flip(-1)[:, 4], crops[:, 9, ..., 8:24, :])  # the mirrored centre


def test_samples_of_a_collate_fn_are_torchs() -> None:
    """A user's collate_fn gets a tuple of crops, or the stacked tensor."""
    for end in (T.ToTensor(), lambda crops: torch.stack([TO_TENSOR(crop) for crop in crops])):
        dataset = blobs(4, T.Compose([T.Resize(50), T.FiveCrop(32), end]))
        options: dict[str, Any] = {"batch_size": 2, "collate_fn": lambda samples: [image for image, _ in samples]}
        loader = DataLoader(dataset, **options)
        assert loader.native
        for ours, theirs in zip(loader, TorchDataLoader(dataset, **options), strict=True):
            assert [type(one) for one in ours] == [type(one) for one in theirs]
            assert same([list(one) for one in ours], [list(one) for one in theirs])


def test_without_batches() -> None:
    for end in (T.ToTensor(), lambda crops: torch.stack([TO_TENSOR(crop) for crop in crops])):
        dataset = blobs(3, T.Compose([T.Resize(50), T.FiveCrop(32), end]))
        loader = DataLoader(dataset, None)
        assert loader.native
        ours, theirs = list(loader), list(TorchDataLoader(dataset, None))
        assert same([list(one[0]) for one in ours], [list(one[0]) for one in theirs])


def test_a_small_image_raises_torchvisions_words() -> None:
    dataset = blobs(4, T.Compose([T.Resize((20, 30)), T.FiveCrop(21), T.ToTensor()]))
    with pytest.raises(ValueError, match=r"Requested crop size \(21, 21\) is bigger than input size \(20, 30\)"):
        dataset[0]
    with pytest.raises(Exception, match=r"Requested crop size \(21, 21\) is bigger than input size \(20, 30\)"):
        list(DataLoader(dataset, 2))


def test_lowered_steps_and_names() -> None:
    recipe = lower(T.Compose([T.Resize((9, 9)), T.TenCrop((3, 4)), TO_TENSOR]))
    assert (recipe.packing, len(recipe.views), len(recipe.columns)) == ("tuple", 10, 1)
    assert [len(view.steps) for view in recipe.views] == [2] * 5 + [3] * 5
    assert [how for _, how in recipe.names][1] == "native 10 crops"
    stacked = lower(T.Compose([T.Resize((9, 9)), T.TenCrop((3, 4)), lambda c: torch.stack([TO_TENSOR(x) for x in c])]))
    assert stacked.views == recipe.views
    assert stacked.fingerprint() != recipe.fingerprint()


def test_changed_transforms_of_a_function_are_followed() -> None:
    normalize = T.Normalize([0.5] * 3, [0.5] * 3)
    end = lambda crops: torch.stack([normalize(TO_TENSOR(crop)) for crop in crops])  # noqa: E731
    dataset = blobs(4, T.Compose([T.Resize(50), T.FiveCrop(32), end]))
    loader = DataLoader(dataset, 4)
    first = next(iter(loader))[0]
    normalize.mean = [0.25] * 3
    second = next(iter(loader))[0]
    assert torch.equal(second, torchs(dataset, 4)[0][0])
    assert not torch.equal(first, second)


def recognised(function: Any) -> list[str] | None:
    made = functions_stacked_by(function)
    return None if made is None else [type(one).__name__ for one in made]


def test_functions_that_are_recognised() -> None:
    assert recognised(lambda crops: torch.stack([T.ToTensor()(crop) for crop in crops])) == ["ToTensor"]
    assert recognised(stacks(T)["free names"]) == ["ToTensor", "Normalize"]

    def named(crops: Any) -> torch.Tensor:
        return torch.stack([SHUT(TO_TENSOR(crop)) for crop in crops])

    assert recognised(named) == ["ToTensor", "Normalize"]


def test_functions_that_do_something_else() -> None:
    other, mixed = [TO_TENSOR], {"stack": torch.cat}
    functions: list[Any] = [
        lambda crops: torch.stack([TO_TENSOR(crop) for crop in crops], 1),
        lambda crops: torch.stack([TO_TENSOR(crop) for crop in crops], dim=0),
        lambda crops: torch.cat([TO_TENSOR(crop) for crop in crops]),
        lambda crops: torch.stack([TO_TENSOR(crop) for crop in crops[:2]]),
        lambda crops: torch.stack([TO_TENSOR(crop) for crop in crops if crop]),
        lambda crops: torch.stack([TO_TENSOR(crop) + 1 for crop in crops]),
        lambda crops: torch.stack([TO_TENSOR(crop) for _ in crops for crop in crops]),
        lambda crops: torch.stack([TO_TENSOR(crops[0]) for crop in crops]),
        lambda crops: torch.stack([other[0](crop) for crop in crops]),
        lambda crops: torch.stack([crop for crop in crops]),  # noqa: C416
        lambda crops: torch.stack([TO_TENSOR(crop).half() for crop in crops]),
        lambda crops, more=1: torch.stack([TO_TENSOR(crop) for crop in crops]),
        lambda *crops: torch.stack([TO_TENSOR(crop) for crop in crops]),
        lambda crops: mixed["stack"]([TO_TENSOR(crop) for crop in crops]),
        lambda crops: torch.stack([TO_TENSOR(crop) for crop in crops])[0],
        lambda crops: torch.stack(list(TO_TENSOR(crop) for crop in crops)),  # noqa: C400
        lambda crops: (yield torch.stack([TO_TENSOR(crop) for crop in crops])),
        TO_TENSOR,
        torch.stack,
    ]
    assert [recognised(one) for one in functions] == [None] * len(functions)
    for one in functions[:-2]:
        with pytest.raises(LoweringError, match="the steps after FiveCrop must all be native"):
            lower(T.Compose([T.Resize(50), T.FiveCrop(32), one]))


def test_functions_compiled_apart_from_their_imports_are_recognised() -> None:
    """As in a notebook: up to Python 3.11 they read the function of a module as a method."""
    names = {"torch": torch, "T": T}
    function = eval("lambda crops: torch.stack([T.ToTensor()(crop) for crop in crops])", names)
    steps = functions_stacked_by(function)
    assert steps is not None
    (made,) = steps
    assert isinstance(made, T.ToTensor)


def test_another_torch_is_not_recognised() -> None:
    function = eval("lambda crops: torch.stack([f(c) for c in crops])", {"torch": T, "f": TO_TENSOR})
    assert recognised(function) is None


def test_steps_that_change_one_crop_only_are_refused(torchvision: ModuleType) -> None:
    v1, v2 = torchvision.transforms, torchvision.transforms.v2
    floats = v2.ToDtype(torch.float32, scale=True)
    for home, behind, why in (
        (v1, [v1.ToTensor()], "tuple"),
        (v2, [v2.PILToTensor(), floats], "does not do the same to each of several crops"),
        (v2, [v2.RandomHorizontalFlip(), v2.ToImage()], "only steps without random numbers are native"),
        (v2, [v2.ToImage(), v2.FiveCrop(3)], "FiveCrop"),
        (v2, [], "no step makes a tensor"),
    ):
        transform = home.Compose([home.Resize(50), home.FiveCrop(32), *behind])
        with pytest.raises(LoweringError, match=why):
            lower(transform)
    assert not DataLoader(blobs(4, v2.Compose([v2.Resize(50), v2.FiveCrop(32), v2.PILToTensor(), floats])), 2).native
    with pytest.raises(LoweringError, match="must be the last step"):
        lower(T.Compose([T.FiveCrop(9), T.Views([T.ToTensor(), T.ToTensor()])]))
