"""Mistakes of the first hour: each message names the cause and the remedy."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset

from headrace import DataLoader, ImageFolder
from headrace import transforms as T
from headrace._base.messages import install_command
from headrace._base.ranks import World
from headrace._storage.remote.clients.client_choice import check_installed
from support import blobs

NOTES = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python shows notes from 3.11 on")


class Images(Dataset[Any]):
    def __init__(self, *steps: Any) -> None:
        self.transform = T.Compose(steps)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return self.transform(Image.new("RGB", (20 + index, 30)))


def test_a_folder_without_class_folders(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"(?m)Couldn't find any class folder in .*\.$"):
        ImageFolder(str(tmp_path))
    for number in range(3):
        Image.new("RGB", (9, 9)).save(tmp_path / f"{number}.jpg")
    with pytest.raises(FileNotFoundError, match=r"class folder in .* holds 3 images itself.*headrace\.ImageFiles"):
        ImageFolder(str(tmp_path))


@NOTES
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("steps", "kind", "remedy"),
    [
        ((T.RandomHorizontalFlip(),), TypeError, "end the transforms with ToTensor()"),
        ((T.ToTensor(),), RuntimeError, "CenterCrop(size)"),
    ],
)
def test_samples_that_do_not_collate(workers: int, steps: tuple[Any, ...], kind: type, remedy: str) -> None:
    with pytest.raises(kind) as raised:
        list(DataLoader(Images(*steps), 4, num_workers=workers))
    (note,) = raised.value.__notes__
    assert remedy in note and "collate_fn" in note


def test_names_of_dtypes_and_layouts() -> None:
    recipe = T.Compose([T.Resize((9, 9)), T.ToTensor()])
    loader = DataLoader(blobs(2, recipe), 2, dtype="float16", memory_format="channels_last")
    images, _ = next(iter(loader))
    assert images.dtype is torch.float16 and images.is_contiguous(memory_format=torch.channels_last)
    assert loader.dtype is torch.float16 and loader.memory_format is torch.channels_last
    with pytest.raises(ValueError, match="dtype must be one of"):
        DataLoader(blobs(2, recipe), 2, dtype="float17")
    with pytest.raises(ValueError, match="memory_format must be"):
        DataLoader(blobs(2, recipe), 2, memory_format="float16")


def test_a_protocol_whose_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")

    def missing(protocol: str) -> type:
        raise ImportError(f"Install something to access {protocol}")

    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)
    for url, remedy in (
        ("s3://a/b", install_command("s3", "s3fs")),
        ("gs://a/b", install_command("gcs", "gcsfs")),
        ("abfs://a/b", "pip install adlfs"),
        ("https://a/b", install_command("remote", "fsspec[http]")),
    ):
        with pytest.raises(ImportError, match=re.escape(f"URLs need another package: {remedy}")):
            check_installed(url)
    with pytest.raises(ImportError, match="Install something to access ftp"):
        check_installed("ftp://a/b")


def test_ranks_that_another_launcher_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """`distributed=True` without torchrun and init_process_group delivered all samples to each rank."""
    recipe = T.Compose([T.Resize((9, 9)), T.ToTensor()])
    seen = []
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", "2")
        loader = DataLoader(blobs(6, recipe), 2, distributed=True, seed=0)
        seen += [label for _, labels in loader for label in labels.tolist()]
    assert len(seen) == 6 and World.requested(None, None, True).found == "the variables RANK and WORLD_SIZE"
    whole = DataLoader(blobs(6, recipe), 2, world_size=1, seed=0)
    assert sorted(seen) == sorted(label for _, labels in whole for label in labels.tolist())


@pytest.mark.parametrize(("rank", "size"), [("3", "2"), ("x", "2"), (None, "2"), ("1", None), ("1", "1")])
def test_ranks_that_are_none(monkeypatch: pytest.MonkeyPatch, rank: str | None, size: str | None) -> None:
    for name, value in (("RANK", rank), ("WORLD_SIZE", size)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert World.found_out() == World()  # a loader that does not ask is not hindered
    with pytest.raises(ValueError, match=r"distributed=True: the variables RANK=.* and WORLD_SIZE=.* name no rank"):
        World.requested(None, None, True)


def test_one_rank_of_one_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert World.requested(None, None, True) == World()
