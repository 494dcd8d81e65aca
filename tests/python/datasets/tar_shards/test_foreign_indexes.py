"""Indexes of DALI and Energon beside a shard: read where they fit, noticed where they are false."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foreign_writers import LIES, WRITERS, Row, dali, energon, lie, rows
from headrace import TarShards
from headrace._base.native import core
from headrace.datasets.tar_shards.tar_index import TarIndex, index_of


def write(path: Path, count: int = 6) -> Path:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for i in range(count):
            parts = (("jpg", b"x" * (700 + i)), ("CLS", b" -%d\n" % i), ("txt", b"%d" % i), ("seg.id", b"word"))
            for extension, data in parts:
                info = tarfile.TarInfo(f"deep.er/{i:03}.{extension}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return path


def contents(index: TarIndex) -> list:
    names = index.extensions.tolist()
    keys = [index.key(int(sample)) for sample in index.sample]
    extensions = [names[number] for number in index.extension]
    return list(zip(keys, extensions, index.offset, index.length, bool(index.has_end) * [*index.sample], strict=True))


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    (tmp_path / "shards").mkdir()
    return write(tmp_path / "shards" / "part-0.tar")


@pytest.mark.parametrize("kind", WRITERS)
def test_an_index_that_fits_replaces_the_walk(shard: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    own = index_of(str(shard), "")
    expected = TarShards(shard, label=["cls", "txt"], index=False)
    WRITERS[kind](shard, rows(shard))
    with monkeypatch.context() as patched:
        patched.setattr(core, "tar_samples", None)  # not called
        found = index_of(str(shard), None)
        data = TarShards(shard, label=["cls", "txt"])
    assert contents(found) == contents(own)
    whole = own.number[1::4].tolist()
    assert found.number[1::4].tolist() == whole == [0, -1, -2, -3, -4, -5]
    assert [data.target(i) for i in range(6)] == [expected.target(i) for i in range(6)]
    assert TarShards(shard).fingerprint() == TarShards(shard, index=False).fingerprint()


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("name", LIES)
def test_an_index_that_lies_is_noticed(shard: Path, kind: str, name: str) -> None:
    own = index_of(str(shard), "")
    samples = rows(shard)
    lie(name, samples)
    WRITERS[kind](shard, samples)
    assert contents(index_of(str(shard), None)) == contents(own)
    with np.load(f"{shard}.index.npz") as kept:  # and the right one is kept
        assert np.array_equal(kept["offset"], own.offset)


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    "content", [b"", b"v1.2 1\n", b"v1.2 x\n1\n", b"v1.1 0\n", bytes(range(256)), b"v1.2 1\na b c d\n"]
)
def test_a_damaged_index_is_passed_over(shard: Path, kind: str, content: bytes) -> None:
    index = WRITERS[kind](shard, rows(shard))
    index.write_bytes(content)
    assert len(index_of(str(shard), None).sample) == 24


def test_an_older_index_is_passed_over(shard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = dali(shard, rows(shard))
    os.utime(index, ns=(1, 1))
    walked = count_walks(monkeypatch)
    index_of(str(shard), None)
    assert len(walked) == 1


def test_pax_headers_between_all_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """webdataset's writer makes them. Where only some have one, an index may leave out a member: it is walked."""
    walked = count_walks(monkeypatch)
    for name, times in (("all", (0.5, 0.5, 0.5)), ("some", (0.5, 1, 0.5)), ("none", (1, 1, 1))):
        path = tmp_path / f"{name}.tar"
        with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
            for member, time in zip(("a.jpg", "a.txt", "a.id"), times, strict=True):
                info = tarfile.TarInfo(member)
                info.mtime, info.size = time, 9
                tar.addfile(info, io.BytesIO(b"         "))
        samples = rows_of(path)
        if name == "none":  # what remains has the gaps of PAX headers
            del samples[0][::2]
        dali(path, samples)
        assert len(index_of(str(path), None).sample) == 3
        assert walked == ([] if name == "all" else [os.fsencode(path)])
        walked.clear()


def count_walks(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The shards whose members are read from now on, as `index_of` comes to them."""
    walked: list[bytes] = []
    real = core.tar_samples

    def walk(path: bytes) -> Any:
        walked.append(path)
        return real(path)

    monkeypatch.setattr(core, "tar_samples", walk)
    return walked


def rows_of(path: Path) -> list[list[Row]]:
    with tarfile.open(path) as tar:
        return [[[m.name.partition(".")[2], m.offset_data, m.size, m.name] for m in tar]]


def test_lists_of_wids(shard: Path, tmp_path: Path) -> None:
    listed: dict[str, Any] = {"wids_version": 1, "shardlist": [{"url": "shards/part-0.tar", "nsamples": 6}]}
    index = tmp_path / "shards.json"

    def read(**changes: object) -> TarShards:
        listed["shardlist"][0].update(changes)
        index.write_text(json.dumps(listed))
        return TarShards(str(index))

    assert len(read(filesize=shard.stat().st_size)) == 6
    with pytest.raises(ValueError, match=r"part-0.tar has \d+ bytes, but .*shards.json says 7"):
        read(filesize=7)
    with pytest.raises(FileNotFoundError):
        read(url="shards/missing.tar")
    listed["base"], listed["shardlist"][0] = str(tmp_path / "shards"), {"url": "part-0.tar"}
    assert len(read()) == 6
    for content in ("[]", "{", '{"wids_version": 1}', '{"wids_version": 1, "shardlist": [7]}'):
        index.write_text(content)
        with pytest.raises(ValueError, match="no list of shards of wids"):
            TarShards(index)
    index.write_text('{"wids_version": 1, "datasets": [{"source_url": "x"}]}')
    with pytest.raises(ValueError, match="names other lists"):
        TarShards(index)


@pytest.mark.parametrize("kind", WRITERS)
def test_any_bytes_of_an_index_may_lie(shard: Path, kind: str) -> None:
    """Nothing but the right places of members comes of it, and no error; names may differ, as they are not all read."""
    own = index_of(str(shard), "")
    good = WRITERS[kind](shard, rows(shard)).read_bytes()
    path = shard.with_name("part-0.idx") if kind == "dali" else shard.parent.parent / ".nv-meta" / "index.sqlite"
    random = np.random.default_rng(17)
    for _ in range(150):
        data = bytearray(good[: random.integers(len(good))] if random.random() < 0.2 else good)
        for place in random.integers(0, max(len(data), 1), random.integers(1, 4)).tolist():
            data[place : place + 1] = random.bytes(1)
        path.write_bytes(data)
        found = index_of(str(shard), None)
        assert np.array_equal(found.offset, own.offset)
        shard.with_name(shard.name + ".index.npz").unlink()


def test_a_database_with_an_endless_view_is_passed_over(shard: Path) -> None:
    index = energon(shard, rows(shard))
    base = sqlite3.connect(index)
    base.execute("ALTER TABLE sample_parts RENAME TO kept")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    base.execute(f"CREATE VIEW sample_parts AS SELECT * FROM kept WHERE (SELECT count(*) FROM ({endless})) > 0")
    base.commit()
    base.close()
    assert len(index_of(str(shard), None).sample) == 24
