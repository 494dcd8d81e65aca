"""Deferred images are Pillow's: pixels, types, attributes, errors and files."""

from __future__ import annotations

import copy
import io
import pickle
import random
import threading
import warnings
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageOps
from PIL.JpegImagePlugin import JpegImageFile
from torch.utils.data import DataLoader

import headrace
from headrace._base.native import core
from headrace.pillow.deferred_image import is_deferred
from own_dataset import OwnDataset
from support import assert_same, descriptors, hard_files, silent_pillow

FILTERS = list(Image.Resampling)[:6]


@pytest.fixture
def file(photographs: list[Path]) -> Path:
    return photographs[0]


def step(image: Any, random: random.Random) -> Any:
    """A random operation, recorded or not."""
    width, height = image.size
    left, top = random.randint(-3, width // 2), random.randint(-3, height // 2)
    size = random.randint(1, 90), random.randint(1, 90)
    return random.choice(
        [
            lambda: image.crop((left, top, left + width // 2 + 1, top + height // 3 + 1)),
            lambda: image.crop((left + 0.4, top, left + size[0] + 0.7, top + size[1])),
            lambda: image.resize(size, random.choice(FILTERS)),
            lambda: image.resize(size, Image.Resampling.BICUBIC, box=(0, 0, width / 2, height)),
            lambda: image.resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0),
            lambda: image.transpose(random.choice(list(Image.Transpose))),
            lambda: image.convert(random.choice(["RGB", "L", "HSV", "YCbCr", "P"])).convert("RGB"),
            lambda: image.copy(),
            lambda: image.rotate(random.choice([90, 180, 17]), expand=random.random() < 0.5),
            lambda: ImageOps.fit(image, size),
            lambda: ImageOps.mirror(image),
            lambda: image.reduce(2) if min(width, height) > 4 else image,
        ]
    )()


def same(ours: Any, theirs: Any) -> None:
    assert (ours.size, ours.mode, ours.info, ours.format) == (theirs.size, theirs.mode, theirs.info, theirs.format)
    assert repr(ours).split(" at ")[0] == repr(theirs).split(" at ")[0]
    assert np.array_equal(np.asarray(ours), np.asarray(theirs))
    assert ours.tobytes() == theirs.tobytes()  # after numpy's access, which makes no Pillow pixels
    assert type(ours) is type(theirs)


@pytest.mark.pixels
@pytest.mark.parametrize("seed", range(40))
def test_random_chains_are_pillows(seed: int, photographs: list[Path]) -> None:
    path = photographs[seed % len(photographs)]
    ours: Image.Image = headrace.pillow.open(path)
    theirs: Image.Image = Image.open(path)
    one, other = random.Random(seed), random.Random(seed)
    small = (200, 150)
    ours, theirs = ours.resize(small), theirs.resize(small)
    for _ in range(one.randint(1, 6) + 0 * other.randint(1, 6)):
        ours, theirs = step(ours, one), step(theirs, other)
        assert (ours.size, ours.mode) == (theirs.size, theirs.mode)
    same(ours, theirs)


@pytest.mark.pixels
def test_crops_of_real_files(imagenet_dev: Path) -> None:
    for number, path in enumerate(sorted(imagenet_dev.rglob("*.JPEG"))):
        made = []
        for open_ in (headrace.pillow.open, Image.open):
            draw = random.Random(number)
            image = open_(path).convert("RGB")
            left, top = draw.randrange(image.width // 2), draw.randrange(image.height // 2)
            box = left, top, draw.randint(left + 1, image.width), draw.randint(top + 1, image.height)
            made.append(image.crop(box).resize((64, 48), draw.choice(FILTERS)).transpose(draw.randrange(7)))  # type: ignore[arg-type]
        same(*made)


def type_of(image: Any) -> type:
    with image:
        return type(image)


def deferred_in(image: Any) -> bool:
    with image:
        return is_deferred(image)


def outcome(open_: Any, path: Path) -> Any:
    try:
        with open_(path) as image:
            return np.asarray(image.convert("RGB")).tobytes(), image.size, image.mode, sorted(map(str, image.info))
    except Exception as error:
        return type(error), str(error)


def test_odd_and_broken_files(hard_dev: Path) -> None:
    with silent_pillow(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = hard_files(hard_dev)
        different = [path.name for path in files if outcome(headrace.pillow.open, path) != outcome(Image.open, path)]
    assert different == []
    assert len(files) > 300


def test_a_chain_is_not_decoded_before_its_pixels_are_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = headrace.pillow.open(file)
    assert is_deferred(image) and type(image) is JpegImageFile
    chain = image.convert("RGB").crop((10, 20, 110, 100)).resize((30, 30)).transpose(Image.Transpose.ROTATE_90)
    image.load()
    assert is_deferred(chain) and type(chain) is Image.Image and chain.size == (30, 30)
    assert is_deferred(image)
    decoded: list[Any] = []
    native = core.decode_fuse

    def decode_fuse(*args: Any) -> Any:
        decoded.append(args[1])
        return native(*args)

    monkeypatch.setattr(core, "decode_fuse", decode_fuse)
    chain.tobytes()
    assert [stage["box"] for stage in decoded[0]["stages"]] == [(10, 20, 100, 80)] and len(decoded) == 1
    assert not is_deferred(chain) and type(chain) is Image.Image
    same(
        chain,
        Image.open(file).convert("RGB").crop((10, 20, 110, 100)).resize((30, 30)).transpose(Image.Transpose.ROTATE_90),
    )


def value(image: Image.Image) -> Any:
    """A pixel, by what `load` returns."""
    access: Any = image.load()
    return access[3, 4]


def test_files_are_closed_as_pillow_does(file: Path) -> None:
    before = descriptors()
    images = [headrace.pillow.open(file) for _ in range(5)]
    assert descriptors() == before + 5
    assert [value(image) for image in images] == [value(Image.open(file))] * 5
    assert descriptors() == before
    with headrace.pillow.open(file) as image:
        small = image.resize((9, 9))
    same(small, Image.open(file).resize((9, 9)))
    closed = headrace.pillow.open(file)
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        closed.convert("RGB").tobytes()
    with pytest.raises(ValueError, match="closed"):
        plain = Image.open(file)
        plain.close()
        plain.convert("RGB").tobytes()


def test_errors_are_raised_where_pillow_raises_them(file: Path) -> None:
    calls = [
        lambda image: image.resize((0, 5)),
        lambda image: image.resize((5, 5), 99),
        lambda image: image.resize((5, 5), box=(0, 0, 10_000, 5)),
        lambda image: image.resize("ab"),
        lambda image: image.crop((5, 0, 1, 1)),
        lambda image: image.transpose(9),
        lambda image: image.convert("nothing"),
        lambda image: image.getpixel((10_000, 0)),
    ]
    for call in calls:
        raised = []
        for open_ in (headrace.pillow.open, Image.open):
            with open_(file) as image, pytest.raises(Exception) as error:
                call(image)
            raised.append((error.type, str(error.value)))
        assert raised[0] == raised[1]


def test_a_truncated_file(file: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.jpg"
    cut.write_bytes(file.read_bytes()[:-2000])
    with headrace.pillow.open(cut) as image, pytest.raises(OSError, match="truncated"):
        image.load()
    damaged = bytearray(file.read_bytes())
    middle = len(damaged) // 2
    damaged[middle : middle + 60] = bytes(60)
    cut.write_bytes(damaged)
    assert outcome(headrace.pillow.open, cut) == outcome(Image.open, cut)


def test_in_place_changes_reach_one_image(file: Path) -> None:
    image = headrace.pillow.open(file).resize((20, 20))
    half = image.crop((0, 0, 10, 20))
    ImageDraw.Draw(image).rectangle((0, 0, 9, 9), fill=(1, 2, 3))
    pixels = image.load()
    assert pixels is not None
    pixels[15, 15] = (4, 5, 6)
    expected = Image.open(file).resize((20, 20))
    same(half, expected.crop((0, 0, 10, 20)))
    assert image.getpixel((3, 3)) == (1, 2, 3) and image.getpixel((15, 15)) == (4, 5, 6)
    image.paste(half, (10, 0))
    assert image.crop((10, 0, 20, 20)) == half


def test_copies_pickles_and_equality(file: Path) -> None:
    expected = Image.open(file).convert("L").resize((31, 17))
    for copied in (copy.copy, copy.deepcopy, lambda image: pickle.loads(pickle.dumps(image)), Image.Image.copy):
        same(copied(headrace.pillow.open(file).convert("L").resize((31, 17))), expected)
    small = headrace.pillow.open(file).convert("L").resize((31, 17))
    assert small == expected and expected == headrace.pillow.open(file).convert("L").resize((31, 17))
    assert small != expected.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    same(pickle.loads(pickle.dumps(headrace.pillow.open(file))), pickle.loads(pickle.dumps(Image.open(file))))


def test_what_is_not_deferred(file: Path, tmp_path: Path) -> None:
    inks = tmp_path / "cmyk.jpg"
    Image.open(file).convert("CMYK").save(inks)
    png = tmp_path / "a.png"
    Image.open(file).save(png)
    assert not deferred_in(headrace.pillow.open(inks))
    assert type_of(headrace.pillow.open(png)) is type_of(Image.open(png))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(file, "a.jpg")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive, archive.open("a.jpg") as inner:
        assert not is_deferred(headrace.pillow.open(inner))
    drafted, plain = headrace.pillow.open(file), Image.open(file)
    for image in (drafted, plain):
        image.draft("RGB", (image.width // 4, image.height // 4))
    same(drafted.resize((20, 20)), plain.resize((20, 20)))
    thumbnails = headrace.pillow.open(file), Image.open(file)
    for image in thumbnails:
        image.thumbnail((50, 50))
    same(*thumbnails)


def test_file_objects(file: Path) -> None:
    expected = Image.open(file).convert("RGB").resize((40, 30))
    with file.open("rb") as stream:
        image = headrace.pillow.open(stream)
        made = image.convert("RGB")
        assert not stream.closed and image.fp is None
    same(made.resize((40, 30)), expected)
    same(headrace.pillow.open(io.BytesIO(file.read_bytes())).convert("RGB").resize((40, 30)), expected)


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.processes)])
def test_torchs_loader_delivers_the_same_batches(
    T: ModuleType, photographs: list[Path], torchvision: ModuleType, workers: int
) -> None:
    """Random numbers included: torchvision draws them as before."""
    steps = [T.RandomResizedCrop(48), T.RandomHorizontalFlip(), T.ColorJitter(0.3), T.RandomRotation(20)]
    steps += [T.ToTensor(), T.Normalize([0.5] * 3, [0.2] * 3)] if T is torchvision.transforms else [T.PILToTensor()]
    data = OwnDataset(photographs * 3, T.Compose(steps))

    def epoch() -> list[Any]:
        torch.manual_seed(4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # v2 deprecates some of the names
            return list(DataLoader(data, 4, shuffle=True, num_workers=workers))

    expected = epoch()
    with headrace.pillow.deferred():
        assert assert_same(epoch(), expected) == len(expected)


def test_many_crops_of_one_file_decode_it_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []

    def noted(kind: str, native: Callable[..., Any]) -> Callable[..., Any]:
        def decode(*arguments: Any) -> Any:
            decoded.append(kind)
            return native(*arguments)

        return decode

    monkeypatch.setattr(core, "decode_whole", noted("whole", core.decode_whole))
    monkeypatch.setattr(core, "decode_fuse", noted("crop", core.decode_fuse))
    image, plain = headrace.pillow.open(file).convert("RGB"), Image.open(file).convert("RGB")
    for number in range(6):
        box = number, 2 * number, number + 40, 2 * number + 30
        same(image.crop(box).resize((20, 20)), plain.crop(box).resize((20, 20)))
        same(image.crop(box), plain.crop(box))
    assert decoded == ["crop", "crop", "whole"]


def test_threads_share_deferred_images(file: Path) -> None:
    """Some record further operations while others make the pixels, of the file and of what was recorded."""
    want = Image.open(file).crop((3, 4, 90, 80)).tobytes()
    half = Image.open(file).resize((50, 40)).tobytes()
    with ThreadPoolExecutor(4) as pool:
        for _ in range(30):
            image = headrace.pillow.open(file)
            small = headrace.pillow.open(file).resize((50, 40))
            start = threading.Barrier(4)

            def work(number: int, image: Any = image, small: Any = small, start: Any = start) -> tuple[bytes, bytes]:
                start.wait()
                if number == 3:
                    return image.load() and image.crop((3, 4, 90, 80)).tobytes(), small.tobytes()
                crop = image.crop((3, 4, 90, 80))
                return crop.tobytes(), small.copy().tobytes() if number else np.asarray(small).tobytes()

            assert set(pool.map(work, range(4))) == {(want, half)}


def test_install_and_uninstall(file: Path) -> None:
    plain = Image.open
    with headrace.pillow.deferred():
        assert deferred_in(Image.open(file))
        with headrace.pillow.deferred():
            pass
        assert deferred_in(Image.open(file))
    assert Image.open is plain and not deferred_in(Image.open(file))
    headrace.pillow.install()
    headrace.pillow.install()
    ours = Image.open
    try:
        Image.open = lambda *args, **options: ours(*args, **options)  # another library's
        headrace.pillow.uninstall()
        assert not deferred_in(Image.open(file))
    finally:
        Image.open = plain
    headrace.pillow.uninstall()
    assert Image.open is plain
