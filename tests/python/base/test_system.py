"""Calls that only Linux has: what Linux does, and what is done where a call is missing."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest
import torch

from headrace import DataLoader, EncodedImages
from headrace._base import cores, system
from headrace._loading.native import cpu_affinity
from support import assert_same, pictures, train

_LINUX_ONLY = ("sched_getaffinity", "sched_setaffinity", "posix_fadvise", "RWF_NOWAIT", "preadv")


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """An `os` without the names that only Linux has."""
    for name in _LINUX_ONLY:
        monkeypatch.delattr(os, name)


def test_the_cpus_are_those_of_the_affinity() -> None:
    assert cores.allowed_cpus() == os.sched_getaffinity(0)
    assert cores.allowed_cpus(os.getppid()) == os.sched_getaffinity(os.getppid())
    assert cores.can_bind()


def test_a_thread_is_bound_and_one_that_has_ended_is_ignored() -> None:
    before = os.sched_getaffinity(0)
    chosen = {max(before)}
    try:
        cores.bind_thread(0, chosen)
        assert cores.allowed_cpus() == chosen
    finally:
        os.sched_setaffinity(0, before)
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    assert thread.native_id is not None
    cores.bind_thread(thread.native_id, chosen)
    with pytest.raises(OSError, match="Invalid argument"):
        cores.bind_thread(0, {4000})


def test_what_was_just_written_is_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "some"
    path.write_bytes(bytes(8192))
    with path.open("rb") as file:
        assert system.is_cached(file.fileno(), 0) in (True, None)  # None: this file system cannot tell
        system.drop_page_cache(file.fileno(), 0, 8192)


def test_a_file_without_a_name_is_opened_again() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"some bytes")
        file.flush()
        assert system.path_of_open_file(file.fileno()).read_bytes() == b"some bytes"
        file.seek(0)
        assert system.path_of_open_file(file.fileno(), Path("/nowhere")) == Path("/nowhere/dev/fd", str(file.fileno()))
        assert Path("/dev/fd", str(file.fileno())).read_bytes() == b"some bytes"


@pytest.mark.usefixtures("elsewhere")
def test_elsewhere_all_cpus_are_allowed_and_nothing_is_bound(tmp_path: Path) -> None:
    assert cores.allowed_cpus() == set(range(os.cpu_count() or 1))
    assert not cores.can_bind()
    cores.bind_thread(0, {4000})
    path = tmp_path / "some"
    path.write_bytes(b"some")
    with path.open("rb") as file:
        assert system.is_cached(file.fileno(), 0) is None
        system.drop_page_cache(file.fileno(), 0, 4)


@pytest.mark.usefixtures("elsewhere")
def test_elsewhere_a_request_for_cores_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot bind threads to cores; leave cpu_affinity out"):
        cpu_affinity.resolve_cores([0], torch.device("cpu"))
    assert cpu_affinity.resolve_cores(None, torch.device("cpu")) == ()


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("workers", [2, "auto"])
def test_elsewhere_a_loader_delivers_the_same(workers: int | str) -> None:
    dataset = EncodedImages(pictures(12), transform=train(16))
    loader = DataLoader(dataset, batch_size=4, shuffle=True, num_workers=workers, seed=1)
    assert assert_same(loader, list(loader.reference())) == len(loader) == 3
