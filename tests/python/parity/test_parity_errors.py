"""Exceptions and timeouts while a batch is made: of torch's type, and on the fallback with torch's message."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from both import COUNT, TINY, assert_parity, seen
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from support import TENSOR, let_go, pictures, truncated

pytestmark = pytest.mark.processes


class Odd(Exception):
    """An exception that cannot be constructed from one message."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(code, words)


class Failing(Dataset[Any]):
    def __init__(self, error: BaseException | type[BaseException], at: int = 4) -> None:
        self.error, self.at = error, at

    def __len__(self) -> int:
        return 9

    def __getitem__(self, index: int) -> int:
        if index == self.at:
            raise self.error
        return index


ERRORS: dict[str, Any] = {
    "value": ValueError("no such thing"),
    "key": KeyError("name"),
    "file": FileNotFoundError(2, "No such file or directory", "a.jpg"),
    "words": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    "odd": Odd(3, "words"),
    "class": RuntimeError,
    "stop": StopIteration("enough"),
    "memory": MemoryError("too much"),
    "assertion": AssertionError(),
}


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_a_sample(name: str, workers: int) -> None:
    """The error, and the batches that later calls of next() return, are torch's."""

    def run(kind: Any) -> Any:
        iterator, met = iter(kind(Failing(ERRORS[name]), 3, num_workers=workers)), []
        for _ in range(5):
            try:
                met.append(next(iterator))
            except Exception as error:
                met.append((type(error).__name__, str(let_go(error))))
        return met

    assert_parity(run)


def test_an_index_that_is_none() -> None:
    assert_parity(lambda kind: list(kind([1, 2, 3], sampler=[0, 5], batch_size=1)), fails=True)
    assert_parity(lambda kind: list(kind({"a": 1}, sampler=["a", "b"], batch_size=1)), fails=True)


class Slow(Dataset[int]):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> int:
        time.sleep(0.8)
        return index


def test_a_timeout() -> None:
    def run(kind: Any) -> Any:
        return list(kind(Slow(), num_workers=1, timeout=0.3))

    assert "timed out after 0.3 seconds" in assert_parity(run, fails=True)["error"][1]


class Dying(Dataset[int]):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> int:
        import os

        os._exit(7)


def test_a_worker_that_dies() -> None:
    errors = [
        seen(lambda kind: list(kind(Dying(), num_workers=1)), kind)["error"] for kind in (TorchDataLoader, DataLoader)
    ]
    assert errors[0][0] is errors[1][0] is RuntimeError
    assert all("exited unexpectedly" in words for _, words in errors)


BROKEN = (*pictures(4), truncated(pictures(1)[0]), b"no image", *pictures(COUNT)[6:])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_picture_of_a_native_dataset_raises_torchs_type(workers: int) -> None:
    """headrace raises a subclass of torch's type, whose message names the sample. Later batches follow in both."""
    data = EncodedImages(BROKEN, list(range(COUNT)), TINY)
    met: list[list[Any]] = []
    for kind in (TorchDataLoader, DataLoader):
        iterator, seen_here = iter(kind(data, 3, num_workers=workers)), []
        for _ in range(5):
            try:
                seen_here.append(next(iterator)[1].tolist())
            except Exception as error:
                seen_here.append(let_go(error))
        met.append(seen_here)
    theirs, ours = met
    for a, b in zip(theirs, ours, strict=True):
        assert isinstance(b, type(a)) if isinstance(a, Exception) else a == b
    assert sum(isinstance(one, Exception) for one in theirs) == 1


def test_a_picture_too_small_raises_torchs_type() -> None:
    data = EncodedImages(pictures(3), None, T.Compose([T.RandomCrop(500), *TENSOR]))
    for kind in (TorchDataLoader, DataLoader):
        with pytest.raises(ValueError, match=r"Required crop size \(500, 500\) is larger than input image size"):
            next(iter(kind(data)))


def test_a_sampler_that_fails() -> None:
    def broken() -> Any:
        yield 1
        yield 2
        raise LookupError("no third")

    for make in (
        lambda: EncodedImages(pictures(4), [0, 1, 2, 3], TINY),
        lambda: torch.utils.data.TensorDataset(torch.arange(4)),
    ):
        for workers in (0, 1):

            def run(kind: Any, make: Any = make, workers: int = workers) -> Any:
                iterator, met = iter(kind(make(), 1, sampler=broken(), num_workers=workers)), []
                for _ in range(3):
                    met.append(next(iterator))
                return met

            # With workers torch raises while it prefetches, before the first batch; headrace raises at the third.
            if workers == 0:
                assert_parity(run, fails=True)
            for kind in (TorchDataLoader, DataLoader):
                with pytest.raises(LookupError, match="no third"):
                    run(kind)
