"""headrace.publish(): what the file says, when it appears and goes, and what it costs while it is off."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import headrace
from headrace import DataLoader
from headrace._reports.metrics import processes, publish, status_files
from headrace._reports.metrics.process_figures import ProcessFigures
from support import WATCHDOG_S, blobs, pictures, train, truncated


@pytest.fixture(autouse=True)
def _nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test begins and ends without anything published."""
    monkeypatch.delenv("HEADRACE_PUBLISH", raising=False)
    monkeypatch.setattr(publish, "_read_variable", False)
    yield
    publish._close_all()
    publish._loaders.forget()


def read_figures(path: Path | None) -> ProcessFigures:
    assert path is not None
    return ProcessFigures.of_text(path.read_text())


def until(path: Path | None, good: Callable[[ProcessFigures], Any], seconds: float = WATCHDOG_S) -> ProcessFigures:
    """The first content of a file for which `good` holds."""
    end = time.monotonic() + seconds
    while not good(found := read_figures(path)):
        assert time.monotonic() < end, found
        time.sleep(0.02)
    return found


def test_the_file_tells_of_the_loader_and_goes(tmp_path: Path) -> None:
    loader = DataLoader(blobs(24), 5, num_workers=2)
    with headrace.publish(folder=tmp_path / "new" / "run", every_s=0.1) as published:
        assert published.path is not None
        first = read_figures(published.path)
        assert (first.pid, first.loaders) == (os.getpid(), [])
        assert first.started == processes.find_process(os.getpid()).started  # type: ignore[union-attr]
        assert len(list(loader)) == 5
        (one,) = until(published.path, lambda now: now.loaders and now.loaders[0].ended).loaders
        assert stat.S_IMODE(published.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(published.path.parent.stat().st_mode) == 0o700
        assert [path.name for path in published.path.parent.iterdir()] == [published.path.name]
    assert not published.path.exists()
    published.close()
    assert (one.number, one.dataset, one.samples, one.route, one.workers) == (0, "EncodedImages", 24, "native", 2)
    assert (one.epoch, one.batch, one.batches, one.unit) == (0, 5, 5, "samples")
    stats = loader.stats()
    assert one.stats == json.loads(json.dumps(stats.as_dict()))
    assert stats.samples == 24 and one.bytes_read == stats.bytes_read > 0
    assert one.verdict == str(stats.verdict).splitlines() and one.bottleneck == stats.bottleneck
    assert [(stage.name, stage.ms) for stage in one.stages] == [(s.name, s.ms_per_item) for s in stats.stages]
    assert sum(stage.share for stage in one.stages) == pytest.approx(1)
    assert one.step_ms == [stats.steps.p50_ms, stats.steps.p99_ms]


def test_several_loaders_of_every_kind(tmp_path: Path) -> None:
    bad = headrace.EncodedImages([*pictures(6), truncated(pictures(1)[0])], None, train(8))
    skipping = DataLoader(bad, 4, on_error="skip", shuffle=False)
    ten: Any = list(range(10))
    torchs = DataLoader(ten, 4)
    unsized = DataLoader(ten, batch_sampler=[[0, 1], [2]])
    single = DataLoader(blobs(3), batch_size=None)
    fields = headrace.Columns({"x": torch.arange(6)})
    columns = DataLoader(fields, 4)
    gone = DataLoader(blobs(4), 2)
    with headrace.publish(folder=tmp_path, every_s=0.1) as published:
        list(gone)
        del gone
        with pytest.warns(UserWarning, match="1 samples could not be made"):
            list(skipping)
        for one in (torchs, unsized, single, columns):
            list(one)
        found = until(published.path, lambda now: len(now.loaders) == 5 and now.loaders[4].ended).loaders
    assert [(one.number, one.dataset, one.route, one.unit) for one in found] == [
        (0, "EncodedImages", "native", "samples"),  # the number of the loader that is gone
        (1, "list", "deferred", "samples"),
        (2, "list", "deferred", "batches"),
        (3, "EncodedImages", "native", "samples"),
        (4, "Columns", "native", "samples"),
    ]
    assert [(one.batch, one.batches, one.ended) for one in found] == [
        (2, 2, True),
        (3, 3, True),
        (2, 2, True),
        (3, 3, True),
        (2, 2, True),
    ]
    assert [one.failed for one in found] == [1, 0, 0, 0, 0]
    assert [one.stats["samples"] for one in found] == [6, 0, 0, 3, 6]


def test_a_loader_that_chooses_its_threads_fits_into_the_file(tmp_path: Path) -> None:
    loader = DataLoader(blobs(24), 4, num_workers="auto", entry_points="1 MB")
    with headrace.publish(folder=tmp_path, every_s=0.1) as published:
        list(loader)
        (one,) = until(published.path, lambda now: now.loaders and now.loaders[0].ended).loaders
    assert one.workers == loader.num_workers and one.stats == json.loads(json.dumps(loader.stats().as_dict()))
    assert one.stats["tuned"] is not None and one.stats["entry_points"] is not None


def test_a_fault_of_the_dataset_is_reported_and_nothing_ends(tmp_path: Path) -> None:
    class Sizes(list[int]):
        broken = False

        def __len__(self) -> int:
            if self.broken:
                raise OSError("the server is gone")
            return super().__len__()

    numbers: Any = Sizes(range(8))
    loader = DataLoader(numbers, 4)
    with headrace.publish(folder=tmp_path, every_s=0.1) as published:
        batches = iter(loader)
        next(batches)
        until(published.path, lambda now: now.loaders and now.loaders[0].batch == 1)
        numbers.broken = True
        (one,) = until(published.path, lambda now: now.loaders[0].trouble).loaders
        assert one.trouble == "OSError: the server is gone" and one.verdict == []
        numbers.broken = False
        next(batches)
        (one,) = until(published.path, lambda now: now.loaders[0].batch == 2).loaders
        assert one.trouble == ""


def test_recent_speed_and_share_of_work(tmp_path: Path) -> None:
    loader = DataLoader(blobs(400), 1, num_workers=2)
    with headrace.publish(folder=tmp_path, every_s=0.1) as published:
        for _ in loader:
            time.sleep(0.01)
            now = read_figures(published.path).loaders
            if now and now[0].recent_s > 0.5:
                break
    one = now[0]
    assert 1 < one.speed < 101 and 0 < one.working <= 1
    assert all(0 < speed < 101 for speed in one.speeds)


def test_a_loader_that_hands_out_nothing_is_quiet(tmp_path: Path) -> None:
    loader = DataLoader(blobs(24), 4, num_workers=1)
    with headrace.publish(folder=tmp_path, every_s=0.1) as published:
        batches = iter(loader)
        next(batches)
        found = until(published.path, lambda now: now.loaders and now.loaders[0].quiet_s > 0.4)
        assert not found.loaders[0].ended
        del batches


def test_a_loader_without_a_name_is_followed_and_goes_with_its_iterator(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with headrace.publish(folder=tmp_path, every_s=0.1) as published:
        batches = iter(DataLoader(blobs(24), 4, num_workers=1))
        next(batches)
        until(published.path, lambda now: now.loaders and now.loaders[0].batch == 1)
        loader = weakref.ref(batches.loader)  # type: ignore[attr-defined]
        del batches
        until(published.path, lambda now: not now.loaders)
        assert loader() is None
    assert iter(kept := DataLoader(blobs(24), 4)).loader is None and kept  # type: ignore[attr-defined]
    assert not set(threading.enumerate()) - before


@pytest.mark.processes
def test_without_publishing_an_epoch_imports_and_writes_nothing() -> None:
    code = """
import sys
from PIL import Image
import io
from headrace import EncodedImages, DataLoader, transforms
file = io.BytesIO()
Image.new("RGB", (9, 9)).save(file, "JPEG")
list(DataLoader(EncodedImages([file.getvalue()], transform=transforms.ToTensor())))
import threading
assert not [one for one in sys.modules if one.startswith("headrace._reports.metrics")]
assert not [one for one in threading.enumerate() if "publish" in one.name]
"""
    subprocess.run([sys.executable, "-c", code], check=True, env=without_variable())


def without_variable() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "HEADRACE_PUBLISH"}


def test_the_variable_publishes_with_the_first_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_PUBLISH", f"{tmp_path}/here")
    loader = DataLoader(blobs(4), 2)
    assert not (tmp_path / "here").exists()
    list(loader)
    (path,) = (tmp_path / "here").iterdir()
    assert path.name == status_files.name_of(os.getpid())
    list(loader)
    with headrace.publish(folder=tmp_path / "mine") as published:  # the program's own takes its place
        assert published.path is not None and published.path.exists() and not path.exists()
        with pytest.raises(ValueError, match=r"publishes already, in .*mine"):
            headrace.publish(folder=tmp_path / "third")


@pytest.mark.parametrize("value", ["", "0"])
def test_the_variable_can_say_no(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_PUBLISH", value)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    list(DataLoader(blobs(4), 2))
    assert publish._published == [] and list(tmp_path.iterdir()) == []


def test_a_variable_that_cannot_be_heeded_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for value, reason in (("yes", "neither 1 nor the path of a folder"), (f"{tmp_path}/file", "File exists")):
        monkeypatch.setattr(publish, "_read_variable", False)
        monkeypatch.setenv("HEADRACE_PUBLISH", value)
        loader = DataLoader(blobs(4), 2)
        with pytest.warns(RuntimeWarning, match=f"HEADRACE_PUBLISH={value} has no effect: .*{reason}"):
            assert len(list(loader)) == 2
        assert len(list(loader)) == 2  # once


def test_wrong_arguments(tmp_path: Path) -> None:
    for options, said in (
        ({"every_s": 0}, "every_s must be a number of seconds from 0.1 up, not 0"),
        ({"every_s": True}, "every_s must be"),
        ({"every_s": float("nan")}, "every_s must be"),
        ({"top": False}, "nothing would be published"),
        ({"top": False, "folder": tmp_path}, "folder is that of the file for headrace top"),
    ):
        with pytest.raises(ValueError, match=said):
            headrace.publish(**options)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="File exists"):
        headrace.publish(folder=tmp_path / "file")
    assert publish._published == []


def test_a_folder_that_goes_is_a_warning_of_the_next_epoch(tmp_path: Path) -> None:
    loader = DataLoader(blobs(4), 2)
    where = tmp_path / "run"
    with headrace.publish(folder=where, every_s=0.1) as published:
        list(loader)
        assert published.path is not None
        published.path.unlink()
        where.rmdir()
        where.write_text("")  # not a folder
        end = time.monotonic() + WATCHDOG_S
        while not published._writer.trouble:  # type: ignore[union-attr]
            assert time.monotonic() < end
            time.sleep(0.02)
        with pytest.warns(RuntimeWarning, match=r"cannot be written to .*; the loaders go on"):
            assert len(list(loader)) == 2
        where.unlink()
        where.mkdir()
        end = time.monotonic() + WATCHDOG_S
        while not published.path.exists() or published._writer.trouble:  # type: ignore[union-attr]
            assert time.monotonic() < end
            time.sleep(0.02)
        assert len(list(loader)) == 2


FORKED = """
import os, sys, time
sys.path.insert(0, sys.argv[2])
from support import blobs, eventually
from headrace import DataLoader, publish
published = publish(folder=sys.argv[1], every_s=0.1)
loader = DataLoader(blobs(4), 2)
list(loader)
child = os.fork()
if child == 0:
    mine = DataLoader(blobs(6), 2)
    list(mine)
    path = published.path
    assert str(os.getpid()) in path.name and path.exists(), path
    assert eventually(lambda: '"samples": 6' in path.read_text())
    assert '"samples": 4' not in path.read_text()
    published.close()
    assert not path.exists()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert published.path.exists() and str(os.getpid()) in published.path.name
idle = os.fork()
if idle == 0:
    sys.exit(0)  # runs the handlers of atexit, which shall not remove the parent's file
os.waitpid(idle, 0)
assert published.path.exists()
"""


@pytest.mark.processes
def test_a_forked_process_has_a_file_of_its_own_and_the_end_removes_it(tmp_path: Path) -> None:
    tests = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path), tests], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_files_are_found_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """As text, 11020 stands before 9689."""
    for pid in (11020, 9689, 100000, 7):
        (tmp_path / status_files.name_of(pid)).touch()
    (tmp_path / "other.json").touch()
    assert [pid for pid, _ in status_files.files_in(tmp_path)] == [7, 9689, 11020, 100000]


def test_machines_that_share_a_folder_do_not_touch_each_others_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each machine uses the same numbers, and the first namespace of numbers has one inode everywhere."""
    for boot in ("11111111", "22222222"):
        for name, text in (("self/ns/pid", ""), ("sys/kernel/random/boot_id", f"{boot}-aaaa\n")):
            (tmp_path / boot / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / boot / name).write_text(text)
    os.link(tmp_path / "11111111/self/ns/pid", tmp_path / "same")
    (tmp_path / "22222222/self/ns/pid").unlink()
    os.link(tmp_path / "same", tmp_path / "22222222/self/ns/pid")
    names = []
    for boot in ("11111111", "22222222"):
        monkeypatch.setattr(processes, "_PROC", tmp_path / boot)
        names.append(status_files.name_of(7))
        (tmp_path / names[-1]).write_text("{}")
        assert [path.name for _, path in status_files.files_in(tmp_path)] == [names[-1]]
    status_files.remove_dead(tmp_path)
    assert (tmp_path / names[0]).exists() and not (tmp_path / names[1]).exists()
