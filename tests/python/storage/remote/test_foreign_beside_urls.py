"""Indexes of DALI, Energon and wids beside shards in other machines: read where they fit, else a warning."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch
from object_stores import EACH, PATTERN, SHARDS, Faults, ObjectServer, batches, first_error, transform, write_shards

import headrace
from foreign_writers import WRITERS, Row, lie, rows
from headrace import TarShards, TarStream
from headrace._cli.main import main as headrace_command
from support import assert_same

pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shards(tmp_path_factory.mktemp("local") / "data")


@pytest.fixture
def bucket(local: Path, tmp_path: Path) -> Path:
    """A folder with the shards in a folder of it."""
    shutil.copytree(local, tmp_path / "bucket" / "shards", ignore=shutil.ignore_patterns("*.npz"))
    return tmp_path / "bucket"


def write_indexes(bucket: Path, kind: str, wrong: str = "") -> None:
    """Writes the index of each shard; `wrong`: what is false in that of the first one."""
    for number, path in enumerate(sorted((bucket / "shards").glob("*.tar"))[: SHARDS if kind == "dali" else 1]):
        samples = rows(path)
        if number == 0:
            lie(wrong, samples)
        WRITERS[kind](path, samples)


def shards_of(kind: str) -> str:
    """The shards of a test: the writer of Energon's database knows one."""
    return PATTERN if kind == "dali" else "000.tar"


def whole_reads(server: ObjectServer) -> int:
    """Number of shards of which more was asked for than a few headers. Shards are smaller than a request's piece."""
    return sum(
        server.bytes_of[f"/shards/{i:03}.tar"] >= server.root.joinpath(f"shards/{i:03}.tar").stat().st_size
        for i in range(SHARDS)
    )


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("label", ["cls", "txt", ["txt", "cls"]])
def test_an_index_that_fits_replaces_the_read_of_the_shard(
    local: Path, bucket: Path, kind: str, label: str | list[str]
) -> None:
    options: dict[str, Any] = {"label": label, "transform": transform()}
    expected = TarShards(str(local / shards_of(kind)), index=False, **options)
    write_indexes(bucket, kind)
    with ObjectServer(bucket) as server:
        far = TarShards(f"{server.url}/shards/{shards_of(kind)}", **options)
        assert whole_reads(server) == 0
        assert list(far.keys) == list(expected.keys)
        assert_same(batches(far), batches(expected))
        assert far.fingerprint() == expected.fingerprint()
        some = [torch.utils.data.Subset(one, range(3, 16, 2)) for one in (far, expected)]
        both: list[Any] = [torch.utils.data.ConcatDataset([one, one]) for one in some]
        state = headrace.DataLoader(both[0], 8, num_workers=1).state_dict()
        headrace.DataLoader(both[1], 8, num_workers=1).load_state_dict(state)  # raises for another fingerprint


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    "name",
    ["shifted", "offset", "size", "name", "a member is missing", "the last sample is missing", "beyond", "negative"],
)
def test_an_index_that_lies_is_a_warning(local: Path, bucket: Path, kind: str, name: str) -> None:
    expected = TarShards(str(local / shards_of(kind)), transform=transform(), index=False)
    write_indexes(bucket, kind, name)
    with ObjectServer(bucket) as server:
        with pytest.warns(
            UserWarning, match=r"1 indexes beside the shards do not fit them, first http://.*(idx|sqlite)"
        ):
            far = TarShards(f"{server.url}/shards/{shards_of(kind)}", transform=transform())
        assert whole_reads(server) == 1
        assert_same(batches(far), batches(expected))


@pytest.mark.parametrize("kind", WRITERS)
def test_a_size_within_the_padding_is_an_error_of_the_sample(bucket: Path, kind: str) -> None:
    """Only the header of the member says so, which is read with it."""
    write_indexes(bucket, kind)
    with ObjectServer(bucket) as server:
        far = TarShards(f"{server.url}/shards/000.tar", transform=transform())
        far.lengths[:] += 1
        assert "the index does not fit the shard" in first_error(far)


@pytest.mark.parametrize("content", [b"", b"v1.2 1\n", b"v1.2 x\n1\n", bytes(range(256)), b"v1.2 1\na b c d\n"])
@pytest.mark.parametrize("kind", WRITERS)
def test_a_damaged_index_is_a_warning(bucket: Path, kind: str, content: bytes) -> None:
    path = sorted((bucket / "shards").glob("*.tar"))[0]
    WRITERS[kind](path, rows(path)).write_bytes(content)
    with ObjectServer(bucket) as server, pytest.warns(UserWarning, match="do not fit"):
        assert len(TarShards(f"{server.url}/shards/000.tar")) == EACH


