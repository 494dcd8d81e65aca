"""Datasets from the words of a command line: each form that there is, and one sentence for what is none."""

from __future__ import annotations

import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

from headrace import DataLoader, EncodedImages, ImageFiles, ImageFolder
from headrace.datasets.opening.dataset_opening import open_dataset
from headrace.datasets.sources import BlobDataset
from headrace.datasets.tables.zip_archive import Zip
from support import assert_same, pictures, train, write_folder

COUNT = 12


def expected(labels: bool = True) -> EncodedImages:
    return EncodedImages(pictures(COUNT), [i % 5 for i in range(COUNT)] if labels else None, train(24))


def assert_opens(text: str, kind: str, labels: bool = True) -> None:
    """Asserts that the dataset is of this class, and has `pictures` and their labels."""
    dataset = open_dataset(text)
    assert isinstance(dataset, BlobDataset) and type(dataset).__name__ == kind
    dataset.transform = train(24)
    assert_same(DataLoader(dataset, 5, seed=0), list(DataLoader(expected(labels), 5, seed=0)))


def write_tar(path: Path, members: list[tuple[str, bytes]]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def test_folders(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "classes", COUNT)
    dataset = open_dataset(str(root))
    assert isinstance(dataset, ImageFolder) and dataset.classes == ["class_0", "class_1", "class_2"]
    flat = tmp_path / "flat"
    flat.mkdir()
    for i, data in enumerate(pictures(COUNT)):
        (flat / f"{i:02}.jpg").write_bytes(data)
    assert_opens(str(flat), "ImageFiles", labels=False)
    one = open_dataset(str(flat / "03.jpg"))
    assert isinstance(one, ImageFiles) and len(one) == 1
    (root / "empty").mkdir()  # a class without images
    whole = open_dataset(str(root))
    assert isinstance(whole, ImageFolder) and len(whole) == COUNT


def test_tar_shards(tmp_path: Path) -> None:
    samples = [[(f"{i:02}.jpg", data), (f"{i:02}.cls", str(i % 5).encode())] for i, data in enumerate(pictures(COUNT))]
    write_tar(tmp_path / "a-0.tar", [member for one in samples[:7] for member in one])
    write_tar(tmp_path / "a-1.tar", [member for one in samples[7:] for member in one])
    for text in (str(tmp_path), str(tmp_path / "a-{0..1}.tar"), str(tmp_path / "a-*.tar")):
        assert_opens(text, "TarShards")
    write_tar(tmp_path / "none.tar", [("0.npy", b"")])
    with pytest.raises(ValueError, match=r"none\.tar holds no images but npy"):
        open_dataset(str(tmp_path / "none.tar"))
    write_tar(tmp_path / "bare.tar", [(f"{i:02}.png", data) for i, data in enumerate(pictures(COUNT))])
    assert_opens(str(tmp_path / "bare.tar"), "TarShards", labels=False)


def test_zip_archives(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "a.zip", "w") as archive:
        for i, data in enumerate(pictures(COUNT)):
            archive.writestr(f"class/{i:02}.jpg", data)
    dataset = open_dataset(str(tmp_path / "a.zip"))
    assert isinstance(dataset, Zip) and len(dataset) == COUNT


def test_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    columns = {"number": list(range(COUNT)), "img": list(pictures(COUNT)), "label": [i % 5 for i in range(COUNT)]}
    table = pa.table(columns)
    (tmp_path / "p").mkdir()
    parquet.write_table(table.slice(0, 5), tmp_path / "p" / "0.parquet")
    parquet.write_table(table.slice(5), tmp_path / "p" / "1.parquet")
    assert_opens(str(tmp_path / "p"), "Parquet")
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    assert_opens(str(tmp_path / "a.arrow"), "Arrow")
    parquet.write_table(table.select(["number"]), tmp_path / "numbers.parquet")
    with pytest.raises(ValueError, match="no column of encoded images; its columns are number"):
        open_dataset(str(tmp_path / "numbers.parquet"))
    two = table.select(["number"]).append_column("a", table["img"]).append_column("b", table["img"])
    parquet.write_table(two, tmp_path / "two.parquet")
    with pytest.raises(ValueError, match=r"several columns of images \(a, b\)"):
        open_dataset(str(tmp_path / "two.parquet"))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(ValueError, match=r"bad\.parquet is no Parquet file"):
        open_dataset(str(tmp_path / "bad.parquet"))


def test_folders_of_shards(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    datasets = pytest.importorskip("datasets")
    saved = datasets.Dataset.from_dict(
        {"image": list(pictures(COUNT)), "label": [i % 5 for i in range(COUNT)]},
    )
    saved.save_to_disk(tmp_path / "saved")
    assert_opens(str(tmp_path / "saved"), "Arrow")
    (tmp_path / "index.json").write_text("{}")
    with pytest.raises(ValueError, match="neither an index of MDS shards nor one of litdata's chunks"):
        open_dataset(str(tmp_path))


def test_shards_of_other_libraries(tmp_path: Path) -> None:
    def sample(i: int, data: bytes, sizes: list[int]) -> bytes:
        return np.array(sizes, "<u4").tobytes() + data + np.int64(i % 5).tobytes()

    def shard(made: list[bytes], header: bytes) -> bytes:
        ends = np.cumsum([0, *map(len, made)]) + 4 * (len(made) + 2) + len(header)
        return np.uint32(len(made)).tobytes() + ends.astype("<u4").tobytes() + header + b"".join(made)

    for name in ("mds", "litdata"):
        (tmp_path / name).mkdir()
    about = {"column_encodings": ["jpeg", "int"], "column_names": ["image", "label"], "column_sizes": [None, 8]}
    about |= {"compression": None, "format": "mds", "samples": COUNT, "version": 2, "raw_data": {"basename": "0.mds"}}
    (tmp_path / "mds/index.json").write_text(json.dumps({"shards": [about]}))
    made = [sample(i, data, [len(data)]) for i, data in enumerate(pictures(COUNT))]
    (tmp_path / "mds/0.mds").write_bytes(shard(made, b"{}"))
    assert_opens(str(tmp_path / "mds"), "MDS")

    leaf: dict[str, Any] = {"type": None, "context": None, "children_spec": []}
    spec = [1, {"type": "builtins.dict", "context": json.dumps(["image", "label"]), "children_spec": [leaf, leaf]}]
    config = {"compression": None, "data_format": ["image:jpg", "int"], "data_spec": json.dumps(spec)}
    chunks = [{"chunk_size": COUNT, "filename": "0.bin"}]
    (tmp_path / "litdata/index.json").write_text(json.dumps({"config": config, "chunks": chunks}))
    made = [sample(i, data, [len(data), 8]) for i, data in enumerate(pictures(COUNT))]
    (tmp_path / "litdata/0.bin").write_bytes(shard(made, b""))
    assert_opens(str(tmp_path / "litdata"), "LitData")


def test_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # the current folder is added to it
    (tmp_path / "mine_opened.py").write_text(
        "from headrace import EncodedImages\nfrom support import pictures, train\n"
        "def make():\n    return EncodedImages(pictures(12), [i % 5 for i in range(12)], train(24))\n"
        "made = make()\nnumber = 5\ndef broken():\n    raise RuntimeError('no disk')\n"
    )
    for text in ("mine_opened:make", "mine_opened:made", "mine_opened.py:make", f"{tmp_path}/mine_opened.py:made"):
        assert_opens(text, "EncodedImages")
    for text, message in {
        "mine_opened:number": "is no map-style dataset but int",
        "mine_opened:missing": "mine_opened has no missing",
        "mine_opened:broken": r"mine_opened:broken\(\) raised RuntimeError: no disk",
        "no_such_module:made": "there is no module no_such_module",
        "no_such_file.py:made": "there is no such file",
    }.items():
        with pytest.raises(ValueError, match=message):
            open_dataset(text)


def test_what_is_no_dataset(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / "mine.py").write_text("")
    for text, message in {
        str(tmp_path): "holds no images, and no shards",
        str(tmp_path / "mine.py"): r"is a program: .*mine\.py:NAME",
        str(tmp_path / "notes.txt"): "is no dataset that headrace reads",
        str(tmp_path / "missing"): "does not exist",
        "s3://bucket/train": "is not a file of this machine",
        str(tmp_path / "*.zip"): "does not exist",
    }.items():
        with pytest.raises(ValueError, match=message):
            open_dataset(text)
