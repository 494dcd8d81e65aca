"""The code that drives nvJPEG, from Python: whole epochs through the library's double, which the C++ tests build."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import DataLoader
from headrace._engine import destination as destinations
from support import assert_same, blobs, eventually, output_of, train

DOUBLE = Path(__file__).parents[4] / "build" / "dev" / "libfake_nvjpeg.so"

pytestmark = pytest.mark.skipif(not DOUBLE.exists(), reason=f"no {DOUBLE}: `make test-cpp` builds it")


class Record(ctypes.Structure):
    """FakeRecord of tests/cpp/fake_nvjpeg/fake_nvjpeg.h."""

    _fields_ = tuple(
        (name, ctypes.c_int) for name in ("handles", "states", "calls", "images", "largest", "gray", "hardware")
    )


class Behaviour(ctypes.Structure):
    """FakeBehaviour of tests/cpp/fake_nvjpeg/fake_nvjpeg.h."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("major", "minor", "patch")),
        *((name, ctypes.c_int) for name in ("property", "create", "info", "preallocate", "initialize")),
        *((name, ctypes.c_int) for name in ("engines", "states", "bad_image")),
        ("others_written", ctypes.c_bool),
        *((name, ctypes.c_void_p) for name in ("device", "current", "copy", "fail_later")),
    )


def behave(**statuses: int) -> None:
    """Sets how the double behaves from now on."""
    usual = {"major": 13, "minor": 3, "patch": 2, "engines": 7, "states": 1 << 20, "bad_image": 3}
    ctypes.CDLL(str(DOUBLE)).fake_nvjpeg_behave(ctypes.byref(Behaviour(**{**usual, **statuses}, others_written=True)))


def record() -> Record:
    """The double's counters in this process so far; fails if a call broke a rule of nvjpeg.h."""
    library = ctypes.CDLL(str(DOUBLE))
    library.fake_nvjpeg_complaint.restype = ctypes.c_char_p
    assert library.fake_nvjpeg_complaint() == b""
    seen = Record()
    library.fake_nvjpeg_record(ctypes.byref(seen))
    return seen


@pytest.fixture(autouse=True)
def _double(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HEADRACE_NVJPEG_DOUBLE", str(DOUBLE))
    yield
    behave()


@pytest.mark.parametrize(("decoder", "lanes"), [("hardware", 2), ("cuda", 4)])
def test_epochs_are_the_oracles(decoder: str, lanes: int) -> None:
    data = blobs(transform=train(48))
    before = record()
    loader = DataLoader(
        data, 5, seed=3, shuffle=True, num_workers=2, device="emulated", decoder=decoder, deterministic=True
    )
    assert "with a stand-in for nvJPEG" in str(loader.explain())
    for epoch in range(2):
        loader.set_epoch(epoch)
        assert_same(loader, list(loader.reference()))
    module, _ = destinations.import_gpu_module()
    assert module is not None
    routed = sum(module.route(file) is None for file in data.blobs)
    after = record()
    assert (after.handles, after.states) == (before.handles + 1, before.states + lanes)
    images = after.images - before.images
    assert images == 2 * routed > len(data)
    assert after.gray > before.gray
    assert after.hardware - before.hardware == (images if decoder == "hardware" else 0)
    del loader
    gc.collect()  # torch's tree_flatten, which compares batches, leaves cycles that hold them
    assert eventually(lambda: (record().handles, record().states) == (before.handles, before.states), seconds=60)


def test_a_decoder_that_refuses_everything_is_told_of_once() -> None:
    data = blobs(160, train(48))
    loader = DataLoader(data, 8, seed=3, num_workers=2, device="emulated", decoder="hardware", deterministic=True)
    expected = list(loader.reference())
    behave(initialize=6)
    sentence = r"refused all of the \d+ files .*begins no batch: execution failed\), so the CPU .*decoder='cpu'"
    with pytest.warns(RuntimeWarning, match=sentence) as told:
        assert_same(loader, expected)
    assert len(told) == 1


def test_a_double_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_NVJPEG_DOUBLE", "/nonexistent/libnvjpeg.so")
    loader = DataLoader(blobs(transform=train(32)), 4, device="emulated", decoder="hardware")
    with pytest.raises(RuntimeError, match=r"/nonexistent/libnvjpeg\.so"):
        next(iter(loader))


LIVE = """
import os
from headrace import DataLoader
from support import blobs, train
iterator = iter(DataLoader(blobs(transform=train(32)), 2, num_workers=2, device="emulated", decoder="hardware"))
next(iterator)
"""
FORK = """
child = os.fork()
if child == 0:
    del iterator
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
for _ in iterator:
    pass
"""


@pytest.mark.parametrize("rest", ["", FORK], ids=["exit with a live iterator", "fork with a live iterator"])
def test_ends_of_processes(rest: str) -> None:
    assert output_of(LIVE + rest, "-W", "ignore::DeprecationWarning") == ""  # about a fork with live threads
