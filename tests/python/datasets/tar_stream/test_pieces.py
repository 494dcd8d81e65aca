"""Shards of many requests: their pieces arrive in the store, natively over plain HTTP, and leave it again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stream_shards import EACH, Faults, ObjectServer, expected, keys, keys_of, loader, stream, write_shards

from headrace import Network
from headrace.datasets.tar_stream import read_ahead
from support import assert_same, eventually

pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")

SHARDS = 6
PATTERN = f"{{000..{SHARDS - 1:03}}}.tar"
LARGEST = 8 << 10


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member is in one piece or in several."""
    monkeypatch.setattr(read_ahead, "_SMALLEST", 3 << 10)
    monkeypatch.setattr(read_ahead, "_LARGEST", LARGEST)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shards(tmp_path_factory.mktemp("bucket"), SHARDS)


@pytest.fixture
def server(folder: Path) -> Iterator[ObjectServer]:
    with ObjectServer(folder, seed=5) as made:
        yield made


def pictures_of(server: ObjectServer, **options: Any) -> Any:
    return loader(stream(server, PATTERN, label="txt", shuffle=True, buffer=20, **options))


def test_the_native_reader_has_them(folder: Path, server: ObjectServer) -> None:
    one = stream(server, PATTERN, label="__key__", shuffle=True, buffer=20)
    assert keys(loader(one)) == expected(keys_of(folder), 20, 0, 0)
    counts = one.source.files.fetcher._plain.counts()
    assert counts["requests"] > 5 * SHARDS
    assert counts["bytes"] > 0.7 * sum(path.stat().st_size for path in folder.glob("*.tar"))


@pytest.mark.parametrize(
    "faults",
    [
        Faults(error=0.3),
        Faults(reset=0.3),
        Faults(short=0.3),
        Faults(stall=0.2, stall_s=2.0),
        Faults(error=0.1, reset=0.1, short=0.1, throttle=0.1, stall=0.1, stall_s=1.0, latency_s=0.005),
    ],
    ids=["errors", "resets", "short", "stalls", "all"],
)
def test_an_epoch_under_faults_is_the_same(server: ObjectServer, faults: Faults) -> None:
    wanted = list(pictures_of(server))
    server.faults = faults
    assert_same(list(pictures_of(server, network=Network(timeout=0.4))), wanted)


def test_two_streams_of_the_same_shards(server: ObjectServer) -> None:
    """The pieces of both have the same names in the store: what one has taken out, the other fetches again."""
    wanted = list(pictures_of(server))
    found: tuple[list[Any], list[Any]] = ([], [])
    for one, other in zip(pictures_of(server), pictures_of(server), strict=True):
        found[0].append(one)
        found[1].append(other)
    assert_same(found[0], wanted)
    assert_same(found[1], wanted)


def test_pieces_that_the_store_had_no_room_for(server: ObjectServer) -> None:
    """They are asked for again."""
    wanted = list(pictures_of(server))
    made = pictures_of(server)
    batches = iter(made)
    found = [next(batches)]
    made.dataset.source.files.fetcher.store.clear()
    assert_same(found + list(batches), wanted)


def test_an_error_has_its_class_and_its_place(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        read_ahead, "_FIRST", 2 * LARGEST
    )  # the last shards are not read yet when the first batch is here
    made = iter(loader(stream(server, PATTERN, label="txt", network=Network(patience=0.3))))
    found = keys([next(made)])
    server.faults = Faults(forbid="004.tar")
    with pytest.raises(PermissionError, match=r"004\.tar: no permission"):
        while True:
            found += keys([next(made)])
    assert len(found) >= 4 * EACH - 8


def test_nothing_stays_behind_a_stream_that_is_left(server: ObjectServer) -> None:
    made = pictures_of(server, network=Network(timeout=21.0))
    store = made.dataset.source.files.fetcher.store
    batches = iter(made)
    next(batches)
    assert store.counts()["bytes"] > 16 * LARGEST
    made.close()
    del batches, made
    gc.collect()
    named = 2 * 8 * (20 << 10)  # samples of batches that were begun
    assert eventually(lambda: store.counts()["bytes"] < named), store.counts()
