"""`cache=` of local files: the same batches, fewer reads, changes noticed, limits kept."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from cached_sources import COUNT, NEEDS, OLD_NS, SETTLED_S, SOURCES, batches, files, settle, tar, transform
from PIL import Image

import headrace
from headrace import Cache
from headrace import transforms as T
from headrace._storage.local_cache.local_caches import local_bytes, sum_caches
from headrace._storage.remote.disk_cache import DiskCache
from support import assert_same, eventually, pictures

MUCH = 50_000_000
GRAY = T.Compose([T.CenterCrop(8), T.PILToTensor()])


def counts() -> tuple[int, int, int]:
    """Samples read from their files, found in memory, and found on the disk."""
    found = sum_caches()
    assert found is not None
    return found.read, found.from_memory, found.from_disk


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize("kind", ["memory", "disk", "both"])
@pytest.mark.parametrize("name", SOURCES)
def test_every_source(name: str, kind: str, home: Path) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    make, folder = SOURCES[name], home / "data"
    expected = batches(make(folder))
    memory = 0 if kind == "disk" else MUCH
    cache = Cache(None if kind == "memory" else home / "cache", memory=memory)
    if name == "Parquet" and kind != "memory":
        make(folder, cache=cache)
        settle(home / "cache")  # the copies in Arrow's format
    dataset = make(folder, cache=cache)
    count = len(dataset)
    assert_same(batches(dataset), expected)
    assert counts() == (count, 0, 0)
    assert_same(batches(dataset), expected)
    assert counts() == ((count, count, 0) if memory else (count, 0, count))
    assert_same(batches(dataset, 0), expected)
    loader = headrace.DataLoader(dataset, 8, num_workers=2)
    list(loader)
    stats = loader.stats()
    assert stats.cache is not None and stats.cache.hit_rate == 0.75
    assert "cache: 75.0% of" in str(stats) and stats.as_dict()["cache"]["read"] == count
    assert "0 differ" in str(loader.verify())


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_bytes_of_the_same_size_and_time_are_told(kind: str, tmp_path: Path) -> None:
    """Archives made reproducibly give all files one time, and bitmaps of one size have one length."""
    cache = Cache(tmp_path / "cache") if kind == "disk" else Cache(memory=MUCH)
    dataset = files(tmp_path / "data", cache=cache)
    batches(dataset)
    one, other = (Path(dataset.paths[i]) for i in (3, 4))
    data = bytearray(one.read_bytes())
    data[-30:-20] = bytes(10)  # written in place
    one.write_bytes(data)
    new = other.with_suffix(".new")  # another file that takes the name
    new.write_bytes(data.ljust(other.stat().st_size, b"\0")[: other.stat().st_size])
    new.replace(other)
    settle(tmp_path / "data")
    for _ in range(2):
        assert_same(batches(dataset, on_error="skip"), batches(files(tmp_path / "data"), on_error="skip"))


def numbered(folder: Path, first: int) -> None:
    """Bitmaps of one size and one time, of a gray level each."""
    folder.mkdir(parents=True)
    for i in range(8):
        Image.new("RGB", (8, 8), (first + i,) * 3).save(folder / f"{i}.bmp")
    settle(folder)


def levels(paths: list[str], cache: Cache | None) -> list[int]:
    dataset = headrace.ImageFiles(paths, None, GRAY, cache=cache)
    loader = headrace.DataLoader(dataset, 4, num_workers=2)
    assert loader.native, loader.explain()
    return [int(image[0, 0, 0]) for batch in loader for image in batch]


@pytest.mark.parametrize("kind", ["memory", "disk", "both"])
def test_relative_paths_mean_what_they_do_when_they_are_read(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two folders whose files have equal names, sizes and times; and links, whose targets change."""
    numbered(tmp_path / "a" / "data", 0)
    numbered(tmp_path / "b" / "data", 100)
    cache = Cache(None if kind == "memory" else tmp_path / "cache", memory=0 if kind == "disk" else MUCH)
    held = local_bytes(cache)  # it serves all datasets of this test
    relative = [f"data/{i}.bmp" for i in range(8)]
    link = tmp_path / "link"
    for _ in range(2):
        for name, first in (("a", 0), ("b", 100)):
            monkeypatch.chdir(tmp_path / name)
            assert levels(relative, cache) == list(range(first, first + 8))
            link.unlink(missing_ok=True)
            link.symlink_to(tmp_path / name)
            assert levels([str(link / one) for one in relative], cache) == list(range(first, first + 8))
    assert counts()[0] == 16  # each file was read once, whatever it was called
    del held


