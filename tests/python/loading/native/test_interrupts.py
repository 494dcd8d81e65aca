"""Ctrl-C at any moment: neither the iterator, if it is used again, nor a state saved then skips a batch."""

from __future__ import annotations

import dis
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from headrace._engine.image_engine import ImageEngine
from headrace._loading.native.iterator import NativeIterator
from support import assert_same, output_of, pictures, train

pytestmark = pytest.mark.processes

SAMPLES, BATCH = 48, 4
DATA = EncodedImages(list(pictures(24)) * 2, list(range(SAMPLES)), train(16))


def loader(**options: Any) -> DataLoader:
    return DataLoader(DATA, BATCH, seed=1, **options)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@contextmanager
def default_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def at_call(nth: int, what: Callable[[], None], then: Callable[..., Any]) -> Callable[..., Any]:
    """`then`, with a call of `what` before its nth call."""
    calls = 0

    def called(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth:
            what()
        return then(*arguments, **options)

    return called


def labels(batches: Any) -> list[int]:
    return [label for batch in batches for label in batch[1].tolist()]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_next_did_not_return_is_not_counted(workers: int, error: type) -> None:
    calls = 0

    def out(batch: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            if error is ValueError:
                raise ValueError("boom")
            interrupt()
        return batch

    want = list(loader())
    first = loader(num_workers=workers, out_transform=out)
    iterator, seen = iter(first), []
    with default_ctrl_c(), pytest.raises(error):
        for batch in iterator:
            seen.append(batch)
    state = first.state_dict()
    assert state["position"] == 2
    resumed = loader()
    resumed.load_state_dict(state)
    assert_same([*seen, *resumed], want)
    # The iterator delivers the rest: after an error without the failed batch, after an interrupt with it.
    assert_same(list(iterator), want[3:] if error is ValueError else want[2:])
    assert first.state_dict()["epoch"] == 1


def test_a_batch_whose_error_was_told_is_passed_over_with_the_next_one() -> None:
    out = at_call(3, lambda: dict[str, Any]()["no such key"], lambda batch: batch)
    first = loader(out_transform=out)
    iterator = iter(first)
    next(iterator), next(iterator)
    with pytest.raises(KeyError):
        next(iterator)
    assert first.state_dict()["position"] == 2
    next(iterator)
    assert first.state_dict()["position"] == 4


def test_no_memory_in_an_out_transform_costs_no_batch() -> None:
    def out(batch: Any) -> Any:
        batch[0] += 1  # in place: a retry must not see this change
        attempts.append(1)
        if len(attempts) in (2, 5):
            raise torch.OutOfMemoryError("no memory left")
        return batch

    attempts: list[int] = []
    want = [[images + 1, targets] for images, targets in loader()]
    iterator, got = iter(loader(num_workers=2, out_transform=out)), list[Any]()
    while len(got) < len(want):
        try:
            got.append(next(iterator))
        except torch.OutOfMemoryError:
            assert len(attempts) in (2, 5)
    assert_same(got, want)


@pytest.mark.parametrize("where", ["submit", "wait", "failures", "tensor", "move_targets"])
@pytest.mark.parametrize("workers", [0, 2])
def test_an_interrupt_anywhere_leaves_the_batch_the_next_one(
    monkeypatch: pytest.MonkeyPatch, where: str, workers: int
) -> None:
    want = list(loader())
    monkeypatch.setattr(ImageEngine, where, at_call(4, interrupt, getattr(ImageEngine, where)))
    first = loader(num_workers=workers)
    iterator, got = iter(first), []
    with default_ctrl_c(), pytest.raises(KeyboardInterrupt):
        for batch in iterator:
            got.append(batch)
    assert first.state_dict()["position"] == len(got)
    assert_same([*got, *iterator], want)


@pytest.mark.parametrize("process_wide", [False, True])
def test_a_step_that_is_interrupted_is_done_again(process_wide: bool) -> None:
    """In the caller's thread the interrupt occurs in the step itself, perhaps for a batch that is made ahead."""

    def step(image: Any) -> Any:
        if process_wide:
            __import__("random").random()
        return again(image)

    again = lambda image: image  # noqa: E731
    steps = T.Compose([T.Resize((16, 16)), step, T.ToTensor()])
    make = lambda: DataLoader(  # noqa: E731
        EncodedImages(list(pictures(24)) * 2, list(range(SAMPLES)), steps), BATCH, seed=1, num_workers=2 * process_wide
    )
    want = list(make())
    iterator, got, interrupts = iter(make()), list[Any](), 0
    again = at_call(14, interrupt, again)
    with default_ctrl_c():
        while len(got) < len(want):
            try:
                got.append(next(iterator))
            except KeyboardInterrupt:
                interrupts += 1
    assert interrupts == 1
    assert_same(got, want)


def test_an_interrupt_in_the_samplers_own_code_closes() -> None:
    """The indices that it had yielded are lost, and a silent StopIteration would look like the end of the epoch."""

    def order() -> Iterator[int]:
        for index in range(SAMPLES):
            if index == 9:
                interrupt()
                str(index)
            yield index

    class Sampler(list):
        __iter__ = lambda self: order()  # noqa: E731

    first = DataLoader(DATA, BATCH, sampler=Sampler([0] * SAMPLES), num_workers=0)
    iterator = iter(first)
    with default_ctrl_c(), pytest.raises(KeyboardInterrupt):
        labels(iterator)
    assert first.state_dict()["position"] == 2
    with pytest.raises(RuntimeError, match="closed before its end"):
        next(iterator)


def test_nothing_is_called_between_the_count_and_the_return() -> None:
    """CPython handles signals when a call returns: without a call, no batch can be counted and then lost."""
    code = list(dis.get_instructions(NativeIterator.__next__))
    count = next(i for i, one in enumerate(code) if one.opname == "STORE_ATTR" and one.argval == "returned")
    end = next(i for i, one in enumerate(code) if i > count and one.opname == "RETURN_VALUE")
    between = {one.opname for one in code[count + 1 : end]}
    assert between <= {"LOAD_FAST", "LOAD_FAST_BORROW", "NOP", "POP_BLOCK", "SWAP", "POP_TOP"}


@pytest.mark.parametrize("argument", ["out_transform=out", "collate_fn=lambda samples: default_collate(samples)"])
@pytest.mark.parametrize("workers", [0, 2])
def test_hundreds_of_interrupts(workers: int, argument: str) -> None:
    """A timer interrupts the loop at random moments. The batches that the loop received, with those of the same
    iterator or of a resumed loader afterwards, are all batches of the epoch, each once."""
    code = f"""
import random, signal
import torch
from torch.utils.data import default_collate
from headrace import ImageArray, DataLoader, transforms as T

SAMPLES, BATCH, INTERRUPTS = 160, 4, 120
pixels = torch.randint(0, 256, (SAMPLES, 8, 8, 3), dtype=torch.uint8)
data = ImageArray(pixels, list(range(SAMPLES)), T.Compose([T.RandomCrop(4), T.ToTensor()]))
out = lambda batch: (batch[0].sum(), batch)[1]
make = lambda: DataLoader(data, BATCH, shuffle=True, seed=1, num_workers={workers}, {argument})
assert make().native
want = [batch[1].tolist() for batch in make()]
rng = random.Random({workers})
armed = False  # a timer that goes off behind the loop interrupts nothing
def strike(*_):
    if armed:
        raise KeyboardInterrupt
signal.signal(signal.SIGALRM, strike)
interrupts = epochs = 0
while interrupts < INTERRUPTS or epochs < 4:
    loader = make()
    state, seen, current = loader.state_dict(), [], None
    while state["epoch"] == 0:
        loader = make()
        loader.load_state_dict(state)
        iterator, goes_on = iter(loader), rng.random() < 0.5
        while True:
            try:
                try:
                    armed = True
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 6e-3))
                    for current in iterator:
                        seen.append(current)
                    armed = False
                    break
                except RuntimeError as error:  # the last one struck in the sampler's own code
                    armed = False
                    assert "closed before its end" in str(error)
                    break
            except KeyboardInterrupt:
                armed = False
                interrupts += 1
                if current is not None and not (seen and seen[-1] is current):
                    seen.append(current)  # the loop has it, and was struck before it could say so
                if not goes_on:
                    break
        state = loader.state_dict()
    got = [batch[1].tolist() for batch in seen]
    assert got == want, (got, want)
    epochs += 1
print("all there")
"""
    assert output_of(code) == "all there\n"
