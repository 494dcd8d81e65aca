"""`cache=` of local files: the same batches, fewer reads, changes noticed, limits kept."""

from __future__ import annotations

import gc
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from cached_sources import COUNT, NEEDS, OLD_NS, SOURCES, batches, files, settle, tar, transform

import headrace
from headrace import Cache
from headrace.caching.local import kept
from support import assert_same, eventually, pictures

MUCH = 50_000_000


def counts() -> tuple[int, int, int]:
    """Samples read from their files, found in memory, and found on the disk."""
    found = kept()
    assert found is not None
    return found.read, found.from_memory, found.from_disk


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


def test_a_hit_does_not_read_the_file(tmp_path: Path) -> None:
    """Other bytes with the same size and time cannot be told, so they show where the bytes came from."""
    dataset = files(tmp_path / "data", cache="memory:50 MB")
    expected = batches(dataset)
    for path in (tmp_path / "data").rglob("*.jpg"):
        path.write_bytes(bytes(path.stat().st_size))
    settle(tmp_path / "data")
    assert_same(batches(dataset), expected)
    with pytest.raises(Exception, match="cannot identify image"):
        batches(files(tmp_path / "data"))


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
        found = kept()
        assert found is not None and found.bytes <= limit
    assert found.bytes > limit - max(sizes)
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
    assert kept() is None
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
    dataset = files(tmp_path / "data", cache=Cache(tmp_path / "cache", size=total // 3))
    expected = batches(files(tmp_path / "data"))

    def held() -> int:
        return sum(path.stat().st_size for path in (tmp_path / "cache").rglob("local-*") if path.is_file())

    for _ in range(2):
        assert_same(batches(dataset), expected)
    batches(dataset)  # each batch looks at what was written before
    eventually(lambda: held() <= total // 3)
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
