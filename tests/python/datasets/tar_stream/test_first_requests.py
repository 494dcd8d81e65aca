"""What a stream asks a server for before its first batch, and in all."""

from __future__ import annotations

import asyncio
import io
import tarfile
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from stream_shards import EACH, ObjectServer, keys, keys_of, loader, stream, write_shards

from headrace import Network
from headrace.datasets.tar_stream import read_ahead
from support import WATCHDOG_S, assert_same, pictures

pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")

SHARDS = 12
PATTERN = f"{{000..{SHARDS - 1:03}}}.tar"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shards(tmp_path_factory.mktemp("bucket"), SHARDS)


class Gate(ObjectServer):
    """Answers no request for the paths in `closed`, and but the first none before `together` wait at the same time."""

    closed: tuple[str, ...] = ()
    asked = waiting = most = together = 0

    async def _answer(self, method: str, path: str, headers: dict[str, str], writer: Any) -> bool:
        self.asked, self.waiting = self.asked + 1, self.waiting + 1
        self.most = max(self.most, self.waiting)
        try:
            while path in self.closed or (self.most < self.together and self.asked > 1):
                await asyncio.sleep(0.01)
            return await super()._answer(method, path, headers, writer)
        finally:
            self.waiting -= 1


def test_a_small_shard_is_one_request(folder: Path) -> None:
    with ObjectServer(folder) as server:
        list(loader(stream(server, PATTERN, shuffle=True)))
        assert server.requests("HEAD") == 0
        assert server.requests("GET") == SHARDS
        assert all(server.counts[f"GET /{shard:03}.tar"] == 1 for shard in range(SHARDS))


def test_requests_for_small_shards_are_made_side_by_side(folder: Path) -> None:
    with Gate(folder) as server:
        server.together = SHARDS // 2 + 1
        one = loader(stream(server, PATTERN, label="__key__", network=Network(timeout=2 * WATCHDOG_S, hedge=0)))
        assert keys(one) == [key for shard in keys_of(folder) for key in shard]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_first_batch_waits_for_no_other(folder: Path, workers: int) -> None:
    """16 samples a shard: with batches of 8 and two ahead, the third batch is in the second shard."""
    with Gate(folder) as server:
        server.closed = tuple(f"/{shard:03}.tar" for shard in range(1, SHARDS))
        made = loader(stream(server, PATTERN, label="__key__", network=Network(timeout=2 * WATCHDOG_S)), workers)
        batches = iter(made)
        first: list[Any] = []
        taker = threading.Thread(target=lambda: first.append(next(batches)), daemon=True)
        taker.start()
        taker.join(WATCHDOG_S)
        waits = taker.is_alive()
        server.closed = ()
        taker.join(WATCHDOG_S)
        assert not waits, "the first batch waited for the second shard"
        assert keys([*first, *batches]) == [key for shard in keys_of(folder) for key in shard]


def test_all_batches_are_begun_ahead_after_the_first_ones(folder: Path) -> None:
    with ObjectServer(folder) as server:
        made = loader(stream(server, PATTERN, label="__key__"), 2, prefetch_factor=4)
        batches: Any = iter(made)
        for taken in range(1, 9):
            next(batches)
            begun = len(batches._queue._batches)  # the one handed out leaves it with the next call
            assert begun <= taken
        assert begun == 5
        batches.close()


def test_a_large_shard_behind_small_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first bytes of later shards must not take all the room that the shard in front of them needs."""
    jpeg = pictures(1)[0]
    unit = len(jpeg)
    monkeypatch.setattr(read_ahead, "_SMALLEST", 4 * unit)
    monkeypatch.setattr(read_ahead, "_LARGEST", 8 * unit)
    monkeypatch.setattr(read_ahead, "_FIRST", 12 * unit)
    for shard in range(SHARDS):
        with tarfile.open(tmp_path / f"{shard:03}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for i in range(60 if shard == 6 else 1):
                for name, data in ((f"{shard:03}{i:04}.jpg", jpeg), (f"{shard:03}{i:04}.cls", b"1")):
                    info = tarfile.TarInfo(name)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
    with Gate(tmp_path) as server:
        network = Network(ahead=12 * unit)
        made = loader(stream(server, PATTERN, label="__key__", network=network))
        found: list[str] = []
        taker = threading.Thread(target=lambda: found.extend(keys(made)), daemon=True)
        taker.start()
        taker.join(WATCHDOG_S)
        assert found == [key for shard in keys_of(tmp_path) for key in shard]


def test_an_empty_shard_is_named(tmp_path: Path) -> None:
    write_shards(tmp_path, 1)
    (tmp_path / "001.tar").write_bytes(b"")
    with ObjectServer(tmp_path) as server, pytest.raises(ValueError, match=r"001\.tar"):
        list(loader(stream(server, "{000..001}.tar")))


def test_a_length_that_is_never_reached_is_an_error_behind_the_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.datasets.tar_stream.shard_plan.MOST_TURNS", 0)
    write_shards(tmp_path, 2)
    with ObjectServer(tmp_path) as server:
        batches = iter(loader(stream(server, "{000..001}.tar", length=1000)))
        found = [next(batches) for _ in range(2 * EACH // 8)]
        assert len(keys(found)) == 2 * EACH
        with pytest.raises(ValueError, match="its shards do not hold them"):
            next(batches)


def noise(batch: list[torch.Tensor]) -> list[torch.Tensor]:
    return [batch[0] + torch.rand(()), batch[1]]


def test_out_transforms_draw_other_numbers_on_each_rank(folder: Path) -> None:
    """As with the native loader's own samplers: torch's ranks have generators of their own."""
    offsets = set()
    with ObjectServer(folder) as server:
        for rank in range(3):
            one = stream(server, PATTERN, length=[EACH] * SHARDS, shuffle=True)
            options: dict[str, Any] = {"rank": rank, "world_size": 3}
            plainly = next(iter(loader(one, **options)))
            noisy = list(loader(one, out_transform=noise, **options))
            offsets.add(float((noisy[0][0] - plainly[0]).mean()))
            again = loader(one, 1, out_transform=noise, **options)
            assert_same(list(again.reference()), noisy)
            assert_same(list(again), noisy)
    assert len(offsets) == 3
