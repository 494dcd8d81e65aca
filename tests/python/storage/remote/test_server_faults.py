"""Servers that fail: the epoch is complete and equal, or ends with one error that says what was tried."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from object_stores import PATTERN, Faults, ObjectServer, batches, first_error, transform, write_shards

import headrace
from headrace import DataLoader, Network, TarShards, TarStream
from support import WATCHDOG_S, assert_same, eventually

pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shards(tmp_path_factory.mktemp("bucket"))


def far(server: ObjectServer, network: Network) -> TarShards:
    return TarShards(f"{server.url}/{PATTERN}", transform=transform(), network=network)


@pytest.mark.parametrize(
    "faults",
    [
        Faults(error=0.2),
        Faults(reset=0.2),
        Faults(short=0.2),
        Faults(throttle=0.2),
        Faults(stall=0.1, stall_s=2.0),
        Faults(slow_first=3, stall_s=0.5),
        Faults(error=0.05, reset=0.05, short=0.05, throttle=0.05, stall=0.02, stall_s=1.0, latency_s=0.005),
    ],
    ids=["errors", "resets", "short", "throttled", "stalls", "slow start", "all"],
)
def test_an_epoch_under_faults_is_the_same(folder: Path, faults: Faults) -> None:
    expected = batches(TarShards(str(folder / PATTERN), transform=transform(), index=False))
    with ObjectServer(folder, seed=1) as server:
        dataset = far(server, Network(timeout=0.4, requests=8))
        server.faults = faults
        assert_same(batches(dataset), expected)
        happened = {name: server.counts[name] for name in ("error", "reset", "short", "throttle", "stall")}
        assert faults.slow_first == 0 and all(getattr(faults, name) == 0 or happened[name] for name in happened)


@pytest.mark.parametrize("workers", [2, 0])
def test_the_end_of_patience_is_one_error(folder: Path, workers: int) -> None:
    with ObjectServer(folder) as server:
        dataset = far(server, Network(patience=0.3))
        server.faults = Faults(error=1.0)
        said = first_error(dataset, workers)
        assert "given up after" in said and "HTTP 500" in said and ".tar" in said
        server.faults = Faults()
        assert len(batches(dataset, workers)) == 6  # the next epoch asks again


def test_a_connection_that_is_refused(folder: Path) -> None:
    with ObjectServer(folder) as server:
        dataset = far(server, Network(patience=0.3))
    assert "the connection failed" in first_error(dataset)  # it was reached before


def test_a_host_that_was_never_reached_is_an_error_soon(caplog: pytest.LogCaptureFixture) -> None:
    free = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{free.getsockname()[1]}/0.tar"
    free.close()
    with (
        caplog.at_level(logging.INFO, "headrace"),
        pytest.raises(OSError, match="no connection could be made") as raised,
    ):
        next(iter(DataLoader(TarStream(url, network=Network(reach=1.5)), 2)))
    said = str(raised.value)
    assert url in said and "Connection refused" in said and "check the address and the port" in said
    assert [one for one in caplog.records if one.levelno == logging.WARNING and "tries again for 1.5 s" in one.message]
    assert sum("the next one in" in one.message for one in caplog.records) >= 2


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("network", [Network(reach=0.5), Network(patience=0.5), Network(patience=0.5, reach=0.5)])
def test_the_words_for_a_host_that_was_never_reached_do_not_depend_on_chance(
    network: Network, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.uniform", lambda least, most: least + share * (most - least))
    with pytest.raises(OSError, match="no connection could be made to this host"):
        TarShards("http://127.0.0.1:9/0.tar", network=network)


def test_a_server_that_asks_for_a_pause_gets_it(folder: Path) -> None:
    with ObjectServer(folder) as server:
        dataset = far(server, Network(hedge=0))

        def relent() -> None:
            assert eventually(lambda: server.counts["throttle"] > 0)
            server.faults = Faults()

        server.faults = Faults(throttle=1.0, retry_after=1)
        before = server.requests()
        threading.Thread(target=relent).start()
        begin = time.monotonic()
        batches(dataset)
        assert time.monotonic() - begin >= 1.0
        assert server.requests() - before < 3 * 48  # no storm of requests meanwhile


def test_stragglers_are_asked_for_twice_but_few(folder: Path) -> None:
    with ObjectServer(folder, seed=3) as server:
        dataset = TarShards(f"{server.url}/{PATTERN}", transform=transform(), network=Network(requests=4, timeout=20.5))
        for _ in range(3):  # until the usual time is known
            batches(dataset)
        server.faults = Faults(stall=0.02, stall_s=10.0)
        for _ in range(2):
            batches(dataset)
        assert server.counts["stall"] > 0, "no request stalled"
        assert dataset._remote is not None
        counts = dataset._remote.fetcher.counts()
        assert 0 < counts["hedged"] <= 0.05 * counts["requests"] + 1


def test_closing_does_not_wait_for_a_server(folder: Path) -> None:
    with ObjectServer(folder) as server:
        dataset = far(server, Network(timeout=2 * WATCHDOG_S))
        server.faults = Faults(stall=1.0, stall_s=2 * WATCHDOG_S)  # whoever waits for an answer hangs
        loader = headrace.DataLoader(dataset, 8, num_workers=2)
        batch = iter(loader)
        assert eventually(lambda: server.counts["stall"] > 0)
        loader.close()
        del batch, loader


def test_closing_ends_requests_that_lose_a_cancellation(folder: Path) -> None:
    """asyncio.wait_for loses one where an answer arrives at the same moment (Python below 3.12)."""
    with ObjectServer(folder) as server:
        dataset = far(server, Network(timeout=2 * WATCHDOG_S + 1))  # a fetcher of its own
        batches(dataset)
        assert dataset._remote is not None
        fetcher = dataset._remote.fetcher
        ended, begun = threading.Event(), threading.Event()

        async def stubborn() -> None:
            try:
                for _ in range(2):
                    with suppress(asyncio.CancelledError):
                        begun.set()
                        await asyncio.sleep(2 * WATCHDOG_S)
                await asyncio.sleep(2 * WATCHDOG_S)
            finally:
                ended.set()

        fetcher.later(lambda: fetcher.spawn(stubborn()))
        assert begun.wait(WATCHDOG_S)
        fetcher.close()
        assert ended.is_set()
