"""Devices, pipes and files of any size among the images: Pillow's results, with bounded memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, UnidentifiedImageError

from headrace import DataLoader, ImageFiles, SampleError
from headrace import transforms as T
from support import assert_same, output_of, pictures

TRANSFORM = T.Compose([T.Resize((16, 16)), T.ToTensor()])


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    for number, data in enumerate(pictures(3)):
        (tmp_path / f"{number}.jpg").write_bytes(data)
    return sorted(tmp_path.glob("*.jpg"))


def sparse(path: Path, first: bytes, size: int) -> Path:
    """A file that begins with `first` and takes no space on the disk."""
    path.write_bytes(first)
    os.truncate(path, size)
    return path


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("step", [None, lambda image: image], ids=["native", "a Python step"])
def test_what_pillow_does_not_know(
    tmp_path: Path, files: list[Path], workers: int, step: Callable[..., Any] | None
) -> None:
    odd = [Path("/dev/zero"), Path("/dev/null"), sparse(tmp_path / "giant", b"not an image", 3 << 30)]
    transform = T.Compose([*([step] if step else []), *TRANSFORM.transforms])
    for path in odd:
        loader = DataLoader(ImageFiles([path, *files], None, transform), 4, num_workers=workers)
        with pytest.raises(UnidentifiedImageError, match="cannot identify image file") as raised:
            next(iter(loader))
        assert isinstance(raised.value, SampleError) and str(path) in str(raised.value)
        assert "BufferedReader" not in str(raised.value)
    skipping = DataLoader(ImageFiles([*odd, *files], None, transform), 6, num_workers=workers, on_error="skip")
    with pytest.warns(UserWarning, match="3 samples could not be made"):
        assert_same(skipping, list(DataLoader(ImageFiles(files, None, transform), 3)))


def test_a_missing_file_beside_them_is_missing(files: list[Path]) -> None:
    loader = DataLoader(ImageFiles(["/nowhere", *files], None, TRANSFORM), 4)
    with pytest.raises(FileNotFoundError, match="/nowhere"):
        next(iter(loader))


def test_large_images(tmp_path: Path, files: list[Path]) -> None:
    """An image in a format that Pillow decodes, and JPEGs followed by as many bytes as a film has."""
    noise = np.random.default_rng(0).integers(0, 256, (2600, 2400, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "large.bmp")
    assert (tmp_path / "large.bmp").stat().st_size > 16 << 20
    long = sparse(tmp_path / "long.jpeg", files[0].read_bytes(), 40 << 20)
    longer = sparse(tmp_path / "longer.jpeg", files[1].read_bytes(), 300 << 20)
    data = ImageFiles([tmp_path / "large.bmp", long, longer], None, TRANSFORM)
    for workers in (0, 2):
        loader = DataLoader(data, 3, num_workers=workers)
        assert_same(loader, [next(iter(loader.reference()))])


def test_a_pipe(tmp_path: Path, files: list[Path]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    png = BytesIO()
    Image.open(files[0]).save(png, "PNG")
    for data in (files[0].read_bytes(), png.getvalue()):
        writer = threading.Thread(target=pipe.write_bytes, args=[data])
        writer.start()
        images = next(iter(DataLoader(ImageFiles([pipe], None, TRANSFORM))))
        writer.join()
        assert_same([images], list(DataLoader(ImageFiles([files[0]], None, TRANSFORM))))


@pytest.mark.slow
def test_memory(tmp_path: Path) -> None:
    """Runs in a separate process, to measure the peak."""
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).write_bytes(pictures(1)[0])
    sparse(tmp_path / "giant", b"no image", 3 << 30)
    sparse(tmp_path / "film", pictures(1)[0], 2 << 30)
    out = output_of(f"""
import re
from support import *
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1e3
folder = Path({str(tmp_path)!r})
def load(*names, **options):
    data = headrace.ImageFiles([folder / one for one in names], None, train(16))
    return list(headrace.DataLoader(data, 2, **options))
load("a.jpg", "b.jpg", num_workers=2)
before = peak()
for workers in (0, 2):
    for name in ("/dev/zero", "/dev/urandom", "giant"):
        try:
            load(name, "b.jpg", num_workers=workers)
        except headrace.SampleError as error:
            assert "cannot identify" in str(error)
        else:
            raise AssertionError(name)
    load("film", "b.jpg", num_workers=workers)
print(peak() - before)
""")
    assert float(out) < 60


def test_a_link_to_a_device(tmp_path: Path) -> None:
    (tmp_path / "zero.jpg").symlink_to("/dev/zero")
    with pytest.raises(UnidentifiedImageError):
        next(iter(DataLoader(ImageFiles([tmp_path / "zero.jpg"], None, TRANSFORM))))