def test_a_dataset_follows_the_working_directory_as_a_file_that_is_opened_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered(tmp_path / "a" / "data", 0)
    numbered(tmp_path / "b" / "data", 100)
    dataset = headrace.ImageFiles([f"data/{i}.bmp" for i in range(8)], None, GRAY, cache=Cache(memory=MUCH))
    for name, first in (("a", 0), ("b", 100), ("a", 0)):
        monkeypatch.chdir(tmp_path / name)
        expected = [int(image[0, 0, 0]) for batch in torch.utils.data.DataLoader(dataset, 4) for image in batch]
        found = [int(image[0, 0, 0]) for batch in headrace.DataLoader(dataset, 4, num_workers=2) for image in batch]
        assert found == expected == list(range(first, first + 8))


def modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in [folder, *folder.rglob("*")]}


@pytest.mark.usefixtures("usual_umask")
def test_entries_are_private(tmp_path: Path) -> None:
    batches(files(tmp_path / "data", cache=tmp_path / "new" / "cache"))
    assert modes(tmp_path / "new" / "cache") == {0o700, 0o600}
    (tmp_path / "own").mkdir(mode=0o755)
    (tmp_path / "own" / "headrace-cache-2").mkdir(mode=0o777)
    batches(files(tmp_path / "data", cache=tmp_path / "own"))
    assert modes(tmp_path / "own" / "headrace-cache-2") == {0o700, 0o600}


def test_entries_of_an_earlier_version_are_removed(tmp_path: Path) -> None:
    old = tmp_path / "cache" / "headrace-cache-1"
    (old / "abc").mkdir(parents=True)
    (old / "abc" / "local-abc").write_bytes(b"x")
    dataset = files(tmp_path / "data", cache=tmp_path / "cache")
    batches(dataset)
    assert eventually(lambda: not old.exists())


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link_to_another(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 42)


def of_others(path: Path) -> None:
    path.write_bytes(b"x" * 100)
    path.chmod(0o666)


@pytest.mark.parametrize("make", [fifo, link_to_another, huge, of_others, Path.mkdir])
def test_what_is_no_entry_is_a_miss(make: Callable[[Path], None], tmp_path: Path) -> None:
    """It is neither waited for nor read, and nothing is allocated for it."""
    expected = batches(files(tmp_path / "data", cache=tmp_path / "cache"))
    entries = [path for path in (tmp_path / "cache").rglob("local-*") if path.is_file()]
    for path in entries[:5]:
        path.unlink()
        make(path)
    again = files(tmp_path / "data", cache=tmp_path / "cache")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(batches(again, timeout=60), expected)
        assert counts() == (5, 0, COUNT - 5)
        assert_same(batches(again, timeout=60), expected)


def test_a_folder_of_entries_that_is_a_link_is_not_tidied(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "photo.jpg").write_bytes(b"x" * 1000)
    root = tmp_path / "cache" / "headrace-cache-2"
    root.mkdir(parents=True)
    (root / "abc").symlink_to(mine)
    DiskCache(str(tmp_path / "cache"), 10).tidy()
    assert (mine / "photo.jpg").exists()


