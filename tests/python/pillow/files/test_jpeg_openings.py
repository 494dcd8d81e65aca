"""JPEG files whose markers are read natively are opened as by Pillow: attributes, order, positions, errors."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import random
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from damage import sound_files
from opening_samples import changed, made_files, unopened
from PIL import Image, ImageFile
from PIL.JpegImagePlugin import JpegImageFile

import headrace
from headrace.pillow.files import jpeg_openings
from headrace.pillow.files.jpeg_openings import OPENINGS
from support import hard_files, silent_pillow

PLAIN = JpegImageFile._open
OPEN: Any = Image.open


def without_addresses(value: object) -> str:
    return re.sub("0x[0-9a-f]+", "", repr(value))


def opened(file: Any, opens: Callable[[Any], Any] = Image.open) -> Any:
    """All that a program can see of an image that has been opened, or the error; and the warnings."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        try:
            with opens(file) as image:
                types = type(image), list(map(type, image.tile)), image.fp.tell()
                own = [(name, without_addresses(value)) for name, value in vars(image).items() if name != "fp"]
                result: Any = types, own, list(map(repr, image.info.items())), dict(image.getexif())
                assert type(image) is not JpegImageFile or image.info.get("comment") is image.app.get("COM")
        except Exception as error:
            result = without_addresses(error)
    at = file.tell() if isinstance(file, io.IOBase) and not file.closed else None
    return result, at, [(one.category, str(one.message)) for one in issued]


def assert_as_pillow(make: Callable[[], Any], opens: Callable[[Any], Any] = Image.open) -> None:
    OPENINGS.put_back()
    expected = opened(make(), opens)
    OPENINGS.replace()
    assert opened(make(), opens) == expected


@pytest.mark.pixels
def test_files_of_all_kinds(native: list[Any], photographs: list[Path]) -> None:
    files = [*made_files(), *sound_files(photographs)]
    for data in files:
        assert_as_pillow(lambda data=data: io.BytesIO(data))  # type: ignore[misc]
    assert len(native) > len(files) / 3


@pytest.mark.pixels
def test_real_files(native: list[Any], imagenet_dev: Path) -> None:
    paths = sorted(imagenet_dev.rglob("*.JPEG"))
    for path in paths:
        assert_as_pillow(lambda path=path: path)  # type: ignore[misc]
    assert len(native) > len(paths) / 2


@pytest.mark.pixels
def test_odd_files(native: list[Any], hard_dev: Path) -> None:
    with silent_pillow():
        for path in hard_files(hard_dev):
            assert_as_pillow(lambda path=path: path)  # type: ignore[misc]
    assert native


@pytest.mark.parametrize("seed", range(4))
def test_damaged_headers(seed: int) -> None:
    """Those that are opened natively are as Pillow opens them; the others, and their files, are as they were."""
    draw, opener, taken = random.Random(seed), jpeg_openings._Opener(PLAIN), 0
    files = [data for data in made_files() if opener.open(unopened(data))]
    for _ in range(2500):
        data, before = changed(draw, files), bytes(draw.choice((0, 0, 7)))
        ours, theirs = unopened(data, before), unopened(data, before)
        as_it_was = list(map(repr, vars(ours).items())), ours.fp.tell()
        if opener.open(ours):
            PLAIN(theirs)
            assert jpeg_openings._described(ours) == jpeg_openings._described(theirs)
            taken += 1
        else:
            assert (list(map(repr, vars(ours).items())), ours.fp.tell()) == as_it_was
    assert taken > 400


def open_again(file: io.BytesIO) -> Any:
    image: Any = Image.open(file)
    image.load()
    file.seek(0)
    image.fp = file
    image._open()
    return image, image.info, image.layer, image.bits


#: What a program does with an image that it opens.
USES: dict[str, Callable[[io.BytesIO], Any]] = {
    "formats": lambda file: OPEN(file, formats=["JPEG"]),
    "formats that it is not": lambda file: OPEN(file, formats=["PNG", "MPO"]),
    "the class": JpegImageFile,
    "pickle": lambda file: pickle.loads(pickle.dumps(OPEN(file))),
    "deepcopy": lambda file: copy.deepcopy(OPEN(file)),
    "copy": lambda file: copy.copy(OPEN(file)),
    "verify": lambda file: (image := OPEN(file), image.verify())[0],
    "seek": lambda file: (image := OPEN(file), image.seek(0), image.seek(1))[0],
    "load": lambda file: (image := OPEN(file), image.load())[0],
    "draft": lambda file: (image := OPEN(file), image.draft("L", (20, 20)))[0],
    "info": lambda file: (image := OPEN(file), image.info.update(jfif=3, own=4))[0].convert("L"),
    "save with its tables": lambda file: OPEN(file).save(made := io.BytesIO(), "JPEG", quality="keep") or made,
    "exif": lambda file: (image := OPEN(file), image.getexif().tobytes(), image._getexif())[1:],
    "opened again": open_again,
}


def seen(made: Any) -> Any:
    if isinstance(made, Image.Image):
        made.load()
        kept = [(name, repr(getattr(made, name, None))) for name in ("layer", "layers", "bits", "app", "quantization")]
        return type(made), made.mode, made.size, made.info, kept, made.tobytes()
    return made.getvalue() if isinstance(made, io.BytesIO) else made


@pytest.mark.pixels
@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize("name", USES)
def test_what_programs_do_with_an_image(name: str, deferred: bool, native: list[Any]) -> None:
    def used(data: bytes) -> Any:
        file = io.BytesIO(data)
        try:
            return seen(USES[name](file))
        except Exception as error:
            return without_addresses(error)

    files = made_files()[-60:]
    OPENINGS.put_back()
    expected = list(map(used, files))
    with headrace.pillow.deferred() if deferred else contextlib.nullcontext():
        OPENINGS.replace()
        assert list(map(used, files)) == expected
    assert native or name == "formats that it is not"


@pytest.mark.pixels
def test_parsers(native: list[Any]) -> None:
    def parsed(data: bytes, step: int) -> Any:
        parser: Any = ImageFile.Parser()
        try:
            for at in range(0, len(data), step):
                parser.feed(data[at : at + step])
            return seen(parser.close())
        except Exception as error:
            return without_addresses(error)

    for data in made_files()[-40:]:
        OPENINGS.put_back()
        expected = parsed(data, 150)
        OPENINGS.replace()
        assert parsed(data, 150) == expected
    assert native
