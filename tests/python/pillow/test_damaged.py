"""Errors of damaged files: those of Pillow, raised by the calls that raise them in Pillow."""

from __future__ import annotations

import io
import os
import random
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from damage import DAMAGES, damaged, segments, sound_files
from PIL import Image, ImageFile

import headrace
from headrace._base.native import core
from headrace.pillow.deferred_image import is_deferred
from support import hard_files, silent_pillow

MORE = int(os.environ.get("HEADRACE_DAMAGED_FILES", "4000"))


@pytest.fixture(scope="module")
def sound(photographs: list[Path]) -> list[bytes]:
    return sound_files(photographs)


@pytest.fixture(params=[False, True], ids=["strict", "LOAD_TRUNCATED_IMAGES"])
def truncated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", request.param)
    with silent_pillow(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield request.param


CALLS = {
    "load": lambda image: image.load() and None,
    "convert": lambda image: image.convert("RGB"),
    "gray": lambda image: image.convert("L"),
    "copy": lambda image: image.copy(),
    "crop": lambda image: image.crop((3, 4, 40, 30)),
    "outside": lambda image: image.crop((-3, 4, 4000, 30)),
    "resize": lambda image: image.resize((21, 13)),
    "transpose": lambda image: image.transpose(Image.Transpose.ROTATE_90),
    "thumbnail": lambda image: image.thumbnail((30, 30)),
    "draft": lambda image: image.draft("L", (20, 20)) and None,
    "tobytes": lambda image: image.tobytes(),
}


def outcomes(open_: Any, data: bytes, names: list[str]) -> list[Any]:
    """What each call did. The pixels are read after all of them, so an error that comes late stands elsewhere."""
    made: list[Any] = []
    try:
        image = open_(io.BytesIO(data))
    except Exception as error:
        return [(type(error), str(error).split("<_io")[0])]
    for name in names:
        try:
            made.append(CALLS[name](image))
        except Exception as error:
            made.append((type(error), str(error)))
        made.append((image.size, image.mode, image.tile, image.fp is None, image.readonly))
    return [(one.size, one.mode, one.tobytes()) if isinstance(one, Image.Image) else one for one in made]


def compared(sound: list[bytes], seeds: range) -> Counter[str]:
    """Compares deferred images with Pillow's; counts what Pillow did."""
    count: Counter[str] = Counter()
    for seed in seeds:
        draw = random.Random(seed)
        data = damaged(sound[seed % len(sound)], draw)
        names = draw.choices(list(CALLS), k=3)
        theirs = outcomes(Image.open, data, names)
        assert outcomes(headrace.pillow.open, data, names) == theirs, (seed, names)
        first = theirs[0]
        failed = isinstance(first, tuple) and isinstance(first[0], type)
        count["plain" if core.jpeg_header(data)["not_plain"] is None else "refused"] += 1
        count["open" if len(theirs) == 1 else "raised" if failed else "decoded"] += 1
    return count


def test_each_call_raises_what_it_raises_in_pillow(sound: list[bytes], truncated: bool) -> None:
    count = compared(sound, range(600))
    assert min(count[kind] for kind in ("plain", "refused", "open", "decoded")) > 40
    assert (count["raised"] > 40) != truncated


@pytest.mark.slow
def test_more_damaged_files(sound: list[bytes], truncated: bool) -> None:
    assert compared(sound, range(600, MORE))["plain"] > (MORE - 600) // 6


def test_every_damage_to_every_kind_of_file(sound: list[bytes], truncated: bool) -> None:
    for seed, damage in enumerate(DAMAGES * 2):
        for number, data in enumerate(sound):
            broken = damage(data, random.Random(f"{seed} {number}"))
            names = ["load", "crop", "tobytes"]
            theirs = outcomes(Image.open, broken, names)
            assert outcomes(headrace.pillow.open, broken, names) == theirs, (damage.__name__, number)


def test_pillow_raises_nothing_about_a_plain_header(sound: list[bytes], truncated: bool) -> None:
    """See Note [plain files]: random bytes in place of all entropy-coded data, of each scan or of the intervals."""
    draw, native, images = random.Random(1), 0, 0
    for data in sound * 12:
        broken = bytearray(data)
        for number, (marker, begin) in enumerate(parts := segments(data)):
            if marker == 0xDA:
                first = begin + 2 + int.from_bytes(data[begin + 2 : begin + 4], "big")
                share = draw.choice([1.0, 0.5, 0.01])
                for at in range(first, parts[number + 1][1]):
                    if draw.random() < share and 0xFF not in data[at - 1 : at + 2]:
                        broken[at] = draw.randrange(255)
        broken_data = bytes(broken)
        assert core.jpeg_header(broken_data)["not_plain"] is None
        expected = Image.open(io.BytesIO(broken_data)).tobytes()
        image = headrace.pillow.open(io.BytesIO(broken_data))
        image.load()
        assert is_deferred(image)
        assert image.tobytes() == expected
        images += 1
        try:
            core.decode_crop(broken_data, 0, 0, *image.size)
            native += 1
        except core.NeedsPillow:
            pass
    assert 0 < native < images


def test_a_training_loop_finds_bad_files_where_it_opens_them(sound: list[bytes]) -> None:
    """``try: Image.open(...).convert("RGB") except OSError: take another file``."""
    data = sound[0][:-300]
    for open_ in (Image.open, headrace.pillow.open):
        with pytest.raises(OSError, match="truncated"):
            open_(io.BytesIO(data)).convert("RGB")


def test_hard_files(hard_dev: Path, truncated: bool) -> None:
    """Each call on odd and broken files."""
    files = sorted(path for path in hard_files(hard_dev) if path.suffix.lower() in (".jpg", ".jpeg", ".jpe", ".jfif"))
    raised = 0
    for number, path in enumerate(files):
        names = random.Random(number).sample(list(CALLS), k=4)
        theirs = outcomes(Image.open, path.read_bytes(), names)
        assert outcomes(headrace.pillow.open, path.read_bytes(), names) == theirs, path.name
        raised += any(isinstance(one, tuple) and isinstance(one[0], type) for one in theirs)
    assert len(files) > 100 and raised > 10
