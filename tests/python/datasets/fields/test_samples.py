"""`Fields` by plain Python: what ``dataset[i]`` is, what its geometry does, and which arguments it refuses."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from stacks import COUNT, GEOMETRY, MASK, encoded, everything, plain, png
from torch.utils.data import StackDataset, TensorDataset, default_collate

from headrace import Columns, EncodedImages, Fields, ImageArray
from headrace import transforms as T
from support import same

GRAY, RGB = "L", "RGB"


def without_geometry() -> dict[str, Any]:
    files = encoded()
    return {
        "image": EncodedImages(files.images, [*range(COUNT)], plain()),
        "columns": Columns({"a": np.arange(COUNT), "b": torch.rand(COUNT, 2)}),
        "row": np.random.default_rng(0).random((COUNT, 3)),
        "text": [str(i) for i in range(COUNT)],
    }


def test_a_sample_is_a_dict_of_the_fields_samples() -> None:
    fields = without_geometry()
    data = Fields(fields)
    assert len(data) == COUNT and list(data[3]) == list(fields) == list(data.fields)
    for i in (0, 5, -1):
        assert same(data[i], {name: values[i] for name, values in fields.items()})
        assert same(data[i], StackDataset(**fields)[i])
    for index in (COUNT, -COUNT - 1):
        with pytest.raises(IndexError, match="out of range for a dataset of 24 samples"):
            data[index]


def seed(number: int) -> None:
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002 - transforms may draw from it
    torch.manual_seed(number)


def test_the_geometry_draws_once_for_all_images() -> None:
    data = everything()
    files = encoded()
    for i in range(COUNT):
        seed(i)
        sample = data[i]
        after = torch.rand(3)
        seed(i)
        image = GEOMETRY(Image.open(BytesIO(files.images[i])).convert("RGB"))
        image = data.fields["image"].transform(image)
        other = data.fields["other"].transform
        assert same(sample["image"], (image, i))
        seed(i)
        image = GEOMETRY(Image.open(BytesIO(files.images[i])).convert("RGB"))
        data.fields["image"].transform(image)
        assert torch.equal(sample["other"], other(image)) and torch.equal(torch.rand(3), after)
        assert torch.equal(sample["mask"], sample["indices"]) and set(sample["mask"].unique().tolist()) <= {*range(21)}


@pytest.mark.parametrize("library", ["headrace", "v1", "v2"])
def test_masks_take_nearest_pixels_and_pad_with_0(library: str, request: pytest.FixtureRequest) -> None:
    if library == "headrace":
        lib = T
    else:
        vision = request.getfixturevalue("torchvision").transforms
        lib = vision if library == "v1" else vision.v2
    levels = Image.fromarray(np.kron(np.arange(12, dtype=np.uint8).reshape(3, 4) + 100, np.ones((7, 5), np.uint8)))
    filled = lib.Compose([lib.Pad(4, fill=9), lib.RandomCrop(24, padding=8, fill=7), lib.RandomResizedCrop(40)])
    data = Fields(
        {"image": EncodedImages([png(levels)] * 9, mode=GRAY), "mask": EncodedImages([png(levels)] * 9, mode="P")},
        filled,
        ["mask"],
    )
    values: dict[str, set[Any]] = {name: set() for name in ("image", "mask")}
    for i in range(9):
        for name, image in data[i].items():
            assert image.size == (40, 40)
            values[name] |= {*np.unique(np.asarray(image)).tolist()}
    assert values["mask"] == {0, *range(100, 112)} and {7, 9} < values["image"] and len(values["image"]) > 13
    given: Any = filled.transforms[0]
    assert given.fill == 9  # what was given is copied, not changed


def test_a_later_change_of_the_geometry_has_no_effect() -> None:
    flip = T.RandomHorizontalFlip(1.0)
    geometry = T.Compose([flip])
    data = Fields({"image": EncodedImages(encoded().images, transform=T.PILToTensor())}, geometry)
    before = data[0]
    flip.p = 0.0
    assert same(data[0], before)


def test_palettes_keep_their_indices_and_other_modes_are_converted_or_refused() -> None:
    files = encoded()
    for gray, palette in zip(files.gray, files.palette, strict=True):
        levels = np.asarray(Image.open(BytesIO(gray)))
        assert np.array_equal(levels, np.asarray(Image.open(BytesIO(palette))))
        assert np.array_equal(levels, np.asarray(EncodedImages([palette], mode="P")[0]))
        assert np.array_equal(levels, np.asarray(EncodedImages([gray], mode="P")[0]))
        assert np.array_equal(levels, np.asarray(EncodedImages([gray], mode="L")[0]))
        converted = np.asarray(Image.open(BytesIO(palette)).convert("L"))
        assert np.array_equal(converted, np.asarray(EncodedImages([palette], mode="L")[0]))
    with pytest.raises(ValueError, match="image of mode RGB has no palette indices"):
        EncodedImages([files.images[0]], mode="P")[0]
    with pytest.raises(
        ValueError, match=r"mode must be 'RGB', 'L' \(gray levels\) or 'P' \(palette indices\), not 'I;16'"
    ):
        EncodedImages([files.images[0]], mode="I;16")


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda data: pickle.loads(pickle.dumps(data))])
def test_copies(duplicate: Callable[..., Any]) -> None:
    data = everything()
    twin = duplicate(data)
    for i in (0, 7):
        seed(4)
        sample = data[i]
        seed(4)
        assert same(twin[i], sample)


IMAGES = EncodedImages(encoded().images, transform=plain())
REFUSED: dict[str, tuple[tuple[Any, ...], type[Exception], str]] = {
    "no dict": (([IMAGES],), TypeError, "fields must be a dict of datasets and values by name, not list"),
    "nothing": (({},), ValueError, "fields is empty: there is nothing to make samples from"),
    "a number as name": (({1: IMAGES},), TypeError, "the name of a field is a string of at least one letter, not 1"),
    "an empty name": (({"": IMAGES},), TypeError, "string of at least one letter, not ''"),
    "lengths": (
        ({"image": IMAGES, "label": [1, 2]},),
        ValueError,
        "field 'label' has 2 samples, but field 'image' has 24",
    ),
    "one text": (({"text": "abc"},), TypeError, "field 'text' is a str; give a dataset, an array, or a list"),
    "a dict": (({"text": {0: 1}},), TypeError, "field 'text' is a dict; give a dataset"),
    "a generator": (({"x": (i for i in range(3))},), TypeError, "field 'x' is a generator"),
    "masks alone": (({"image": IMAGES}, None, ["image"]), ValueError, "give a geometry, too"),
    "one mask's name": (({"image": IMAGES}, GEOMETRY, "image"), TypeError, "a list of names, not one name: 'image'"),
    "another mask": (
        ({"image": IMAGES}, GEOMETRY, ["mask"]),
        ValueError,
        "masks names 'mask', which is no image field; those are image",
    ),
    "no image": (({"x": [1, 2]}, GEOMETRY), ValueError, "no field is an image dataset that headrace knows"),
    "colours": (
        ({"image": IMAGES}, T.ColorJitter(0.5)),
        TypeError,
        "crops, resizes, flips and pads, .* not ColorJitter",
    ),
    "colours inside": (({"image": IMAGES}, T.RandomApply([T.Grayscale(1)])), TypeError, "not Grayscale"),
    "a tensor's step": (({"image": IMAGES}, T.Compose([T.ToTensor()])), TypeError, "not ToTensor"),
    "a function": (({"image": IMAGES}, lambda image: image), TypeError, "not <function"),
    "an unknown dataset": (
        ({"image": IMAGES, "mask": TensorDataset(torch.zeros(COUNT))}, GEOMETRY),
        TypeError,
        "field 'mask': headrace does not know .*TensorDataset.* A geometry needs fields whose images headrace opens",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    arguments, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words):
        Fields(*arguments)


def test_datasets_with_transforms_of_their_own_cannot_follow_a_geometry() -> None:
    first, second = (
        EncodedImages(encoded().images, transform=plain()),
        EncodedImages(encoded().images, transform=plain(16)),
    )
    joined: Any = torch.utils.data.ConcatDataset([first, second])
    with pytest.raises(TypeError, match="field 'image' joins datasets with transforms of their own"):
        Fields({"image": joined}, GEOMETRY)
    assert len(Fields({"image": joined})) == 2 * COUNT


def test_images_of_different_sizes_are_an_error_of_the_sample() -> None:
    images = ImageArray(np.zeros((3, 375, 500, 3), np.uint8), transform=MASK)
    masks = ImageArray(np.zeros((3, 500, 375), np.uint8), transform=MASK)
    data = Fields({"image": images, "mask": masks}, GEOMETRY, ["mask"])
    with pytest.raises(ValueError, match="image is 500x375, but mask is 375x500; a shared geometry needs equal sizes"):
        data[1]


def test_torchs_collate_takes_the_samples() -> None:
    data = everything()
    batch = default_collate([data[i] for i in range(4)])
    assert batch["mask"].shape == (4, 1, 32, 32) and batch["mask"].dtype == torch.uint8
    assert batch["image"][1].tolist() == [0, 1, 2, 3] and batch["text"][1] == "number 1"
