"""Steps that read an image's metadata get that of its file, as Pillow reads it, when they access it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from PIL import ExifTags, Image, ImageOps
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Subset

from headrace import DataLoader, EncodedImages, ImageFiles
from headrace import transforms as T
from headrace._recipe.images.file_image import FileImage
from headrace.datasets.sources import BlobDataset
from support import PHOTOS, assert_same, recipe_of


def encoded(format: str = "JPEG", mode: str = "RGB", **options: Any) -> bytes:
    out = BytesIO()
    with Image.open(PHOTOS / "cat.jpg") as image:
        image.convert(mode).resize((64, 48)).save(out, format, **options)
    return out.getvalue()


def with_orientation(number: int) -> bytes:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = number
    return encoded(exif=exif.tobytes())


FILES = [
    *map(with_orientation, (1, 3, 6)),
    encoded(icc_profile=b"not one that Pillow reads"),
    encoded(dpi=(300, 300)),
    encoded(comment=b"upside down"),
    encoded(mode="L", dpi=(300, 300)),
    encoded(mode="CMYK", dpi=(300, 300)),
    encoded("PNG", dpi=(300, 300)),
    encoded(),
]


def by_profile(image: Image.Image) -> Image.Image:
    """Uses the common try and except, which hides a missing profile."""
    try:
        return image.rotate(90) if image.info["icc_profile"] else image
    except Exception:
        return image


def by_orientation(image: Image.Image) -> Image.Image:
    return image.rotate(180) if image.getexif().get(274) == 3 else image


def by_resolution(image: Image.Image) -> Image.Image:
    return image.point(lambda value: value // 2) if round(image.info.get("dpi", (0,))[0]) == 300 else image


def by_comment(image: Image.Image) -> Image.Image:
    return ImageOps.flip(image) if image.info.get("comment") else image


STEPS = [by_profile, by_orientation, by_resolution, by_comment, ImageOps.exif_transpose]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("step", STEPS)
def test_equal_to_torch(step: Callable[..., Any], workers: int) -> None:
    dataset = EncodedImages(FILES, range(len(FILES)), T.Compose([step, T.Resize((24, 24)), T.ToTensor()]))
    for data in (dataset, Subset(dataset, [5, 4, 4, 3, 2])):
        loader = DataLoader(data, 4, num_workers=workers)
        assert loader.native
        expected = list(TorchDataLoader(data, 4))
        assert_same(loader, expected)
        assert_same(loader.reference(), expected)
        loader.verify()


def test_files_and_steps_that_make_the_tensor(tmp_path: Path) -> None:
    paths = []
    for number, data in enumerate(FILES):
        paths.append(tmp_path / str(number))
        paths[-1].write_bytes(data)
    whole = T.Compose([T.Resize(20), lambda image: T.ToTensor()(ImageOps.exif_transpose(image).resize((9, 9)))])
    dataset = ImageFiles(paths, transform=whole)
    loader = DataLoader(dataset, 3, num_workers=2)
    assert loader.native
    assert_same(loader, list(TorchDataLoader(dataset, 3)))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *[("Resize", [40]), ("RandomHorizontalFlip", [1.0]), ("RandomResizedCrop", [32]), ("RandomEqualize", [1.0])],
        *[("Pad", [3]), ("Grayscale", [3]), ("ColorJitter", [0.5]), ("GaussianBlur", [3])],
    ],
)
def test_metadata_goes_through_the_steps_that_keep_it(name: str, options: list[Any], torchvision: ModuleType) -> None:
    """Pillow's methods keep the metadata; some transforms make a new image without it."""
    before, theirs = (getattr(home, name)(*options) for home in (T, torchvision.transforms))
    carried = []
    for step in (theirs, before):
        with Image.open(BytesIO(FILES[4])) as image:
            carried.append("dpi" in step(image.convert("RGB")).info)
    tail: list[Any] = [by_resolution, T.Resize((24, 24)), T.ToTensor()]
    dataset = EncodedImages(FILES, None, T.Compose([before, *tail]))
    loader = DataLoader(dataset, 4, seed=1)
    assert loader.native
    (call,) = recipe_of(loader).calls
    assert call.metadata is carried[0]
    assert_same(loader, list(loader.reference()))


@pytest.mark.parametrize(
    "before", [T.CenterCrop(40), T.RandomApply([T.ColorJitter(0.5)], p=0.5), T.RandomGrayscale(0.5), by_comment]
)
def test_what_may_or_may_not_carry_metadata_is_left_to_torch(before: Any) -> None:
    dataset = EncodedImages(FILES, None, T.Compose([before, by_resolution, T.Resize((24, 24)), T.ToTensor()]))
    loader = DataLoader(dataset, 4)
    assert not loader.native
    assert "by_resolution" in str(loader.explain()) and "may look at metadata" in str(loader.explain())


def test_nothing_is_read_that_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[BlobDataset, int]] = []
    original = BlobDataset.metadata

    def counted(self: BlobDataset, index: int) -> dict[Any, Any]:
        read.append((self, index))
        return original(self, index)

    monkeypatch.setattr(BlobDataset, "metadata", counted)
    tail = [T.Resize((24, 24)), T.ToTensor()]
    quarter = lambda image: image.crop((0, 0, 30, 30)).rotate(90).resize((20, 20))  # noqa: E731
    unread = EncodedImages(FILES, None, T.Compose([quarter, *tail]))
    list(DataLoader(unread, 4))
    assert [index for data, index in read if data is unread] == []
    asked = EncodedImages(FILES[:3], None, T.Compose([by_orientation, *tail]))
    list(DataLoader(asked, 4))
    assert [index for data, index in read if data is asked] == [0, 1, 2]


def test_an_image_with_the_metadata_of_its_file_is_an_image_as_any() -> None:
    image = FileImage.of(Image.new("RGB", (8, 6), (1, 2, 3)), lambda: {"dpi": (72, 72)})
    cropped = image.crop((0, 0, 4, 4))
    for one in (image, cropped, cropped.resize((2, 2)), copy.deepcopy(image), pickle.loads(pickle.dumps(image))):
        assert isinstance(one, Image.Image) and one.info == {"dpi": (72, 72)}
    image.info["dpi"] = (1, 1)
    assert image.copy().info == {"dpi": (1, 1)} and cropped.info == {"dpi": (72, 72)}
    assert torch.equal(T.PILToTensor()(cropped), T.PILToTensor()(Image.new("RGB", (4, 4), (1, 2, 3))))
