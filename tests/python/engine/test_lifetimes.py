"""Iterators and loaders that are abandoned, dropped, closed, copied or nested: nothing hangs, leaks or changes."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headrace import DataLoader, EncodedImages, ImageFiles, ImageFolder
from headrace._base.native import core
from headrace._engine.image_engine import ImageEngine
from headrace._recipe.images.memory_format import Layout
from support import (
    assert_same,
    blobs,
    descriptors,
    evaluation,
    eventually,
    pictures,
    recipe_of,
    resident_mb,
    threads,
    threads_without_ours,
    train,
    write_folder,
)

WORKERS = pytest.mark.parametrize("workers", [0, 2])


@WORKERS
def test_left_in_the_middle_and_iterated_again(workers: int) -> None:
    loader, other = (DataLoader(blobs(), 3, True, seed=1, num_workers=workers) for _ in range(2))
    for _ in loader:
        break
    next(iter(other))
    assert_same(loader, list(other))


@WORKERS
def test_two_loaders_and_two_iterators_at_once(workers: int) -> None:
    one = DataLoader(blobs(), 3, True, seed=1, num_workers=workers)
    two = DataLoader(blobs(transform=evaluation(20, 16)), 4, num_workers=workers)
    expected = [list(one.reference()), list(two.reference())]
    batches = list(zip(one, two, strict=False))
    assert_same((a for a, _ in batches), expected[0][: len(batches)])
    assert_same((b for _, b in batches), expected[1][: len(batches)])
    nested = 0
    for outer in two:
        for inner in two:
            nested += 1
            assert inner[0].shape == outer[0].shape
    assert nested == len(two) ** 2


def test_the_memory_of_a_dropped_batch_is_not_written_any_more() -> None:
    """An interrupt between two calls may drop a batch; its memory may be used for something else right after."""
    recipe = recipe_of(DataLoader(blobs()))
    table = core.BlobTable.of_memory(list(pictures()))
    draws = np.full((24, len(recipe.columns)), 0.5)
    for count in (1, 3):
        engine = ImageEngine(recipe, Layout.PLANAR, threads=count, slots_kept=1)
        for _ in range(20):
            memory = torch.zeros(24, 3, recipe.height, recipe.width)
            engine._pipeline.submit(table, np.arange(24), draws, memory)  # the result is dropped at once
            memory.fill_(7)
            time.sleep(0.01)
            assert memory.eq(7).all()
        engine.close()


@WORKERS
def test_an_exception_in_the_loop(workers: int) -> None:
    before = threads_without_ours()
    loader = DataLoader(blobs(), 3, num_workers=workers)
    with pytest.raises(ZeroDivisionError):
        for _ in loader:
            raise ZeroDivisionError
    assert eventually(lambda: threads() <= before)
    assert len(list(loader)) == 8


@pytest.mark.parametrize("pillow", [False, True])
@pytest.mark.parametrize("persistent", [False, True])
def test_what_is_dropped_is_collected(persistent: bool, pillow: bool) -> None:
    """Threads end with the iterator, or with the loader if they persist, by reference counts alone."""
    before = threads_without_ours()
    gc.disable()
    try:
        data = EncodedImages([pictures()[3]] * 24, None, train(16)) if pillow else blobs()
        loader = DataLoader(data, 3, num_workers=2, persistent_workers=persistent)
        iterator = iter(loader)
        batch = next(iterator)
        assert threads() > before + 1
        gone: list[weakref.ref[Any]] = [weakref.ref(iterator)]
        del iterator
        assert gone[0]() is None
        assert persistent or eventually(lambda: threads() <= before)
        engine: Any = loader._engine
        lane = weakref.ref(engine._lanes[0])
        gone = [weakref.ref(one) for one in (loader, engine)]
        del engine
        del loader, data
        assert [one() for one in gone] == [None] * 2
        assert eventually(lambda: lane() is None)  # a thread of it may be at its last job
        assert eventually(lambda: threads() <= before)
        assert torch.isfinite(batch if pillow else batch[0]).all()  # the caller still owns it
    finally:
        gc.enable()


def test_threads_end_with_the_epoch() -> None:
    before = threads_without_ours()
    loader = DataLoader(blobs(), 3, num_workers=3)
    list(loader)
    assert eventually(lambda: threads() <= before)


def test_a_dropped_iterator_does_not_finish_what_is_in_flight() -> None:
    many = EncodedImages(pictures() * 40, None, train(64))
    loader = DataLoader(many, 240, num_workers=1, prefetch_factor=4)
    iterator = iter(loader)
    next(iterator)
    engine = loader._engine
    del iterator
    assert engine is not None
    assert {name: items for name, items, _ in engine.stages()}["read"] < 4 * 240


@WORKERS
def test_close(workers: int) -> None:
    before = threads_without_ours()
    loader = DataLoader(blobs(), 3, num_workers=workers)
    loader.close()
    first: Any = iter(loader)
    second = iter(loader)
    next(first), next(second)
    loader.close()
    assert eventually(lambda: threads() <= before)
    for iterator in (first, second):
        with pytest.raises(RuntimeError, match="this iterator was closed before its end"):
            next(iterator)
    loader.close()
    done = iter(loader)
    assert len(list(done)) == 8
    loader.close()
    with pytest.raises(StopIteration):  # it had come to its end
        next(done)
    first.close()
    first.close()


def test_close_by_another_thread_wakes_who_waits(tmp_path: Path) -> None:
    """A pipe without a writer stands for a file system that does not answer."""
    stuck = tmp_path / "stuck.jpg"
    os.mkfifo(stuck)
    loader = DataLoader(ImageFiles([stuck], None, train(16)), num_workers=1)
    iterator = iter(loader)
    main = threading.main_thread().ident
    assert main is not None

    def waits() -> bool:
        frame = sys._current_frames()[main]
        return "_wait_up_to" in [one.f_code.co_name for one, _ in traceback.walk_stack(frame)]

    def close() -> None:
        if eventually(waits):
            loader.close()

    closer = threading.Thread(target=close)
    closer.start()
    with pytest.raises(RuntimeError, match="closed while a batch was awaited"):
        next(iterator)
    closer.join()
    stuck.open("wb").close()  # lets the reader go


def test_persistent_workers_are_the_same_threads() -> None:
    data = blobs()
    loader = DataLoader(data, 3, True, seed=1, num_workers=2, persistent_workers=True)
    fresh = DataLoader(blobs(), 3, True, seed=1, num_workers=2)
    engines = []
    for _ in range(3):
        assert_same(loader, list(fresh))
        engines.append(loader._engine)
    assert engines[0] is engines[1] is engines[2]
    for _ in loader:
        break
    assert_same(loader, [list(fresh), list(fresh)][1])
    data.transform = train(20)
    assert next(iter(loader))[0].shape[-1] == 32  # torch's workers keep the dataset of the first epoch
    loader.close()
    assert next(iter(loader))[0].shape[-1] == 20


@WORKERS
def test_a_transform_that_is_exchanged_during_an_epoch(workers: int) -> None:
    """With workers the running epoch keeps its transform, as in torch; the next one has the new transform."""
    data = blobs()
    loader = DataLoader(data, 3, num_workers=workers)
    iterator = iter(loader)
    next(iterator)
    data.transform = train(20)
    loader.state_dict(), loader.explain()
    assert {batch[0].shape[-1] for batch in iterator} == {32 if workers else 20}
    assert {batch[0].shape[-1] for batch in loader} == {20}
    loader.close()


@pytest.mark.parametrize("copied", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy, copy.copy])
@pytest.mark.parametrize(
    "options", [{"seed": 3}, {"generator": torch.Generator()}, {}], ids=["seed", "generator", "neither"]
)
def test_copies(copied: Callable[..., Any], options: dict[str, Any], tmp_path: Path) -> None:
    """A copy made in the middle of an epoch delivers the epochs after it; copy and original are independent."""
    if copied is copy.copy and "generator" in options:
        pytest.skip("a shallow copy shares the generator")
    datasets = [
        blobs(),
        ImageFolder(write_folder(tmp_path), train(16)),
        EncodedImages([memoryview(picture) for picture in pictures()], None, train(16)),
    ]
    for data in datasets:
        loader = DataLoader(data, 5, True, num_workers=2, **options)
        list(loader)
        iterator = iter(loader)
        next(iterator)
        state = torch.get_rng_state()
        other = copied(loader)
        expected = list(loader)
        torch.set_rng_state(state)
        assert_same(other, expected)
        assert len(list(iterator)) == len(loader) - 1


def test_an_iterator_is_not_copied() -> None:
    with pytest.raises(TypeError, match="cannot be pickled; pickle the loader"):
        pickle.dumps(iter(DataLoader(blobs())))


@pytest.mark.slow
def test_a_thousand_loaders_leave_nothing_behind(tmp_path: Path) -> None:
    data = ImageFolder(write_folder(tmp_path, 24), train(64))

    def one_batch(i: int) -> None:
        loader = DataLoader(data, 6, True, num_workers=i % 3, persistent_workers=i % 6 == 1)
        next(iter(loader))

    for i in range(60):
        one_batch(i)
    gc.collect()
    before = threads_without_ours(), descriptors(), resident_mb()
    for i in range(1000):
        one_batch(i)
    assert eventually(lambda: threads() <= before[0])
    assert descriptors() == before[1]
    assert resident_mb() - before[2] < 10
