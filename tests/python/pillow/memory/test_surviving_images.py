"""Deferred images that are kept, dropped or shared by threads; files that change, and libraries that patch ``open``."""

from __future__ import annotations

import gc
import io
import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from torch.utils.data import Dataset, IterableDataset

import headrace
from headrace.pillow.deferred_image import is_deferred
from headrace.pillow.files.pixels import FilePixels
from headrace.pillow.memory import surviving_images
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from support import descriptors

pytestmark = pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")


def files_alive() -> int:
    gc.collect()
    return sum(any(base is FilePixels for base in type(one).__mro__) for one in gc.get_objects())


def crop(image: Any, draw: int) -> Any:
    return np.array(image.crop((draw, draw, draw + 20, draw + 20)))


class Keeping(Dataset[Any]):
    """Keeps resized images, and crops them in each epoch."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths, self.draw = paths, 0
        self.kept: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        if index not in self.kept:
            self.kept[index] = Image.open(self.paths[index]).convert("RGB").resize((64, 48))
        self.draw += 1
        return crop(self.kept[index], self.draw % 20)


def test_images_that_a_dataset_keeps_let_go_of_their_files(photographs: list[Path]) -> None:
    data, plain = Keeping(photographs[:8]), Keeping(photographs[:8])
    before = files_alive()
    loader = headrace.DataLoader(data, batch_size=4)
    assert loader.route == "deferred"
    for _ in range(3):
        for number, batch in enumerate(loader):
            assert np.array_equal(batch, np.stack([plain[4 * number + at] for at in range(4)]))
        assert files_alive() == before
        assert not any(is_deferred(one) for one in data.kept.values())


class Streaming(IterableDataset[Any]):
    def __init__(self, paths: list[Path], kept: list[Any]) -> None:
        self.paths, self.kept = paths, kept

    def __iter__(self) -> Any:
        for path in self.paths:
            image = Image.open(path).convert("RGB")
            self.kept.append(image.resize((30, 20)))
            yield crop(image, 3)


def test_images_that_a_stream_keeps(photographs: list[Path]) -> None:
    kept: list[Any] = []
    before = files_alive()
    for number, _ in enumerate(headrace.DataLoader(Streaming(photographs[:8], kept), batch_size=2)):
        assert files_alive() <= before + 4  # of this batch and of the one before
        assert not any(is_deferred(one) for one in kept[: 2 * number])


def test_a_sample_is_not_made_whole_while_its_batch_is_made(
    photographs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = []
    monkeypatch.setattr(FilePixels, "make_images", lambda self: whole.append(self))
    data = [str(path) for path in photographs[:8]]

    def collate(images: list[Any]) -> Any:
        return np.stack([crop(image, 5) for image in images])

    class Opening(Dataset[Any]):
        def __len__(self) -> int:
            return len(data)

        def __getitem__(self, index: int) -> Any:
            return Image.open(data[index]).convert("RGB")

    assert len(list(headrace.DataLoader(Opening(), batch_size=4, collate_fn=collate))) == 2
    assert whole == []


def test_an_installation_limits_what_kept_images_hold(photographs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [path.stat().st_size for path in photographs[:8]]
    monkeypatch.setattr(surviving_images, "MOST", 2 * max(sizes))
    before = files_alive()
    with deferred_here(ImageCounts()):
        images = [Image.open(path).convert("RGB").resize((20, 10)) for path in photographs[:8]]
    assert files_alive() - before <= 8 * max(sizes) // min(sizes)
    assert sum(map(is_deferred, images)) < 8
    for image, path in zip(images, photographs, strict=False):
        assert image.tobytes() == Image.open(path).convert("RGB").resize((20, 10)).tobytes()


def test_what_a_made_image_was_made_from_is_let_go(photographs: list[Path]) -> None:
    before = files_alive()
    with headrace.pillow.deferred():
        image = Image.open(photographs[0])
        small = image.resize((9, 9))
        small.getpixel((0, 0))
        assert files_alive() == before + 1
        image.getpixel((0, 0))
        assert files_alive() == before


USES: list[Any] = [
    lambda image: image.convert("L").tobytes(),
    lambda image: image.crop((3, 3, 40, 30)).tobytes(),
    lambda image: image.resize((20, 20), 2).tobytes(),
    lambda image: np.array(image).tobytes(),
    lambda image: image.getpixel((1, 1)),
    lambda image: image.histogram(),
    lambda image: image.copy().load()[2, 2],
]


def test_threads_that_share_an_unread_image_all_get_pillows_pixels(photographs: list[Path]) -> None:
    wrong: list[Any] = []
    for number in range(60):
        path = photographs[number % len(photographs)]
        plain = Image.open(path)
        plain.load()
        expected = [use(plain) for use in USES]
        with headrace.pillow.deferred():
            image = Image.open(path)
        start = threading.Barrier(4)

        def work(
            turn: int, image: Any = image, expected: Any = expected, start: Any = start, number: int = number
        ) -> None:
            start.wait()
            at = (number * 3 + turn * 5) % 7
            try:
                if USES[at](image) != expected[at]:
                    wrong.append((number, at))
            except Exception as error:
                wrong.append((number, at, repr(error)))

        threads = [threading.Thread(target=work, args=(turn,)) for turn in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "small.jpg"
    Image.radial_gradient("L").convert("RGB").resize((48, 32)).save(made, quality=85)
    return made


def opened_and_dropped(file: Path, count: int) -> None:
    for number in range(count):
        image: Image.Image = headrace.pillow.open(file)
        if number % 4 == 1:
            image = image.convert("RGB").crop((0, 0, 9, 9))
        elif number % 4 == 2:
            image.load()
        elif number % 100 == 3:
            image.resize((5, 5)).tobytes()
        del image


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # as of Pillow's images; pytest would keep each
def test_40_000_images_leave_nothing(file: Path) -> None:
    opened_and_dropped(file, 10_000)
    gc.collect()
    before, peak = descriptors(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    opened_and_dropped(file, 30_000)
    gc.collect()
    assert descriptors() == before
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak  # KiB
    assert grown < 30_000 * 24 / 1024, grown  # less than one small object an image


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
def test_files_that_change_between_open_and_use(file: Path, change: Callable[..., Any]) -> None:
    content = file.read_bytes()
    ours, theirs = (outcome(file, open_, change, content) for open_ in (headrace.pillow.open, Image.open))
    assert ours == theirs


def test_another_library_patches_open_before_and_after(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
