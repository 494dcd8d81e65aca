"""Tables over HTTP: the batches of the same files on a disk, or one sentence about what cannot be done."""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from object_stores import Faults, ObjectServer, batches, first_error, transform

import headrace
from headrace import MDS, LitData
from support import assert_same, pictures

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "datasets/tables"))

import test_inflated_chunks
import test_litdata
import test_mds

pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")


def mds(folder: Path, names: tuple[str, ...] = ("image", "label", "text")) -> Path:
    return test_mds.write(folder, test_mds.samples(), {name: test_mds.ENCODINGS[name] for name in names})


def rows(folder: Path) -> Path:
    return test_litdata.write_rows(folder, test_litdata.table())


WAYS: dict[str, Any] = {
    "MDS": (MDS, mds, "label"),
    "MDS with one column of varying size": (MDS, lambda folder: mds(folder, ("image", "label")), "label"),
    "MDS, several labels": (MDS, mds, ["label", "text"]),
    "litdata": (LitData, test_litdata.write, ["label", "text"]),
    "litdata in tables of Arrow": (LitData, rows, "label"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cache", [None, "disk", "memory:10 MB"])
def test_equal_to_shards_on_a_disk(tmp_path: Path, way: str, cache: str | None, monkeypatch: Any) -> None:
    kind, write, label = WAYS[way]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    (tmp_path / "bucket").mkdir()
    folder = write(tmp_path / "bucket")
    local = kind(folder, "image", label, transform())
    expected = batches(local)
    kept = tmp_path / "cache" if cache == "disk" else cache
    with ObjectServer(folder) as server:
        far = kind(server.url + "/", "image", label, transform(), cache=kept)
        for workers in (2, 0):
            assert_same(batches(far, workers), expected)
        assert_same(batches(pickle.loads(pickle.dumps(far))), expected)
        assert far.read(11) == local.read(11) and far[3][1] == local[3][1]
        assert far.fingerprint() == local.fingerprint()
        if "Arrow" not in way:  # there, copies are read
            assert far.location(0) == local.location(0).replace(str(folder), server.url)
        assert headrace.DataLoader(far, 8, num_workers=1).verify(1).samples == 8
        before = server.requests()
        batches(far)
        assert (server.requests() == before) == (cache is not None or "Arrow" in way)


def test_only_the_places_and_the_samples_are_read(tmp_path: Path) -> None:
    folder = mds(tmp_path, ("image", "label"))
    with ObjectServer(folder) as server:
        far = MDS(server.url, "image", "label", transform())
        shards = len(json.loads((folder / "index.json").read_text())["shards"])
        assert server.requests() == 1 + shards  # the index, and the places in each shard
        assert len(batches(torch.utils.data.Subset(far, range(8)))) == 1


@pytest.mark.parametrize("way", ["MDS", "litdata", "litdata batch"])
def test_compressed_shards_are_copied_once(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "bucket"
    kind: Any = LitData
    if way == "litdata batch":
        test_inflated_chunks.packed(folder, "batch")
    else:
        folder.mkdir()
        kind = MDS if way == "MDS" else LitData
        compress_mds(mds(folder)) if way == "MDS" else test_litdata.compress(
            test_litdata.write(folder, compression="zstd")
        )
    with ObjectServer(folder) as server:
        far = kind(server.url, "image", "label", transform(), cache=tmp_path / "cache")
        assert_same(batches(far), batches(kind(folder, "image", "label", transform(), cache=tmp_path / "other")))
        before = server.counts.copy()
        again = kind(server.url, "image", "label", transform(), cache=tmp_path / "cache")
        assert [again.read(i) for i in range(24)] == [far.read(i) for i in range(24)]
        assert sum((server.counts - before)[name] for name in server.counts if name.startswith("GET")) == 1  # the index


def compress_mds(folder: Path) -> None:
    index = json.loads((folder / "index.json").read_text())
    for shard in index["shards"]:
        raw = folder / shard["raw_data"]["basename"]
        with pa.CompressedOutputStream(str(raw) + ".zstd", "zstd") as out:
            out.write(raw.read_bytes())
        shard["raw_data"]["bytes"] = raw.stat().st_size
        shard |= {"compression": "zstd", "zip_data": {"basename": raw.name + ".zstd"}}
        raw.unlink()
    (folder / "index.json").write_text(json.dumps(index))


def test_faults_are_retried_and_changes_are_errors(tmp_path: Path) -> None:
    folder = mds(tmp_path)
    expected = batches(MDS(folder, "image", "text", transform()))
    with ObjectServer(folder, Faults(error=0.2, reset=0.1, short=0.1)) as server:
        far = MDS(server.url, "image", "text", transform())
        assert_same(batches(far), expected)
        server.faults = Faults()
        shard = folder / "shard.00000.mds"
        shard.write_bytes(shard.read_bytes() + b"\0")
        assert "was changed after it was indexed" in first_error(far)


def test_damage_and_arguments(tmp_path: Path) -> None:
    folder = mds(tmp_path)
    with ObjectServer(folder, Faults(forbid="nothing")) as server:
        secret = server.url.replace("://", "://user:hunter2@") + "?X-Amz-Signature=abc"
        far = MDS(secret, "image", "text", transform())
        shown = [far.location(0), repr(far), far.identity(0)]
        (folder / "shard.00001.mds").write_bytes(b"\0" * 500)
        with pytest.raises(ValueError, match=r"/shard\.00001\.mds is damaged: it does not begin") as damaged:
            MDS(secret, "image", "text")
        (folder / "index.json").write_text("{")
        with pytest.raises(ValueError, match="is no index of MDS shards") as broken:
            MDS(secret, "image")
        (folder / "index.json").unlink()
        with pytest.raises(FileNotFoundError, match=r"index\.json: there is no such object") as missing:
            MDS(secret, "image")
        for text in (*shown, str(damaged.value), str(broken.value), str(missing.value)):
            assert not any(word in text for word in ("hunter2", "abc", "Signature")), text
    given: tuple[dict[str, Any], ...] = ({"network": headrace.Network()}, {"storage_options": {}})
    for wrong in given:
        with pytest.raises(ValueError, match="are for URLs"):
            MDS(folder, "image", **wrong)
    assert len(pictures(24)) == 24


def parquet(folder: Path) -> list[str]:
    import pyarrow.parquet as pq

    names = ["a.parquet", "b.parquet"]
    table = test_litdata.table().append_column("more", pa.array([os.urandom(100_000) for _ in range(24)]))
    for number, name in enumerate(names):
        pq.write_table(table.slice(12 * number, 12), folder / name, row_group_size=5)
    return names


def arrow(folder: Path) -> list[str]:
    names = ["a.arrow", "b.arrow"]
    for number, name in enumerate(names):
        with pa.ipc.new_file(str(folder / name), test_litdata.table().schema) as writer:
            writer.write_table(test_litdata.table().slice(12 * number, 12))
    return names


@pytest.mark.parametrize(("kind", "write"), [(headrace.Parquet, parquet), (headrace.Arrow, arrow)])
def test_tables_are_converted_once(tmp_path: Path, kind: Any, write: Any) -> None:
    (tmp_path / "bucket").mkdir()
    names = write(tmp_path / "bucket")
    local = kind([tmp_path / "bucket" / name for name in names], transform=transform(), cache=tmp_path / "other")
    with ObjectServer(tmp_path / "bucket", Faults(error=0.1)) as server:
        urls = [f"{server.url}/{name}?X-Amz-Signature=abc" for name in names]
        far = kind(urls, transform=transform(), cache=tmp_path / "cache")
        assert_same(batches(far), batches(local))
        assert "abc" not in repr(far) + far.location(0) + str(far.files)
        before = server.requests()
        assert_same(batches(pickle.loads(pickle.dumps(far))), batches(local))
        if kind is headrace.Arrow:
            assert server.requests() == before
        assert len(list((tmp_path / "cache").iterdir())) == 2
        write(tmp_path / "bucket")  # other times of modification: other ETags
        kind(urls, transform=transform(), cache=tmp_path / "cache")
        assert len(list((tmp_path / "cache").iterdir())) == 2  # what was made of the earlier objects is gone
        (tmp_path / "bucket" / names[0]).write_bytes(b"PAR1")
        with pytest.raises(ValueError, match=rf"{names[0]}|damaged"):
            kind(urls, transform=transform(), cache=tmp_path / "cache")
    with pytest.raises(ValueError, match="are for URLs"):
        kind(tmp_path / "bucket" / names[1], storage_options={})


def test_of_parquet_only_the_columns_that_are_needed_are_read(tmp_path: Path) -> None:
    (tmp_path / "bucket").mkdir()
    names = parquet(tmp_path / "bucket")
    with ObjectServer(tmp_path / "bucket") as server:
        headrace.Parquet(f"{server.url}/{names[0]}", cache=tmp_path / "cache")
        assert 0 < sum(server.bytes_of.values()) < (tmp_path / "bucket" / names[0]).stat().st_size // 2


def zipped(folder: Path, way: str) -> Path:
    import zipfile

    path = folder / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number, data in enumerate(pictures(24)):
            info = zipfile.ZipInfo(f"class_{number % 3}/é{number:02}.jpg")
            if way == "extra":
                info.extra = bytes([0xFE, 0xCA, 4, 0, 1, 2, 3, 4])
            if way == "streamed":
                with Unseekable(path, archive) as out, out.open(info, "w") as member:
                    member.write(data)
            else:
                archive.writestr(info, data)
            if way == "between" and number % 4 == 0:
                archive.writestr(f"class_0/{number}.txt", bytes(3000))
    return path


class Unseekable:
    """Makes an archive write members whose sizes follow them."""

    def __init__(self, path: Path, archive: Any) -> None:
        self._archive = archive

    def __enter__(self) -> Any:
        self._archive._seekable = False
        return self._archive

    def __exit__(self, *_: object) -> None:
        self._archive._seekable = True


@pytest.mark.parametrize("way", ["plain", "extra", "streamed", "between"])
@pytest.mark.parametrize("cache", [None, "memory:10 MB"])
def test_zip_archives(tmp_path: Path, way: str, cache: str | None) -> None:
    path = zipped(tmp_path, way)
    local = headrace.Zip(path, transform=transform())
    with ObjectServer(tmp_path) as server:
        far = headrace.Zip(f"{server.url}/a.zip", transform=transform(), cache=cache)
        if way in ("plain", "extra"):
            assert server.requests() <= 5  # the directory alone, not 24 headers
        assert_same(batches(far), batches(local))
        assert far.names == local.names and far.classes == local.classes and far.fingerprint() == local.fingerprint()
        assert_same(batches(pickle.loads(pickle.dumps(far))), batches(local))


def test_zip_archives_that_lie_are_errors(tmp_path: Path) -> None:
    path = zipped(tmp_path, "plain")
    data = path.read_bytes()
    at = data.index(b"PK\3\4", 100)
    with ObjectServer(tmp_path) as server:
        path.write_bytes(data[: at + 2] + b"\0" + data[at + 3 :])
        assert "the archive is damaged: no member of this length" in first_error(
            headrace.Zip(f"{server.url}/a.zip", transform=transform())
        )
        path.write_bytes(data[:-30])
        with pytest.raises(ValueError, match=r"a\.zip is no zip archive, or it is damaged"):
            headrace.Zip(f"{server.url}/a.zip")
        path.write_bytes(data.replace(b"class_0/", b"class_1/", 1))
    with pytest.raises(ValueError, match="are for URLs"):
        headrace.Zip(path, storage_options={})
