"""Byte ranges of files: the oracle's batches, whatever the order of the ranges, and errors for files that changed."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace import DataLoader, SampleError
from headrace.datasets.sources.byte_ranges import Ranges
from support import assert_same, blobs, descriptors, eventually, pictures, train

COUNT = 24


def write(folder: Path, files: int = 3) -> tuple[list[Path], np.ndarray, np.ndarray, np.ndarray]:
    """`pictures`, dealt out to some files, with odd bytes between them."""
    paths = [folder / f"{i}.bin" for i in range(files)]
    parts: list[bytes] = [b"x" * (i + 1) for i in range(files)]
    offsets, lengths = [], []
    for i, data in enumerate(pictures(COUNT)):
        offsets.append(len(parts[i % files]))
        lengths.append(len(data))
        parts[i % files] += data + b"\xff\xd8" * (i % 3)
    for path, part in zip(paths, parts, strict=True):
        path.write_bytes(part)
    return paths, np.arange(COUNT) % files, np.array(offsets), np.array(lengths)


@pytest.fixture
def ranges(tmp_path: Path) -> Ranges:
    names = [f"picture {i}" for i in range(COUNT)]
    return Ranges(*write(tmp_path), labels=range(COUNT), transform=train(32), names=names)


@pytest.mark.parametrize("device", [None, "emulated"])
def test_batches_are_those_of_the_same_images_in_memory(ranges: Ranges, device: str | None) -> None:
    options: dict[str, Any] = {"batch_size": 5, "shuffle": True, "seed": 3, "num_workers": 2, "device": device}
    loader = DataLoader(ranges, **options)
    assert loader.native
    assert assert_same(loader, list(DataLoader(blobs(COUNT), **options))) == 5
    assert assert_same(loader, list(loader.reference())) == 5
    assert [ranges.read(i) for i in range(COUNT)] == list(pictures(COUNT))


def test_a_pickled_dataset_reads_the_same(ranges: Ranges, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    copy = pickle.loads(pickle.dumps(ranges))
    assert copy.fingerprint() == ranges.fingerprint()
    assert [copy.read(i) for i in range(COUNT)] == list(pictures(COUNT))


def test_relative_paths_survive_a_change_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths, files, offsets, lengths = write(tmp_path)
    monkeypatch.chdir(tmp_path)
    ranges = Ranges([path.name for path in paths], files, offsets, lengths, transform=train(32))
    monkeypatch.chdir("/")
    loader = DataLoader(ranges, 8, num_workers=1)
    assert assert_same(loader, list(loader.reference())) == 3


def test_files_are_closed_with_the_table(ranges: Ranges) -> None:
    before = descriptors()
    loader = DataLoader(ranges, 4, num_workers=2)
    list(loader)
    del loader
    assert eventually(lambda: descriptors() <= before)


@pytest.mark.parametrize("damage", ["truncated", "changed"])
def test_a_file_that_changed_is_one_clear_error(ranges: Ranges, damage: str) -> None:
    path = Path(ranges.paths[0])
    if damage == "truncated":
        os.truncate(path, int(ranges.offsets[COUNT - 3]) + 1)
    else:
        path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(SampleError, match=rf"0\.bin:picture 21\): .*offset {ranges.offsets[21]}") as caught:
        list(DataLoader(ranges, 1, sampler=[21], num_workers=1))
    assert damage in str(caught.value) and "create the dataset again" in str(caught.value)
    for read in (ranges.read, ranges.file):  # all bytes, and a file of which parts are read
        with pytest.raises(OSError, match=rf"0\.bin .*{damage}"):
            read(21)


@pytest.mark.parametrize("damage", ["truncated", "changed"])
def test_a_file_that_changes_between_two_reads_of_its_parts(ranges: Ranges, damage: str) -> None:
    path, data = Path(ranges.paths[0]), ranges.read(21)
    part = ranges.file(21)
    assert part.read(0, 4) == data[:4] and part.read(len(data) - 2, 9) == data[-2:]
    whole = path.read_bytes()
    path.write_bytes(whole[: int(ranges.offsets[21]) + 6] if damage == "truncated" else whole + b"more")
    said = f"ends 6 bytes after offset {ranges.offsets[21]}, where the sample has {len(data)} bytes: it was truncated"
    with pytest.raises(OSError, match=said if damage == "truncated" else "was changed after it was indexed"):
        part.read(0, 4)


def test_short_reads_are_continued(ranges: Ranges, monkeypatch: pytest.MonkeyPatch) -> None:
    data, read = ranges.read(21), os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, count, offset: read(descriptor, min(count, 100), offset))
    assert ranges.read(21) == ranges.file(21).read(0, len(data)) == data
    assert ranges.file(21).read(3, 150) == data[3:153]


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    paths, files, offsets, lengths = write(tmp_path)
    ranges = Ranges(paths, files, offsets, lengths, transform=train(32))
    paths[1].unlink()
    with pytest.raises(SampleError, match=r"1\.bin:offset 2\): No such file"):
        list(DataLoader(ranges, 1, sampler=[1], num_workers=1))
    with pytest.raises(FileNotFoundError, match=r"1\.bin"):
        Ranges(paths, files, offsets, lengths)


def test_arrays_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    paths, file_of, offsets, lengths = write(tmp_path)
    with pytest.raises(ValueError, match="differ in length"):
        Ranges(paths, file_of, offsets[1:], lengths)
    with pytest.raises(ValueError, match="differ in length"):
        Ranges(paths, file_of, offsets, lengths, labels=[1])
    with pytest.raises(IndexError, match="outside its file"):
        Ranges(paths, file_of, offsets + 10**9, lengths).blob_table()
    with pytest.raises(IndexError, match="in no file"):
        Ranges(paths, file_of + 3, offsets, lengths).blob_table()
