"""Datasets of workers that are spawned: pickled once, and each worker's own; errors and handles are torch's."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import pickle
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import context, reduction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, IterableDataset, get_worker_info

import headrace
from headrace._loading.fallback.shared_memory import sent_once
from headrace._loading.fallback.shared_memory.sent_once import INLINE, LEAST, SentOnce

pytestmark = pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")
LARGE = 4 * LEAST


set_starting, get_starting = (getattr(context, f"{verb}_spawning_popen") for verb in ("set", "get"))


class Starting:
    """Stands for a process that is being started, in this process: its descriptors are duplicates."""

    def __init__(self) -> None:
        self.descriptors: list[int] = []

    def duplicate_for_child(self, descriptor: int) -> int:
        self.descriptors.append(os.dup(descriptor))
        return self.descriptors[-1]

    def close(self) -> None:
        for one in self.descriptors:
            os.close(one)

    class DupFd:
        def __init__(self, descriptor: int) -> None:
            self._descriptor = descriptor

        def detach(self) -> int:
            return self._descriptor


def descriptors() -> list[str]:
    links = []
    for one in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # that of this listing
            links.append(str(one.readlink()))
    return sorted(links)


@pytest.fixture
def starts() -> Iterator[Callable[[object], Any]]:
    """A function that sends what it is given to a process that is started, and returns it as it arrives."""

    def send(one: object) -> Any:
        process = Starting()
        set_starting(process)
        try:
            message = reduction.ForkingPickler.dumps(one)
        except BaseException:
            process.close()
            raise
        finally:
            set_starting(None)
        return pickle.loads(message)

    gc.collect()
    before = descriptors()
    yield send
    gc.collect()
    assert descriptors() == before


def sent(one: object, starts: Callable[[object], Any], processes: int = 2) -> list[Any]:
    made = SentOnce([one])
    arrived = [starts(made.parts())[0] for _ in range(processes)]
    made.close()
    return arrived


def readonly(array: Any) -> Any:
    array.setflags(write=False)
    return array


class Derived(np.ndarray[Any, Any]):
    pass


ARRAYS: dict[str, Callable[[], Any]] = {
    "small": lambda: np.arange(10),
    "large": lambda: np.arange(LARGE),
    "read only": lambda: readonly(np.arange(LARGE)),
    "small, read only": lambda: readonly(np.arange(10)),
    "Fortran": lambda: np.asfortranarray(np.arange(LARGE).reshape(64, -1)),
    "Fortran, read only": lambda: readonly(np.asfortranarray(np.arange(LARGE).reshape(64, -1))),
    "other order": lambda: np.arange(LARGE).reshape(4, 16, -1).transpose(1, 0, 2),
    "strided": lambda: np.arange(LARGE)[::3],
    "structured": lambda: np.zeros(LARGE, [("a", "i4"), ("b", "U3"), ("c", "f8", (2,))]),
    "dates": lambda: np.arange(LARGE).astype("datetime64[s]"),
    "other bytes": lambda: np.arange(LARGE).astype(">i4"),
    "strings": lambda: np.array(["a", "bc"] * LARGE),
    "objects": lambda: np.array([{}, "a"] * 100, dtype=object),
    "a subclass": lambda: np.arange(LARGE).view(Derived),
    "empty": lambda: np.zeros((0, 3)),
    "a number": lambda: np.array(3.0),
}


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_arrays_are_those_of_multiprocessings_pickle(make: Callable[[], Any], starts: Callable[[object], Any]) -> None:
    one = make()
    plain = starts(one)
    for arrived in sent(one, starts):
        assert type(arrived) is type(plain) and arrived.dtype == plain.dtype
        assert (arrived.shape, arrived.strides) == (plain.shape, plain.strides)
        assert arrived.flags.writeable == plain.flags.writeable
        assert arrived.flags.f_contiguous == plain.flags.f_contiguous and arrived.flags.aligned
        assert np.array_equal(arrived, plain)


def test_each_process_has_its_own(starts: Callable[[object], Any]) -> None:
    one = np.arange(LARGE)
    made = SentOnce([one])
    first = starts(made.parts())[0]
    first[:] = 7
    second = starts(made.parts())[0]
    second[0] = 3
    made.close()
    assert (first == 7).all() and second[0] == 3 and (second[1:] == one[1:]).all() and one[0] == 0


def test_one_object_stays_one(starts: Callable[[object], Any]) -> None:
    shared: Any = [np.arange(LARGE), torch.arange(3)]
    made = SentOnce([{"a": shared}, shared, shared[1].untyped_storage()])
    first, second, storage = starts(made.parts())
    made.close()
    assert first["a"] is second and storage.data_ptr() == second[1].data_ptr()


class Counting:
    """Counts how often it is pickled."""

    def __init__(self, *more: object) -> None:
        self.pickled, self.more = 0, more

    def __getstate__(self) -> dict[str, Any]:
        self.pickled += 1
        return {"arrived": self.pickled, "more": self.more}


@pytest.mark.parametrize("size", [10, INLINE - 100, INLINE, 40 * INLINE])
def test_objects_are_pickled_once(size: int, starts: Callable[[object], Any]) -> None:
    one = Counting(bytes(size), "é" * size)
    arrived: list[Any] = sent(one, starts, 3)
    assert one.pickled == 1 and [each.arrived for each in arrived] == [1] * 3
    assert all(each.more == one.more for each in arrived)


def test_tensors_are_shared_as_torch_shares_them(starts: Callable[[object], Any]) -> None:
    tensors = [torch.zeros(LARGE), torch.nn.Parameter(torch.ones(2))]
    one, other = sent([tensors, torch.zeros(4)[1:3]], starts)
    assert tensors[0].is_shared() and isinstance(one[0][1], torch.nn.Parameter)
    one[0][0][5] = 8
    assert tensors[0][5] == 8 and other[0][0][5] == 8


def test_pipes_and_sockets(starts: Callable[[object], Any]) -> None:
    """The first process's descriptors are given to the second, too, also if their owner is gone."""
    near, far = socket.socketpair()
    made = SentOnce([far])
    (first,) = starts(made.parts())
    far.close()
    (second,) = starts(made.parts())
    made.close()
    for one in (first, second):
        one.send(b"x")
        assert near.recv(9) == b"x"
        one.close()
    near.close()
    reader, writer = multiprocessing.Pipe(duplex=False)
    for arrived in sent(writer, starts):
        arrived.send("word")
        assert reader.recv() == "word"
        arrived.close()
    reader.close()
    writer.close()


