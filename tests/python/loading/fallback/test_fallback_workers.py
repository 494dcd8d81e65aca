"""Stateful datasets and streams in worker processes see what torch shows them, and their states are restored."""

from __future__ import annotations

import copy
import gc
import threading
from typing import Any

import pytest
import torch
from test_fallback_state import goes_on, plain
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import get_worker_info

from headrace import DataLoader
from headrace._loading.epoch import torch_loader
from headrace._loading.fallback import observed_iterators
from headrace._loading.fallback.worker_wrappers import Carried
from stateful_datasets import Counting, OfIterator, Plain, Resumed, Stream, drawing, same
from support import WATCHDOG_S

pytestmark = pytest.mark.processes


def seen(worker: int) -> None:
    """A worker_init_fn that sets an attribute of the worker's dataset."""
    info: Any = get_worker_info()
    assert info is not None and info.id == worker
    info.dataset.seen = (worker, type(info.dataset).__name__)


class Seen(Counting):
    seen: Any = None

    def __getitem__(self, index: int) -> Any:
        return index, self.seen, int(torch.randint(1000, ()))


class SeenStream(Resumed):
    seen: tuple[int, str]

    def __iter__(self) -> Any:
        for one, _ in super().__iter__():
            yield one, self.seen, int(torch.randint(1000, ()))


@pytest.mark.parametrize("kind", [Seen, SeenStream])
@pytest.mark.parametrize("more", [{}, {"multiprocessing_context": "spawn"}, {"batch_size": None}], ids=str)
def test_the_users_code_sees_what_torch_shows(kind: type, more: dict[str, Any]) -> None:
    batches = []
    for loader in (TorchDataLoader, DataLoader):
        torch.manual_seed(4)
        made = loader(
            kind(), **{"batch_size": 4, "num_workers": 2, "collate_fn": drawing, "worker_init_fn": seen, **more}
        )
        batches.append((list(made), torch.rand(())))
    assert batches[0] == batches[1] and len(batches[0][0]) >= 4


@pytest.mark.parametrize("position", [0, 1, 4, None])
@pytest.mark.parametrize("data", [Counting, Resumed, OfIterator, Stream])
def test_workers_that_live_on(data: type, position: int | None) -> None:
    def make() -> DataLoader:
        return DataLoader(data(), 2, num_workers=2, persistent_workers=True, collate_fn=drawing)

    torch.manual_seed(3)
    loader = make()
    list(loader)
    batches = iter(loader)
    for _ in range(99 if position is None else position):
        next(batches, None)
    state = loader.state_dict()
    rest, later = list(batches), list(loader)
    other = make()
    other.load_state_dict(state)
    torch.manual_seed(8)

    def of(batches: list[Any]) -> list[Any]:
        if data is Stream:  # its numbers come from a generator that the worker has used since the first epoch
            return [[number for number, _ in batch] for batch, _ in batches]
        return batches if data is OfIterator else [batch for batch, _ in batches]

    if position is not None:
        assert of(list(other)) == of(rest)
    assert of(list(other)) == of(later)
    loader.close()
    other.close()


def test_a_state_before_the_first_batch_is_that_of_workers_which_are_used() -> None:
    torch.manual_seed(2)
    loader = DataLoader(Resumed(), 2, num_workers=2, collate_fn=same)
    state = loader.state_dict()
    assert set(state["_snapshot"]["_worker_snapshots"]) == {"worker_0", "worker_1"}
    assert state["_snapshot"]["_worker_snapshots"]["worker_1"]["dataset_state"] == {"at": 0, "epoch": 0}
    begun = loader._torch_epochs._begun
    assert loader.upcoming_epoch == 0 and copy.copy(loader).upcoming_epoch == 0
    assert iter(loader) is begun and loader.upcoming_epoch == 1
    other = DataLoader(Resumed(), 2, num_workers=2, collate_fn=same)
    other.state_dict()
    other.close()
    assert other.upcoming_epoch == 0


def test_workers_end_with_their_iterator_and_the_state_stays() -> None:
    loader = DataLoader(Resumed((4, 4)), 1, num_workers=2, collate_fn=same)
    batches: Any = iter(loader)
    first = [next(batches) for _ in range(3)]
    processes = batches._workers
    del batches
    gc.collect()
    assert not any(one.is_alive() for one in processes)
    other = DataLoader(Resumed((4, 4)), 1, num_workers=2, collate_fn=same)
    other.load_state_dict(loader.state_dict())
    assert first + list(other) == list(DataLoader(Resumed((4, 4)), 1, num_workers=2, collate_fn=same))


def test_the_garbage_collector_ends_workers_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    # Far more than a worker that is asked to end ever needs: whoever waits this long is killed, and has another code.
    monkeypatch.setattr(torch.utils.data._utils, "MP_STATUS_CHECK_INTERVAL", WATCHDOG_S)
    monkeypatch.setattr(torch.utils.data._utils.worker, "MP_STATUS_CHECK_INTERVAL", WATCHDOG_S)
    errors: list[Any] = []
    others = set(observed_iterators._to_shut_down)
    monkeypatch.setattr(threading, "excepthook", errors.append)
    one: Any = [1]
    loader = DataLoader(one, num_workers=2)  # the second worker gets nothing, so no thread refers to its queue
    for queues_first in (False, True):
        iterator: Any = iter(loader)
        workers = iterator._workers
        queues = [end for queue in iterator._index_queues for end in (queue._reader, queue._writer)]
        # A collection moves what it reaches from a container after it, and the next one finalizes in that order.
        held = [[queues], [iterator]] if queues_first else [[iterator], [queues]]
        iterator.itself = iterator
        del queues, iterator
        gc.collect()
        del held
        gc.collect()
        assert [worker.exitcode for worker in workers] == [0, 0]
        del workers
    assert not errors
    assert set(observed_iterators._to_shut_down) <= others


