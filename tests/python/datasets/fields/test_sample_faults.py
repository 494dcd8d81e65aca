"""Broken files, fields that disagree, and masks without indices: raised with the field's name, skipped or replaced."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from stacks import COUNT, GEOMETRY, MASK, encoded, plain, png

from headrace import DataLoader, EncodedImages, Fields, ImageArray, ImageFiles, SampleError
from headrace import transforms as T
from pinned_memory import pinned_memory
from support import hard_files, judge, same, silent_pillow, truncated

BAD_IMAGES, BAD_MASKS = (4, 9), (9, 13, 14)


def damaged(geometry: Any = GEOMETRY) -> Fields:
    files = encoded()
    images = [truncated(data) if i in BAD_IMAGES else data for i, data in enumerate(files.images)]
    masks = [truncated(data) if i in BAD_MASKS else data for i, data in enumerate(files.palette)]
    rng = np.random.default_rng(0)
    fields = {
        "image": EncodedImages(images, [*range(COUNT)], T.Compose([T.Resize((32, 32)), T.ToTensor()])),
        "mask": EncodedImages(
            masks, transform=T.Compose([T.Resize((32, 32), T.InterpolationMode.NEAREST), MASK]), mode="P"
        ),
        "row": rng.random((COUNT, 5)),
        "large": rng.integers(0, 256, (COUNT, 3000), np.uint8),
        "text": [f"text {i}" for i in range(COUNT)],
    }
    return Fields(fields, geometry, ["mask"] if geometry else [])


def assert_equal(loader: DataLoader[Any], expected: list[Any]) -> None:
    assert same(list(loader), expected)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_names_the_field_and_the_sample(workers: int) -> None:
    loader = DataLoader(damaged(), 1, seed=1, num_workers=workers)
    iterator = iter(loader)
    for index in range(COUNT):
        if index not in BAD_IMAGES + BAD_MASKS:
            assert next(iterator)["text"] == [f"text {index}"]
            continue
        field = "image" if index in BAD_IMAGES else "mask"
        with pytest.raises(OSError, match=rf"sample {index} \({field}: blob {index} in memory, ") as raised:
            next(iterator)
        assert isinstance(raised.value, SampleError) and raised.value.index == index
        assert isinstance(raised.value.__cause__, OSError)


@pytest.mark.parametrize("device", [None, "emulated"])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_sample_fails_if_any_field_does(on_error: str, workers: int, device: str | None) -> None:
    options: dict[str, Any] = {
        "on_error": on_error,
        "num_workers": workers,
        "device": device,
        "seed": 1,
        "shuffle": True,
    }
    for batch_size in (5, 1):
        loader = DataLoader(damaged(), batch_size, **options)
        expected = list(loader.reference())
        with pytest.warns(UserWarning, match="4 samples could not be made"):
            assert_equal(loader, expected)
        assert sorted(one.index for one in loader.errors) == [4, 9, 13, 14]
        count = sum(len(one["text"]) for one in expected)
        assert count == (COUNT - 4 if on_error == "skip" else COUNT)
        if on_error == "replace":
            assert "text 5" in [text for one in expected for text in one["text"]]


def test_pinned_rows_are_replaced() -> None:
    """As on a machine with an accelerator, where gathered rows are in one block of memory."""
    with pinned_memory():
        loader = DataLoader(damaged(), 5, seed=1, num_workers=1, on_error="replace", pin_memory=True)
        expected = list(loader.reference())
        with pytest.warns(UserWarning, match="4 samples could not be made"):
            assert_equal(loader, expected)


@pytest.mark.parametrize("workers", [0, 2])
def test_images_of_different_sizes_do_not_share_a_geometry(workers: int) -> None:
    files, odd = encoded(), (3, 8)
    turned = [
        png(Image.open(BytesIO(one)).rotate(90, expand=True)) if i in odd else one for i, one in enumerate(files.gray)
    ]
    fields: dict[str, Any] = {
        "image": EncodedImages(files.images, transform=T.ToTensor()),
        "mask": EncodedImages(turned, transform=MASK, mode="L"),
        "x": [*range(COUNT)],
    }
    data = Fields(fields, GEOMETRY, ["mask"])
    loader = DataLoader(data, 6, seed=1, num_workers=workers, on_error="skip")
    expected = list(loader.reference())
    with pytest.warns(UserWarning, match="2 samples could not be made"):
        assert_equal(loader, expected)
    for error in loader.errors:
        with pytest.raises(ValueError, match="a shared geometry needs equal sizes") as raised:
            data[error.index]
        assert isinstance(error, ValueError) and error.reason == str(raised.value) and error.stage == "plan"
        assert (
            error.location
            == f"image: {fields['image'].location(error.index)}, mask: {fields['mask'].location(error.index)}"
        )
    assert [error.index for error in loader.errors] == [*odd]
    replaced = DataLoader(data, 6, seed=1, num_workers=workers, on_error="replace")
    expected = list(replaced.reference())
    with pytest.warns(UserWarning, match="2 samples could not be made"):
        assert_equal(replaced, expected)


def rotated(image: Image.Image) -> Image.Image:
    return image.rotate(90)


@pytest.mark.parametrize("step", [[], [rotated]], ids=["native", "a step in Python"])
@pytest.mark.parametrize("device", [None, "emulated"])
def test_sizes_are_known_of_every_kind_of_image(step: list[Any], device: str | None) -> None:
    rng = np.random.default_rng(0)
    end = T.Compose([*step, T.Resize((8, 8)), T.ToTensor()])
    with Image.open(BytesIO(encoded().images[0])) as first:
        width, height = first.size
    sizes = {"equal": (height, width), "other": (height + 1, width)}
    for name, size in sizes.items():
        pixels = ImageArray(rng.integers(0, 256, (1, *size, 3), np.uint8), transform=end)
        for data in (encoded().images[0], png(Image.new("RGB", (width, height)))):
            samples = Fields({"a": EncodedImages([data], transform=end), "b": pixels}, T.RandomHorizontalFlip())
            loader = DataLoader(samples, 1, num_workers=1, device=device, seed=0)
            if name == "equal":
                assert next(iter(loader))["a"].shape == (1, 3, 8, 8)
            else:
                with pytest.raises(ValueError, match="a is 90x90, but b is 90x91; a shared"):
                    next(iter(loader))


def test_without_a_geometry_sizes_may_differ() -> None:
    pixels = ImageArray(np.zeros((COUNT, 9, 7), np.uint8), transform=plain())
    loader = DataLoader(
        Fields({"a": EncodedImages(encoded().images, transform=plain()), "b": pixels}), 6, num_workers=1
    )
    assert_equal(loader, list(loader.reference()))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_mask_without_indices_fails(workers: int) -> None:
    loader = DataLoader(
        Fields({"mask": EncodedImages(encoded().images, transform=plain(), mode="P")}), 1, num_workers=workers
    )
    assert loader.native
    with pytest.raises(ValueError, match=r"sample 0 \(mask: blob 0 .*an image of mode RGB has no palette indices"):
        next(iter(loader))


def test_too_many_errors_end_the_epoch() -> None:
    with pytest.raises(RuntimeError, match=r"more than max_errors=2.*mask: blob"):
        list(DataLoader(damaged(), 5, on_error="skip", max_errors=2, num_workers=1))


@pytest.mark.parametrize("mode", ["RGB", "L", "P"])
def test_odd_files_in_every_mode(hard_dev: Path, mode: str) -> None:
    """The same pixels and the same verdicts as Pillow's, whatever the file."""
    paths = [path for path in hard_files(hard_dev) if path.stat().st_size < 300_000]
    good = {*judge(paths)[0]}
    end = T.Compose([T.Resize((24, 24)), T.PILToTensor()])
    data = Fields({"image": ImageFiles(paths, transform=end, mode=mode), "name": [path.name for path in paths]})
    loader = DataLoader(data, 4, num_workers=2, on_error="skip", max_errors=None)
    with pytest.warns(UserWarning, match="could not be made"), silent_pillow():
        expected = list(loader.reference())
        assert_equal(loader, expected)
        made = {name for batch in expected for name in batch["name"]}
        assert made <= {path.name for path in good} if mode != "P" else made
        failed = {paths[error.index].name for error in loader.errors}
    assert made | failed == {path.name for path in paths} and not made & failed
