"""If memory runs out or a stream is captured, the next call retries the same batch: none is lost."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

from headrace import DataLoader, EncodedImages
from headrace._engine import device_engine
from headrace._engine.device_engine import FusedEngine
from headrace._engine.image_engine import ImageEngine
from headrace._recipe.draws.draws import Draws
from support import assert_same, pictures, train

SAMPLES, BATCH = 48, 8


def loader(**options: Any) -> DataLoader:
    data = EncodedImages(list(pictures(24)) * 2, list(range(SAMPLES)), train(32))
    return DataLoader(data, BATCH, seed=5, **{"num_workers": 2} | options)


def failing(function: Callable[..., Any], calls: set[int], error: Exception) -> Callable[..., Any]:
    """`function`, which raises `error` in the calls of these numbers."""
    count = 0

    def called(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count in calls:
            raise error
        return function(*arguments, **options)

    return called


def all_of(iterator: Any, kind: type[Exception]) -> tuple[list[Any], int]:
    """All batches, with a new call after each error, and the number of errors."""
    batches: list[Any] = []
    errors = 0
    while True:
        try:
            batches.append(next(iterator))
        except StopIteration:
            return batches, errors
        except kind:
            errors += 1
            assert errors < 20


@pytest.mark.parametrize("where", ["submit", "tensor", "move_targets"])
@pytest.mark.parametrize("options", [{}, {"device": "emulated"}, {"num_workers": 0}], ids=str)
@pytest.mark.parametrize("calls", [{1}, {3}, {3, 4, 7, 8, 9}], ids=str)
def test_no_memory_for_a_batch(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], calls: set[Any], where: str
) -> None:
    want = list(loader(**options))
    kind = FusedEngine if "device" in options else ImageEngine
    monkeypatch.setattr(kind, where, failing(getattr(kind, where), calls, torch.OutOfMemoryError("no memory left")))
    batches, errors = all_of(iter(loader(**options)), torch.OutOfMemoryError)
    assert_same(batches, want)
    assert where == "submit" or errors == len(calls)  # a batch submitted ahead is retried before its error is raised


def test_no_memory_for_random_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    want = list(loader())
    monkeypatch.setattr(Draws, "batch", failing(Draws.batch, {2, 3, 5}, MemoryError()))
    batches, _ = all_of(iter(loader()), MemoryError)
    assert_same(batches, want)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_no_memory_for_a_batch_with_bad_samples(monkeypatch: pytest.MonkeyPatch, on_error: str) -> None:
    files = list(pictures(24)) * 2
    files[9] = files[20] = b"no image"
    data = EncodedImages(files, list(range(SAMPLES)), train(32))
    options: dict[str, Any] = {"batch_size": BATCH, "seed": 5, "num_workers": 2, "on_error": on_error, "max_errors": 2}
    with pytest.warns(UserWarning, match="2 samples"):
        want = list(DataLoader(data, **options))
    monkeypatch.setattr(
        ImageEngine,
        "move_targets",
        failing(ImageEngine.move_targets, {2, 4, 5}, torch.OutOfMemoryError("no memory left")),
    )
    with pytest.warns(UserWarning, match="2 samples"):  # counted once, whatever the number of retries
        batches, errors = all_of(iter(DataLoader(data, **options)), torch.OutOfMemoryError)
    assert_same(batches, want)
    assert errors == 3


def test_what_could_not_be_begun_lets_go_of_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[weakref.ref[torch.Tensor]] = []
    empty = FusedEngine._allocate_batch

    def refuse(self: FusedEngine, count: int, **options: Any) -> torch.Tensor:
        memory = empty(self, count, **options)
        alive.append(weakref.ref(memory))
        raise MemoryError

    monkeypatch.setattr(FusedEngine, "_allocate_batch", refuse)
    iterator = iter(loader(device="emulated"))
    for _ in range(3):
        with pytest.raises(MemoryError):
            next(iterator)
    assert len(alive) > 3 and all(memory() is None for memory in alive)


def test_another_error_is_one_batchs(monkeypatch: pytest.MonkeyPatch) -> None:
    want = list(loader())
    monkeypatch.setattr(ImageEngine, "submit", failing(ImageEngine.submit, {3}, OSError("once")))
    batches, errors = all_of(iter(loader()), OSError)
    assert errors == 1
    assert_same(batches, want[:2] + want[3:])


def test_a_stream_that_is_captured_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    want = list(loader(device="emulated"))
    iterator = iter(loader(device="emulated"))
    captured = False

    def current_stream(device: torch.device) -> int:
        if captured:
            raise RuntimeError("the current stream is being captured into a CUDA graph")
        return 0

    monkeypatch.setattr(device_engine, "current_stream", current_stream)
    batches = []
    for _ in want:
        captured = True
        with pytest.raises(RuntimeError, match="being captured"):
            next(iterator)
        captured = False
        batches.append(next(iterator))
    assert_same(batches, want)
    assert next(iterator, None) is None