def test_a_file_that_changes_is_read_anew(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", memory=MUCH)
    dataset = files(tmp_path / "data", cache=cache)
    batches(dataset)
    first, second, third = (Path(dataset.paths[i]) for i in (0, 1, 2))
    data = pictures(COUNT)
    first.write_bytes(data[20])
    os.utime(first, ns=(OLD_NS, OLD_NS))  # another size, the same time
    second.write_bytes(second.read_bytes()[:-1] + b"\0")
    os.utime(second, ns=(OLD_NS + 1, OLD_NS + 1))  # the same size, another time
    third.write_bytes(data[22])  # a moment ago: not kept yet
    time.sleep(SETTLED_S)
    before = counts()[0]
    for _ in range(2):
        assert_same(batches(dataset), batches(files(tmp_path / "data")))
    assert counts()[0] - before == 4  # the first and the second once, the third twice
    first.unlink()
    with pytest.raises(Exception, match="No such file"):
        batches(dataset)


def test_a_shard_that_changes_is_an_error(tmp_path: Path) -> None:
    dataset = tar(tmp_path / "data", cache=Cache(tmp_path / "cache", memory=MUCH))
    batches(dataset)
    os.utime(tmp_path / "data" / "1.tar", ns=(OLD_NS + 5, OLD_NS + 5))
    with pytest.raises(Exception, match="was changed after it was indexed"):
        batches(dataset)
    again = tar(tmp_path / "data", cache=Cache(tmp_path / "cache", memory=MUCH))
    before = counts()[0]
    batches(again)
    assert counts()[0] - before == COUNT // 2  # those of the other shard are kept


def test_the_limit_is_shared(tmp_path: Path) -> None:
    sizes = [len(data) for data in pictures(COUNT)]
    limit = sum(sizes) // 2
    one = files(tmp_path / "one", cache=Cache(memory=limit))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    settle(tmp_path / "two")
    two = files(tmp_path / "two", cache=Cache(memory=limit))
    for dataset in (one, two, one, two):
        assert_same(batches(dataset), batches(files(tmp_path / "one")))
        found = sum_caches()
        assert found is not None and found.bytes <= limit
    assert found is not None and found.bytes > limit - max(sizes)
    assert 0 < counts()[1] < 2 * COUNT


def test_datasets_of_the_same_files_share_what_is_kept(tmp_path: Path) -> None:
    train = tar(tmp_path / "data", cache="memory:50 MB")
    expected = batches(train)
    other = headrace.TarShards(
        str(tmp_path / "data" / "{0..1}.tar"), transform=transform(), index=False, cache="memory:50 MB"
    )
    assert_same(batches(other), expected)
    assert counts() == (COUNT, COUNT, 0)
    assert_same(batches(pickle.loads(pickle.dumps(train))), expected)
    assert_same(batches(torch.utils.data.Subset(train, range(COUNT))), expected)
    assert counts() == (COUNT, 3 * COUNT, 0)


def test_the_disk_outlives_the_process(tmp_path: Path) -> None:
    expected = batches(files(tmp_path / "data", cache=tmp_path / "cache"))
    gc.collect()
    assert sum_caches() is None
    again = files(tmp_path / "data", cache=tmp_path / "cache")
    assert_same(batches(again), expected)
    assert counts() == (0, 0, COUNT)


def test_damaged_entries_are_read_anew(tmp_path: Path) -> None:
    expected = batches(files(tmp_path / "data", cache=tmp_path / "cache"))
    entries = [path for path in (tmp_path / "cache").rglob("local-*") if path.is_file()]
    assert len(entries) == COUNT
    for number, path in enumerate(entries):
        data = bytearray(path.read_bytes())
        data[number * 7919 % len(data)] ^= 1 << number % 8
        path.write_bytes(data if number % 3 else data[: len(data) // 2])
    again = files(tmp_path / "data", cache=tmp_path / "cache")
    assert_same(batches(again), expected)
    assert counts() == (COUNT, 0, 0)
    assert_same(batches(again), expected)
    assert counts() == (COUNT, 0, COUNT)


def test_the_folder_keeps_its_size(tmp_path: Path) -> None:
    total = sum(len(data) for data in pictures(COUNT))
    cache = Cache(tmp_path / "cache", size=total // 3)
    dataset = files(tmp_path / "data", cache=cache)
    expected = batches(files(tmp_path / "data"))

    def held() -> int:
        total = 0
        for path in (tmp_path / "cache").rglob("local-*"):
            with contextlib.suppress(FileNotFoundError):  # the cache removes files meanwhile
                total += path.stat().st_size if path.is_file() else 0
        return total

    def is_tended() -> bool:
        local_bytes(cache).maintain_folder()  # as each batch does, with what was written before
        return held() <= total // 3

    for _ in range(3):
        assert_same(batches(dataset), expected)
    eventually(is_tended)
    assert held() > 0


def test_a_disk_that_cannot_be_written_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.warns(UserWarning, match="cannot be written"):
        dataset = files(tmp_path / "data", cache=Cache(tmp_path / "file" / "cache", memory=MUCH))
    expected = batches(files(tmp_path / "data"))
    for _ in range(2):
        assert_same(batches(dataset), expected)
    assert counts() == (COUNT, COUNT, 0)

    late = files(tmp_path / "data", cache=tmp_path / "cache")
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_bytes(b"")
    with pytest.warns(UserWarning, match="cannot be written"):
        for _ in range(2):
            assert_same(batches(late), expected)


def test_torchs_workers_read_without_it(tmp_path: Path) -> None:
    """In processes that torch forks, `dataset[i]` is plain Python."""
    dataset = files(tmp_path / "data", cache="memory:50 MB")
    batches(dataset)
    made = list(torch.utils.data.DataLoader(dataset, 8, num_workers=1))
    assert len(made) == COUNT // 8


@pytest.mark.parametrize("wrong", [5, {"memory": 1}])
def test_arguments(tmp_path: Path, wrong: Any) -> None:
    for make in (files, tar):
        with pytest.raises(TypeError, match="cache must be a folder"):
            make(tmp_path / make.__name__, cache=wrong)
    with pytest.raises(ValueError, match="must be a number of bytes"):
        files(tmp_path / "files", cache="memory:much")