def test_a_state_of_an_iterator_that_is_gone_at_once() -> None:
    loader = DataLoader(Resumed((4, 4)), 1, num_workers=2, collate_fn=same)
    iter(loader)
    state = loader.state_dict()
    assert [one["dataset_state"] for one in state["_snapshot"]["_worker_snapshots"].values()] == [
        {"at": 0, "epoch": 0}
    ] * 2
    processes = loader._torch_epochs._fresh._workers
    loader.close()
    assert not any(one.is_alive() for one in processes)


class Silent(Counting):
    def state_dict(self) -> dict[str, Any]:
        raise OSError("no disk")


def test_a_state_that_cannot_be_taken_is_no_reason_to_stop() -> None:
    loader = DataLoader(Silent(), 4, num_workers=1, collate_fn=same)
    batches = iter(loader)
    assert len(next(batches)) == 4
    with pytest.raises(RuntimeError, match="worker 0 could not give the state of its dataset: OSError: no disk"):
        loader.state_dict()
    assert len(list(batches)) == 4


def failing(worker: int) -> None:
    raise LookupError(f"worker {worker}")


def test_a_worker_that_cannot_begin_says_so_as_in_torch() -> None:
    for data in (Counting(), Resumed()):
        loader = DataLoader(data, 4, num_workers=1, worker_init_fn=failing)
        batches = iter(loader)
        loader.state_dict()  # waits for no worker
        with pytest.raises(LookupError, match="worker 0"):
            next(batches)


def test_batches_are_pinned_as_torch_pins_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Batch(list):
        def pin_memory(self) -> str:
            return "pinned"

    assert Carried(Batch(), 1, 2, b"", False).pin_memory() == Carried("pinned", 1, 2, b"", False)


class Held(Plain):
    """The first sample waits for an event."""

    def __init__(self, count: int, go_on: Any) -> None:
        super().__init__(count)
        self.go_on = go_on

    def __getitem__(self, index: int) -> int:
        assert index or self.go_on.wait(WATCHDOG_S)
        return index


def test_out_of_order_nothing_is_lost_and_nothing_comes_twice() -> None:
    go_on = torch.multiprocessing.get_context("fork").Event()

    def make() -> DataLoader:
        return DataLoader(Held(12, go_on), 1, num_workers=2, in_order=False)

    loader = make()
    batches = iter(loader)
    first = [int(next(batches)) for _ in range(3)]
    assert 0 not in first
    go_on.set()
    for _ in range(2):  # also the state of a resumed loader
        other = make()
        other.load_state_dict(loader.state_dict())
        rest = iter(other)
        first.append(int(next(rest)))
        loader = other
    assert sorted(first + [int(one) for one in rest]) == list(range(12))


def test_a_stream_that_has_become_another_one_is_refused() -> None:
    loader = DataLoader(Stream((9,)), 2, num_workers=1)
    batches = iter(loader)
    for _ in range(4):
        next(batches)
    state = loader.state_dict()
    for workers, error in ((1, RuntimeError), (0, ValueError)):
        if not workers:
            loader = DataLoader(Stream((9,)), 2)
            batches = iter(loader)
            [next(batches) for _ in range(4)]
            state = loader.state_dict()
        other = DataLoader(Stream((5,)), 2, num_workers=workers)
        other.load_state_dict(state)
        with pytest.raises(error, match="the dataset is not the one of the state"):
            next(iter(other))


def test_another_torch_may_have_no_state_but_iterates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(torch_loader._HOOKS, "_SingleProcessDataLoaderIter", ("_next_datum",))
    loader = DataLoader(Plain(6), 3)
    assert plain(loader) == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(
        RuntimeError, match=r"needs torch.utils.data.dataloader._SingleProcessDataLoaderIter._next_datum"
    ):
        loader.state_dict()


def test_only_so_many_states_travel() -> None:
    for every, known in ((1, [5, 5]), (4, [4, 4]), (0, [0, 0]), (None, [0, 0])):
        loader = DataLoader(Resumed((9, 9)), 1, num_workers=2, collate_fn=same, snapshot_every_n_steps=every)
        batches = iter(loader)
        for _ in range(10):
            next(batches)
        workers = loader.state_dict()["_snapshot"]["_worker_snapshots"].values()
        assert [one["dataset_state"]["at"] for one in workers] == known
        assert [one["_num_yielded"] for one in workers] == [5, 5]


def test_a_dataset_with_a_state_in_workers() -> None:
    goes_on(lambda: DataLoader(Counting(), 3, True, num_workers=2, collate_fn=same), [0, 1, 4], epochs=2)
