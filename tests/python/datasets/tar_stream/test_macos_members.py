"""Metadata that macOS writes beside files is of no sample, in shards with random access and in streams."""

from __future__ import annotations

import io
import logging
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch

import headrace
from headrace import TarShards, TarStream
from headrace import transforms as T
from support import pictures

tariterators = pytest.importorskip("webdataset.tariterators")

APPLE_DOUBLE = bytes.fromhex("00051607") + bytes(160)
COUNT = 12


def write(path: Path, folder: str, metadata: bool) -> str:
    """A shard as macOS's tar writes it: before each member the AppleDouble file of the same name."""
    with tarfile.open(path, "w") as tar:

        def add(name: str, data: bytes) -> None:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))

        if metadata:
            add(f"{folder}.DS_Store", b"\0\0\0\1Bud1")
        for i, data in enumerate(pictures(COUNT)):
            for extension, held in (("cls", str(i).encode()), ("jpg", data)):
                if metadata:
                    add(f"{folder}._{i:04}.{extension}", APPLE_DOUBLE)
                add(f"{folder}{i:04}.{extension}", held)
                if metadata:
                    add(f"__MACOSX/{folder}._{i:04}.{extension}", b"cut" if i % 2 else APPLE_DOUBLE)
    return str(path)


def samples_of_webdataset(path: str) -> list[dict[str, Any]]:
    with Path(path).open("rb") as stream:
        return list(tariterators.group_by_keys(tariterators.tar_file_expander([{"url": path, "stream": stream}])))


def batches(dataset: Any) -> list[Any]:
    loader: headrace.DataLoader[Any] = headrace.DataLoader(dataset, 4, num_workers=1, seed=0)
    assert loader.native, loader.explain()
    return list(loader)


@pytest.mark.parametrize("folder", ["train/", "a.b/c/", ""])
@pytest.mark.parametrize("kind", [TarShards, TarStream])
def test_samples_are_those_of_a_shard_without_them(
    tmp_path: Path, folder: str, kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "headrace.storage")
    resize = T.Compose([T.Resize((16, 16)), T.PILToTensor()])
    plain, mixed = (write(tmp_path / f"{name}.tar", folder, name == "mixed") for name in ("plain", "mixed"))
    expected, found = (batches(kind([path], label=["cls", "__key__"], transform=resize)) for path in (plain, mixed))
    assert len(found) == len(expected) == COUNT // 4
    for (images, labels), (their_images, their_labels) in zip(found, expected, strict=True):
        assert torch.equal(images, their_images)
        assert torch.equal(labels["cls"], their_labels["cls"]) and labels["__key__"] == their_labels["__key__"]
    noted = [record.getMessage() for record in caplog.records if "passed over" in record.getMessage()]
    assert noted == [f"{mixed}: {1 + 4 * COUNT} members are metadata that macOS wrote (._name, __MACOSX/, .DS_Store), "
                     "and passed over"]  # fmt: skip


def test_webdataset_breaks_such_samples(tmp_path: Path) -> None:
    """Which is why they are passed over: between the members of a sample are those of another one, the folder."""
    made = samples_of_webdataset(write(tmp_path / "x.tar", "train/", True))
    assert not any({"jpg", "cls"} <= set(sample) for sample in made)


def test_a_hidden_file_that_is_not_metadata_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as tar:
        for name in ("train/._jpg", "train/0.jpg"):
            info = tarfile.TarInfo(name)
            info.size = len(pictures(1)[0])
            tar.addfile(info, io.BytesIO(pictures(1)[0]))
    keys = [sample["__key__"] for sample in samples_of_webdataset(str(path))]
    assert keys == ["train/", "train/0"]
    with pytest.raises(ValueError, match="first 'train/'"):
        TarShards([path], label=None)
    assert list(TarShards([path], image=["jpg", "_jpg"], label=None).keys) == keys


def test_an_index_that_has_them_is_made_again(tmp_path: Path) -> None:
    import numpy as np

    path = write(tmp_path / "x.tar", "train/", True)
    assert len(TarShards([path])) == COUNT
    sidecar = Path(f"{path}.index.npz")
    with np.load(sidecar) as file:
        fields = dict(file)
    written = sidecar.read_bytes()
    np.savez(sidecar, allow_pickle=False, **{**fields, "version": np.array(1), "sample": fields["sample"][:0]})
    assert len(TarShards([path])) == COUNT
    assert sidecar.read_bytes() == written
