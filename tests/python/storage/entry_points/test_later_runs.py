"""entry_points="auto" is kept in the user's cache: later runs begin with it, and no content of the folder hurts one."""

from __future__ import annotations

import gc
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from test_learning import epochs, loader, photographs

import headrace
from headrace._base.lifetimes.finalizers import _Elsewhere
from headrace._storage.entry_points import process_table, sidecar
from headrace._storage.entry_points.entry_points import Entries, EntryPoints
from headrace._storage.entry_points.process_table import ProcessTable, name_of_dataset
from own_dataset import OwnDataset
from support import PHOTOS, assert_same, eventually, output_of, train

VARIABLE = "HEADRACE_ENTRY_POINTS_FOLDER"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a test, in one that is everyone's, and a process that has no table yet."""
    everyones = tmp_path / "everyones"
    everyones.mkdir()
    everyones.chmod(0o1777)
    monkeypatch.setattr(process_table, "_of_process", None)
    monkeypatch.setattr(process_table, "_LEAST_IMAGES", 1)
    monkeypatch.setenv(VARIABLE, str(everyones))
    yield everyones / f"entry_points-{os.geteuid()}"
    assert everyones.stat().st_mode & 0o7777 == 0o1777


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.npz"))


def end_run(*loaders: headrace.DataLoader[Any]) -> None:
    """What the end of a process does to its loaders' table."""
    for one in loaders:
        one.close()
    gc.collect()
    table = None if process_table._of_process is None else process_table._of_process()
    assert table is None
    _Elsewhere.of_process().finish()


def run(count: int = 1, **options: Any) -> tuple[list[Any], Entries]:
    """The batches of a new run's epochs, and what was known after them."""
    ours = loader("auto", **options)
    iterator = iter(ours)  # makes the table
    assert process_table._of_process is not None
    table = process_table._of_process()
    assert table is not None
    table.wait()
    del iterator, table
    made = epochs(ours, count)
    found = ours.stats().entry_points
    assert found is not None
    end_run(ours)
    return made, found


def test_a_later_run_begins_with_what_was_learned(folder: Path) -> None:
    expected = epochs(loader(None), 2)
    made, first = run(2, num_workers=2)
    assert_same(made, expected)
    (file,) = files(folder)
    held = EntryPoints("1 MB", file).counts()
    assert held.images == first.images > 0
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    made, second = run(2, num_workers=2)
    assert_same(made, expected)
    assert second.hit_rate > first.hit_rate
    assert files(folder) == [file]
    assert [path for path in folder.iterdir() if "unfinished" in path.name] == []


def test_processes_begin_with_what_earlier_ones_learned(folder: Path) -> None:
    code = f"""
import sys
sys.path[:0] = {[str(Path(__file__).parents[number]) for number in (0, 2)]!r}
from headrace._storage.entry_points import process_table, sidecar
from test_learning import epochs, loader
process_table._LEAST_IMAGES = 1
ours = loader("auto", num_workers=1)
iterator = iter(ours)
process_table._of_process().wait()
list(iterator)
print(ours.stats().entry_points.images, ours.stats().entry_points.entered)
"""
    learned, entered = map(int, output_of(code).split())
    assert learned > 0
    assert len(files(folder)) == 1
    images, later = map(int, output_of(code).split())
    assert (images, later > entered) == (learned, True)


def test_a_dataset_of_ones_own(folder: Path) -> None:
    paths = sorted(PHOTOS.glob("*.jpg"))

    def run_workers() -> Entries:
        ours = headrace.DataLoader(OwnDataset(paths, train(48)), 4, num_workers=1)
        assert ours.route == "deferred"
        list(ours)
        found = ours.stats().entry_points
        assert found is not None
        end_run(ours)
        return found

    first, second = run_workers(), run_workers()
    assert len(files(folder)) == 1
    assert first.images > 0
    assert second.entered > first.entered


