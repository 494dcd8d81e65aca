"""Raw packs: torchvision's pixels in one array, labels beside them, and runs that go on."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packs import no_bar

from headrace import DataLoader, EncodedImages, ImageArray
from headrace import transforms as T
from headrace._cli.main import main
from headrace._cli.pack import array_pack
from headrace._cli.pack.array_verification import check_raw
from headrace._cli.pack.manifest import require_manifest
from headrace._cli.pack.pack_verification import Difference
from headrace._cli.pack.packer import Packed
from support import assert_same, pictures, train, truncated, write_folder

COUNT, SIDE = 24, 40


def source(**options: Any) -> EncodedImages:
    return EncodedImages(pictures(COUNT), [7 * i for i in range(COUNT)], **options)


def packed(images: Any, folder: Path, side: int = SIDE, **options: Any) -> Packed:
    return array_pack.pack_raw(images, folder, side, **{"workers": 1, "overwrite": False, "bar": no_bar, **options})


def checked(images: Any, folder: Path, limit: int | None = None) -> int:
    return check_raw(images, require_manifest(folder), folder, workers=1, limit=limit, bar=no_bar)


def read(folder: Path, transform: Any = None) -> ImageArray:
    return ImageArray(np.load(folder / "images.npy", mmap_mode="r"), np.load(folder / "labels.npy"), transform)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_pack, "_SHARD", 5 * SIDE * SIDE * 3)


def test_rows_are_torchvisions_resize_and_crop(tmp_path: Path) -> None:
    packed(source(), tmp_path)
    square = T.Compose([T.Resize(SIDE), T.CenterCrop(SIDE)])
    images = np.load(tmp_path / "images.npy")
    assert images.shape == (COUNT, SIDE, SIDE, 3) and images.dtype == np.uint8
    for i in range(COUNT):
        assert np.array_equal(images[i], np.asarray(square(source().image(i))))
    assert np.load(tmp_path / "labels.npy").tolist() == [7 * i for i in range(COUNT)]
    assert checked(source(), tmp_path) == COUNT
    assert {path.name for path in tmp_path.iterdir()} == {"images.npy", "labels.npy", "pack.json"}


def test_batches_are_those_of_the_resized_source(tmp_path: Path) -> None:
    packed(source(), tmp_path)
    flip = [T.RandomHorizontalFlip(), T.ToTensor()]
    ours = DataLoader(read(tmp_path, T.Compose(flip)), 6, shuffle=True, seed=1)
    whole = source(transform=T.Compose([T.Resize(SIDE), T.CenterCrop(SIDE), *flip]))
    assert_same(ours, list(DataLoader(whole, 6, shuffle=True, seed=1)))


def test_sources_without_labels_and_of_arrays(tmp_path: Path) -> None:
    packed(EncodedImages(pictures(3)), tmp_path / "a")
    assert not (tmp_path / "a" / "labels.npy").exists()
    pixels = np.random.default_rng(0).integers(0, 256, (3, SIDE, SIDE, 3), dtype=np.uint8)
    packed(ImageArray(pixels, range(3)), tmp_path / "b")
    assert np.array_equal(np.load(tmp_path / "b" / "images.npy"), pixels)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_an_interrupted_run_goes_on(error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, seen = array_pack.make_pixel_row, list[int]()

    def failing(images: Any, index: int, side: int) -> Any:
        if index == 12:
            raise error
        seen.append(index)
        return original(images, index, side)

    with monkeypatch.context() as patch:
        patch.setattr(array_pack, "make_pixel_row", failing)
        with pytest.raises(type(error)):
            packed(source(), tmp_path)
    assert not (tmp_path / "images.npy").exists() and not require_manifest(tmp_path).complete
    assert packed(source(), tmp_path).kept == 2 < len(seen)
    assert checked(source(), tmp_path) == COUNT
    assert packed(source(), tmp_path).kept == 5  # nothing was to be done


def test_rows_that_were_changed_are_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_pack, "rename_finished", lambda *paths: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        packed(source(), tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(array_pack, "_SHARD", 5 * SIDE * SIDE * 3)
    part = tmp_path / "images.npy.part"
    part.write_bytes(part.read_bytes()[:-1] + b"xx")
    assert packed(source(), tmp_path).kept == 4
    assert checked(source(), tmp_path) == COUNT


def test_what_cannot_be_packed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"sample 1, blob 1 in memory, \d+ bytes, cannot be decoded: .*; leave it out"):
        packed(EncodedImages([pictures(1)[0], truncated(pictures(1)[0])]), tmp_path / "a")
    with pytest.raises(ValueError, match="the label of sample 0 is str; raw packs hold whole numbers"):
        packed(EncodedImages(pictures(2), ["a", "b"]), tmp_path / "b")
    with pytest.raises(ValueError, match="has no RGB images"):
        packed(EncodedImages(pictures(2), mode="L"), tmp_path / "c")
    packed(source(), tmp_path / "d")
    with pytest.raises(ValueError, match=r"a pack with other terms .max_size 40 instead of 50"):
        packed(source(), tmp_path / "d", side=50)
    packed(source(), tmp_path / "d", side=50, overwrite=True)
    assert checked(source(), tmp_path / "d") == COUNT


def test_differences_are_named(tmp_path: Path) -> None:
    packed(source(), tmp_path)
    labels = np.load(tmp_path / "labels.npy")
    np.save(tmp_path / "labels.npy", labels + (np.arange(COUNT) == 3))
    with pytest.raises(Difference, match=r"labels\.npy differs from the source: label 3"):
        checked(source(), tmp_path)
    np.save(tmp_path / "labels.npy", labels)
    other = list(pictures(COUNT))
    other[9] = pictures(1)[0]
    fingerprinted = EncodedImages(other, [7 * i for i in range(COUNT)])
    fingerprinted.fingerprint = source().fingerprint  # type: ignore[method-assign]
    with pytest.raises(Difference, match=r"sample 9, .*, differs from row 9 of"):
        checked(fingerprinted, tmp_path)
    assert checked(fingerprinted, tmp_path, limit=9) == 9
    images = np.load(tmp_path / "images.npy", mmap_mode="r+")
    images[5] ^= 1
    images.flush()
    del images
    os.utime(tmp_path / "images.npy")
    with pytest.raises(Difference, match=r"images\.npy is not complete, or it was changed"):
        checked(source(), tmp_path)
    with pytest.raises(ValueError, match="was changed or removed; pack it again with --overwrite"):
        packed(source(), tmp_path)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images, folder = write_folder(tmp_path / "images", COUNT), tmp_path / "pack"
    assert main(["pack", str(images), str(folder), "--raw", str(SIDE), "--workers", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        f"24 images of 40 x 40 pixels: {folder}/images.npy\nRead it with headrace.ImageArray(numpy.load("
    )
    assert main(["verify", str(folder), str(images), "--workers", "1"]) == 0
    assert capsys.readouterr().out == f"24 samples compared with {images}: 0 differ\n"
    assert main(["index", str(folder)]) == 1
    assert "has no shards to join" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["pack", str(images), str(folder), "--raw", "40", "--shard", "1/2"])
    assert "--raw writes one array, which has no shards" in capsys.readouterr().err
    assert len(DataLoader(read(folder, train(24)), 8)) == 3
