"""Several threads, and steps in the middle of a batch, call one iterator: it returns each batch once."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages, ImageArray
from headrace import transforms as T
from support import WATCHDOG_S, assert_same, evaluation, output_of, pictures, train

SAMPLES = 48


def many(transform: Any) -> EncodedImages:
    return EncodedImages(list(pictures(24)) * 2, list(range(SAMPLES)), transform)


def asked_by_threads(iterator: Iterator[Any], count: int = 4) -> list[Any]:
    """The batches that all threads received together. An error in a thread is raised here."""
    batches: list[Any] = []
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            batches.extend(iterator)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return batches


def python_step(image: Any) -> Any:
    return image.rotate(180)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("step", [None, python_step], ids=["native", "a Python step"])
@pytest.mark.parametrize("own_order", [False, True], ids=["", "a generator names the samples"])
def test_threads_share_an_iterator(workers: int, step: Callable[..., Any] | None, own_order: bool) -> None:
    steps = T.Compose([*([step] if step else []), T.RandomResizedCrop(40), T.ToTensor()])
    order: dict[str, Any] = {"sampler": [(7 * i) % SAMPLES for i in range(SAMPLES)]} if own_order else {}
    make = lambda: DataLoader(many(steps), 3, seed=1, num_workers=workers, **order)  # noqa: E731
    want = list(make())
    for _ in range(3):
        loader = make()
        got = asked_by_threads(iter(loader))
        place = {int(batch[1][0]): number for number, batch in enumerate(want)}
        assert_same(sorted(got, key=lambda batch: place[int(batch[1][0])]), want)
        assert loader.state_dict()["epoch"] == 1  # all of them are delivered


def test_two_iterators_of_one_engine_in_two_threads() -> None:
    """Iterators over a device share one engine; without worker threads both callers make samples at the same time."""
    make = lambda: DataLoader(many(train(32)), 3, seed=1, device="emulated")  # noqa: E731
    want = list(make())
    loader, got = make(), {}

    def ask(number: int, iterator: Iterator[Any]) -> None:
        got[number] = list(iterator)

    iterators = [iter(loader)]
    loader.set_epoch(0)
    iterators.append(iter(loader))
    threads = [threading.Thread(target=ask, args=one) for one in enumerate(iterators)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(2):
        assert_same(got[number], want)


class Asking:
    """A step that requests a batch in its nth call."""

    def __init__(self, nth: int) -> None:
        self.nth, self.calls = nth, 0
        self.ask: Callable[[], Any] | None = None
        self.answers: list[Any] = []

    def __call__(self, image: Any) -> Any:
        if self.ask is not None:
            self.calls += 1
            if self.calls == self.nth:
                try:
                    self.answers.append(self.ask()[1].tolist())
                except StopIteration:
                    self.answers.append("end")
        return image


@pytest.mark.parametrize("nth", [1, 10, 48])
def test_a_step_asks_the_iterator_that_waits_for_it(nth: int) -> None:
    met = []
    for kind in (TorchDataLoader, DataLoader):
        asking = Asking(nth)
        iterator = iter(kind(many(T.Compose([T.Resize((8, 8)), asking, T.ToTensor()])), 4))
        asking.ask = lambda iterator=iterator: next(iterator)  # type: ignore[misc]
        met.append(([batch[1].tolist() for batch in iterator], asking.answers))
    assert met[0] == met[1]
    assert len(met[0][1]) == 1


def test_steps_that_ask_get_the_pixels_that_are_theirs() -> None:
    want = list(DataLoader(many(evaluation(24, 16)), 4))
    asking = Asking(30)
    steps = T.Compose([asking, *evaluation(24, 16).transforms])
    loader = DataLoader(many(steps), 4, seed=0)
    iterator, inner = iter(loader), list[Any]()

    def ask() -> Any:
        inner.append(next(iterator))
        return inner[0]

    asking.ask = ask
    outer = list(iterator)
    assert_same(sorted([*outer, *inner], key=lambda batch: int(batch[1][0])), want)
    asking.ask = None  # state_dict() lowers again, and refuses a step that changes an object which its copies share
    assert loader.state_dict()["epoch"] == 1


def test_an_out_transform_asks_for_the_next_batch() -> None:
    """For example, to mix two batches."""

    inner = False

    def pairs(batch: Any) -> Any:
        nonlocal inner
        if inner:
            return batch
        inner = True
        pair = [batch, next(iterator)]
        inner = False
        return pair

    iterator = iter(DataLoader(many(evaluation(24, 16)), 4, num_workers=2, out_transform=pairs))
    first, second = next(iterator)
    assert first[1].tolist() == [0, 1, 2, 3]
    assert second[1].tolist() == [4, 5, 6, 7]


class AskingAlways:
    """A step that requests a batch in each call, and keeps nothing."""

    def __init__(self) -> None:
        self.ask: Callable[[], Any] | None = None

    def __deepcopy__(self, memo: Any) -> AskingAlways:
        return self

    def __call__(self, image: Any) -> Any:
        if self.ask is not None:
            self.ask()
        return image


def test_a_step_in_a_thread_of_the_loaders_cannot_ask() -> None:
    asking = AskingAlways()
    steps = T.Compose([T.Resize((8, 8)), asking, T.ToTensor()])
    iterator = iter(DataLoader(many(steps), 4, num_workers=2, timeout=WATCHDOG_S))
    asking.ask = lambda: next(iterator)
    with pytest.raises(RuntimeError, match="a Python step requests a batch from its own loader"):
        list(iterator)


class Sampler:
    """Yields 24 indices, and raises at the tenth."""

    def __init__(self, goes_on: bool) -> None:
        self.goes_on = goes_on

    def __len__(self) -> int:
        return 24

    def __iter__(self) -> Iterator[int]:
        return GoingOn() if self.goes_on else self.names()

    def names(self) -> Iterator[int]:
        for index in range(24):
            if index == 9:
                raise LookupError("no tenth")
            yield index


class GoingOn(Iterator[int]):
    """An iterator class: unlike a generator, it continues after an error."""

    def __init__(self) -> None:
        self.at = -1

    def __next__(self) -> int:
        self.at += 1
        if self.at == 9:
            raise LookupError("no tenth")
        if self.at >= 24:
            raise StopIteration
        return self.at


def met_by(loader: Iterable[Any]) -> list[Any]:
    met: list[Any] = []
    try:
        iterator = iter(loader)
    except LookupError as error:
        return [str(error)]
    for _ in range(16):
        try:
            met.append(next(iterator)[1].tolist())
        except StopIteration:
            return [*met, "end"]
        except LookupError as error:
            met.append(str(error))
    return met


@pytest.mark.parametrize("goes_on", [False, True], ids=["a generator", "a class"])
@pytest.mark.parametrize("batch_size", [4, None])
@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_of_the_sampler_is_raised_once(goes_on: bool, batch_size: int | None, workers: int) -> None:
    data = ImageArray(torch.zeros(24, 8, 8, 3, dtype=torch.uint8), torch.arange(24), T.ToTensor())
    loader = DataLoader(data, batch_size, sampler=Sampler(goes_on), num_workers=workers)
    got = met_by(loader)
    assert got == met_by(TorchDataLoader(data, batch_size, sampler=Sampler(goes_on), num_workers=workers))
    # torch's processes have read four batches ahead: the error comes before the first one, or in place of the sixth.
    before = (5 if batch_size is None else 0) if workers else 9 // (batch_size or 1)
    assert got[before] == "no tenth"
    if got[0] == "no tenth":
        return
    assert ("end" in got) == (batch_size is not None or not goes_on)
    # The state keeps the position before the sampler's error: a resumed loader must not skip the indices after it.
    state = loader.state_dict()
    assert (state["epoch"], state["position"]) == (0, 9 // (batch_size or 1))


@pytest.mark.processes
def test_ctrl_c_reaches_a_thread_that_waits_for_its_turn() -> None:
    code = """
