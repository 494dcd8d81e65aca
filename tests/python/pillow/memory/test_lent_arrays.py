"""Arrays over memory that Python code lends are as NumPy's own of `__array_interface__`, and keep what lends it."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import torch

from headrace._base.native import core

DTYPES = ("u1", "i1", "f4", "f8", "i8", "?", ">i2", "c8", [("x", "i4"), ("y", "f4")])


class Owner:
    """Lends memory, and notes when nothing refers to it."""

    def __init__(self, size: int) -> None:
        self.held = np.arange(size, dtype=np.uint8)
        self.address: int = self.held.ctypes.data


class Described:
    """Lends the same by NumPy's protocol."""

    def __init__(self, of: Owner, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        data = of.address, False
        self.of = of
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "version": 3,
            "data": data,
            "descr": dtype.descr,
        }


@pytest.mark.parametrize("shape", [(6,), (2, 3), (), (0, 4), (1, 2, 1, 3)])
@pytest.mark.parametrize("kind", DTYPES, ids=str)
def test_an_array_is_as_numpys(kind: Any, shape: tuple[int, ...]) -> None:
    dtype, owner = np.dtype(kind), Owner(64)
    ours = core.array_over(owner.address, shape, dtype, owner)
    theirs = np.asarray(Described(owner, shape, dtype))
    assert type(ours) is np.ndarray and (ours.shape, ours.strides) == (theirs.shape, theirs.strides)
    assert ours.dtype == theirs.dtype == dtype and ours.tobytes() == theirs.tobytes()
    assert str(ours.flags) == str(theirs.flags) and ours.flags.writeable and not ours.flags.owndata
    base: object = ours.base
    assert base is owner and (ours.ctypes.data == owner.address or not ours.size)


def test_values_are_written_to_the_memory() -> None:
    owner = Owner(12)
    array = core.array_over(owner.address, (3, 4), np.dtype(np.uint8), owner)
    array[1, 2] = 77
    torch.from_numpy(array)[2, 3] = 78
    assert owner.held.tolist() == [0, 1, 2, 3, 4, 5, 77, 7, 8, 9, 10, 78]
    assert pickle.loads(pickle.dumps(array)).tolist() == array.tolist()


def test_the_owner_lives_as_long_as_the_array_and_its_views() -> None:
    owner = Owner(64)
    references, lives = sys.getrefcount(owner), weakref.ref(owner)
    array = core.array_over(owner.address, (8, 8), np.dtype(np.uint8), owner)
    assert sys.getrefcount(owner) == references + 1
    del owner
    kept: list[Any] = [
        array[1:, 2],
        memoryview(array),  # type: ignore[arg-type]
        torch.from_numpy(array),
        array.view(np.int64),
    ]
    del array
    while kept:
        gc.collect()
        assert lives() is not None
        kept.pop()
    assert lives() is None


@pytest.mark.parametrize("shape", [(-1,), (1 << 40, 1 << 40), ("2",), (2.5,)])
def test_a_shape_that_is_none(shape: Any) -> None:
    owner, dtype = Owner(8), np.dtype(np.uint8)
    references, of_dtype = sys.getrefcount(owner), sys.getrefcount(dtype)
    with pytest.raises((ValueError, TypeError)):
        core.array_over(owner.address, shape, dtype, owner)
    gc.collect()
    assert sys.getrefcount(owner) == references and sys.getrefcount(dtype) <= of_dtype


def test_threads_lend_and_let_go() -> None:
    owner, wrong = Owner(4096), list[int]()

    def use() -> None:
        for _ in range(3000):
            array = core.array_over(owner.address, (64, 64), np.dtype(np.uint8), owner)
            if array[1, 0] != 64:
                wrong.append(1)

    references = sys.getrefcount(owner)
    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del threads
    gc.collect()
    assert not wrong and sys.getrefcount(owner) == references
