"""Shared memory that is used again holds the right batches, whatever the consumer and the workers keep of them."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, default_collate, get_worker_info

import headrace
from headrace._loading.fallback.shared_memory import blocks as shared_blocks
from support import WATCHDOG_S

pytestmark = [pytest.mark.filterwarnings("ignore:torch's DataLoader delivers"), pytest.mark.processes]
VALUES = 1 << 16  # of a sample: four samples are above the least size of a block


class Numbers(Dataset[Any]):
    """Sample i holds i everywhere."""

    def __init__(self, samples: int) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((VALUES,), float(index))


def loader_of(samples: int = 64, **arguments: Any) -> Any:
    return headrace.DataLoader(Numbers(samples), batch_size=4, num_workers=2, **arguments)


def holds(batch: torch.Tensor, number: int) -> bool:
    return bool((batch == torch.arange(4.0)[:, None] + 4 * number).all())


def inode(batch: torch.Tensor) -> int:
    return os.fstat(batch.untyped_storage()._share_fd_cpu_()[0]).st_ino


@pytest.mark.parametrize("persistent", [False, True])
def test_batches_that_are_dropped_share_few_blocks(persistent: bool) -> None:
    loader = loader_of(persistent_workers=persistent)
    for _ in range(2):
        inodes = []
        for number, batch in enumerate(loader):
            assert holds(batch, number)
            assert batch.untyped_storage().nbytes() == batch.nbytes
            inodes.append(inode(batch))
        assert len(inodes) == 16
        assert len(set(inodes)) <= 2 * (2 + 3)
        assert len(set(inodes)) < 16


def test_batches_that_are_kept_stay_as_they_are() -> None:
    kept = list(loader_of(200))
    assert all(holds(batch, number) for number, batch in enumerate(kept))
    assert len({inode(batch) for batch in kept}) == 50


def test_any_reference_keeps_a_batch() -> None:
    """A row, a NumPy array, a view through DLPack, a storage, a graph of autograd."""
    weight = torch.ones(VALUES, requires_grad=True)
    kept: list[Any] = []
    for number, batch in enumerate(loader_of(200)):
        if number % 6 == 0:
            kept.append(batch[2:])
        elif number % 6 == 1:
            kept.append(batch.numpy()[2:])
        elif number % 6 == 2:
            kept.append(torch.utils.dlpack.from_dlpack(batch)[2:])
        elif number % 6 == 3:
            kept.append(batch.untyped_storage())
        elif number % 6 == 4:
            kept.append((batch * weight).sum())
        else:
            kept.append(None)
    del batch
    gc.collect()
    for number, one in enumerate(kept):
        if isinstance(one, torch.UntypedStorage):
            assert holds(torch.empty(0).set_(one).view(4, VALUES), number)
        elif number % 6 == 4:
            weight.grad = None
            one.backward()
            grad: Any = weight.grad
            assert torch.equal(grad, torch.full((VALUES,), 16.0 * number + 6))
        elif one is not None:
            assert bool((torch.as_tensor(one)[0] == 4 * number + 2).all())


class Remembering:
    """A collate_fn that keeps batches, and returns an earlier one in every third call."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def __call__(self, samples: list[Any]) -> Any:
        batch = default_collate(samples)
        self.made.append(batch)
        old = self.made[max(0, len(self.made) - 2)]
        return {
            "new": batch,
            "old": old if len(self.made) % 3 == 0 else None,
            "sums": [float(b[0, 0]) for b in self.made],
        }


def test_batches_that_a_worker_keeps_stay_as_they_are() -> None:
    for number, batch in enumerate(loader_of(120, collate_fn=Remembering())):
        worker = number % 2
        assert holds(batch["new"], number)
        assert batch["sums"] == [4.0 * earlier for earlier in range(worker, number + 1, 2)]
        if batch["old"] is not None:
            assert holds(batch["old"], number - 2)