REFUSED: dict[str, Callable[[], object]] = {
    "a function": lambda: (np.arange(LARGE), lambda: 0),
    "a lock": threading.Lock,
    "a file": lambda: Path(__file__).open(),  # noqa: SIM115
    "a forked lock": lambda: multiprocessing.get_context("fork").Lock(),
    "a tensor with a history": lambda: torch.ones(2, requires_grad=True) * 2,
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_pickled_raises_the_same(make: Callable[[], object], starts: Callable[[object], Any]) -> None:
    one = make()
    raised = []
    made = SentOnce([bytes(2 * INLINE), one])
    for each in (one, *made.parts()):
        with pytest.raises(Exception, match=r"\w") as caught:
            starts(each)
        raised.append((caught.type, str(caught.value)))
    made.close()
    del caught, each
    assert raised[0] == raised[1] == raised[2]
    assert get_starting() is None
    if hasattr(one, "close"):
        one.close()


def test_without_memory_all_is_sent_as_torch_sends_it(
    starts: Callable[[object], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError("no descriptor")

    monkeypatch.setattr(os, "memfd_create", refuse)
    one = Counting(np.arange(LARGE), bytes(4 * INLINE), torch.zeros(3))
    arrived = sent(one, starts)
    assert all(np.array_equal(each.more[0], np.arange(LARGE)) for each in arrived) and one.pickled == 3


def test_a_pickle_that_starts_no_process_is_whole() -> None:
    made = SentOnce([[1, 2], "a"])
    assert pickle.loads(pickle.dumps(made.parts())) == [[1, 2], "a"]


def test_other_picklers_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sent_once.is_possible("spawn") and sent_once.is_possible("forkserver")
    assert not sent_once.is_possible("fork") and not sent_once.is_possible("loky")

    class Others(reduction.ForkingPickler):
        pass

    monkeypatch.setattr(reduction, "ForkingPickler", Others)
    assert not sent_once.is_possible("spawn")


# ---- in processes ----------------------------------------------------------------------------------------------------


class Observing(Dataset[Any]):
    """Its samples are what a worker has, which the worker writes to."""

    def __init__(self) -> None:
        self.array, self.frozen = np.arange(LARGE), readonly(np.arange(LARGE))
        self.tensor, self.names = torch.zeros(8), [f"name {number}" for number in range(20_000)]
        self.lock, self.value = multiprocessing.get_context("spawn").Lock(), Counting()
        self.started: list[int] = []

    def start(self, worker: int) -> None:
        self.started.append(worker)
        self.array[0] = 100 + worker
        self.tensor[worker] = 1

    def collate(self, samples: Any) -> Any:
        return samples, list(self.started)

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        info: Any = get_worker_info()
        with self.lock:
            self.array[1] += 1
        mine = info.dataset is self, int(self.array[0]) - info.id, int(self.array[1]), self.frozen.flags.writeable
        return index, mine, self.names[-index], int(self.array[5:].sum()), self.started


class ObservingStream(Observing, IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        yield from map(self.__getitem__, range(4))


@pytest.mark.processes
@pytest.mark.parametrize(
    ("kind", "method", "more"),
    [
        (Observing, "spawn", {"persistent_workers": True}),
        (Observing, "forkserver", {"deferred_images": False}),
        (ObservingStream, "spawn", {}),
    ],
)
def test_workers_make_what_torchs_make(kind: type[Observing], method: str, more: dict[str, Any]) -> None:
    epochs, before = [], descriptors()
    for loader in (TorchDataLoader, headrace.DataLoader):
        dataset = kind()
        options: dict[str, Any] = {"batch_size": 2, "num_workers": 2, "multiprocessing_context": method, **more}
        if loader is TorchDataLoader:
            options.pop("deferred_images", None)
        made = loader(dataset, collate_fn=dataset.collate, worker_init_fn=dataset.start, **options)
        batches = [list(made) for _ in range(1 + ("persistent_workers" in more))]
        epochs.append((batches, dataset.tensor.tolist(), dataset.array[:2].tolist()))
        if loader is not TorchDataLoader:
            assert dataset.value.pickled == 1
        del made
    assert epochs[0] == epochs[1] and epochs[0][1][:3] == [1, 1, 0] and epochs[0][2] == [0, 1]
    gc.collect()
    assert not [one for one in descriptors() if "headrace-start" in one and one not in before]


class Dying(Observing):
    def __getitem__(self, index: int) -> Any:
        mapped = "headrace-start" in Path("/proc/self/maps").read_text()
        if index == 5:
            os.kill(os.getpid(), 9)
        return mapped, "headrace._recipe.steps.steps" in sys.modules  # 70 classes, which only images need


@pytest.mark.processes
def test_a_killed_worker_leaves_nothing() -> None:
    iterator = iter(headrace.DataLoader(Dying(), 1, num_workers=1, multiprocessing_context="spawn", prefetch_factor=1))
    assert not [one for one in descriptors() if "headrace-start" in one]  # gone as soon as the workers are started
    assert [bool(one) for one in next(iterator)] == [True, False]
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(iterator)
    del iterator
    gc.collect()
    assert not [one for one in descriptors() if "headrace-start" in one]


@pytest.mark.processes
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_errors_are_raised_when_torch_raises_them(method: str) -> None:
    raised = []
    for loader in (TorchDataLoader, headrace.DataLoader):
        dataset: Any = Observing()
        dataset.value = threading.Lock()
        made = loader(dataset, num_workers=2, multiprocessing_context=method)
        with warnings.catch_warnings(record=True) as warned, pytest.raises(TypeError) as caught:
            warnings.simplefilter("always")
            iter(made)
        raised.append((str(caught.value), [str(one.message) for one in warned if "pickle error" in str(one.message)]))
    assert raised[0] == raised[1] and len(raised[0][1]) == 1
    assert "lock" in raised[0][0] and sys.getrefcount(dataset) < 20
