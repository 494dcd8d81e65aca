"""An index beside a shard that says something else than the shard: an error of the samples that it is wrong about,
whoever reads them, or the shard's own samples; never another sample's image or label."""

from __future__ import annotations

import io
import os
import random
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import headrace
from headrace import TarShards
from headrace import transforms as T
from headrace.datasets.tar_shards import tar_index

COUNT = 24
TRANSFORM = T.Compose([T.CenterCrop(8), T.PILToTensor()])
WRONG = "the index does not fit the shard"

NAMES: dict[str, Callable[[int], str]] = {
    "short": lambda i: f"{i:03}",
    "in folders": lambda i: f"train/{i % 3}/{i:03}",
    "long": lambda i: "d" * 110 + f"/{i:03}",
    "not ASCII": lambda i: f"\u00e9t\u00e9 {i:03}",
    "hidden folders": lambda i: f"./a/{i:03}",
}


def bitmap(i: int) -> bytes:
    held = io.BytesIO()
    Image.new("RGB", (8, 8), (i, 0, 0)).save(held, "BMP")
    return held.getvalue()


def write(path: Path, name: Callable[[int], str], form: int = tarfile.PAX_FORMAT) -> dict[str, np.ndarray[Any, Any]]:
    """Writes a shard and its index, and returns the fields of this."""
    with tarfile.open(path, "w", format=form) as out:
        for i in range(COUNT):
            for extension, data in (("bmp", bitmap(i)), ("cls", b"%02d" % i), ("txt", b"text %02d" % i)):
                info = tarfile.TarInfo(f"{name(i)}.{extension}")
                info.size = len(data)
                out.addfile(info, io.BytesIO(data))
    os.utime(path, (1e9, 1e9))
    TarShards(path, image="bmp")
    return dict(np.load(f"{path}.index.npz"))


def lie(path: Path, fields: dict[str, Any], **changes: Any) -> None:
    np.savez(f"{path}.index.npz", **{**fields, **changes})


def samples(path: Path, how: str, label: str, cache: str | None = None) -> list[tuple[int, Any]]:
    """The samples that come without an error: the gray level of the image, and the label."""
    made: list[tuple[int, Any]] = []
    try:
        dataset = TarShards(path, image="bmp", label=label, transform=TRANSFORM, cache=cache)
    except ValueError:  # an index that lacks members
        return made
    if how == "dataset[i]":
        for i in range(COUNT):
            with suppress(OSError):
                image, target = dataset[i]
                made.append((int(image[0, 0, 0]), target))
        return made
    loader = headrace.DataLoader(dataset, 4, num_workers=2, on_error="skip", max_errors=COUNT)
    assert loader.native, loader.explain()
    with suppress(OSError):  # of a label that is read
        for images, targets in loader:
            targets = targets.tolist() if isinstance(targets, torch.Tensor) else targets
            made += list(zip(images[:, 0, 0, 0].tolist(), targets, strict=True))
    return made


@pytest.fixture
def believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some headers are compared when an index is read: what they find is corrected, so it would test nothing."""
    monkeypatch.setattr(tar_index, "_fits_shard", lambda *_: True)


def is_true(sample: tuple[int, Any]) -> bool:
    level, label = sample
    return label in (level, f"text {level:02}")


@pytest.mark.usefixtures("believed")
@pytest.mark.filterwarnings("ignore:.*samples.*skipped")
@pytest.mark.parametrize("how", ["native", "dataset[i]"])
@pytest.mark.parametrize("name", NAMES)
def test_random_lies_deliver_no_wrong_sample(name: str, how: str, tmp_path: Path) -> None:
    drawn = random.Random(f"{name} {how}")
    path = tmp_path / "s.tar"
    fields = write(path, NAMES[name], drawn.choice([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]))
    assert len(samples(path, how, "cls")) == COUNT
    members = len(fields["offset"])
    for trial in range(12):
        field = drawn.choice(["offset", "number", "extension", "offset and number", "length"])
        changes = {}
        i, k = 3 * drawn.randrange(members // 3), 3 * drawn.randrange(members // 3)
        i, k = i + drawn.randrange(3), k + drawn.randrange(3)
        for one in field.split(" and "):
            values = fields[one].copy()
            if trial % 3 == 0:
                values = np.roll(values, 3)
            elif trial % 3 == 1:
                values[[i, k]] = values[[k, i]]
            else:
                values[i] = values[k]
            changes[one] = values
        lie(path, fields, **changes)
        cache = drawn.choice([None, "memory:1 MB"])
        found = samples(path, how, drawn.choice(["cls", "txt"]), cache)
        assert all(map(is_true, found)), (field, found)


@pytest.mark.usefixtures("believed")
def test_the_error_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "s.tar"
    fields = write(path, NAMES["short"])
    number = fields["number"].copy()
    number[3 * 5 + 1] = 7
    lie(path, fields, number=number)
    dataset = TarShards(path, image="bmp", transform=TRANSFORM)
    message = f"s.tar:005.bmp.*{WRONG}: '005.cls' does not hold the number 7; remove the index"
    with pytest.raises(headrace.SampleError, match=message):
        list(headrace.DataLoader(dataset, 4, num_workers=2))
    with pytest.raises(OSError, match=message.replace(".bmp.*", ".bmp: ")):
        dataset[5]
    Path(f"{path}.index.npz").unlink()
    assert [label for _, label in samples(path, "native", "cls")] == list(range(COUNT))


@pytest.mark.usefixtures("believed")
def test_a_cache_does_not_serve_another_member(tmp_path: Path) -> None:
    """The bytes of an honest index are kept, in memory and on the disk; another index says other names of them."""
    path = tmp_path / "s.tar"
    fields = write(path, NAMES["short"])
    cache = headrace.Cache(tmp_path / "cache", memory="1 MB")
    honest = TarShards(path, image="bmp", transform=TRANSFORM, cache=cache)
    list(headrace.DataLoader(honest, 4, num_workers=2))
    offset = fields["offset"].copy()
    offset[[3 * 4, 3 * 9]] = offset[[3 * 9, 3 * 4]]
    lie(path, fields, offset=offset)
    lying = TarShards(path, image="bmp", transform=TRANSFORM, cache=cache)
    with pytest.raises(headrace.SampleError, match=WRONG):
        list(headrace.DataLoader(lying, 4, num_workers=2))


@pytest.mark.parametrize("kind", ["pipe", "link", "zeros", "folder"])
def test_what_is_no_index_is_made_again(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "s.tar"
    write(path, NAMES["short"])
    sidecar = Path(f"{path}.index.npz")
    held = sidecar.read_bytes()
    sidecar.unlink()
    if kind == "pipe":
        os.mkfifo(sidecar)
    elif kind == "link":
        (tmp_path / "elsewhere").write_bytes(held)
        sidecar.symlink_to(tmp_path / "elsewhere")
    elif kind == "zeros":
        sidecar.symlink_to("/dev/zero")
    else:
        sidecar.mkdir()
    assert len(samples(path, "native", "cls")) == COUNT
    assert kind == "folder" or (sidecar.is_file() and not sidecar.is_symlink())


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_an_index_is_no_more_readable_than_its_shard(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "s.tar"
    before = os.umask(0o022)
    try:
        write(path, NAMES["short"])
        Path(f"{path}.index.npz").unlink()
        path.chmod(mode)
        TarShards(path, image="bmp")
    finally:
        os.umask(before)
    assert Path(f"{path}.index.npz").stat().st_mode & 0o777 == mode
