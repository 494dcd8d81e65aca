"""Zip archives as native sources: the samples of an ImageFolder of the unpacked files; odd archives are refused."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import pytest
from table_samples import SMALL

import headrace
from headrace import DataLoader, ImageFolder, Zip
from support import assert_same, train, write_folder


def packed(path: Path, folder: Path, *, root: str = "", compression: int = ZIP_STORED) -> Path:
    """Packs a folder in an order of its own, with a text, an entry of each folder, and macOS's metadata."""
    with ZipFile(path, "w", compression) as archive:
        for file in sorted(folder.rglob("*"), key=lambda one: one.name[::-1]):
            archive.write(file, f"{root}{file.relative_to(folder)}")
        archive.writestr(f"{root}class_0/notes.txt", "not an image")
        archive.writestr("__MACOSX/class_0/._0000.jpg", "metadata")
    return path


@pytest.mark.parametrize("root", ["", "data/train/"])
def test_batches_are_those_of_the_folder(tmp_path: Path, root: str) -> None:
    folder = write_folder(tmp_path / "set")
    deeper = folder / "class_1" / "more"
    deeper.mkdir()
    (deeper / "a.png").write_bytes((folder / "class_0" / "0000.jpg").read_bytes())
    (folder / "class_1" / "more.jpg").write_bytes((folder / "class_0" / "0003.jpg").read_bytes())
    wanted = ImageFolder(folder, train(24))
    data = Zip(packed(tmp_path / "a.zip", folder, root=root), root, train(24))
    assert (data.classes, data.class_to_idx) == (wanted.classes, wanted.class_to_idx)
    assert [f"{folder}/{name.removeprefix(root)}" for name in data.names] == list(wanted.paths)
    loader = DataLoader(data, 5, True, seed=1, num_workers=2)
    assert loader.native
    assert_same(loader, list(DataLoader(wanted, 5, True, seed=1)))
    assert_same(loader, list(loader.reference()))
    assert data.fingerprint() == wanted.fingerprint()
    again = pickle.loads(pickle.dumps(data))
    assert_same(DataLoader(again, 5, seed=1), list(DataLoader(data, 5, seed=1)))


def test_bytes_before_the_archive(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", write_folder(tmp_path / "set"))
    path.write_bytes(b"#!/bin/sh\n" * 9 + path.read_bytes())
    data = Zip(path, transform=SMALL)
    assert data.read(0) == (tmp_path / "set" / data.names[0]).read_bytes()


def test_what_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "set", 6)
    good = packed(tmp_path / "good.zip", folder)
    with pytest.raises(ValueError, match=r"class_0/0000.jpg in .*a.zip is compressed.*zip -0 -r"):
        Zip(packed(tmp_path / "a.zip", folder, compression=ZIP_DEFLATED))
    with pytest.raises(ValueError, match="no class folder below 'test'"):
        Zip(good, "test")
    with ZipFile(tmp_path / "twice.zip", "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("a/b.jpg", "1")
        archive.writestr("a/b.jpg", "2")
    with pytest.raises(ValueError, match=r"two members 'a/b.jpg'"):
        Zip(tmp_path / "twice.zip")
    with ZipFile(tmp_path / "empty.zip", "w") as archive:
        archive.writestr("a/b.txt", "1")
        archive.writestr("c/b.jpg", "1")
    with pytest.raises(ValueError, match="no image for the classes a"):
        Zip(tmp_path / "empty.zip")
    with ZipFile(tmp_path / "secret.zip", "w") as archive:
        archive.writestr(ZipInfo("a/b.jpg"), "1")
    data = bytearray((tmp_path / "secret.zip").read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "secret.zip").write_bytes(data)
    with pytest.raises(ValueError, match="encrypted"):
        Zip(tmp_path / "secret.zip")
    with pytest.raises(FileNotFoundError):
        Zip(tmp_path / "missing.zip")


def test_damage(tmp_path: Path) -> None:
    data = packed(tmp_path / "a.zip", write_folder(tmp_path / "set", 6)).read_bytes()
    path = tmp_path / "b.zip"
    for damaged in (data[: len(data) // 2], b"", b"text" * 99):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"b.zip is no zip archive, or it is damaged"):
            Zip(path)
    moved = bytearray(data)
    entry = moved.rindex(b"class_0/0000.jpg") - 46
    struct.pack_into("<I", moved, entry + 42, 7)
    path.write_bytes(moved)
    with pytest.raises(ValueError, match="does not begin where its directory says"):
        Zip(path)
    larger = bytearray(data)
    struct.pack_into("<II", larger, entry + 20, 1 << 30, 1 << 30)
    path.write_bytes(larger)
    with pytest.raises(ValueError, match=r"sample 0 is not within .*b.zip; the file is damaged"):
        Zip(path)


def test_a_broken_image_is_named_and_a_change_noticed(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a/b.jpg", "no image")
    data = Zip(tmp_path / "a.zip", transform=SMALL)
    with pytest.raises(headrace.SampleError, match=r"a/b.jpg in .*a.zip"):
        list(DataLoader(data))
    sent = pickle.dumps(data)
    (tmp_path / "a.zip").write_bytes(b"")
    with pytest.raises(headrace.SampleError, match="truncated after it was indexed"):
        list(DataLoader(data))
    with pytest.raises(ValueError, match=r"a.zip has changed since"):
        len(pickle.loads(sent))
