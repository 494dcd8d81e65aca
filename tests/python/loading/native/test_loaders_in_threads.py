"""Several loaders at once in several threads: each delivers its own batches, and can be closed by another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from headrace import DataLoader
from headrace import transforms as T
from support import WATCHDOG_S, assert_same, blobs, train

THREADS, SAMPLES = 4, 24


def turned(image: Any) -> Any:
    return image.rotate(90)


def in_threads(work: Callable[[int], None]) -> None:
    """Calls `work` with 0, 1, ... in threads that begin together; raises the first error."""
    errors: list[BaseException] = []
    begin = threading.Barrier(THREADS)

    def one(number: int) -> None:
        try:
            begin.wait(timeout=WATCHDOG_S)
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=WATCHDOG_S)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


@pytest.mark.parametrize("step", [None, turned], ids=["native", "a Python step"])
@pytest.mark.parametrize("workers", [0, 2])
def test_each_loader_delivers_its_own_batches(workers: int, step: Any) -> None:
    transform = train(24) if step is None else T.Compose([step, T.RandomResizedCrop(24), T.ToTensor()])
    data = blobs(SAMPLES, transform)
    make = lambda seed: DataLoader(data, 5, shuffle=True, seed=seed, num_workers=workers)  # noqa: E731
    want = [[batch for _ in range(3) for batch in loader] for loader in map(make, range(THREADS))]
    got: dict[int, list[Any]] = {}

    def work(number: int) -> None:
        loader = make(number)
        got[number] = [batch for _ in range(3) for batch in loader]
        loader.close()

    in_threads(work)
    for number in range(THREADS):
        assert_same(got[number], want[number])


def test_a_loader_is_closed_while_other_threads_iterate_over_it() -> None:
    """A thread that asks gets whole batches until the loader is closed, and one clear error or the end after it."""
    make = lambda: DataLoader(blobs(SAMPLES, train(24)), 2, num_workers=2, seed=1)  # noqa: E731
    want = {int(batch[1][0]): batch for batch in make()}
    assert len(want) == SAMPLES // 2
    for _ in range(5):
        loader = make()
        batches = iter(loader)
        taken: list[Any] = []

        def work(number: int, loader: Any = loader, batches: Any = batches, taken: list[Any] = taken) -> None:
            if number == 0:
                loader.close()
                return
            try:
                for batch in batches:
                    taken.append(batch)
            except RuntimeError as error:
                assert "closed" in str(error)

        in_threads(work)
        assert len({int(labels[0]) for _, labels in taken}) == len(taken)  # no batch twice
        assert_same(taken, [want[int(labels[0])] for _, labels in taken])
