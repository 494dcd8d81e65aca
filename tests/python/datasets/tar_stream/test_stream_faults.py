"""Servers that fail, and shards that are damaged: the epoch is complete and equal, or ends with one error."""

from __future__ import annotations

import gc
import io
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
from stream_shards import EACH, Faults, ObjectServer, keys, loader, stream, write_shards

from headrace import Network, TarStream
from headrace._storage.remote.fetcher_registry import close_all
from support import WATCHDOG_S, assert_same, eventually, pictures

pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shards(tmp_path_factory.mktemp("bucket"), 12)


def shuffled(server: ObjectServer, **options: Any) -> TarStream:
    return stream(server, "{000..011}.tar", label="txt", shuffle=True, buffer=30, **options)


@pytest.mark.parametrize(
    "faults",
    [
        Faults(error=0.3),
        Faults(reset=0.3),
        Faults(short=0.3),
        Faults(throttle=0.3),
        Faults(stall=0.3, stall_s=2.0),
        Faults(error=0.1, reset=0.1, short=0.1, throttle=0.1, stall=0.1, stall_s=1.0, latency_s=0.005),
    ],
    ids=["errors", "resets", "short", "throttled", "stalls", "all"],
)
def test_an_epoch_under_faults_is_the_same(folder: Path, faults: Faults) -> None:
    with ObjectServer(folder, seed=2) as server:
        wanted = list(loader(shuffled(server)))
        server.faults = faults
        assert_same(list(loader(shuffled(server, network=Network(timeout=0.4)))), wanted)
        kinds = [name for name in ("error", "reset", "short", "throttle", "stall") if getattr(faults, name)]
        assert sum(server.counts[name] for name in kinds) > 0, "nothing failed"


@pytest.mark.parametrize("workers", [2, 0])
def test_the_end_of_patience_is_one_error(folder: Path, workers: int) -> None:
    with ObjectServer(folder) as server:
        made = loader(shuffled(server, network=Network(patience=0.3)), workers)
        wanted = list(made)
        server.faults = Faults(error=1.0)
        with pytest.raises(OSError, match=r"\.tar: given up after .* HTTP 500"):
            list(made)
        server.faults = Faults()
        made.set_epoch(0)
        assert_same(list(made), wanted)


def test_an_error_comes_behind_the_batches_before_it(folder: Path) -> None:
    with ObjectServer(folder, Faults(forbid="007.tar")) as server:
        made = iter(loader(stream(server, "{000..011}.tar", label="txt")))
        found = []
        with pytest.raises(PermissionError, match=r"007\.tar: no permission"):
            while True:
                found += keys([next(made)])
        assert len(found) >= 7 * EACH - 8


@pytest.mark.processes
def test_closing_waits_for_no_server_and_leaves_nothing(folder: Path) -> None:
    with ObjectServer(folder) as server:
        one = shuffled(server, network=Network(timeout=2 * WATCHDOG_S))
        made = loader(one)
        batches = iter(made)
        next(batches)
        server.faults = Faults(stall=1.0, stall_s=2 * WATCHDOG_S)  # whoever waits for an answer hangs
        again = loader(one)
        again.set_epoch(1)
        made.close()
        del made, batches, again
        gc.collect()
        fetcher = one.source.files.fetcher
        assert eventually(lambda: not fetcher._tasks)
        close_all()


def shard_of(*members: tuple[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file.getvalue()


JPEG = pictures(1)[0]
WHOLE = shard_of(
    *((f"{n}.{extension}", JPEG if extension == "jpg" else b"3") for n in range(4) for extension in ("jpg", "cls"))
)


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2 + 100]


def damaged(data: bytes) -> bytes:
    at = data.index(b"2.jpg")
    return data[: at + 3] + b"!" + data[at + 4 :]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (truncated(WHOLE), "truncated"),
        (damaged(WHOLE), "the checksum of a header is wrong"),
        (b"\x1f\x8b" + WHOLE, "compressed"),
        (b"", "it is empty"),
        (shard_of(("a.jpg", JPEG), ("b.jpg", JPEG)), "the sample 'a' at byte 0 has no cls"),
        (shard_of(("a.cls", b"1"), ("b.jpg", JPEG)), "the sample 'a' at byte 0 has no jpg or jpeg"),
        (shard_of(("a.jpg", JPEG), ("a.jpg", JPEG)), "repeats the extension"),
        (shard_of(("../a.jpg", JPEG), ("../a.cls", b"1")), "has '..' in its name"),
        (shard_of(("a.jpg", JPEG), ("a.cls", b"seven")), "a.cls cannot be decoded"),
        (shard_of(("a.jpg", b"no image"), ("a.cls", b"7")), "0.tar:a.jpg"),
    ],
)
def test_shards_that_are_damaged_are_named(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "0.tar").write_bytes(data)
    with ObjectServer(tmp_path) as server, pytest.raises(Exception, match=r"0\.tar") as caught:
        list(loader(stream(server, "0.tar")))
    assert said in str(caught.value)


def test_samples_that_lack_something_are_skipped_if_asked(tmp_path: Path) -> None:
    members: list[tuple[str, bytes]] = [
        ("a.jpg", JPEG),
        ("b.jpg", JPEG),
        ("b.cls", b"1"),
        ("c.cls", b"2"),
        ("d.txt", b""),
    ]
    (tmp_path / "0.tar").write_bytes(shard_of(*members))
    with ObjectServer(tmp_path) as server:
        one = stream(server, "0.tar", missing="skip")
        assert keys(loader(one)) == [1]


def test_failed_images_are_skipped_if_asked(tmp_path: Path) -> None:
    members = [
        ("a.jpg", JPEG),
        ("a.cls", b"1"),
        ("b.jpg", b"no image"),
        ("b.cls", b"2"),
        ("c.jpg", JPEG),
        ("c.cls", b"3"),
    ]
    (tmp_path / "0.tar").write_bytes(shard_of(*members))
    with ObjectServer(tmp_path) as server:
        one = stream(server, "0.tar")
        made = loader(one, on_error="skip")
        with pytest.warns(UserWarning, match=r"1 samples could not be made.*0\.tar:b\.jpg"):
            assert keys(made) == [1, 3]
        assert_same(list(made.reference()), list(_without_warning(made)))


def _without_warning(made: Any) -> Any:
    made.set_epoch(0)
    with pytest.warns(UserWarning):
        return list(made)


def test_a_shard_without_its_end_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "0.tar").write_bytes(WHOLE[: WHOLE.rindex(b"3") + 512 - (WHOLE.rindex(b"3") % 512)])
    with ObjectServer(tmp_path) as server:
        one = stream(server, "0.tar")
        with pytest.warns(UserWarning, match=r"0\.tar has no end-of-archive marker"):
            assert keys(loader(one, workers=0)) == [3] * 4


def test_the_first_sample_waits_for_little(tmp_path: Path) -> None:
    head = [("a.jpg", JPEG), ("a.cls", b"1"), ("b.jpg", JPEG), ("b.cls", b"2")]
    (tmp_path / "0.tar").write_bytes(shard_of(*head, *((f"x{n}.bin", bytes(1 << 20)) for n in range(60))))
    with ObjectServer(tmp_path) as server:
        # On a busy machine requests look like stragglers, and would be made twice.
        one = stream(server, "0.tar", missing="skip", network=Network(hedge=0))
        made = iter(loader(one, batch_size=1, workers=0))
        next(made)
        time.sleep(0.3)
        assert server.counts["GET /0.tar"] <= 12  # of 1 MB each: not the 61 of the shard
        assert len(list(made)) == 1
