"""PNG files that are opened deferred show what Pillow shows: pixels, attributes, errors and warnings."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFile, PngImagePlugin
from shown_images import STEPS, outcome

import headrace.pillow
from headrace._base.native import core
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from png_samples import KINDS, odd_pngs, png, sound_pngs

pytestmark = pytest.mark.pixels


@pytest.mark.parametrize("step", range(len(STEPS)))
@pytest.mark.parametrize("files", [sound_pngs, odd_pngs], ids=["sound", "odd"])
def test_files_show_what_pillow_shows(files: Callable[[], Any], step: int) -> None:
    found = list(files())
    assert len(found) > 40
    for number, data in enumerate(found):
        ours, theirs = (outcome(one, data, STEPS[step]) for one in (headrace.pillow.open, Image.open))
        assert ours == theirs, number


@pytest.mark.slow
def test_damaged_files_show_what_pillow_shows() -> None:
    sound, draw = list(sound_pngs()), random.Random(0)
    for round in range(3000):
        data = bytearray(draw.choice(sound))
        for _ in range(draw.randint(1, 3)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        step = draw.choice(STEPS)
        assert outcome(headrace.pillow.open, bytes(data), step) == outcome(Image.open, bytes(data), step), round


def test_most_sound_files_are_decoded_natively() -> None:
    counts = ImageCounts()
    with deferred_here(counts):
        for data in sound_pngs():
            Image.open(io.BytesIO(data)).load()
    assert counts.native == counts.total == len(list(sound_pngs()))


@pytest.mark.parametrize(("colour", "depth"), KINDS)
@pytest.mark.parametrize("filter", range(5))
def test_samples_are_those_of_pillow(colour: int, depth: int, filter: int) -> None:
    for width in (1, 2, 3, 8, 31, 64):
        data = png(width, 7, colour, depth, filter=filter, seed=width)
        file = core.PngFile(data)
        made = np.empty((file.height, file.width, file.pixel_bytes), np.uint8)
        core.decode_png(file, made)
        image = Image.open(io.BytesIO(data))
        wanted = np.array(image.convert("L") if image.mode == "1" else image)
        if wanted.dtype != np.uint8:
            wanted = wanted.astype("<u2").view(np.uint8)
        assert np.array_equal(made, wanted.reshape(made.shape))


def test_an_array_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="pixel_bytes"):
        core.decode_png(core.PngFile(png()), np.empty((2, 2, 3), np.uint8))


@pytest.mark.parametrize("name", ["load_end", "load_read", "load_prepare"])
def test_what_a_program_has_put_in_a_methods_place_is_called(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    calls = []
    plain = getattr(PngImagePlugin.PngImageFile, name)

    def noted(self: object, *args: object) -> object:
        calls.append(name)
        return plain(self, *args)

    monkeypatch.setattr(PngImagePlugin.PngImageFile, name, noted)
    counts = ImageCounts()
    with deferred_here(counts):
        Image.open(io.BytesIO(png())).load()
    assert calls


def test_a_class_that_a_program_has_registered_opens_its_images(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(PngImagePlugin.PngImageFile):
        pass

    monkeypatch.setitem(Image.OPEN, "PNG", (Own, Image.OPEN["PNG"][1]))
    with headrace.pillow.deferred():
        assert type(Image.open(io.BytesIO(png()))) is Own


def test_files_that_are_cut_off_are_read_where_pillow_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    for data in odd_pngs():
        assert outcome(headrace.pillow.open, data, STEPS[0]) == outcome(Image.open, data, STEPS[0])


def test_a_file_that_pillow_opened_is_closed_once_it_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    path.write_bytes(png())
    with headrace.pillow.deferred():
        image = Image.open(path)
        file = image.fp
        image.load()
    assert file is not None and file.closed and image.fp is None


def test_a_file_that_changes_after_it_was_opened_is_pillows(tmp_path: Path) -> None:
    path = tmp_path / "one.png"

    def changed(opens: Callable[..., Any]) -> Any:
        path.write_bytes(png(colour=2))
        image = opens(path)
        path.write_bytes(png(colour=0))
        try:
            image.load()
        except Exception as error:
            return type(error), str(error)
        return image.tobytes()

    assert changed(headrace.pillow.open) == changed(Image.open)
