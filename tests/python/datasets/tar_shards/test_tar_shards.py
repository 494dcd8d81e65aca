"""Tar shards: the oracle's batches and WebDataset's samples, from shards of every writer, in any order."""

from __future__ import annotations

import gc
import io
import json
import pickle
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headrace import DataLoader, Fields, TarShards
from headrace import transforms as T
from headrace.datasets.sources.byte_ranges import Ranges
from support import assert_same, blobs, pictures, train

COUNT = 24
EACH = 10  # samples of a shard


def members(long: bool = False) -> list[tuple[str, bytes]]:
    made = []
    for i, data in enumerate(pictures(COUNT)):
        key = f"{'deep folder/' * 12}{'n' * 90}{i:04}" if long and i % 2 else f"a.b/{i:04}"
        made += [(f"{key}.cls", f"{i * 3}\n".encode()), (f"{key}.JPG" if i % 3 else f"{key}.png", data)]
        made += [(f"{key}.json", json.dumps({"number": i}).encode()), (f"{key}.txt", f"text é {i}".encode())]
    return made


def write(folder: Path, form: int = tarfile.USTAR_FORMAT, long: bool = False) -> list[Path]:
    """Shards of EACH samples."""
    parts, paths = members(long), list[Path]()
    for begin in range(0, len(parts), 4 * EACH):
        paths.append(folder / f"part-{len(paths):03}.tar")
        with tarfile.open(paths[-1], "w", format=form) as tar:
            for name, data in parts[begin : begin + 4 * EACH]:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return paths


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    return write(tmp_path)


def labels(batches: list) -> list:
    return [label for _, some in batches for label in some.tolist()]


@pytest.mark.parametrize("device", [None, "emulated"])
def test_batches_are_those_of_the_same_images_in_memory(shards: list[Path], device: str | None) -> None:
    options: dict[str, Any] = {"batch_size": 5, "shuffle": True, "seed": 3, "num_workers": 2, "device": device}
    loader = DataLoader(TarShards(shards, transform=train(32)), **options)
    assert loader.native
    expected = list(loader.reference())
    batches = list(loader)
    assert assert_same(batches, expected) == 5
    theirs = list(DataLoader(blobs(COUNT), **options))
    assert assert_same([images for images, _ in batches], [images for images, _ in theirs]) == 5
    assert labels(batches) == [3 * label for label in labels(theirs)]
    loader.verify()


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_format_of_pythons_tarfile(tmp_path: Path, form: int) -> None:
    shards = TarShards(write(tmp_path, form, long=form != tarfile.USTAR_FORMAT))
    assert [shards.read(i) for i in range(COUNT)] == list(pictures(COUNT))
    assert max(map(len, shards.keys)) == (8 if form == tarfile.USTAR_FORMAT else 238)


@pytest.mark.parametrize("form", ["ustar", "gnu", "pax", "v7", "oldgnu"])
def test_every_format_of_gnu_tar(tmp_path: Path, form: str) -> None:
    if shutil.which("tar") is None:
        pytest.skip("there is no tar program")
    (tmp_path / "files").mkdir()
    for i, data in enumerate(pictures(COUNT)):
        (tmp_path / f"files/{i:04}.jpg").write_bytes(data)
        (tmp_path / f"files/{i:04}.cls").write_text(str(i))
    where = ["-C", str(tmp_path / "files"), f"--format={form}", "--sort=name"]
    if b"GNU tar" not in subprocess.run(["tar", "--version"], capture_output=True, check=True).stdout:
        pytest.skip("tar is not GNU tar")
    subprocess.run(["tar", "-cf", str(tmp_path / "x.tar"), *where, "."], check=True)
    shards = TarShards(tmp_path / "x.tar")
    assert [shards.read(i) for i in range(COUNT)] == list(pictures(COUNT))
    assert [shards.target(i) for i in range(COUNT)] == list(range(COUNT))
    assert shards.keys[1] == "./0001"


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")  # its files
def test_samples_are_those_of_webdataset(shards: list[Path]) -> None:
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
    pattern = str(shards[0].parent / "part-{000..002}.tar")
    theirs = list(webdataset.WebDataset(pattern, shardshuffle=False, empty_check=False))
    gc.collect()  # closes its files here, where the warnings about them are ignored
    ours = TarShards(pattern, label=["cls", "json", "txt", "__key__"])
    assert len(ours) == len(theirs) == COUNT
    for i, sample in enumerate(theirs):
        assert ours.read(i) == sample["jpg" if i % 3 else "png"]
        assert ours.target(i) == {
            "cls": int(sample["cls"]),
            "json": json.loads(sample["json"]),
            "txt": sample["txt"].decode(),
            "__key__": sample["__key__"],
        }


