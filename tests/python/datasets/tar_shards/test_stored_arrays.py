"""Arrays of .npz files: what numpy reads, or an error where numpy has one."""

from __future__ import annotations

import io
import random
import zipfile
from typing import Any

import numpy as np
import pytest

from headrace.datasets.tar_shards.npz_reader import stored_arrays

ARRAYS: dict[str, Any] = {
    "number": np.array(7),
    "flag": np.array(True),
    "none": np.empty(0, np.uint64),
    "one": np.array([3], np.int64),
    "many": np.arange(1000, dtype=np.uint32),
    "texts": np.array([b"jpg", b"cls"], np.bytes_),
    "table": np.arange(6.0).reshape(2, 3),
    "turned": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "big": np.arange(4, dtype=">i4"),
}


def written(*, compressed: bool = False, **arrays: Any) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize("compressed", [False, True])
def test_what_numpy_reads(compressed: bool) -> None:
    data = written(compressed=compressed, **ARRAYS)
    found = stored_arrays(data)
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert np.array_equal(found[name], array)


def test_pickles_are_refused() -> None:
    with pytest.raises(ValueError, match="allow_pickle=False"):
        stored_arrays(written(one=np.array([{}], object)))


def member(header: bytes, data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("one.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data)
    return file.getvalue()


@pytest.mark.parametrize(
    ("header", "data"),
    [
        (b"{'descr': '<u4', 'fortran_order': False, 'shape': (9,), }\n", b"1234"),  # too few bytes
        (b"{'descr': '<u3', 'fortran_order': False, 'shape': (1,), }\n", b"123"),
        (b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", b"12345678"),
        (b"{'descr': '<u4', 'fortran_order': False, 'shape': (99999999999999999999,), }\n", b"1234"),
        (b"{'descr': '<u4', 'fortran_order': False, 'shape': (1,), }", b"1234"),  # its end is the data's first byte
        (b"__import__('os')", b""),
        (b"", b""),
    ],
)
def test_headers_that_lie(header: bytes, data: bytes) -> None:
    try:
        with np.load(io.BytesIO(member(header, data)), allow_pickle=False) as file:
            expected = file["one"]
    except Exception:
        with pytest.raises(ValueError):
            stored_arrays(member(header, data))
    else:
        assert np.array_equal(stored_arrays(member(header, data))["one"], expected)


def test_damage_is_what_it_is_for_numpy() -> None:
    """Every changed byte: the same arrays as numpy's reader, or both have an error."""
    whole = written(**ARRAYS)
    rng = random.Random(4)
    for _ in range(400):
        data = bytearray(whole)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            with np.load(io.BytesIO(bytes(data)), allow_pickle=False) as file:
                expected = {name: file[name] for name in file.files}
        except Exception:
            expected = {}
        try:
            found = stored_arrays(bytes(data))
        except ValueError:
            found = {}
        assert found.keys() == expected.keys() or not expected
        for name, array in expected.items():
            assert found[name].tobytes() == array.tobytes() and found[name].dtype == array.dtype