@pytest.mark.processes
@pytest.mark.parametrize(("workers", "method", "waits"), [(0, None, False), (1, "spawn", False), (1, "fork", True)])
def test_only_a_fork_waits_for_the_file(
    workers: int, method: str | None, waits: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes seconds to read where there are a million images."""
    waited: list[int] = []
    monkeypatch.setattr(ProcessTable, "wait", lambda _: waited.append(1))
    dataset = OwnDataset(sorted(PHOTOS.glob("*.jpg")), train(48))
    list(headrace.DataLoader(dataset, 4, num_workers=workers, multiprocessing_context=method))
    assert bool(waited) is waits


def test_the_end_of_a_process_writes_what_is_worth_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a million images takes seconds to write, which a few new ones do not save."""
    run()
    (file,) = files(folder)
    grown = 0.0
    monkeypatch.setattr(process_table._File, "grown", property(lambda _: grown))
    for grown, writes in ((0.03, False), (0.04, True)):  # noqa: B007 - the property's value
        kept = ProcessTable(1 << 20, file, process_table._secrets_of(folder))
        kept.wait()
        before = file.stat().st_ino
        kept._save_at_exit()
        assert (file.stat().st_ino != before) is writes
        del kept
        _Elsewhere.of_process().finish()


def test_the_end_of_a_process_waits_for_no_reading(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes seconds where there are a million images: nothing is added or written any more."""
    run()
    (file,) = files(folder)
    ended, parsed, parse = threading.Event(), threading.Event(), sidecar.parse_content

    def parse_late(*given: Any) -> Any:
        assert ended.wait(60)
        parsed.set()
        return parse(*given)

    monkeypatch.setattr(sidecar, "parse_content", parse_late)
    before = file.stat().st_ino
    table = ProcessTable(1 << 20, file, process_table._secrets_of(folder))
    table._save_at_exit()
    assert not parsed.is_set()
    ended.set()
    table.wait()
    assert parsed.is_set() and table.counts().images == 0 and file.stat().st_ino == before


def test_datasets_have_files_of_their_own(folder: Path) -> None:
    run()
    images = photographs()[:5]
    ours = headrace.DataLoader(headrace.EncodedImages(images, None, train(48)), 4)
    list(ours)
    end_run(ours)
    assert len(files(folder)) == 2


class Guarded:
    """A dataset whose attributes are computed."""

    def __init__(self, dataset: object) -> None:
        self.dataset = dataset

    def __getattr__(self, name: str) -> object:
        raise RecursionError(name)


class Slotted:
    __slots__ = ()


def test_what_an_own_dataset_is_known_by() -> None:
    name = name_of_dataset(Guarded(Guarded(None)), 3)
    assert name.endswith("test_later_runs.Guarded of test_later_runs.Guarded, 3 samples")
    assert name_of_dataset(Guarded(None), 3) != name_of_dataset(Guarded(None), 4) != name
    assert name_of_dataset(Slotted(), 3).endswith("Slotted, 3 samples")
    itself = Guarded(None)
    itself.dataset = itself
    assert name_of_dataset(itself, 1).count("Guarded") == 8


def test_nothing_is_kept(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, "")
    run()
    assert not folder.exists() and not (tmp_path / "cache").exists()
    monkeypatch.setattr(process_table, "_LEAST_IMAGES", 1000)  # a first epoch that takes no time
    monkeypatch.setenv(VARIABLE, str(folder.parent))
    run()
    assert files(folder) == []


def test_the_users_cache_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(VARIABLE)
    run()
    assert len(files(tmp_path / "cache" / "headrace" / "entry_points")) == 1


def test_names_of_folders(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for named, where in (("~/a b", "home/a b"), ("relative", "relative"), ("bytes \udcff", "bytes \udcff")):
        monkeypatch.setenv(VARIABLE, named)
        run()
        assert len(files(tmp_path / where / folder.name)) == 1
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which its specification has ignored
    run()
    assert len(files(tmp_path / "home" / ".cache" / "headrace" / "entry_points")) == 1


@pytest.mark.parametrize("fault", ["a file in its place", "no permission", "a link", "a link for secrets", "no home"])
def test_a_folder_that_cannot_be_used(
    fault: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if fault == "a file in its place":
        folder.write_text("text")
    elif fault == "no permission":
        monkeypatch.setenv(VARIABLE, "/proc/self/kept")
    elif fault == "a link":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    elif fault == "a link for secrets":
        folder.mkdir()
        (folder / "secrets.npy").symlink_to("/dev/zero")
    else:
        monkeypatch.delenv(VARIABLE)
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    with caplog.at_level(logging.INFO, "headrace"):
        made, _ = run()
    assert_same(made, epochs(loader(None), 1))
    assert "entry points are not kept for later runs" in caplog.text
    assert list(tmp_path.glob("elsewhere/*")) == []


def test_a_dataset_without_a_name_is_loaded(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Nameless(headrace.EncodedImages):
        def identity(self, index: int) -> str:
            raise KeyError(index)

    with caplog.at_level(logging.INFO, "headrace"):
        made = list(headrace.DataLoader(Nameless(photographs()[:4], None, train(48)), 4, seed=0))
    assert_same(made, list(headrace.DataLoader(headrace.EncodedImages(photographs()[:4], None, train(48)), 4, seed=0)))
    assert "entry points are not kept for later runs" in caplog.text


@hypothesis.settings(max_examples=60, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
@hypothesis.given(data=st.data())
def test_a_damaged_file_changes_no_batch_and_is_replaced(folder: Path, data: st.DataObject) -> None:
    if not files(folder):
        run()
    (file,) = files(folder)
    whole = file.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[at] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.booleans())
    file.write_bytes(damaged[:at] if cut else damaged)
    made, _ = run()
    assert_same(made, epochs(loader(None), 1))
    assert EntryPoints("1 MB", file).counts().images > 0


@pytest.mark.parametrize("damage", ["nothing", "a header", "other numbers"])
def test_damaged_secrets_are_replaced(damage: str, folder: Path) -> None:
    run()
    secrets = folder / "secrets.npy"
    content = {"nothing": b"", "a header": secrets.read_bytes().replace(b")", b"7")}
    if damage == "other numbers":
        np.save(secrets, np.zeros(4, np.uint64))
    else:
        secrets.write_bytes(content[damage])
    run()
    _, known = run()
    assert known.entered == known.decodes > 0


def test_a_fork_while_a_thread_writes(folder: Path) -> None:
    """A thread that writes is not in the child: the child's end does not wait for it."""
    made = ProcessTable(1 << 20, folder.with_name("a.npz"))
    assert made._file is not None
    with made._file._saving:
        child = os.fork()
        if child == 0:
            made._save_at_exit()
            os._exit(0)
    ended = eventually(lambda: os.waitpid(child, os.WNOHANG) == (child, 0), seconds=20)
    if not ended:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert ended


def test_a_file_of_another_folder_is_not_used(folder: Path) -> None:
    run()
    (file,) = files(folder)
    np.save(folder / "secrets.npy", np.arange(5, dtype=np.uint64))
    _, known = run()
    assert known.entered == 0
    assert np.array_equal(EntryPoints("1 MB", file).native.secrets, np.arange(5, dtype=np.uint64))


def test_the_files_used_last_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(mode=0o700)
    for number in range(4):
        (folder / f"{number}.npz").write_bytes(bytes(1000))
        os.utime(folder / f"{number}.npz", (number, number))
    left = folder / "0.npz.unfinished-1-abcd"
    left.write_bytes(b"")
    os.utime(left, (0, 0))
    (folder / "1.npz.unfinished-2-abcd").write_bytes(b"")  # of now: another process writes it
    (folder / "secrets.npy.unfinished-1-abcd").write_bytes(b"")
    os.utime(folder / "secrets.npy.unfinished-1-abcd", (0, 0))
    monkeypatch.setattr(process_table, "_FOLDER_BYTES", 2500)
    process_table._remove_oldest(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["1.npz.unfinished-2-abcd", "2.npz", "3.npz"]


def test_it_is_written_when_an_epoch_begins_that_knows_an_eighth_more(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = loader("auto")
    epochs(ours, 1)
    assert files(folder) == []
    iterator = iter(ours)
    assert eventually(lambda: len(files(folder)) == 1, seconds=60)
    begin = files(folder)[0].stat().st_mtime_ns
    assert process_table._of_process is not None
    table = process_table._of_process()
    assert table is not None and table._file is not None
    grown = 0.05
    monkeypatch.setattr(type(table._file), "grown", property(lambda _: grown))
    for grown, writes in ((0.05, False), (0.2, True)):  # noqa: B007 - the property's value
        table.save()
        _Elsewhere.of_process().finish()
        assert (files(folder)[0].stat().st_mtime_ns != begin) is writes
    del iterator, table
    end_run(ours)


def test_a_disk_that_is_full_is_logged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    run()
    monkeypatch.setattr(np, "savez", full)
    before = files(folder)[0].read_bytes()
    with caplog.at_level(logging.INFO, "headrace"):
        run(6)
    assert "No space left on device" in caplog.text
    assert files(folder)[0].read_bytes() == before
    assert isinstance(ProcessTable(1000, None).__reduce__()[0], type)