def test_shards_of_webdatasets_writer(tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
    with webdataset.TarWriter(str(tmp_path / "w.tar")) as writer:
        for i, data in enumerate(pictures(COUNT)):
            writer.write({"__key__": f"k{i}", "jpg": data, "cls": i, "json": {"i": i}})
    loader = DataLoader(TarShards(tmp_path / "w.tar", transform=train(32)), 6, num_workers=1, seed=1)
    assert assert_same(loader, list(DataLoader(blobs(COUNT), 6, num_workers=1, seed=1))) == 4


def test_labels(shards: list[Path]) -> None:
    def batch(label: Any, **options: Any) -> Any:
        return next(iter(DataLoader(TarShards(shards, label=label, transform=train(8), **options), 3, num_workers=1)))

    assert isinstance(batch(None), torch.Tensor)
    assert torch.equal(batch("cls")[1], torch.tensor([0, 3, 6]))
    assert batch("txt")[1] == ("text é 0", "text é 1", "text é 2")
    assert torch.equal(batch("json")[1]["number"], torch.tensor([0, 1, 2]))
    both = batch(["__key__", "cls"])[1]
    assert both["__key__"] == ["a.b/0000", "a.b/0001", "a.b/0002"] and both["cls"].tolist() == [0, 3, 6]
    assert batch("cls", target_transform=lambda value: value + 1)[1].tolist() == [1, 4, 7]
    assert TarShards(shards)[1][1] == 3 and type(TarShards(shards)[1][1]) is int


def test_the_first_extension_of_the_list_is_taken(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "two.tar", "w") as tar:
        for name in ("a.png", "a.jpg", "b.jpg"):
            tar.addfile(_info(name, len(name)), io.BytesIO(name.encode()))
    path = tmp_path / "two.tar"
    read = [TarShards(path, image, None).read(0) for image in ("jpg;png", "png;jpg", ["PNG", "jpg"])]
    assert read == [b"a.jpg", b"a.png", b"a.png"]
    assert TarShards(path, "png", None, missing="skip").keys[:] == ["a"]


def _info(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = size
    return info


def test_ranks_and_state_reach_every_sample_once(shards: list[Path]) -> None:
    data = TarShards(shards[:1], transform=train(8))  # one shard, four ranks
    seen = [
        value
        for rank in range(4)
        for value in labels(list(DataLoader(data, 1, shuffle=True, seed=2, num_workers=1, rank=rank, world_size=4)))
    ]
    assert set(seen) == {3 * i for i in range(EACH)}
    loader = DataLoader(data, 2, shuffle=True, seed=2, num_workers=1)
    whole = list(loader)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest = list(iterator)
    resumed = DataLoader(TarShards(shards[:1], transform=train(8)), 2, shuffle=True, seed=2, num_workers=1)
    resumed.load_state_dict(state)
    assert len(whole) == 5 and assert_same(resumed, rest) == 4


def test_incomplete_samples(shards: list[Path]) -> None:
    with pytest.raises(ValueError, match=r"part-000\.tar: 24 of 24 samples have no cls2, first 'a\.b/0000'"):
        TarShards(shards, label="cls2")
    with pytest.raises(ValueError, match="no complete sample in 3 shards"):
        TarShards(shards, label="cls2", missing="skip")
    assert len(TarShards(shards, image="png", missing="skip")) == COUNT // 3


def test_nothing_is_unpickled_unasked(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "p.tar", "w") as tar:
        for name, data in (("a.jpg", b"x"), ("a.pyd", pickle.dumps([1]))):
            tar.addfile(_info(name, len(data)), io.BytesIO(data))
    with pytest.raises(ValueError, match="allow_pickle"):
        TarShards(tmp_path / "p.tar", label="pyd")
    assert TarShards(tmp_path / "p.tar", label="pyd", allow_pickle=True).target(0) == [1]


def test_a_label_that_is_no_number_is_named(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "n.tar", "w") as tar:
        for name, data in (("a.jpg", pictures()[0]), ("a.cls", b"+1"), ("b.jpg", pictures()[1]), ("b.cls", b"cat")):
            tar.addfile(_info(name, len(data)), io.BytesIO(data))
    shards = TarShards(tmp_path / "n.tar")
    assert shards[0][1] == 1
    with pytest.raises(ValueError, match=r"n\.tar:b\.cls cannot be decoded: invalid literal"):
        shards.target(1)


def test_a_copy_in_another_process_is_the_same(shards: list[Path]) -> None:
    data = TarShards(shards, label=["cls", "txt"])
    copy = pickle.loads(pickle.dumps(data))
    assert copy.fingerprint() == data.fingerprint()
    assert [copy.target(i) for i in range(COUNT)] == [data.target(i) for i in range(COUNT)]
    assert isinstance(copy, Ranges) and np.array_equal(copy.offsets, data.offsets)


def test_a_broken_image_is_named_with_its_shard(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "b.tar", "w") as tar:
        tar.addfile(_info("x/a.jpg", 9), io.BytesIO(b"not image"))
    with pytest.raises(Exception, match=r"b\.tar:x/a\.jpg\)"):
        list(DataLoader(TarShards(tmp_path / "b.tar", label=None, transform=train(8)), 1, num_workers=1))


def test_images_and_masks_of_one_sample(tmp_path: Path) -> None:
    image, mask = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (8, 8), (9, 9, 9)).save(image, "PNG")
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(mask, "PNG")
    with tarfile.open(tmp_path / "m.tar", "w") as tar:
        for i in range(3):
            for name, data in ((f"{i}.jpg", image.getvalue()), (f"{i}.seg.png", mask.getvalue())):
                tar.addfile(_info(name, len(data)), io.BytesIO(data))
    shards = tmp_path / "m.tar"
    fields = {
        "image": TarShards(shards, label=None, transform=T.PILToTensor()),
        "mask": TarShards(shards, "seg.png", None, transform=T.PILToTensor(), mode="P"),
    }
    loader = DataLoader(Fields(fields, geometry=T.Resize((8, 8)), masks=["mask"]), 3, num_workers=1)
    assert loader.native
    batch = next(iter(loader))
    assert batch["mask"][2, 0].flatten().tolist() == list(range(64)) and batch["image"].shape == (3, 3, 8, 8)
