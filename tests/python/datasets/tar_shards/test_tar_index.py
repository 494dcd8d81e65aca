"""The index of a shard: sidecars that are old, damaged, wrong or written by several processes; hostile archives."""

from __future__ import annotations

import gzip
import io
import os
import re
import struct
import tarfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace import TarShards
from headrace._base.native import core
from headrace.datasets.tar_shards.shard_urls import shard_paths
from headrace.datasets.tar_shards.tar_index import index_of, parse_sidecar

NAMES = ("a/1.jpg", "a/1.cls", "a/2.jpg", "a/2.cls")


def write(path: Path, names: tuple[str, ...] = NAMES, pad: int = 0) -> Path:
    with tarfile.open(path, "w") as tar:
        for i, name in enumerate(names):
            info = tarfile.TarInfo(name)
            data = (b"%d" % i).ljust(i + pad, b" ")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def sidecar(path: Path) -> Path:
    return Path(f"{path}.index.npz")


def samples(path: Path, **options: object) -> list[tuple[str, bytes, int]]:
    shards = TarShards(path, **options)  # type: ignore[arg-type]
    return [(shards.keys[i], shards.read(i), shards.target(i)) for i in range(len(shards))]


EXPECTED = [("a/1", b"0", 1), ("a/2", b"2 ", 3)]


def test_a_sidecar_is_written_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "s.tar")
    assert samples(path) == EXPECTED
    assert sidecar(path).exists()
    monkeypatch.setattr(core, "tar_samples", None)  # not called again
    assert samples(path) == EXPECTED


