"""Encoded indexes in memory that processes share, and in a folder: other users, damage, kills, limits."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import signal
import stat
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace import Cache
from headrace._storage.video_indexes import index_memory, shared_indexes
from headrace._storage.video_indexes.index_folder import IndexFolder
from headrace._storage.video_indexes.index_memory import IndexMemory
from headrace._storage.video_indexes.shared_indexes import SharedIndexes, checked_video_index, shared_by_process
from support import open_files

if not index_memory.is_possible():
    pytest.skip("this system has no memory files without a name", allow_module_level=True)


def name(number: int) -> str:
    return hashlib.sha256(b"%d" % number).hexdigest()


def content(number: int, size: int = 100) -> bytes:
    return random.Random(number).randbytes(size)


def in_a_child(function: Callable[[], object]) -> int:
    """Calls a function in a forked child, and returns how that ends."""
    child = os.fork()
    if child == 0:
        try:
            function()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]


# ---- memory ----------------------------------------------------------------------------------------------------------


def test_all_processes_find_what_one_has_added() -> None:
    memory = IndexMemory(1 << 20)
    assert memory.find(name(0)) is None

    def add() -> None:
        for number in range(200):
            memory.add(name(number), content(number))

    assert in_a_child(add) == 0
    assert all(memory.find(name(number)) == content(number) for number in range(200))
    memory.add(name(7), b"newer")
    assert memory.find(name(7)) == b"newer" and memory.nbytes == 200 * 100 + 5
    sparse = os.fstat(memory.descriptor)
    assert sparse.st_size > 1 << 20 and sparse.st_blocks * 512 < 200_000


def test_processes_that_write_at_the_same_time() -> None:
    memory, count = IndexMemory(1 << 22), 150

    def write(first: int) -> None:
        for number in range(first, first + count):
            while memory.find(name(number)) != content(number):  # one that waits for long goes on without it
                memory.add(name(number), content(number))

    children = [multiprocessing.get_context("fork").Process(target=write, args=(n * count,)) for n in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert all(memory.find(name(number)) == content(number) for number in range(3 * count))


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_process_that_is_killed_while_it_writes(after: int) -> None:
    """After no write, after that of the index, or of where it ends: nothing is found, and others go on."""
    memory = IndexMemory(1 << 16)
    memory.add(name(1), content(1))

    def die() -> None:
        plain = memory._write
        written: list[int] = []

        def write(data: bytes, at: int) -> None:
            if len(written) == after:
                os.kill(os.getpid(), signal.SIGKILL)
            written.append(at)
            plain(data, at)

        memory._write = write  # type: ignore[method-assign]
        memory.add(name(2), content(2))

    assert os.WTERMSIG(in_a_child(die)) == signal.SIGKILL
    assert memory.find(name(2)) is None
    memory.add(name(2), content(3))
    assert (memory.find(name(1)), memory.find(name(2))) == (content(1), content(3))


def test_nobody_waits_for_a_process_that_stands_still() -> None:
    memory = IndexMemory(1 << 16)
    said, says = os.pipe()
    child = os.fork()
    if child == 0:
        with memory._writing():
            os.write(says, b"x")
            time.sleep(600)
        os._exit(0)
    try:
        os.read(said, 1)
        begin = time.monotonic()
        memory.add(name(1), content(1))
        assert time.monotonic() - begin < 5 and memory.find(name(1)) is None
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    memory.add(name(1), content(1))
    assert memory.find(name(1)) == content(1)
    os.close(said)
    os.close(says)


def test_its_limit() -> None:
    memory = IndexMemory(1000)
    for number in range(20):
        memory.add(name(number), content(number))
    assert [memory.find(name(number)) is not None for number in range(20)] == [True] * 10 + [False] * 10
    memory.add(name(30), b"")
    assert memory.nbytes == 1000


def test_no_place_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_memory, "_FEWEST_PLACES", 8)
    memory = IndexMemory(8000)
    for number in range(20):
        memory.add(name(number), content(number))
    found = [number for number in range(20) if memory.find(name(number)) == content(number)]
    assert found == list(range(8))


def test_damaged_memory_gives_other_bytes_or_none() -> None:
    draw = random.Random(5)
    for _ in range(60):
        memory = IndexMemory(1 << 14)
        for number in range(20):
            memory.add(name(number), content(number))
        used = memory._first + memory.nbytes
        for _ in range(draw.choice([1, 30, 500])):
            os.pwrite(memory.descriptor, draw.randbytes(draw.choice([1, 8])), draw.randrange(used))
        for number in range(20):
            found = memory.find(name(number))
            assert found is None or len(found) <= memory._size
            memory.add(name(number), content(number))


def _find_in_child(shared: SharedIndexes, wanted: str, results: Any) -> None:
    results.put(list(shared.find(wanted)))


@pytest.mark.processes
def test_a_process_that_is_started_gets_the_memory() -> None:
    shared = SharedIndexes(IndexMemory(1 << 16), None)
    shared.add(name(1), content(1))
    started = multiprocessing.get_context("spawn")
    results = started.SimpleQueue()
    child = started.Process(target=_find_in_child, args=(shared, name(1), results))
    child.start()
    assert results.get() == [("memory", content(1))]
    child.join(60)


# ---- folder ----------------------------------------------------------------------------------------------------------


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]


def test_what_is_in_a_folder_stays_and_is_private(tmp_path: Path) -> None:
    folder = IndexFolder(str(tmp_path / "new" / "one"), None)
    folder.add(name(1), content(1))
    assert IndexFolder(folder.path, None).find(name(1)) == content(1) and folder.find(name(2)) is None
    (file,) = files(tmp_path)
    assert file.suffix == ".npz" and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.parent.stat().st_mode) == 0o700


def test_a_process_that_is_killed_before_it_renames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = IndexFolder(str(tmp_path), None)

    def die() -> None:
        monkeypatch.setattr(Path, "replace", lambda *args: os.kill(os.getpid(), signal.SIGKILL))
        folder.add(name(1), content(1))

    assert os.WTERMSIG(in_a_child(die)) == signal.SIGKILL
    assert len(files(tmp_path)) == 1 and folder.find(name(1)) is None
    folder.add(name(1), content(1))
    assert folder.find(name(1)) == content(1)


def test_what_others_can_have_written_is_not_read(tmp_path: Path) -> None:
    folder = IndexFolder(str(tmp_path), None)
    folder.add(name(1), content(1))
    (file,) = files(tmp_path)
    file.chmod(0o620)
    assert folder.find(name(1)) is None
    other = file.with_name("other")
    file.chmod(0o600)
    file.rename(other)
    file.symlink_to(other)
    assert folder.find(name(1)) is None
    file.unlink()
    os.mkfifo(file)
    assert folder.find(name(1)) is None
    file.unlink()
    file.mkdir()
    assert folder.find(name(1)) is None
    folder.add(name(1), content(1))  # left out, without a warning
    folder.add(name(2), content(2))
    assert folder.find(name(2)) == content(2)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_and_folders_of_other_users(tmp_path: Path) -> None:
    folder = IndexFolder(str(tmp_path), None)
    folder.add(name(1), content(1))
    (file,) = files(tmp_path)
    os.chown(file, 12345, -1)
    assert folder.find(name(1)) is None
    folder.add(name(1), content(1))
    assert folder.find(name(1)) == content(1)
    os.chown(tmp_path / "headrace-cache-2", 12345, -1)
    with pytest.warns(UserWarning, match="belongs to another user"):
        theirs = IndexFolder(str(tmp_path), None)
    theirs.add(name(2), content(2))
    assert theirs.find(name(1)) is None and len(files(tmp_path)) == 1


def test_a_folder_that_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match="cannot be written"):
        nowhere = IndexFolder(str(tmp_path / "file" / "x"), None)
    folder = IndexFolder(str(tmp_path / "gone"), None)
    for path in sorted((tmp_path / "gone").rglob("*"), reverse=True):
        path.rmdir()
    with pytest.warns(UserWarning, match="goes on without writing"):
        folder.add(name(1), content(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for one in (nowhere, folder):
            one.add(name(1), content(1))
            assert one.find(name(1)) is None


def test_the_size_of_a_folder(tmp_path: Path) -> None:
    folder = IndexFolder(str(tmp_path), 20_000)
    for number in range(60):
        folder.add(name(number), content(number, 1000))
        assert sum(file.stat().st_size for file in files(tmp_path)) <= 21_000
    assert sum(folder.find(name(number)) is not None for number in range(60)) >= 10
    folder.add(name(60), bytes((64 << 20) + 1))
    assert folder.find(name(60)) is None


# ---- both ------------------------------------------------------------------------------------------------------------


def test_loaders_with_equal_arguments_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_indexes, "_of_process", {})  # that of other tests' loaders may live on
    cache = checked_video_index(tmp_path)
    assert cache == Cache(tmp_path)
    first = shared_by_process(cache)
    assert first is not None and shared_by_process(checked_video_index(str(tmp_path))) is first
    assert shared_by_process(Cache(tmp_path, memory=1000)) is not first
    assert shared_by_process(None) is None
    auto = shared_by_process("auto")
    assert auto is not None and auto is shared_by_process(checked_video_index("auto")) is not first
    del auto
    known = shared_indexes._of_process["auto"]
    assert known() is None


def memories() -> int:
    return sum("headrace-indexes" in one for one in open_files())


def test_memory_is_made_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = memories()
    shared = shared_by_process(Cache(memory=1000))
    assert shared is not None and memories() == before
    assert list(shared.find(name(1))) == [] and memories() == before + 1
    del shared
    assert memories() == before

    def fail(*args: object) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", fail)
    without = SharedIndexes(1000, None)
    without.add(name(1), content(1))
    assert list(without.find(name(1))) == []


def test_memory_before_a_folder(tmp_path: Path) -> None:
    shared = shared_by_process(Cache(tmp_path, memory="1 MB"))
    assert shared is not None
    shared.add(name(1), content(1))
    assert list(shared.find(name(1))) == [("memory", content(1)), ("folder", content(1))]
    assert list(shared.find(name(2))) == []


def test_arguments() -> None:
    assert checked_video_index("memory:2 MB") == Cache(memory=2_000_000)
    assert checked_video_index(None) is None
    for wrong in (3, True, b"folder"):
        with pytest.raises(TypeError, match="video_index must be 'auto', a folder"):
            checked_video_index(wrong)
    with pytest.raises(ValueError, match="not 'lots'"):
        checked_video_index("memory:lots")
