"""Deferred images that are dropped, whose files change, and other libraries that patch ``PIL.Image.open``."""

from __future__ import annotations

import gc
import io
import resource
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import headrace
from headrace.pillow.deferred_image import is_deferred
from support import descriptors


@pytest.fixture
def file(tmp_path) -> Path:
    made = tmp_path / "small.jpg"
    Image.radial_gradient("L").convert("RGB").resize((48, 32)).save(made, quality=85)
    return made


def opened_and_dropped(file: Path, count: int) -> None:
    for number in range(count):
        image = headrace.pillow.open(file)
        if number % 4 == 1:
            image = image.convert("RGB").crop((0, 0, 9, 9))
        elif number % 4 == 2:
            image.load()
        elif number % 100 == 3:
            image.resize((5, 5)).tobytes()
        del image


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # as of Pillow's images; pytest would keep each
def test_100_000_images_leave_nothing(file):
    opened_and_dropped(file, 10_000)
    gc.collect()
    before, peak = descriptors(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    opened_and_dropped(file, 90_000)
    gc.collect()
    assert descriptors() == before
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak  # KiB
    assert grown < 90_000 * 24 / 1024, grown  # less than one small object an image


def outcome(file: Path, open_: Any, change: Any, content: bytes) -> Any:
    file.write_bytes(content)
    image = open_(file)
    change(file)
    try:
        return image.convert("RGB").resize((7, 5)).tobytes()
    except Exception as error:
        return type(error), str(error)
    finally:
        image.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_bytes(file.read_bytes()[:400]),
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 + 200]),
        lambda file: file.unlink(),
        lambda file: (file.unlink(), file.write_bytes(b"another file")),
        lambda file: file.with_suffix(".new").write_bytes(b"x") and file.with_suffix(".new").replace(file),
    ],
    ids=["cut in its header", "emptied", "cut in its data", "removed", "made anew", "replaced"],
)
def test_files_that_change_between_open_and_use(file, change):
    content = file.read_bytes()
    ours, theirs = (outcome(file, open_, change, content) for open_ in (headrace.pillow.open, Image.open))
    assert ours == theirs


def test_another_library_patches_open_before_and_after(file, monkeypatch):
    plain, seen = Image.open, []

    def patched(below: Any, name: str) -> Any:
        def open_(fp: Any, *args: Any, **options: Any) -> Any:
            seen.append(name)
            return below(fp, *args, **options)

        return open_

    monkeypatch.setattr(Image, "open", patched(plain, "before"))
    with headrace.pillow.deferred():
        with Image.open(file) as first:
            assert is_deferred(first)
        inside = Image.open
        Image.open = patched(inside, "after")
        image = Image.open(io.BytesIO(file.read_bytes()))
        assert is_deferred(image)
    assert seen == ["before", "after", "before"]
    with Image.open(file) as last:
        assert not is_deferred(last)  # the other library's function is still in place
    assert seen[3:] == ["after", "before"]
    with headrace.pillow.deferred(), Image.open(file) as again:
        assert again.convert("RGB").tobytes() == plain(file).convert("RGB").tobytes()