def test_where_sidecars_lie(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tar")
    assert samples(path, index=False) == EXPECTED
    assert [one.name for one in tmp_path.iterdir()] == ["s.tar"]
    assert samples(path, index=tmp_path / "kept") == EXPECTED == samples(path, index=tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 1 and not sidecar(path).exists()
    (tmp_path / "file").write_text("no folder")
    assert samples(path, index=tmp_path / "file") == EXPECTED  # as if it could not be written to


def test_a_shard_that_was_replaced_is_indexed_again(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tar")
    samples(path)
    write(path, ("b.jpg", "b.cls"))
    assert samples(path) == [("b", b"0", 1)]


def damage(kind: str, fields: dict[str, np.ndarray]) -> None:
    if kind == "offsets":
        fields["offset"] += np.uint64(512)
    elif kind == "beyond":
        fields["offset"][-1] = 1 << 40
    elif kind == "length":
        fields["length"][:] = 1
    elif kind == "names":
        fields["keys"][2] = ord("7")
    elif kind == "extension":
        fields["extension"][0] = 99
    elif kind == "samples":
        fields["sample"][-1] = 5
    elif kind == "dtype":
        fields["sample"] = fields["sample"].astype(float)
    elif kind == "version":
        fields["version"] = np.array(0)
    elif kind == "missing":
        del fields["number"]


KINDS = ("offsets", "beyond", "length", "names", "extension", "samples", "dtype", "version", "missing")


@pytest.mark.parametrize("kind", KINDS)
def test_a_sidecar_that_lies_is_made_again(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / "s.tar", tuple(f"a/{i // 2}.{'cls' if i % 2 else 'jpg'}" for i in range(4)))
    good = samples(path)
    with np.load(sidecar(path)) as file:
        fields = dict(file)
    damage(kind, fields)
    np.savez(sidecar(path), **fields)
    assert samples(path) == good
    with np.load(sidecar(path)) as file:
        assert int(file["version"]) == 2 and "number" in file


@pytest.mark.parametrize("content", [b"", b"PK\3\4 no zip", bytes(range(255, 155, -1))], ids=["empty", "cut", "noise"])
def test_a_damaged_sidecar_is_made_again(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path / "s.tar")
    sidecar(path).write_bytes(content)
    assert samples(path) == EXPECTED == samples(path)
    assert sidecar(path).read_bytes() != content


@pytest.mark.processes
def test_processes_that_index_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tar", tuple(f"{i // 2:05}.{'cls' if i % 2 else 'jpg'}" for i in range(4000)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: a fork beside threads of earlier tests
        child = os.fork()
    if child == 0:
        right = False
        try:
            for _ in range(15):
                sidecar(path).unlink(missing_ok=True)
                right = len(index_of(str(path), None).sample) == 4000
                if not right:
                    break
        finally:
            os._exit(0 if right else 1)
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        assert len(index_of(str(path), None).sample) == 4000
    assert ended[1] == 0
    assert sorted(one.name for one in tmp_path.iterdir()) in (["s.tar"], ["s.tar", "s.tar.index.npz"])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a.jpg", "b.jpg", "b.JPG"), "at byte 2048: the member 'b.JPG' repeats the extension 'jpg' of its sample 'b'"),
        (("../a.jpg",), "has '..' in its name"),
    ],
)
def test_names_that_are_refused(tmp_path: Path, names: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        TarShards(write(tmp_path / "bad.tar", names), label=None)
    assert "bad.tar: at byte" in str(caught.value)


def test_archives_that_are_refused(tmp_path: Path) -> None:
    whole = write(tmp_path / "s.tar", pad=600).read_bytes()
    for name, data, message in (
        ("cut.tar", whole[:1600], "truncated; copy or write it again"),
        ("damaged.tar", whole[:1536] + b"x" + whole[1537:], "at byte 1536: the checksum"),
        ("packed.tar", gzip.compress(whole), "compressed (gzip)"),
        ("text.tar", b"hello " * 1000, "no tar archive"),
        ("empty.tar", b"", "empty"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(ValueError, match=re.escape(message)) as caught:
            TarShards(tmp_path / name)
        assert name in str(caught.value)
    with pytest.raises(FileNotFoundError, match=r"missing\.tar"):
        TarShards(tmp_path / "missing.tar")
    with pytest.raises(ValueError, match=r"is a folder: name its shards, as in '.*/\*\.tar'"):
        TarShards(tmp_path)


def test_a_shard_without_its_end_is_read_with_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path / "s.tar")
    path.write_bytes(path.read_bytes()[: 4 * 1024])
    with pytest.warns(UserWarning, match=r"1 of 1 shards have no end-of-archive marker, first .*s\.tar"):
        assert len(TarShards(path)) == 2


def test_links_and_sparse_files(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "l.tar", "w") as tar:
        for name, kind in (("a.jpg", tarfile.SYMTYPE), ("b.jpg", tarfile.LNKTYPE), ("c", tarfile.DIRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "d.jpg"
            tar.addfile(info)
        tar.addfile(tarfile.TarInfo("d.jpg"))
    assert TarShards(tmp_path / "l.tar", label=None).keys[:] == ["d"]
    info = tarfile.TarInfo("s.jpg")
    info.type = tarfile.GNUTYPE_SPARSE
    (tmp_path / "sparse.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(ValueError, match="sparse"):
        TarShards(tmp_path / "sparse.tar", label=None)


@given(st.text("ab./_", max_size=12))
@example("a/.hidden")
@example("a.b/.hidden")
def test_names_are_split_as_webdataset_does(name: str) -> None:
    match = re.match(r"^((?:.*/|)[^.]+)[.]([^/]*)$", name)
    expected = (match[1], match[2]) if match else ("", "")
    assert tuple(map(os.fsdecode, core.split_tar_name(os.fsencode(name)))) == expected


def test_shard_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("t-00.tar", "t-01.tar", "v.tar", "odd{x.tar"):
        (tmp_path / name).touch()

    def found(urls: Any) -> list[str]:
        return [path.removeprefix(f"{tmp_path}/") for path in shard_paths(urls)]

    assert found("t-{00..02}.tar::v.tar") == ["t-00.tar", "t-01.tar", "t-02.tar", "v.tar"]
    assert found("{t-{00,01},v}.tar") == ["t-00.tar", "t-01.tar", "v.tar"]
    assert found("t-{2..0}.tar") == ["t-2.tar", "t-1.tar", "t-0.tar"]
    assert found("t-*.tar") == ["t-00.tar", "t-01.tar"]
    assert found([Path("odd{x.tar"), f"file:{tmp_path}/v.tar"]) == ["odd{x.tar", "v.tar"]
    with pytest.raises(FileNotFoundError, match="fits the pattern"):
        found("x-*.tar")
    with pytest.raises(ValueError, match="not closed"):
        found("x-{0..2.tar")
    with pytest.raises(ValueError, match="neither a range"):
        found("x-{0}.tar")
    assert found("s3://bucket/{x,y}.tar") == ["s3://bucket/x.tar", "s3://bucket/y.tar"]
    with pytest.raises(ValueError, match="reads files and URLs, not pipe:"):
        found("pipe:cat x.tar")
    with pytest.raises(ValueError, match="no shards"):
        found([])


def test_an_index_is_small_and_typed(tmp_path: Path) -> None:
    index = index_of(str(write(tmp_path / "s.tar")), "")
    assert index.number.tolist() == [0, 1, 2, 3] and index.offset.tolist() == [512, 1536, 2560, 3584]
    assert index.sample.dtype == np.uint32 and index.key(1) == "a/2"


def test_a_sidecar_whose_header_ends_too_early_is_none() -> None:
    header = b"{'descr': (" + b" " * 20 + b"\n"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("version.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    assert parse_sidecar(file.getvalue()) is None
