"""One file for the indexes of many shards: what goes in comes out, and damage is noticed."""

from __future__ import annotations

import io
import tarfile
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from headrace._storage.remote.clients.responses import Stamp
from headrace.datasets.tar_shards.joined_index import Known, pack_indexes, unpack_indexes
from headrace.datasets.tar_shards.tar_index import TarIndex, index_of


def indexes(folder: Path) -> list[TarIndex]:
    """Of three shards with different extensions, one of them empty of samples and without an end."""
    made = []
    for number, names in enumerate((["a.jpg", "a.cls", "b.jpg"], [], ["x/y.txt", "x/y.png", "z.json"])):
        path = folder / f"{number}.tar"
        with tarfile.open(path, "w") as tar:
            for name in names or ["nokey"]:
                info = tarfile.TarInfo(name)
                info.size = 1 + len(name)
                tar.addfile(info, io.BytesIO(b"7" * info.size))
        if not names:
            path.write_bytes(path.read_bytes()[:1024])
        made.append(index_of(str(path), ""))
    return made


STAMPS = [Stamp(0, '"tag"'), Stamp(0, ""), Stamp(0, "W/x")]
NAMES = ["0.tar", "1.tar", "é.tar"]


def stamps(made: list[TarIndex]) -> list[Stamp]:
    return [Stamp(int(one.stamp[0]), stamp.tag) for one, stamp in zip(made, STAMPS, strict=True)]


def test_the_same_comes_out(tmp_path: Path) -> None:
    made = indexes(tmp_path)
    found = unpack_indexes(pack_indexes(NAMES, stamps(made), made))
    assert found is not None
    assert list(found) == NAMES
    for one, stamp, index in zip(found.values(), stamps(made), made, strict=True):
        assert one.stamp == stamp
        for field in fields(TarIndex):
            if field.name != "stamp":
                assert np.array_equal(getattr(one.index, field.name), getattr(index, field.name)), field.name
        assert isinstance(one, Known)
        assert one.index.offset.dtype == np.uint64
        assert one.index.sample.dtype == np.uint32
    assert [bool(one.index.has_end) for one in found.values()] == [True, False, True]


@pytest.mark.parametrize(
    "change",
    [
        {"version": np.array(1)},
        {"members": np.array([3, 0, 2])},
        {"members": np.array([2, 1, 3])},
        {"samples": np.array([2, 1, 1])},
        {"key_bytes": np.array([4, 0, -4])},
        {"sizes": np.array([600, 0, 5000])},
        {"tags": np.array([b"x"])},
        {"steps": np.array([0, 5, 1, 0, 0, 1], np.uint8)},
        {"offset": np.full(6, 2**40, np.uint64)},
        {"extension": np.full(6, 9, np.uint32)},
        {"keys": np.array([0], np.uint8)},
        {"number": np.zeros(6, np.float64)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_numbers_that_contradict_each_other_are_noticed(tmp_path: Path, change: dict[str, np.ndarray]) -> None:
    made = indexes(tmp_path)
    with np.load(io.BytesIO(pack_indexes(NAMES, stamps(made), made))) as file:
        held = {name: file[name] for name in file.files}
    file = io.BytesIO()
    np.savez(file, **held)
    assert unpack_indexes(file.getvalue()) is not None
    file = io.BytesIO()
    np.savez(file, **(held | change))
    assert unpack_indexes(file.getvalue()) is None


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    made = indexes(tmp_path)
    data = pack_indexes(NAMES, stamps(made), made)
    for length in range(0, len(data), 97):
        assert unpack_indexes(data[:length]) is None
