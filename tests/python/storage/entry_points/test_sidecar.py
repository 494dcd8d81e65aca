"""The file of a table of entry points: later runs begin with it; damaged and hostile ones are refused."""

from __future__ import annotations

import gc
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_learning import epochs, loader

from headrace import EntryPoints
from headrace._storage.entry_points import sidecar
from headrace._storage.entry_points.entry_points import Entries
from support import assert_same, output_of


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file of a run."""
    path = tmp_path / "new" / "rows.npz"
    ours = loader(EntryPoints("1 MB", path))
    epochs(ours)
    ours.close()
    return path


def known(path: Path) -> Entries:
    return EntryPoints("1 MB", path).counts()


def test_a_later_run_begins_with_what_was_learned(file: Path) -> None:
    points = EntryPoints("1 MB", file)
    before = points.counts()
    assert before.images > 0
    assert_same(epochs(loader(points)), epochs(loader(None)))
    assert points.counts().hit_rate > 0.9
    small = EntryPoints(1000, file).counts()
    assert 0 < small.images < before.images and small.bytes <= 1000
    assert list(file.parent.iterdir()) == [file]


def test_it_is_written_when_an_epoch_begins_and_when_the_table_ends(tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    points = EntryPoints("1 MB", path)
    assert known(path).images == 0
    ours = loader(points)
    epochs(ours, 1)
    iterator = iter(ours)
    first = known(path)
    assert first.images > 0
    for _ in iterator:
        pass
    del ours, iterator, points
    gc.collect()
    begin = time.monotonic()
    while known(path).bytes == first.bytes:  # a thread writes it: Ctrl-C would be lost where the table ends
        assert time.monotonic() - begin < 60
        time.sleep(0.01)


def test_it_is_written_when_the_process_ends(tmp_path: Path) -> None:
    output_of(
        f"""
import sys
sys.path[:0] = {[str(Path(__file__).parents[number]) for number in (0, 2)]!r}
from test_learning import EntryPoints, epochs, loader
epochs(loader(EntryPoints("1 MB", {str(tmp_path / "rows.npz")!r})), 1)
"""
    )
    assert known(tmp_path / "rows.npz").images > 0


def test_two_processes_add_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    one, two = EntryPoints("1 MB", path), EntryPoints("1 MB", path)  # as of two processes: both begin with nothing
    assert np.array_equal(one.native.secrets, two.native.secrets)
    for number, points in enumerate((one, two)):
        points.native.add(*of(number))
        points.save()
    assert known(path).images == 2
    content = sidecar.parse_content(path.read_bytes(), str(path))
    assert sorted(content["keys"].tolist()) == [0, 1]


def of(key: int) -> tuple[Any, ...]:
    numbers = np.array([key], np.uint64), np.array([2], np.uint32), np.array([8, 24], np.uint32)
    return *numbers, np.zeros((2, 3), np.int16)


def test_a_disk_that_is_full_is_said_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints("1 MB", file)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    before = file.read_bytes()
    points.native.add(*of(1))
    with pytest.warns(UserWarning, match="cannot be written to .*rows.npz .No space left"):
        points.save()
    points.native.add(*of(2))
    points.save()
    assert file.read_bytes() == before and list(file.parent.iterdir()) == [file]


def rewritten(path: Path, **changes: Any) -> Path:
    """The file with other arrays, and the hash that belongs to them."""
    content = sidecar.parse_content(path.read_bytes(), str(path)) | changes
    digest = np.frombuffer(sidecar._digest_of_content(content), np.uint8)
    np.savez(path, version=np.array(1), digest=digest, **content)
    return path


def test_what_is_refused(file: Path) -> None:
    whole = file.read_bytes()
    held: dict[str, Any] = sidecar.parse_content(whole, str(file))
    backwards = held["bits"].copy()
    backwards[:2] = backwards[1::-1]
    many = np.array([*held["counts"][:-1], 9000], np.uint32)
    for changes in (
        {"bits": held["bits"][:-1]},
        {"bits": backwards},
        {"counts": held["counts"] * 0},
        {"counts": many},
        {"keys": held["keys"][1:]},
        {"keys": held["keys"].astype(np.int64)},
        {"dc": held["dc"][:, :2].copy()},
        {"secrets": held["secrets"][:4]},
    ):
        with pytest.raises(ValueError, match=r"rows\.npz is damaged: its numbers contradict"):
            EntryPoints("1 MB", rewritten(file, **changes))
        file.write_bytes(whole)
    np.savez(file, version=np.array(1), digest=np.zeros(32, np.uint8), **held)
    with pytest.raises(ValueError, match="its numbers contradict"):
        EntryPoints("1 MB", file)
    np.savez(file, version=np.array(2), **held)
    with pytest.raises(ValueError, match="its version is 2, not 1; remove it"):
        EntryPoints("1 MB", file)
    np.savez_compressed(file, version=np.array(1), digest=np.zeros(32, np.uint8), **held)
    with pytest.raises(ValueError, match="it is compressed"):
        EntryPoints("1 MB", file)
    np.savez(file, version=np.array(1), digest=np.zeros(32, np.uint8), **held | {"keys": np.array([print], object)})
    with pytest.raises(ValueError, match="allow_pickle=False"):
        EntryPoints("1 MB", file)
    with zipfile.ZipFile(file, "w") as archive:  # a header that promises an array of exabytes
        head = b"\x93NUMPY\x01\x00v\x00{'descr': '<u8', 'fortran_order': False, 'shape': (1152921504606846975,), }"
        archive.writestr("version.npy", head.ljust(127) + b"\n")
    for data in (b"", b"PK", whole[:-30], file.read_bytes()):
        file.write_bytes(data)
        with pytest.raises(ValueError, match=r"rows\.npz holds no entry points, or it is damaged"):
            EntryPoints("1 MB", file)


def test_any_byte_that_flips_is_refused_or_changes_nothing(file: Path) -> None:
    whole = file.read_bytes()
    held = sidecar.parse_content(whole, str(file))
    refused = 0
    for at in np.random.default_rng(1).integers(0, len(whole), 300).tolist():
        data = bytearray(whole)
        data[at] ^= 1 << at % 8
        try:
            found = sidecar.parse_content(bytes(data), "file")
        except ValueError:
            refused += 1
            continue
        assert all(np.array_equal(found[name], held[name]) for name in held)
    assert refused > 200


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(OSError, match="a"):
        EntryPoints("1 MB", tmp_path / "a" / "rows.npz")