def test_views_in_a_database_are_not_run(bucket: Path) -> None:
    """A view could compute for ever."""
    path = sorted((bucket / "shards").glob("*.tar"))[0]
    index = WRITERS["energon"](path, rows(path))
    base = sqlite3.connect(index)
    base.execute("ALTER TABLE sample_parts RENAME TO kept")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    base.execute(f"CREATE VIEW sample_parts AS SELECT * FROM kept WHERE (SELECT count(*) FROM ({endless})) > 0")
    base.commit()
    base.close()
    with ObjectServer(bucket) as server, pytest.warns(UserWarning, match="do not fit"):
        assert len(TarShards(f"{server.url}/shards/000.tar")) == EACH


def test_faults_and_a_shard_that_changed(local: Path, bucket: Path) -> None:
    expected = batches(TarShards(str(local / PATTERN), transform=transform(), index=False))
    write_indexes(bucket, "dali")
    with ObjectServer(bucket, Faults(error=0.1, reset=0.1, short=0.1)) as server:
        far = TarShards(f"{server.url}/shards/{PATTERN}", transform=transform())
        assert_same(batches(far), expected)
        path = bucket / "shards" / "000.tar"
        path.write_bytes(path.read_bytes()[:-512] + bytes(512))
        assert "was changed after it was indexed" in first_error(far)


def test_no_permission_for_an_index_is_as_none(bucket: Path) -> None:
    write_indexes(bucket, "dali")
    with ObjectServer(bucket, Faults(forbid=".idx")) as server:
        assert len(TarShards(f"{server.url}/shards/{PATTERN}")) == SHARDS * EACH
        assert whole_reads(server) == SHARDS


def test_no_index_is_looked_for_where_none_is_wanted(bucket: Path, tmp_path: Path) -> None:
    write_indexes(bucket, "dali")
    with ObjectServer(bucket) as server:
        TarShards(f"{server.url}/shards/{PATTERN}", index=False)
        assert whole_reads(server) == SHARDS and not server.counts["GET /shards/000.idx"]
        # A joined index holds the whole numbers, so it is not made of one that lacks them.
        out = tmp_path / "joined.npz"
        assert headrace_command(["index", f"{server.url}/shards/{PATTERN}", "--out", str(out)]) == 0
        far = TarShards(f"{server.url}/shards/{PATTERN}", index=str(out))
        assert [far.target(i) for i in range(EACH)] == list(range(EACH))


def listed(names: list[str], sizes: list[int | None]) -> str:
    pairs = zip(names, sizes, strict=True)
    shards = [{"url": name, "nsamples": EACH} | ({} if size is None else {"filesize": size}) for name, size in pairs]
    return json.dumps({"wids_version": 1, "shardlist": shards})


def test_lists_of_wids(local: Path, bucket: Path, tmp_path: Path) -> None:
    expected = TarShards(str(local / PATTERN), transform=transform(), index=False)
    names = [f"{i:03}.tar" for i in range(SHARDS)]
    sizes: list[int | None] = [(bucket / "shards" / name).stat().st_size for name in names]
    beside = bucket / "shards" / "index.json"
    beside.write_text(listed(names, sizes))
    with ObjectServer(bucket) as server:
        far = TarShards(f"{server.url}/shards/index.json", transform=transform())
        assert_same(batches(far), batches(expected))
        here = tmp_path / "list.json"
        here.write_text(listed([f"{server.url}/shards/{name}" for name in names], [None] * SHARDS))
        assert TarShards(str(here)).fingerprint() == expected.fingerprint()
        stream = TarStream(f"{server.url}/shards/index.json", transform=transform())
        assert sum(len(images) for images, _ in headrace.DataLoader(stream, 8)) == SHARDS * EACH
        beside.write_text(listed(names, [sizes[0], 7, sizes[2]]))
        with pytest.raises(ValueError, match=r"001\.tar has \d+ bytes, but http://.*/index\.json says 7"):
            TarShards(f"{server.url}/shards/index.json")
        for content in ("[]", "{", '{"wids_version": 1}'):
            beside.write_text(content)
            with pytest.raises(ValueError, match="no list of shards of wids"):
                TarShards(f"{server.url}/shards/index.json")
        with pytest.raises(FileNotFoundError, match="no such object"):
            TarShards(f"{server.url}/shards/missing.json")
        for name in ("/etc/passwd", "file:///etc/passwd"):
            beside.write_text(listed([name], [None]))
            with pytest.raises(ValueError, match="lists a file of this machine"):
                TarShards(f"{server.url}/shards/index.json")
        beside.write_text(listed(["http://elsewhere.invalid/0.tar"], [None]))
        with pytest.raises(ValueError, match="in another place than itself"):  # credentials must not go there
            TarShards(f"{server.url}/shards/index.json", storage_options={"headers": {"Authorization": "x"}})


def test_rows_are_those_of_the_archive(bucket: Path) -> None:
    """What the writers of this test write is what the formats' own programs would."""
    path = bucket / "shards" / "000.tar"
    samples: list[list[Row]] = rows(path)
    with tarfile.open(path) as tar:
        assert [row[3] for sample in samples for row in sample] == tar.getnames()
