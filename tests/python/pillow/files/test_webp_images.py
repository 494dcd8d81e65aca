"""WebP files that are opened deferred show what Pillow shows: pixels, attributes, errors and warnings."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageFile, WebPImagePlugin, features
from shown_images import STEPS, outcome, shown

import headrace.pillow
from headrace import transforms
from headrace.pillow.deferred_image import is_deferred
from headrace.pillow.files import webp_files
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from webp_samples import animation, odd_webps, still_webps, webp

pytestmark = [
    pytest.mark.pixels,
    pytest.mark.skipif(not features.check("webp"), reason="the installed Pillow has no libwebp"),
]


@pytest.mark.parametrize("step", range(len(STEPS)))
@pytest.mark.parametrize("files", [still_webps, odd_webps], ids=["still", "odd"])
def test_files_show_what_pillow_shows(files: Callable[[], Any], step: int) -> None:
    found = list(files())
    assert len(found) > 30
    for number, data in enumerate(found):
        ours, theirs = (outcome(one, data, STEPS[step]) for one in (headrace.pillow.open, Image.open))
        assert ours == theirs, number


def test_damaged_files_show_what_pillow_shows() -> None:
    still, draw = list(still_webps()), random.Random(0)
    for round in range(1500):
        data = bytearray(draw.choice(still))
        for _ in range(draw.randint(1, 3)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        if max(*data[24:30:3], *data[25:30:3]) > 3:  # too many pixels to be quick
            data[20:30] = still[0][20:30]
        step = draw.choice(STEPS)
        assert outcome(headrace.pillow.open, bytes(data), step) == outcome(Image.open, bytes(data), step), round


def test_a_damaged_file_can_be_loaded_again() -> None:
    data = webp(size=(64, 33), lossless=True)
    data = data[:60] + bytes(len(data) - 60)

    def twice(opens: Callable[..., Any]) -> list[Any]:
        image, seen = opens(io.BytesIO(data)), []
        for _ in range(2):
            with pytest.raises((OSError, EOFError)) as caught:
                image.load()
            seen.append((type(caught.value), str(caught.value), image.info))
        return seen

    assert twice(headrace.pillow.open) == twice(Image.open)


def test_still_images_are_deferred() -> None:
    counts = ImageCounts()
    with deferred_here(counts):
        for data in still_webps():
            image = Image.open(io.BytesIO(data))
            assert is_deferred(image)
            image.load()
            assert is_deferred(image)
    assert counts.native == counts.total == len(list(still_webps()))


def test_animations_are_pillows() -> None:
    counts = ImageCounts()
    with deferred_here(counts):
        image: Any = Image.open(io.BytesIO(animation(3)))
        plain: Any = WebPImagePlugin.WebPImageFile(io.BytesIO(animation(3)))
        for frame in (2, 0, 1):
            image.seek(frame)
            plain.seek(frame)
            assert shown(image) == shown(plain)
    assert counts.by_library()["Pillow"]["animated WEBP"]


@pytest.mark.parametrize("options", [{"quality": 80}, {"lossless": True}], ids=["lossy", "lossless"])
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_a_training_recipe_gives_pillows_values(mode: str, options: dict[str, Any]) -> None:
    recipe = transforms.Compose(
        [
            transforms.RandomResizedCrop(24),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.4]),
        ]
    )
    data = webp(mode, (64, 33), **options)
    for seed in range(20):
        made = []
        for opens in (headrace.pillow.open, Image.open):
            torch.manual_seed(seed)
            made.append(recipe(opens(io.BytesIO(data)).convert("RGB")))
        assert torch.equal(*made)


@pytest.mark.parametrize("name", ["load", "load_end", "load_prepare", "_get_next", "_seek"])
def test_what_a_program_has_put_in_a_methods_place_is_called(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with headrace.pillow.deferred():  # puts ours in its place
        pass
    calls = []
    plain = getattr(WebPImagePlugin.WebPImageFile, name)

    def noted(self: object, *args: object) -> object:
        calls.append(name)
        return plain(self, *args)

    monkeypatch.setattr(WebPImagePlugin.WebPImageFile, name, noted)
    counts = ImageCounts()
    with deferred_here(counts):
        image = Image.open(io.BytesIO(webp()))
        assert not is_deferred(image)
        image.load()
    assert calls
    assert counts.by_library()["Pillow"] == {"WEBP loaded by functions of the program": 1}


def test_an_image_that_a_program_changes_before_it_is_loaded_is_pillows() -> None:
    def changed(opens: Callable[..., Any], name: str, value: Any) -> Any:
        image = opens(io.BytesIO(webp("RGBA")))
        setattr(image, name, value)
        try:
            return shown(image)
        except Exception as error:
            return type(error), str(error)

    for name, value in (("_size", (5, 4)), ("_size", (50, 40)), ("_mode", "RGB"), ("rawmode", "RGBX")):
        ours, theirs = (changed(opens, name, value) for opens in (headrace.pillow.open, Image.open))
        assert ours == theirs, name


def test_a_pillow_that_loads_otherwise_decodes_its_images(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(image: Any) -> Any:
        raise AttributeError("_get_next")

    for decode in (other, lambda image: None, lambda image: np.zeros((image.height, image.width, 4), np.uint8)):
        monkeypatch.setattr(webp_files, "_decode", decode)
        webp_files._is_loaded_as_by_pillow.cache_clear()
        counts = ImageCounts()
        with deferred_here(counts):
            assert not is_deferred(Image.open(io.BytesIO(webp())))
        assert not counts.any
    monkeypatch.undo()
    webp_files._is_loaded_as_by_pillow.cache_clear()


def test_a_class_that_a_program_has_registered_opens_its_images(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(WebPImagePlugin.WebPImageFile):
        pass

    monkeypatch.setitem(Image.OPEN, "WEBP", (Own, Image.OPEN["WEBP"][1]))
    with headrace.pillow.deferred():
        assert type(Image.open(io.BytesIO(webp()))) is Own


def test_a_file_that_pillow_opened_is_closed_once_it_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "one.webp"
    path.write_bytes(webp())
    with headrace.pillow.deferred():
        image = Image.open(path)
        file = image.fp
        image.load()
    assert file is not None and file.closed and image.fp is None
    assert type(image) is WebPImagePlugin.WebPImageFile and isinstance(image, ImageFile.ImageFile)


def test_threads_that_load_one_image_get_the_same_pixels() -> None:
    wanted = Image.open(io.BytesIO(webp(size=(64, 33)))).tobytes()

    def read(image: Image.Image) -> bytes:
        return image.convert("RGB").tobytes()

    for _ in range(20):
        image = headrace.pillow.open(io.BytesIO(webp(size=(64, 33))))
        with ThreadPoolExecutor(4) as threads:
            found = [threads.submit(read, image) for _ in range(4)]
        assert [one.result() for one in found] == [wanted] * 4