import signal, threading
import torch
from headrace import ImageArray, DataLoader, transforms as T
from support import *
inside, go_on = threading.Event(), threading.Event()

def slow(image):
    inside.set()
    go_on.wait(WATCHDOG_S)
    return image

data = ImageArray(torch.zeros(4, 8, 8, 3, dtype=torch.uint8), list(range(4)), T.Compose([slow, T.ToTensor()]))
go_on.set()
loader = DataLoader(data, 2)
go_on.clear(), inside.clear()
iterator = iter(loader)
other = threading.Thread(target=lambda: next(iterator))
other.start()
inside.wait(WATCHDOG_S)
threading.Timer(0.3, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    next(iterator)
except KeyboardInterrupt:
    print("interrupted", go_on.is_set())
go_on.set()
other.join()
print(next(iterator)[1].tolist())
"""
    assert output_of(code) == "interrupted False\n[2, 3]\n"


def test_all_batches_of_a_shared_iterator_are_numbered_once() -> None:
    """The random numbers of `out_transform` depend on the batch's position, not on the thread that requests it."""
    draws = lambda batch: [batch[1], torch.rand(1)]  # noqa: E731
    make = lambda: DataLoader(many(train(16)), 4, seed=3, num_workers=2, out_transform=draws)  # noqa: E731
    want = {tuple(one.tolist()): number.item() for one, number in make()}
    got = {tuple(one.tolist()): number.item() for one, number in asked_by_threads(iter(make()))}
    assert got == want
    assert len(set(itertools.chain(want.values()))) == SAMPLES // 4
