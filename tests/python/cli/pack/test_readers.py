"""Packs are read by headrace, webdataset and Hugging Face's datasets, with equal images; all sources pack."""

from __future__ import annotations

import gc
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from packs import checked, packed, turned
from PIL import Image

from headrace import DataLoader, EncodedImages, ImageFiles, TarShards
from headrace._cli.pack.conversion import COPY, LOSSLESS
from headrace.datasets.opening.dataset_opening import open_dataset
from headrace.datasets.sources import BlobDataset
from support import assert_same, data_folder, hard_files, pictures, train, write_folder

COUNT = 24


def jpegs(count: int) -> list[bytes]:
    return [data for data in pictures(2 * count) if data.startswith(b"\xff\xd8")][:count]


@pytest.mark.parametrize("how", [COPY, LOSSLESS])
def test_batches_are_those_of_the_source(how: str, tmp_path: Path) -> None:
    source = EncodedImages(pictures(COUNT), range(COUNT), train(32))
    packed(source, tmp_path / "pack", how)
    read = TarShards(str(tmp_path / "pack" / "*.tar"), transform=train(32))
    assert_same(DataLoader(read, 6, shuffle=True, seed=1), list(DataLoader(source, 6, shuffle=True, seed=1)))


def test_lossless_packs_of_hard_files_have_their_pixels(tmp_path: Path) -> None:
    files = sorted(hard_files(data_folder("hard_dev")))[::6]
    done = packed(ImageFiles(files), tmp_path / "pack", LOSSLESS, shard_size=10**9)
    assert sum(done.records[0].kept.values()) < len(files)  # some were rewritten
    assert checked(ImageFiles(files), tmp_path / "pack") == len(files)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")  # its files
def test_webdataset_reads_packs(tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
    source = EncodedImages(pictures(COUNT), range(COUNT))
    done = packed(source, tmp_path / "pack", LOSSLESS)
    urls = str(tmp_path / "pack" / f"shard-{{000000..{done.terms.shards - 1:06}}}.tar")
    stream = webdataset.WebDataset(urls, shardshuffle=False, empty_check=False)
    theirs = list(stream.decode("pil").to_tuple("jpg;png", "cls", "__key__"))
    del stream
    gc.collect()  # closes its files here, where the warnings about them are ignored
    assert [(label, key) for _, label, key in theirs] == [(i, f"{i:06}") for i in range(COUNT)]
    for i, (image, _, _) in enumerate(theirs):
        assert image.convert("RGB").tobytes() == source.image(i).tobytes()


def test_hugging_faces_datasets_read_packs(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    source = EncodedImages([*jpegs(12), *(turned(orientation) for orientation in (3, 6))], range(14))
    packed(source, tmp_path / "pack", LOSSLESS)
    files = {"train": str(tmp_path / "pack" / "*.tar")}
    read = datasets.load_dataset("webdataset", data_files=files, cache_dir=str(tmp_path / "cache"), split="train")
    upright = TarShards(str(tmp_path / "pack" / "*.tar"), upright=True)
    assert read["cls"] == list(range(14))
    for i, row in enumerate(read):
        assert row["jpg"].convert("RGB").tobytes() == upright.image(i).tobytes()
        assert i >= 12 or row["jpg"].convert("RGB").tobytes() == source.image(i).tobytes()


def test_upright_shards_load_as_they_open(tmp_path: Path) -> None:
    packed(
        EncodedImages([turned(orientation, 40) for orientation in range(1, 9)], range(8)), tmp_path / "pack", LOSSLESS
    )
    loader = DataLoader(TarShards(str(tmp_path / "pack" / "*.tar"), transform=train(24), upright=True), 4, seed=1)
    assert loader.native
    assert loader.verify(2).samples == 8


def parquet(folder: Path) -> Path:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    table = datasets.Dataset.from_dict({"image": [{"bytes": one, "path": None} for one in jpegs(5)], "label": range(5)})
    table.cast_column("image", datasets.Image()).to_parquet(folder / "a.parquet")
    return folder / "a.parquet"


def saved(folder: Path) -> Path:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    table = datasets.Dataset.from_dict({"image": [{"bytes": one, "path": None} for one in jpegs(5)], "label": range(5)})
    table.cast_column("image", datasets.Image()).save_to_disk(folder / "saved")
    return folder / "saved"


def zipped(folder: Path) -> Path:
    with ZipFile(folder / "a.zip", "w") as archive:
        for i, data in enumerate(jpegs(5)):
            archive.writestr(f"class_{i}/{i}.jpg", data)
    return folder / "a.zip"


def mds(folder: Path) -> Path:
    """One shard of MosaicML's streaming, by the format's description."""
    samples = [np.uint32(len(data)).tobytes() + data + np.int64(i).tobytes() for i, data in enumerate(jpegs(5))]
    columns = {"column_names": ["image", "label"], "column_encodings": ["jpeg", "int"], "column_sizes": [None, 8]}
    config = json.dumps(columns).encode()
    begins = np.cumsum([4 * (5 + 2) + len(config), *map(len, samples)], dtype=np.uint32)
    root = folder / "mds"
    root.mkdir()
    (root / "shard.00000.mds").write_bytes(np.uint32(5).tobytes() + begins.tobytes() + config + b"".join(samples))
    shard = {**columns, "format": "mds", "version": 2, "samples": 5, "compression": None}
    index = {"version": 2, "shards": [{**shard, "raw_data": {"basename": "shard.00000.mds"}}]}
    (root / "index.json").write_text(json.dumps(index))
    return root


def images(folder: Path) -> Path:
    return write_folder(folder / "images", 5, 5)


@pytest.mark.parametrize("form", [images, zipped, parquet, saved, mds])
def test_every_source_packs(form: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = open_dataset(str(form(tmp_path)))
    assert isinstance(source, BlobDataset)
    done = packed(source, tmp_path / "pack", LOSSLESS)
    assert checked(source, tmp_path / "pack") == 5
    read = TarShards(str(tmp_path / "pack" / "*.tar"), upright=done.terms.upright)
    assert [read.target(i) for i in range(5)] == list(range(5))
    assert all(read.image(i).tobytes() == source.image(i).tobytes() for i in range(5))
    with Image.open(io.BytesIO(read.read(0))) as image:
        assert image.format == "JPEG"