class Hidden:
    """An object with a tensor that torch pickles, but no one can find."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


def hide(samples: list[Any]) -> Hidden:
    return Hidden(default_collate(samples))


def test_blocks_that_cannot_be_found_in_a_batch_are_not_used_again() -> None:
    kept = list(loader_of(200, collate_fn=hide))
    assert all(holds(one.tensor, number) for number, one in enumerate(kept))
    for number, one in enumerate(loader_of(200, collate_fn=hide)):
        assert holds(one.tensor, number)


def scale(samples: list[Any]) -> torch.Tensor:
    return default_collate(samples) * 1  # drops what default_collate has made, and returns memory of its own


def test_dropped_memory_and_results_in_other_memory_share_few_blocks() -> None:
    """torch would make two new storages a batch: one for default_collate, one for the result when it is sent."""
    descriptors = headrace.DataLoader(Numbers(200), batch_size=4, num_workers=1, collate_fn=scale)
    inodes = []
    for number, batch in enumerate(descriptors):
        assert holds(batch, number)
        assert batch.untyped_storage().nbytes() == batch.nbytes
        inodes.append(inode(batch))
    assert len(inodes) == 50
    # Blocks that eight batches did not need are given up, and replaced if they are needed again.
    assert max(len(set(inodes[first : first + 8])) for first in range(43)) <= 6
    assert len(set(inodes)) < 25


class Own:
    """A collate_fn that returns memory which other objects of the worker refer to."""

    def __init__(self) -> None:
        self.array, self.last = np.zeros((4, VALUES), np.float32), torch.zeros(4, VALUES)

    def __call__(self, samples: list[Any]) -> Any:
        made = default_collate(samples) * 1
        self.last = made[1:]
        self.array[...] = made
        parts = torch.cat([made, made])
        return {
            "kept": made,
            "array": torch.from_numpy(self.array),
            "alias": [alias := made * 1, alias.view(-1)],
            "halves": parts.view(2, 4, VALUES).unbind(),
            "turned": (made * 1).T,
            "strided": (made * 1)[:, ::2],
            "double": [twice := made * 1, twice],
            "needs": (made * 1).requires_grad_(),
        }


def test_memory_that_others_refer_to() -> None:
    for number, batch in enumerate(loader_of(80, collate_fn=Own())):
        for one in (batch["kept"], batch["array"], *batch["halves"], batch["turned"].T, *batch["double"]):
            assert holds(one, number)
        assert bool((batch["strided"] == batch["kept"][:, ::2]).all())
        assert batch["turned"].stride() == (1, VALUES)
        assert batch["double"][0] is batch["double"][1]
        assert batch["needs"].requires_grad
        batch["alias"][0].fill_(-1)
        assert bool((batch["alias"][1] == -1).all())


class SendingOn:
    """A collate_fn that gives its batch to another process, and returns other values."""

    def __init__(self, queue: Any, arrived: Any) -> None:
        self.queue, self.arrived, self.sent = queue, arrived, 0

    def __call__(self, samples: list[Any]) -> torch.Tensor:
        batch = default_collate(samples)
        if not self.sent:
            self.queue.put(batch)
            assert self.arrived.wait(WATCHDOG_S)
        self.sent += 1
        return batch.sum(1)


def test_memory_that_a_collate_fn_has_sent_is_not_used_again() -> None:
    context = torch.multiprocessing.get_context("fork")
    queue, arrived = context.Queue(), context.Event()
    loader = headrace.DataLoader(Numbers(80), batch_size=4, num_workers=1, collate_fn=SendingOn(queue, arrived))
    iterator = iter(loader)
    batch = queue.get(timeout=WATCHDOG_S)
    arrived.set()
    assert next(iterator).tolist() == [number * VALUES for number in range(4)]
    assert len(list(iterator)) == 19
    assert holds(batch, 0)
    queue.close()


class Forking:
    """A collate_fn whose child process looks at the first batch when the last one has been made."""

    def __init__(self) -> None:
        self.child, self.count = 0, 0

    def __call__(self, samples: list[Any]) -> bool:
        batch = default_collate(samples)
        self.count += 1
        if self.count == 1:
            self.look, self.tell = os.pipe(), os.pipe()
            self.child = os.fork()
            if self.child == 0:
                os.read(self.look[0], 1)
                os.write(self.tell[1], b"1" if holds(batch, 0) else b"0")
                os._exit(0)
        if self.count < 10:
            return True
        os.write(self.look[1], b"x")
        told = os.read(self.tell[0], 1)
        os.waitpid(self.child, 0)
        return told == b"1"


def test_a_child_of_a_worker_keeps_what_it_inherits() -> None:
    made = list(headrace.DataLoader(Numbers(40), batch_size=4, num_workers=1, collate_fn=Forking()))
    assert made == [True] * 10


def use(queue: Any, answers: Any) -> None:
    batch = queue.get()
    answers.put("got")
    queue.get()
    answers.put(bool((batch == torch.arange(4.0)[:, None]).all()))


def test_a_batch_that_was_sent_on_is_not_used_again() -> None:
    context = torch.multiprocessing.get_context("fork")
    queue, answers = context.Queue(), context.Queue()
    other = context.Process(target=use, args=(queue, answers), daemon=True)
    other.start()
    iterator = iter(loader_of(200))
    batch = next(iterator)
    queue.put(batch)
    assert answers.get(timeout=WATCHDOG_S) == "got"
    del batch
    for number, batch in enumerate(iterator, 1):
        assert holds(batch, number)
    queue.put("look")
    assert answers.get(timeout=WATCHDOG_S) is True
    other.join(WATCHDOG_S)


def test_a_forked_child_keeps_what_it_inherits() -> None:
    iterator = iter(loader_of(200))
    batch = next(iterator)
    look, tell = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.read(look[0], 1)
        os.write(tell[1], b"1" if holds(batch, 0) else b"0")
        os._exit(0)
    del batch
    for number, batch in enumerate(iterator, 1):
        assert holds(batch, number)
    os.write(look[1], b"x")
    assert os.read(tell[0], 1) == b"1"
    os.waitpid(child, 0)
    for descriptor in (*look, *tell):
        os.close(descriptor)


class Sizes(IterableDataset[Any]):
    """Batches of its own, of changing sizes, as dicts of two tensors."""

    def __iter__(self) -> Any:
        for number in range(40):
            rows = 2 + number % 3
            yield {
                "a": torch.full((rows, VALUES), float(number)),
                "b": (torch.full((2, VALUES), -float(number)), number),
            }


def test_dicts_and_sizes() -> None:
    loader = headrace.DataLoader(Sizes(), batch_size=1, num_workers=1)
    for _ in range(2):
        for number, batch in enumerate(loader):
            assert batch["a"].shape == (1, 2 + number % 3, VALUES)
            assert bool((batch["a"] == number).all())
            assert bool((batch["b"][0] == -number).all())
            assert batch["b"][1].tolist() == [number]


def test_an_epoch_that_is_left_early_loses_no_batch_of_the_next() -> None:
    loader = loader_of(64, persistent_workers=True, prefetch_factor=4)
    for _ in range(6):
        for number, batch in enumerate(loader):
            assert holds(batch, number)
            if number == 3:
                break
    assert all(holds(batch, number) for number, batch in enumerate(loader))


def by_file(worker: int) -> None:
    torch.multiprocessing.set_sharing_strategy("file_system")


def test_the_other_sharing_strategy_is_torchs_alone() -> None:
    for number, batch in enumerate(loader_of(worker_init_fn=by_file)):
        assert holds(batch, number)


class Failing(Numbers):
    """Sample 5 cannot be collated with the others."""

    def __getitem__(self, index: int) -> torch.Tensor:
        assert get_worker_info() is not None
        return super().__getitem__(index)[: VALUES - (index == 5)]


def test_a_collate_fn_that_fails_costs_no_other_batch() -> None:
    iterator = iter(headrace.DataLoader(Failing(64), batch_size=4, num_workers=1))
    assert holds(next(iterator), 0)
    with pytest.raises(RuntimeError, match="resize storage"):
        next(iterator)
    assert all(holds(batch, number) for number, batch in enumerate(iterator, 2))


def test_small_tensors_are_torchs(tmp_path: Path) -> None:
    assert VALUES < shared_blocks.LEAST
    data: Any = torch.arange(4000).view(-1, 10)
    inodes = [inode(batch) for batch in headrace.DataLoader(data, 4, num_workers=1)]
    assert len(inodes) == 100


class Growing(Numbers):
    """The same, of a size that differs from batch to batch."""

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((VALUES + 64 * ((index // 4 * 7) % 16),), float(index))


def test_batches_of_several_sizes_share_blocks_of_the_size_that_torchs_have() -> None:
    loader = headrace.DataLoader(Growing(96), batch_size=4, num_workers=2, collate_fn=default_collate)
    inodes = []
    for number, batch in enumerate(loader):
        assert holds(batch, number)
        assert batch.shape[1] == VALUES + 64 * (number * 7 % 16)
        assert batch.untyped_storage().nbytes() == batch.nbytes
        inodes.append(inode(batch))
    assert len(set(inodes)) < len(inodes)


def test_a_kept_batch_stays_when_others_take_parts_of_blocks() -> None:
    kept = list(headrace.DataLoader(Growing(64), batch_size=4, num_workers=1))
    assert all(holds(batch, number) for number, batch in enumerate(kept))
