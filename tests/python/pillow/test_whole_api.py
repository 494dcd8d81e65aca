"""Random sequences of all public methods and attributes of Pillow's classes: results, errors, warnings and state."""

from __future__ import annotations

import os
import random
import warnings
from pathlib import Path
from typing import Any

import pytest
from api_calls import CALLS, LEFT_OUT
from damage import sound_files
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

import headrace
from png_samples import KINDS, TEXTS, png

SEQUENCES = int(os.environ.get("HEADRACE_SEQUENCES", "4000"))
NAMES = sorted(name for name in {*dir(Image.Image), *dir(JpegImageFile)} if not name.startswith("_"))
# Those after which Pillow has the pixels come late, or the others would rarely see an image without pixels.
DEFERRED = ["convert", "copy", "crop", "draft", "load", "mode", "readonly", "resize", "rotate", "size", "transpose"]


@pytest.fixture(scope="module")
def files(photographs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("files")
    made = []
    for number, data in enumerate(sound_files(photographs)[:-1]):
        made.append(folder / f"{number}.jpg")
        exif = bytes.fromhex("ffe1002245786966000049492a00080000000100120103000100000006000000") + bytes(4)
        made[-1].write_bytes(data[:2] + exif + data[2:] if number % 3 == 0 else data)
    for number, (colour, depth) in enumerate(KINDS):
        made.append(folder / f"{number}.png")
        made[-1].write_bytes(png(90 + number, 80, colour, depth, before=TEXTS, after=TEXTS))
    return made


def state(image: Any) -> Any:
    """What can be seen of an image without touching its pixels."""
    try:
        readonly = image.readonly
    except ValueError as error:  # closed
        readonly = str(error)
    own = image.__dict__
    file = own.get("fp")
    closed = file is None, file is None or file.closed
    about = image.size, image.mode, image.format, sorted(map(str, image.info)), image.palette is None
    return about, readonly, closed, own.get("tile"), own.get("decoderconfig"), repr(image).split(" at ")[0]


def shown(value: Any) -> Any:
    """A result as something that can be compared; pixels of an image included."""
    if isinstance(value, Image.Image):
        return value.mode, value.size, value.tobytes(), sorted(value.info), state(value)
    if isinstance(value, (tuple, list)):
        return [shown(one) for one in value]
    return value


def said(error: Exception) -> tuple[type, str]:
    return type(error), str(error).split(" at 0x")[0]


def run(open_: Any, path: Path, seed: int) -> list[Any]:
    """What a sequence did. Images that it made are looked at when all calls have been made, so they stay deferred."""
    draw, made = random.Random(seed), []
    image = open_(path)
    for step in range(draw.randint(1, 7)):
        names = DEFERRED if step < 3 and draw.random() < 0.6 else [name for name in NAMES if name in CALLS]
        name = draw.choice(names)
        with warnings.catch_warnings(record=True) as issued:
            warnings.simplefilter("always")
            try:
                value = CALLS[name](image, draw)
            except Exception as error:
                value = said(error)
        made.append((name, value, [str(one.message) for one in issued], state(image)))
        if isinstance(value, Image.Image) and draw.random() < 0.7:
            image = value
    try:
        made.append(("end", image, [], state(image)))
        return [(name, shown(value), *rest) for name, value, *rest in made]
    except Exception as error:
        return [*[(name, *rest) for name, _, *rest in made], said(error)]
    finally:
        image.close()


def differences(files: list[Path], seeds: range) -> list[Any]:
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's warnings, and those about unclosed files
        for seed in seeds:
            path = files[seed % len(files)]
            ours, theirs = run(headrace.pillow.open, path, seed), run(Image.open, path, seed)
            if ours != theirs:
                step = next((pair for pair in zip(ours, theirs, strict=False) if pair[0] != pair[1]), None)
                found.append((seed, [one[0] for one in theirs], str(step)[:1500]))
    return found


def test_each_public_name_is_called_or_left_out_for_a_reason() -> None:
    assert [name for name in NAMES if name not in CALLS and name not in LEFT_OUT] == []
    assert not CALLS.keys() & LEFT_OUT.keys()


def test_random_sequences(files: list[Path]) -> None:
    assert differences(files, range(500))[:3] == []


@pytest.mark.slow
def test_more_random_sequences(files: list[Path]) -> None:
    assert differences(files, range(500, SEQUENCES))[:3] == []


def test_each_name_on_a_file_and_after_a_crop(files: list[Path]) -> None:
    """On its own, so that the error of another one hides none."""
    for number, (name, call) in enumerate(CALLS.items()):
        for before in (lambda image: image, lambda image: image.crop((3, 4, 40, 30)), lambda image: image.convert("L")):
            made = []
            for open_ in (headrace.pillow.open, Image.open):
                with warnings.catch_warnings(), open_(files[number % len(files)]) as file:
                    warnings.simplefilter("ignore")
                    image = before(file)
                    try:
                        value = shown(call(image, random.Random(number)))
                    except Exception as error:
                        value = said(error)
                    made.append((value, state(image)))
            assert made[0] == made[1], name
