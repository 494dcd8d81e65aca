"""Lists of URLs: the batches of the same files, with every cache, through every kind of file system."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
from object_stores import Faults, ObjectServer, batches, first_error, transform

import headrace
from headrace import ImageFiles, Network
from headrace._base.native import core
from headrace._storage.remote.remote_files import Access
from headrace._storage.remote.remote_object import Range, join_ranges
from support import assert_same, eventually, pictures

fsspec = pytest.importorskip("fsspec", reason="URLs are read with fsspec")

COUNT = 24


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    for i, data in enumerate(pictures(COUNT)):
        (folder / f"{i}.jpg").write_bytes(data)
    return folder


def local(folder: Path) -> ImageFiles:
    return ImageFiles([folder / f"{i}.jpg" for i in range(COUNT)], range(COUNT), transform())


@pytest.mark.parametrize("cache", [None, "disk", "memory:10 MB"])
def test_equal_to_files(folder: Path, tmp_path: Path, cache: str | None) -> None:
    kept = tmp_path / "cache" if cache == "disk" else cache
    with ObjectServer(folder) as server:
        urls = [f"{server.url}/{i}.jpg?token=x" for i in range(COUNT)]
        far = ImageFiles(urls, range(COUNT), transform(), cache=kept, network=Network(hedge=0))
        for workers in (2, 0, 2):
            assert_same(batches(far, workers), batches(local(folder)))
        assert server.requests() == (COUNT if cache else 3 * COUNT)
        assert far.image_size(3) == local(folder).image_size(3) and far[3][1] == 3
        assert far._remote is not None
        counts = far._remote.fetcher.store.counts()
        kind = {None: "fetched", "disk": "from_disk"}.get(cache, "from_memory")
        assert counts[kind] >= (3 if cache is None else 2) * COUNT
        assert "token" not in far.location(3) + far.identity(3)
        if cache == "disk":
            files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.name != "lock"]
            assert eventually(lambda: len(files) == COUNT)


def test_a_list_with_a_hole_names_it(folder: Path) -> None:
    with ObjectServer(folder, Faults(no_tags=True)) as server:
        far = ImageFiles([f"{server.url}/{i}.jpg" for i in (0, 1, 99)], range(3), transform())
        assert "/99.jpg: there is no such object (HTTP 404 Not Found)" in first_error(far)
        loader = headrace.DataLoader(far, 3, num_workers=2, on_error="skip")
        with pytest.warns(UserWarning, match="1 "):
            (batch,) = loader
        assert batch[1].tolist() == [0, 1]


def test_through_a_file_system_without_coroutines(folder: Path) -> None:
    memory = fsspec.filesystem("memory")
    for i, data in enumerate(pictures(COUNT)):
        memory.pipe_file(f"/test-files/{i}.jpg", data)
    try:
        far = ImageFiles([f"memory://test-files/{i}.jpg" for i in range(COUNT)], range(COUNT), transform())
        assert_same(batches(far), batches(local(folder)))
        memory.pipe_file("/test-files/5.jpg", b"another one")
        assert "memory://test-files/5.jpg: the object was changed" in first_error(far)
    finally:
        memory.rm("/test-files", recursive=True)


def test_arguments(folder: Path) -> None:
    path = folder / "0.jpg"
    given: tuple[dict[str, Any], ...] = ({"storage_options": {}}, {"network": headrace.Network()})
    for options in given:
        with pytest.raises(ValueError, match="are for URLs"):
            ImageFiles([path], **options)
    with pytest.raises(ValueError, match="some of the paths are URLs"):
        ImageFiles([path, "https://host/a.jpg"])
    with pytest.raises(ValueError, match="needs a path, or memory"):
        headrace.Cache()
    for size in (0, -1, "many", "5 XB", 1.5):
        with pytest.raises(ValueError, match="must be a number of bytes"):
            headrace.Cache("folder", size)  # type: ignore[arg-type]
    assert headrace.Cache(memory="1.5 GiB").memory == 1.5 * 2**30
    with pytest.raises(TypeError, match="cache must be a folder"):
        ImageFiles(["https://host/a.jpg"], cache=5)  # type: ignore[arg-type]
    for name in ("requests", "timeout", "patience", "reach"):
        with pytest.raises(ValueError, match=name):
            headrace.Network(**{name: 0})
    with pytest.raises(ValueError, match="hedge"):
        headrace.Network(hedge=2)


def test_neighbours_are_joined() -> None:
    far, near = 1 << 20, 100
    ranges = [Range(1, far, 50), Range(2, 0, 50), Range(1, 0, 50), Range(1, near, 50), Range(1, 9 << 20, 50)]
    assert join_ranges(ranges) == [[ranges[0]], [ranges[1]], [ranges[2], ranges[3]], [ranges[4]]]
    whole = [Range(3, 0, 2**64 - 1), Range(4, 0, 2**64 - 1)]
    assert join_ranges(whole) == [[whole[0]], [whole[1]]]
    large = [Range(1, i << 20, 1 << 20) for i in range(20)]
    assert [len(group) for group in join_ranges(large)] == [8, 8, 4]
    assert join_ranges([]) == []


def test_a_piece_is_taken_before_the_store_drops_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second piece comes late, and the store needs the room of the first one meanwhile."""
    native = core.RemoteRanges

    class Dropping:
        def __init__(self, store: Any, numbers: Any, cached: Any, object_of: Any, offsets: Any, lengths: Any) -> None:
            self.inner = native(store, numbers, cached, object_of, offsets, lengths)
            self.forget = functools.partial(store.forget, int(numbers[0]), int(offsets[0]), int(lengths[0]))
            self.rounds = 0

        def want(self, rows: Any) -> Any:
            self.rounds += 1
            if 0 not in rows:
                self.forget()
            return self.inner.want(rows)

        def has(self, row: int) -> bool:
            return self.inner.has(row) and (row == 0 or self.rounds > 5)

        def take(self, row: int) -> bytes:
            assert self.inner.has(row), "this read waits, and cannot be ended"
            return self.inner.take(row)

    monkeypatch.setattr(core, "RemoteRanges", Dropping)
    data = (folder / "0.jpg").read_bytes()
    with ObjectServer(folder) as server:
        files = Access(network=Network(hedge=0)).files([f"{server.url}/0.jpg"])
        assert files.take(0, [(0, 10), (len(data) - 10, 10)]) == [data[:10], data[-10:]]
