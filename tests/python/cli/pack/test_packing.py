"""Packing: what the shards hold, runs that go on with earlier ones, shares of machines, and what is never lost."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packs import checked, content, members, packed, turned, write_tar
from PIL import ExifTags, Image

from headrace import EncodedImages, ImageArray, ImageFiles, ImageFolder, TarShards
from headrace import transforms as T
from headrace._cli.pack import shard_file
from headrace._cli.pack.completion import join_manifests
from headrace._cli.pack.conversion import COPY, SMALLER, Conversion, convert_image
from headrace._cli.pack.manifest import require_manifest
from headrace._cli.pack.packer import MachineShare
from support import pictures, truncated, write_folder

COUNT = 24


@pytest.fixture
def source(tmp_path: Path) -> ImageFolder:
    return ImageFolder(write_folder(tmp_path / "images", COUNT))


def test_copies_lie_in_order_with_keys_and_labels(source: ImageFolder, tmp_path: Path) -> None:
    done = packed(source, tmp_path / "pack")
    assert done.terms.shards > 2 and not done.missing and done.kept == 0
    wanted = []
    for path, label in source.samples:
        data, (folder, name) = Path(path).read_bytes(), path.split("/")[-2:]
        wanted += [(f"{folder}/{name[:-4]}.jpg", data), (f"{folder}/{name[:-4]}.cls", str(label).encode())]
    assert members(tmp_path / "pack") == wanted
    assert checked(source, tmp_path / "pack") == COUNT
    names = {path.name for path in (tmp_path / "pack").iterdir()}
    shards = {f"shard-{i:06}.tar" for i in range(done.terms.shards)}
    assert names == {"pack.json", *shards, *(f"{name}.index.npz" for name in shards)}


def test_extensions_are_those_of_files_or_of_contents(tmp_path: Path) -> None:
    names = ["a.JPEG", "b.png", "c.TIFF", "d.bin", "e"]
    for name in names:
        (tmp_path / name).write_bytes(pictures(4)[3])  # a PNG
    packed(ImageFiles([tmp_path / name for name in names]), tmp_path / "files")
    assert [name for name, _ in members(tmp_path / "files")] == ["a.jpg", "b.png", "c.tif", "d_bin.png", "e.png"]
    encoded = [b"\xff\xd8\xff", b"RIFF....WEBP", b"GIF89a", b"BM", b"MM\0*", b"P6 1 1", b"?"]
    packed(EncodedImages(encoded), tmp_path / "blobs")
    found = [name.partition(".")[2] for name, _ in members(tmp_path / "blobs")]
    assert found == ["jpg", "webp", "gif", "bmp", "tif", "ppm", "jpg"]
    assert len(TarShards(str(tmp_path / "blobs" / "*.tar"), label=None)) == len(encoded)


def test_equal_runs_write_equal_bytes(source: ImageFolder, tmp_path: Path) -> None:
    packed(source, tmp_path / "a")
    packed(source, tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_smaller_images_are_torchvisions_resize(source: ImageFolder, tmp_path: Path) -> None:
    packed(source, tmp_path / "pack", Conversion(SMALLER, 70, 80))
    assert checked(source, tmp_path / "pack") == COUNT
    read = TarShards(str(tmp_path / "pack" / "*.tar"))
    resized = 0
    for i in range(COUNT):
        before = source.image(i)
        if min(before.size) <= 70:
            assert read.image(i).tobytes() == before.tobytes()
            continue
        resized += 1
        out = BytesIO()
        T.Resize(70)(before).save(out, "JPEG", quality=80)
        assert read.image(i).tobytes() == Image.open(BytesIO(out.getvalue())).convert("RGB").tobytes()
    assert 0 < resized < COUNT


@pytest.mark.parametrize("how", [COPY, Conversion(SMALLER, 30)])
def test_orientations_are_kept_for_the_reader(how: str | Conversion, tmp_path: Path) -> None:
    source = EncodedImages([turned(orientation) for orientation in range(1, 9)], range(8))
    packed(source, tmp_path / "pack", how)
    images = [data for name, data in members(tmp_path / "pack") if name.endswith("jpg")]
    kept = [Image.open(BytesIO(data)).getexif().get(ExifTags.Base.Orientation, 1) for data in images]
    assert kept == list(range(1, 9))


def test_broken_images_are_kept_and_counted(tmp_path: Path) -> None:
    broken = [truncated(pictures(1)[0]), b"", b"no image"]
    source = EncodedImages([*pictures(3), *broken], range(6))
    done = packed(source, tmp_path / "pack", Conversion(SMALLER, 30), shard_size=1_000_000)
    assert [data for name, data in members(tmp_path / "pack") if name.endswith("jpg")][3:] == broken
    (record,) = done.records.values()
    assert record.kept == {"cannot be decoded: OSError": 1, "cannot be decoded: UnidentifiedImageError": 2}
    assert checked(source, tmp_path / "pack") == 6


def test_labels_of_all_kinds(tmp_path: Path) -> None:
    labels = [{"a": [1, 2.5, None]}, {"a": "é"}, {"a": True}]
    packed(EncodedImages(pictures(3), labels), tmp_path / "json")
    assert list(TarShards(str(tmp_path / "json" / "*.tar"), label="json")._labels) == labels
    packed(EncodedImages(pictures(2), ["one", "zwölf"]), tmp_path / "txt")
    assert [TarShards(str(tmp_path / "txt/*.tar"), label="txt").target(i) for i in range(2)] == ["one", "zwölf"]
    packed(EncodedImages(pictures(2)), tmp_path / "none")
    assert [name for name, _ in members(tmp_path / "none")] == ["000000.jpg", "000001.jpg"]
    with pytest.raises(ValueError, match=r"the label of sample 1, blob 1 in memory, \d+ bytes, cannot be written: J"):
        packed(EncodedImages(pictures(2), [{"a": 1}, {"a": object()}]), tmp_path / "none of these")


def test_all_members_of_shards_are_kept(tmp_path: Path) -> None:
    packed(EncodedImages(pictures(6), range(6)), tmp_path / "a")
    first, parts = tmp_path / "more.tar", []
    for i, (name, data) in enumerate(members(tmp_path / "a")):
        parts += [(name, data), (f"{name[:-4]}.m{i % 2}.TXT", b"x")]
    write_tar(first, parts)
    source = TarShards(first)
    packed(source, tmp_path / "b")
    assert [(name.lower(), data) for name, data in parts] == members(tmp_path / "b")
    assert checked(source, tmp_path / "b") == 6


def test_smaller_images_of_shards_keep_their_names(tmp_path: Path) -> None:
    parts = [("a.jpeg", pictures(1)[0]), ("b.PNG", pictures(4)[3]), ("c.png", pictures(4)[3]), ("c.jpg", b"other")]
    write_tar(tmp_path / "a.tar", parts)
    done = packed(
        TarShards(tmp_path / "a.tar", image="jpeg;png", label=None), tmp_path / "pack", Conversion(SMALLER, 40)
    )
    assert [name for name, _ in members(tmp_path / "pack")] == ["a.jpeg", "b.jpg", "c.png", "c.jpg"]
    assert members(tmp_path / "pack")[2:] == parts[2:]
    assert [one.kept for one in done.records.values()] == [{"the sample has a jpg already": 1}]


def test_decoded_pixels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds decoded pixels"):
        packed(ImageArray(np.zeros((2, 4, 4, 3), np.uint8)), tmp_path / "pack")


# ---- runs that go on


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, BaseException], None]:
    """Makes packing fail at the sample of this number."""

    def at(number: int, error: BaseException) -> None:
        seen = [0]
        original = convert_image

        def failing(*arguments: Any) -> Any:
            seen[0] += 1
            if seen[0] == number:
                raise error
            return original(*arguments)

        monkeypatch.setattr(shard_file, "convert_image", failing)

    return at


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_an_interrupted_run_goes_on(
    error: BaseException,
    source: ImageFolder,
    tmp_path: Path,
    interrupt: Callable[[int, BaseException], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packed(source, tmp_path / "whole")
    interrupt(COUNT + 15, error)  # the first COUNT are tried to estimate their size
    with pytest.raises(type(error)):
        packed(source, tmp_path / "pack")
    monkeypatch.undo()
    begun = content(tmp_path / "pack")
    assert begun and not list((tmp_path / "pack").glob("*unfinished*"))
    stamps = {name: (tmp_path / "pack" / name).stat().st_mtime_ns for name in begun}
    done = packed(source, tmp_path / "pack")
    assert done.kept == len(begun) < done.terms.shards
    assert content(tmp_path / "pack") == content(tmp_path / "whole")
    assert stamps == {name: (tmp_path / "pack" / name).stat().st_mtime_ns for name in begun}


def test_finished_shards_are_checked(source: ImageFolder, tmp_path: Path) -> None:
    folder = tmp_path / "pack"
    done = packed(source, folder)
    whole = content(folder)
    assert packed(source, folder).kept == done.terms.shards
    os.utime(folder / "shard-000000.tar", ns=(0, 0))  # copied: the bytes decide
    (folder / "shard-000001.tar").unlink()
    spoilt = bytearray(whole["shard-000002.tar"])
    spoilt[700] ^= 1
    (folder / "shard-000002.tar").write_bytes(spoilt)
    assert packed(source, folder).kept == done.terms.shards - 2
    assert content(folder) == whole


def test_other_terms_are_refused(source: ImageFolder, tmp_path: Path) -> None:
    folder = tmp_path / "pack"
    packed(source, folder)
    before = content(folder)
    with pytest.raises(ValueError, match=r"other terms .kind copy instead of smaller, max_size N"):
        packed(source, folder, Conversion(SMALLER, 9))
    with pytest.raises(ValueError, match=r"source .* instead of"):
        packed(EncodedImages(pictures(COUNT), range(COUNT)), folder)
    assert content(folder) == before
    (folder / "notes.txt").write_text("mine")
    packed(EncodedImages(pictures(3), range(3)), folder, overwrite=True)
    assert len(members(folder)) == 6 and (folder / "notes.txt").read_text() == "mine"
    assert require_manifest(folder).complete


def test_folders_of_others_are_left_alone(source: ImageFolder, tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "shard-000000.tar").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(ValueError, match=r"holds shard-000000\.tar and no pack\.json"):
            packed(source, tmp_path / "pack", overwrite=overwrite)
    assert content(tmp_path / "pack") == {"shard-000000.tar": b"mine"}
    (tmp_path / "pack" / "shard-000000.tar").unlink()
    (tmp_path / "pack" / "pack.json").write_text("{}")
    with pytest.raises(ValueError, match="no description of a pack that this version reads"):
        packed(source, tmp_path / "pack", overwrite=True)


# ---- several machines


def test_shares_are_joined(source: ImageFolder, tmp_path: Path) -> None:
    packed(source, tmp_path / "whole")
    folder, other = tmp_path / "pack", tmp_path / "other"
    first = packed(source, folder, share=MachineShare(1, 2))
    assert first.missing and not require_manifest(folder).complete
    with pytest.raises(ValueError, match="missing or damaged"):
        checked(source, folder)
    packed(source, other, share=MachineShare(2, 2))
    for path in other.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())  # with new times
    manifest, missing = join_manifests(folder)
    assert not missing and manifest.complete
    assert content(folder) == content(tmp_path / "whole")
    assert checked(source, folder) == COUNT
    assert not list(folder.glob("*.tar.json"))
    assert packed(source, folder, share=MachineShare(2, 2)).kept > 0


def test_shards_of_another_pack_are_not_joined(source: ImageFolder, tmp_path: Path) -> None:
    packed(source, tmp_path / "pack", share=MachineShare(1, 2))
    packed(source, tmp_path / "other", Conversion(SMALLER, 80), share=MachineShare(2, 2))
    for path in (tmp_path / "other").glob("shard*"):
        (tmp_path / "pack" / path.name).write_bytes(path.read_bytes())
    manifest, missing = join_manifests(tmp_path / "pack")
    assert missing and not manifest.complete


def test_the_manifest_is_plain_json(source: ImageFolder, tmp_path: Path) -> None:
    packed(source, tmp_path / "pack")
    held = json.loads((tmp_path / "pack" / "pack.json").read_text())
    assert held["terms"]["samples"] == COUNT == sum(one["samples"] for one in held["shards"])
