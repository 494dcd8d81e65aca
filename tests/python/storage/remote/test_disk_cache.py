"""The cache on disk: whatever happens to its files, to its disk and to those who fill it, no byte is wrong and nobody
waits for ever."""

from __future__ import annotations

import errno
import os
import time
import warnings
from pathlib import Path

import pytest
from object_stores import PATTERN, ObjectServer, batches, transform, write_shards

from headrace import Cache, TarShards
from headrace._base.native import core
from headrace._storage.remote.clients.responses import Stamp
from headrace._storage.remote.disk_cache import DiskCache
from support import assert_same, eventually, output_of

pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_shards(tmp_path / "bucket")
    batches(TarShards(str(folder / PATTERN), transform=transform()))  # writes the indexes beside the shards
    return folder


def far(server: ObjectServer, cache: Cache) -> TarShards:
    return TarShards(f"{server.url}/{PATTERN}", transform=transform(), cache=cache)


def entries(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*.*-*") if path.suffix != ".npz" and "unfinished" not in path.name)


def test_damaged_entries_are_fetched_again(folder: Path, tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    with ObjectServer(folder) as server:
        expected = batches(far(server, cache))
        assert eventually(lambda: len(entries(tmp_path / "cache")) == 48)
        for number, path in enumerate(entries(tmp_path / "cache")):
            data = bytearray(path.read_bytes())
            data[number * 97 % len(data)] ^= 1
            path.write_bytes(data if number % 2 else data[: number * 7])
        assert_same(batches(far(server, cache)), expected)
        assert eventually(lambda: len(entries(tmp_path / "cache")) == 48)
        before = server.requests()
        assert_same(batches(far(server, cache)), expected)
        assert server.requests() == before + 1  # one looks whether the server reads ranges


def test_the_oldest_entries_leave(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path), 100_000)
    beginning = cache.beginning("https://host/0.tar", {}, Stamp(10**6, '"tag"'))
    for number in range(80):
        path = Path(cache.entry(beginning, number, 1000))
        cache.write(str(path), bytes(1000))
        os.utime(path, (time.time() - (80 - number) * 3600,) * 2)
    unfinished = Path(cache.entry(beginning, 1, 1) + ".unfinished-1-1")
    unfinished.write_bytes(b"")
    os.utime(unfinished, (1, 1))
    for number in range(80, 130):
        cache.write(cache.entry(beginning, number, 1000), bytes(1000))
    cache.tidy()
    left = {int(path.name.split(".")[1].split("-")[0]) for path in entries(tmp_path)}
    assert sum(path.stat().st_size for path in entries(tmp_path)) <= 100_000
    assert left == set(range(min(left), 130)) and not unfinished.exists()


def test_names_of_entries(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path), None)
    stamp = Stamp(5, '"a"')
    names = [cache.beginning(f"https://host/{name}", {}, stamp) for name in ("a", "b", "a?id=2", "a?sig=1", "a?sig=2")]
    assert len(set(names)) == 5 and all("host" not in name for name in names)
    assert cache.beginning("https://host/a", {}, Stamp(5, '"b"')) != names[0]
    assert cache.beginning("s3://b/a", {"endpoint_url": "x"}, stamp) != cache.beginning("s3://b/a", {}, stamp)


def test_an_object_without_a_strong_tag_is_not_kept_which_is_said_once(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path), None)
    with pytest.warns(UserWarning, match=r"https://host/a has no ETag") as said:
        for tag in ("", 'W/"a"', "Wed, 01 Jan 2020 00:00:00 GMT"):
            assert cache.beginning("https://user:pw@host/a?token=1", {}, Stamp(5, tag)) == ""
    assert len(said) == 1 and "pw" not in str(said[0].message)


def test_a_folder_of_another_user_is_not_used(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a folder away")
    root = tmp_path / "headrace-cache-2"
    root.mkdir()
    os.chown(root, 12345, -1)
    with pytest.warns(UserWarning, match="belongs to another user"):
        cache = DiskCache(str(tmp_path), None)
    assert cache.broken
    other = tmp_path / "other"
    other.mkdir()
    (other / "headrace-cache-2").symlink_to(tmp_path)
    with pytest.warns(UserWarning, match="it is no folder"):
        DiskCache(str(other), None)


def test_a_full_disk_is_said_once_and_the_epoch_goes_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def full(path: str, data: bytes) -> int:
        written.append(path)
        return errno.ENOSPC if len(written) > 5 else write(path, data)

    write = core.write_cache_file
    monkeypatch.setattr(core, "write_cache_file", full)
    expected = batches(TarShards(str(folder / PATTERN), transform=transform()))
    with ObjectServer(folder) as server, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        dataset = far(server, Cache(tmp_path / "cache"))
        for _ in range(2):
            assert_same(batches(dataset), expected)
    mine = [str(one.message) for one in said if "cannot be written" in str(one.message)]
    assert len(mine) == 1 and "No space left on device" in mine[0]
    assert len(written) <= 5 + 2  # of two threads that write


def test_an_index_is_made_elsewhere_if_the_caches_disk_is_full(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int, data: memoryview, at: int) -> int:
        if Path(f"/proc/self/fd/{file}").readlink().is_relative_to(tmp_path / "cache"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[: len(data) // 2 + 1], at)  # a part, as the system may

    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", full)
    for path in folder.glob("*.npz"):
        path.unlink()
    expected = batches(TarShards(str(folder / PATTERN), transform=transform(), index=False))
    with ObjectServer(folder) as server:
        assert_same(batches(far(server, Cache(tmp_path / "cache"))), expected)


def test_a_folder_that_cannot_be_made(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with ObjectServer(folder) as server, pytest.warns(UserWarning, match="cannot be written"):
        assert len(batches(far(server, Cache(tmp_path / "file" / "cache")))) == 6


_PROGRAM = """
import os, signal, sys, time
from pathlib import Path
sys.path[:0] = {tests!r}
from headrace import Cache, Network, TarShards
from object_stores import batches, transform
cache = Path({cache!r})

def epoch():
    far = TarShards({url!r}, transform=transform(), cache=Cache(cache), network=Network(requests=2))
    return sum(int(batch[0].sum()) for batch in batches(far))

def child():
    number = os.fork()
    if number == 0:
        os.write(1, b"total %d\\n" % epoch())  # in one piece: two processes write
        os._exit(0)
    return number

def entries():
    return len([path for path in cache.rglob("*.*-*") if path.suffix != ".npz"])

killed = [child(), child()]
while entries() < 4:
    time.sleep(0.005)
for one in killed:
    os.kill(one, signal.SIGKILL)
    os.waitpid(one, 0)
print("left", entries(), flush=True)
for one in [child(), child()]:
    os.waitpid(one, 0)
"""


@pytest.mark.processes
@pytest.mark.slow
def test_killed_while_filling_and_two_at_once(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    local = batches(TarShards(str(folder / PATTERN), transform=transform()))
    total = sum(int(batch[0].sum()) for batch in local)
    with ObjectServer(folder) as server:
        server.faults.latency_s = 0.05
        tests = [str(Path(__file__).parents[number]) for number in (0, 2)]
        said = output_of(_PROGRAM.format(tests=tests, url=f"{server.url}/{PATTERN}", cache=str(cache))).split()
        assert said[0] == "left" and 4 <= int(said[1]) < 48
        assert said[2:] == ["total", str(total)] * 2
        assert_same(batches(far(server, Cache(cache))), local)
