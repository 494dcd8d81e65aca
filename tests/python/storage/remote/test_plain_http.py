"""Ranges that a native thread reads over plain HTTP: how many, and that all else is read through fsspec, as before."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from object_stores import EACH, PATTERN, SHARDS, Faults, ObjectServer, batches, first_error, transform, write_shards

from headrace import Network, TarShards
from headrace._base.native import core
from headrace._storage.remote.clients.responses import PlainUrl, Stamp
from headrace._storage.remote.plain_http import PlainHttp
from support import assert_same

pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")

SAMPLES = SHARDS * EACH


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shards(tmp_path_factory.mktemp("bucket"))


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[Any]:
    return batches(TarShards(str(folder / PATTERN), transform=transform(), index=False))


def far(server: ObjectServer, **options: Any) -> TarShards:
    return TarShards(f"{server.url}/{PATTERN}", transform=transform(), **options)


def requests(dataset: TarShards) -> tuple[int, int]:
    """Requests of the native thread, and of Python."""
    assert dataset._remote is not None
    fetcher = dataset._remote.fetcher
    native = fetcher._plain.counts().get("requests", 0)
    return native, fetcher.counts()["requests"] - native


def test_an_epoch_takes_no_request_of_python(folder: Path, expected: list[Any]) -> None:
    with ObjectServer(folder) as server:
        dataset = far(server, network=Network(hedge=0))
        before = requests(dataset), server.requests()
        assert_same(batches(dataset), expected)
        native, others = requests(dataset)
        assert native == server.requests() - before[1] > 0
        assert others == before[0][1]  # the stamps and the indexes, before the epoch


@pytest.mark.parametrize(
    "faults",
    [Faults(chunked=True), Faults(no_tags=True), Faults(ignore_if_match=True)],
    ids=["chunked", "no tags", "without If-Match"],
)
def test_servers_that_answer_in_other_ways(folder: Path, expected: list[Any], faults: Faults) -> None:
    with ObjectServer(folder) as server:
        dataset = far(server, network=Network(hedge=0))
        server.faults = faults
        assert_same(batches(dataset), expected)
        native, others = requests(dataset)
        if faults.chunked:  # one answer of each connection that was under way, then none
            assert others >= SAMPLES // 4
            assert_same(batches(dataset), expected)
            assert requests(dataset)[0] == native
        else:
            assert native >= SAMPLES // 4


def test_what_the_native_thread_does_not_read(folder: Path, expected: list[Any], tmp_path: Path) -> None:
    with ObjectServer(folder) as server:
        for options in (
            {"storage_options": {"headers": {"X-Mine": "1"}}},  # fsspec's way, whatever the options say
            {"cache": tmp_path / "cache"},  # what arrives is written to disk
        ):
            dataset = far(server, **options)
            assert_same(batches(dataset), expected)
            assert requests(dataset)[0] == 0


@pytest.mark.parametrize("ignore", [False, True], ids=["If-Match", "without If-Match"])
def test_an_object_that_changed_is_one_error(tmp_path: Path, ignore: bool) -> None:
    folder = write_shards(tmp_path / "bucket")
    with ObjectServer(folder, Faults(ignore_if_match=ignore)) as server:
        dataset = far(server)
        time.sleep(0.01)  # another time of modification
        for shard in sorted(folder.glob("*.tar")):
            shard.write_bytes(shard.read_bytes())
        assert "changed after it was indexed" in first_error(dataset)
        assert requests(dataset)[0] > 0


def test_more_than_the_limit_is_never_under_way(folder: Path, expected: list[Any]) -> None:
    with ObjectServer(folder) as server:
        dataset = far(server, network=Network(requests=3, hedge=0))
        server.faults, server.most_under_way = Faults(latency_s=0.01), 0
        assert_same(batches(dataset), expected)
        assert requests(dataset)[0] > 0
        assert server.most_under_way == 3


@pytest.mark.parametrize(
    ("url", "lead", "tag"),
    [
        ("https://127.0.0.1/a", 0, ""),
        ("http://me:secret@127.0.0.1/a", 0, ""),
        ("http://127.0.0.1/a", 30, ""),
        ("http://127.0.0.1/a", 0, '"x"\r\nX-More: 1'),
        ("http://127.0.0.1/a", 0, '"\u20ac"'),
    ],
    ids=["https", "password", "another check", "a tag of two lines", "a tag that no header holds"],
)
def test_objects_that_are_not_plain(url: str, lead: int, tag: str) -> None:
    with closing(asyncio.new_event_loop()) as loop:
        plain = PlainHttp(core.ByteStore(1, 0), Network(), loop, lambda *_: None)
        plain.add(1, PlainUrl(url), Stamp(100, tag), lead=lead)
        one = np.ones(1, np.uint64)
        assert plain.fetch(one, one, one, one) == [0]
        assert plain.counts() == {}
