"""Servers without ranges, and files: streams give the batches that they give from any other server."""

from __future__ import annotations

import os
import pickle
import tarfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from plain_servers import PlainServer
from stream_shards import EACH, PATTERN, SHARDS, ObjectServer, keys, keys_of, loader, plain, write_shards

from headrace import Network, TarShards, TarStream
from headrace._storage.remote import no_range_reader
from headrace.datasets.tar_stream import read_ahead
from support import assert_same

pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")

KINDS = ["length", "chunked", "closed", "gzip"]
QUICK = Network(patience=5, hedge=0)


@pytest.fixture(autouse=True, params=["small shards", "large shards"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard is one piece, or many of a kilobyte or two."""
    if request.param == "large shards":
        monkeypatch.setattr(read_ahead, "_SMALLEST", 3 << 10)
        monkeypatch.setattr(read_ahead, "_LARGEST", 8 << 10)
        monkeypatch.setattr(no_range_reader, "_MOST", 1 << 10)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shards(tmp_path_factory.mktemp("bucket"))


@pytest.fixture(scope="module")
def wanted(folder: Path) -> list[Any]:
    """What a server with ranges gives."""
    with ObjectServer(folder) as server:
        return list(loader(stream(server.url, network=None)))


def stream(where: str, pattern: str = PATTERN, **options: Any) -> TarStream:
    chosen: dict[str, Any] = {
        "transform": plain(),
        "label": "txt",
        "shuffle": True,
        "buffer": 20,
        "network": QUICK,
    } | options
    return TarStream(f"{where}/{pattern}", **chosen)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cuts", [0, 1])
def test_the_batches_are_the_same(folder: Path, wanted: list[Any], kind: str, cuts: int) -> None:
    with PlainServer(folder, kind, cuts) as server:
        made = loader(stream(server.url))
        assert_same(list(made), wanted)
        assert [server.counts[f"GET /{shard:03}.tar"] for shard in range(SHARDS)] == [1 + cuts] * SHARDS
        made.set_epoch(0)
        assert_same(list(made), wanted)  # once more, of shards that are known


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("taken", [1, 3, 5])
def test_a_state_continues_in_the_middle(folder: Path, wanted: list[Any], kind: str, taken: int) -> None:
    with PlainServer(folder, kind) as server:
        batches = iter(first := loader(stream(server.url)))
        for _ in range(taken):
            next(batches)
        state = first.state_dict()
        for where in (server.url, str(folder)):  # also from the files
            again = loader(stream(where))
            server.counts.clear()
            again.load_state_dict(state)
            assert_same(list(again), wanted[taken:])
            if where == server.url:  # the buffer, a look at what the server reads, and the rest of each shard
                assert max(server.counts.values()) <= 4


@pytest.mark.parametrize("kind", ["file", "file://", "Path", "paths", "pattern"])
def test_files_are_read_as_urls_are(folder: Path, wanted: list[Any], kind: str) -> None:
    paths = [folder / f"{shard:03}.tar" for shard in range(SHARDS)]
    given: Any = {
        "file": f"{folder}/{PATTERN}",
        "file://": f"file://{folder}/{PATTERN}",
        "Path": paths,
        "paths": [str(path) for path in paths],
        "pattern": f"{folder}/*.tar",
    }[kind]
    made = loader(TarStream(given, transform=plain(), label="txt", shuffle=True, buffer=20))
    assert_same(list(made), wanted)
    assert not list(folder.glob("*.npz"))


def test_a_relative_path_is_that_of_the_folder_at_first(
    folder: Path, wanted: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    made = loader(TarStream(PATTERN, transform=plain(), label="txt", shuffle=True, buffer=20))
    monkeypatch.chdir("/")
    assert_same(list(made), wanted)


def test_a_state_of_files_fits_a_server(folder: Path, wanted: list[Any]) -> None:
    batches = iter(first := loader(stream(str(folder))))
    next(batches)
    state = first.state_dict()
    for path in folder.glob("*.tar"):  # as a copy elsewhere
        os.utime(path, (1e9, 1e9))
    with ObjectServer(folder) as server:
        for where in (server.url, str(folder)):
            again = loader(stream(where))
            again.load_state_dict(state)
            assert_same(list(again), wanted[1:])


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.processes)])
def test_torchs_loader_and_plain_iteration_read_each_shard_once(folder: Path, workers: int) -> None:
    every = sorted(key for shard in keys_of(folder) for key in shard)
    with PlainServer(folder) as server:
        for where in (server.url, str(folder)):
            one = stream(where, label="__key__")
            theirs = torch.utils.data.DataLoader(pickle.loads(pickle.dumps(one)), 8, num_workers=workers)
            assert sorted(keys(theirs)) == every
        assert server.counts.total() == SHARDS
        assert len(list(stream(server.url))) == len(every)
        assert server.counts.total() == 2 * SHARDS


@pytest.mark.parametrize("kind", KINDS)
def test_the_oracle_makes_the_same(folder: Path, kind: str) -> None:
    with PlainServer(folder, kind) as server:
        made = loader(stream(server.url))
        assert made.verify(3).samples == 24
        assert_same(list(made.reference()), list(made))


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_share_the_samples(folder: Path, ranks: int) -> None:
    every = sorted(key for shard in keys_of(folder) for key in shard)
    with PlainServer(folder, "chunked") as server:
        cut = stream(server.url, label="__key__", length=[EACH] * SHARDS)
        parts = [keys(loader(cut, rank=rank, world_size=ranks)) for rank in range(ranks)]
        assert sorted(key for part in parts for key in part) == every


@pytest.mark.parametrize("kind", KINDS)
def test_shards_that_were_cut_are_an_error(folder: Path, tmp_path: Path, kind: str) -> None:
    whole = (folder / "000.tar").read_bytes()
    for name, data in (("inside", whole[:70_000]), ("empty", b""), ("text", b"no archive " * 2000)):
        (tmp_path / f"{name}.tar").write_bytes(data)
        with PlainServer(tmp_path, kind) as server, pytest.raises(ValueError, match=rf"{name}\.tar") as raised:
            list(loader(stream(server.url, f"{name}.tar", shuffle=False)))
        with ObjectServer(tmp_path) as ranged, pytest.raises(ValueError) as theirs:
            list(loader(stream(ranged.url, f"{name}.tar", shuffle=False)))
        assert str(raised.value).replace(server.url, "") == str(theirs.value).replace(ranged.url, "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_shard_without_its_mark_is_a_warning(folder: Path, tmp_path: Path, kind: str) -> None:
    with tarfile.open(folder / "000.tar") as tar:
        last = tar.getmembers()[-1]
    end = last.offset_data + 512
    (tmp_path / "000.tar").write_bytes((folder / "000.tar").read_bytes()[:end])
    with PlainServer(tmp_path, kind) as server, pytest.warns(UserWarning, match="no end-of-archive marker"):
        assert keys(loader(stream(server.url, "000.tar", label="__key__", shuffle=False))) == keys_of(folder)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_always_cuts_is_one_error(folder: Path, kind: str) -> None:
    with PlainServer(folder, kind, cuts=1 << 30) as server, pytest.raises((OSError, ValueError), match=r"000\.tar: "):
        list(loader(stream(server.url, shuffle=False, network=Network(patience=0.3))))


def test_a_shard_that_changes_is_an_error(folder: Path, tmp_path: Path) -> None:
    write_shards(tmp_path, 1)
    with PlainServer(tmp_path) as server:
        for where in (server.url, str(tmp_path)):
            made = loader(stream(where, "000.tar"))
            list(made)
            os.utime(tmp_path / "000.tar", (2e9, 2e9 + len(where)))
            with pytest.raises(OSError, match="was changed"):
                list(made)


def test_missing_shards_are_named(folder: Path, tmp_path: Path) -> None:
    with PlainServer(folder) as server, pytest.raises(FileNotFoundError, match=r"003\.tar: there is no such object"):
        list(loader(stream(server.url, "{000..003}.tar")))
    for pattern in ("nothing.tar", "{000..003}.tar"):
        with pytest.raises(FileNotFoundError, match="there is no such shard"):
            stream(str(folder), pattern)
    os.mkfifo(tmp_path / "pipe.tar")
    with pytest.raises(OSError, match="no regular file"):
        list(loader(TarStream(tmp_path / "pipe.tar", transform=plain())))
    with pytest.raises(ValueError, match="is a folder: name its shards"):
        TarStream(tmp_path, transform=plain())


def test_random_access_says_at_construction_what_it_needs(folder: Path) -> None:
    for kind in KINDS:
        with PlainServer(folder, kind) as server:
            with pytest.raises(OSError, match=r"000\.tar: the server does not read ranges.*headrace\.TarStream"):
                TarShards(f"{server.url}/{PATTERN}", network=QUICK)
            assert server.counts.total() == 1


def test_other_encodings_are_refused(folder: Path) -> None:
    with PlainServer(folder, "br") as server, pytest.raises(OSError, match=r"encodes what it sends.*as it is"):
        list(loader(stream(server.url)))


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Answers and connections are closed, also those that were left in the middle."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        yield
