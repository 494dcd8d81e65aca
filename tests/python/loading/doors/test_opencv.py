"""cv2.imread and cv2.imdecode: the arrays of OpenCV itself, for all flags, on hard files."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from door_files import FOLDERS, files
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset

import headrace
from headrace._loading.doors import opencv, opened_doors
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from png_samples import odd_pngs, sound_pngs
from support import PHOTOS

cv2: Any = pytest.importorskip("cv2", reason="OpenCV is not installed")

FLAGS = {
    "color": cv2.IMREAD_COLOR,
    "gray": cv2.IMREAD_GRAYSCALE,
    "unchanged": cv2.IMREAD_UNCHANGED,
    "any depth": cv2.IMREAD_ANYDEPTH,
    "any color": cv2.IMREAD_ANYCOLOR,
    "any depth and color": cv2.IMREAD_ANYDEPTH | cv2.IMREAD_ANYCOLOR,
    "not turned": cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION,
    "gray, not turned": cv2.IMREAD_IGNORE_ORIENTATION,
    "rgb": getattr(cv2, "IMREAD_COLOR_RGB", 256),
    "reduced": cv2.IMREAD_REDUCED_COLOR_2,
    "reduced gray": cv2.IMREAD_REDUCED_GRAYSCALE_4,
    "not a flag": 1 << 20,
}


def see(function: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        made = function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    if made is None:
        return None
    flags = made.flags.owndata, made.flags.writeable, made.flags.c_contiguous
    return made.dtype.str, made.shape, made.strides, flags, type(made), made.tobytes()


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("name", FLAGS)
def test_files_are_equal(name: str, folder: str) -> None:
    opened_doors.add_doors()
    counts, differing = ImageCounts(), []
    for path in files(folder):
        data = np.frombuffer(path.read_bytes(), np.uint8)
        expected = see(cv2.imread, str(path), FLAGS[name]), see(cv2.imdecode, data, FLAGS[name])
        with deferred_here(counts):
            found = see(cv2.imread, str(path), FLAGS[name]), see(cv2.imdecode, data, FLAGS[name])
        if found != expected:
            differing.append(path.name)
    assert not differing
    assert counts.native or folder == "photos" or "reduced" in name or name == "not a flag"


@pytest.mark.parametrize("name", FLAGS)
def test_pngs_are_equal(name: str, tmp_path: Path) -> None:
    """Of all kinds; on each, OpenCV is compared before a file is decoded natively."""
    opened_doors.add_doors()
    counts, differing = ImageCounts(), []
    for number, encoded in enumerate([*sound_pngs(), *odd_pngs()]):
        path = tmp_path / f"{number}.png"
        path.write_bytes(encoded)
        data = np.frombuffer(encoded, np.uint8)
        expected = see(cv2.imread, str(path), FLAGS[name]), see(cv2.imdecode, data, FLAGS[name])
        with deferred_here(counts):
            found = see(cv2.imread, str(path), FLAGS[name]), see(cv2.imdecode, data, FLAGS[name])
        if found != expected:
            differing.append(number)
    assert not differing
    assert counts.native > 10 or "reduced" in name or name == "not a flag"


@pytest.mark.parametrize(
    "call",
    [
        lambda path: cv2.imread(path),
        lambda path: cv2.imread(str(path)),
        lambda path: cv2.imread(str(path), flags=cv2.IMREAD_COLOR),
        lambda path: cv2.imread(filename=str(path)),
        lambda path: cv2.imread(str(path.with_name("missing.jpg"))),
        lambda path: cv2.imread(str(path.parent)),
        lambda path: cv2.imread(None),
        lambda path: cv2.imread(),
        lambda path: cv2.imread(str(path), "color"),
        lambda path: cv2.imread(str(path), 1, 2, 3),
        lambda path: cv2.imread(str(path) + "\0"),
        lambda path: cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8)[::2], 1),
        lambda path: cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8)[None], 1),
        lambda path: cv2.imdecode(np.frombuffer(path.read_bytes()[:100], np.uint8), 1),
        lambda path: cv2.imdecode(np.zeros(0, np.uint8), 1),
        lambda path: cv2.imdecode(path.read_bytes(), 1),
        lambda path: cv2.imdecode(buf=np.frombuffer(path.read_bytes(), np.uint8), flags=1),
    ],
)
def test_calls_are_equal(call: Any) -> None:
    opened_doors.add_doors()
    path = next(PHOTOS.glob("*.jpg"))
    expected = see(call, path)
    with deferred_here(ImageCounts()):
        assert see(call, path) == expected


def test_the_function_pickles_while_it_is_replaced() -> None:
    opened_doors.add_doors()
    before = cv2.imread
    with deferred_here(ImageCounts()):
        assert cv2.imread is not before
        assert pickle.loads(pickle.dumps(cv2.imread)) is cv2.imread
        assert cv2.imread.__doc__ == before.__doc__
    assert cv2.imread is before


def test_a_function_of_the_program_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    opened_doors.add_doors()

    def imread(*_: object) -> str:
        return "the program's"

    monkeypatch.setattr(cv2, "imread", imread)
    with deferred_here(ImageCounts()):
        assert cv2.imread("a.jpg") == "the program's"


def test_another_libjpeg_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    opened_doors.add_doors()
    path = str(next(PHOTOS.glob("*.jpg")))
    monkeypatch.setattr(opencv, "_is_opencv_known", lambda: False)
    counts = ImageCounts()
    with deferred_here(counts):
        made = cv2.imread(path)
    assert np.array_equal(made, cv2.imread(path))
    assert counts.by_library() == {"OpenCV": {"by another libjpeg than ours": 1}}


class Folder(Dataset[tuple[torch.Tensor, int]]):
    """What people write."""

    def __init__(self) -> None:
        self.paths = [str(path) for path in sorted(PHOTOS.glob("*.jpg"))]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = cv2.resize(cv2.imread(self.paths[index]), (32, 24))
        return torch.from_numpy(image).permute(2, 0, 1).float() / 255, index


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_dataset_is_equal_and_names_its_door(num_workers: int) -> None:
    dataset = Folder()
    loader = headrace.DataLoader(dataset, batch_size=4, num_workers=num_workers)
    expected = list(TorchDataLoader(dataset, batch_size=4, num_workers=num_workers))
    made = list(loader)
    assert len(made) == len(expected)
    assert all(torch.equal(a, b) and torch.equal(c, d) for (a, c), (b, d) in zip(made, expected, strict=True))
    images = loader.stats().images
    assert images is not None and images.total == len(dataset)
    left = {"turned as its EXIF orientation says": 1, "of unusual sampling": 1}
    assert images.by_library() == {"OpenCV": left}
    assert f"{len(dataset) - 2} by cv2.imread" in str(loader.explain())
