"""Memory of finished pixels is used again only when nothing refers to it, whatever its users keep."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

import headrace
from headrace.pillow.memory import pixel_memory
from headrace.pillow.memory.pixel_memory import LEAST, MOST, PixelMemory
from own_dataset import OwnDataset
from torchvision_shim import import_torchvision

FLOATS, BYTES = np.dtype(np.float32), np.dtype(np.uint8)
SHAPE = (3, 224, 224)


def address(array: Any) -> int:
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data_ptr()


def test_freed_memory_is_used_again() -> None:
    memory = PixelMemory()
    first = memory.empty(SHAPE, FLOATS)
    assert first.shape == SHAPE
    assert first.dtype == FLOATS
    assert first.flags.c_contiguous
    assert first.flags.writeable
    before = address(first)
    second = memory.empty(SHAPE, FLOATS)
    assert address(second) != before
    first[...], second[...] = 1, 2
    assert (first == 1).all()
    del first
    assert address(memory.empty(SHAPE, FLOATS)) == before
    # Arrays of about the same size, of any shape and dtype.
    assert address(memory.empty((3, 4 * 224, 220), BYTES)) == before


@pytest.mark.parametrize(
    "keep",
    [
        lambda array: array[1:],
        lambda array: array.view(np.int32),
        lambda array: memoryview(array),
        lambda array: torch.from_numpy(array),
        lambda array: torch.from_numpy(array)[2].flatten()[5:],
        lambda array: torch.from_numpy(array).untyped_storage(),
        lambda array: torch.from_numpy(array).numpy(),
        lambda array: torch.utils.dlpack.from_dlpack(array),
        lambda array: torch.utils.dlpack.to_dlpack(torch.from_numpy(array)),  # type: ignore[attr-defined]
    ],
)
def test_any_reference_keeps_the_memory(keep: Callable[[Any], Any]) -> None:
    memory = PixelMemory()
    array = memory.empty(SHAPE, FLOATS)
    before, kept = address(array), keep(array)
    del array
    other = memory.empty(SHAPE, FLOATS)
    assert address(other) != before
    del kept
    assert address(memory.empty(SHAPE, FLOATS)) == before


def test_a_cycle_keeps_the_memory_until_it_is_collected() -> None:
    memory = PixelMemory()
    array = memory.empty(SHAPE, FLOATS)
    before = address(array)
    cycle: list[Any] = [array]
    cycle.append(cycle)
    del array, cycle
    gc.collect()
    assert address(memory.empty(SHAPE, FLOATS)) == before


def test_unused_memory_has_a_bound() -> None:
    memory = PixelMemory()
    size = MOST // 4
    held = [memory.empty((size,), BYTES) for _ in range(6)]
    del held
    assert memory.count_unused() == {size: 4}
    # Sizes that are not used any more make room for those that are.
    held = [memory.empty((size // 2,), BYTES) for _ in range(8)]
    del held
    assert memory.count_unused() == {size // 2: 8}
    assert memory._bytes == MOST


def test_what_the_last_batches_did_not_need_is_given_up() -> None:
    memory = PixelMemory()
    for needed in (40, 10):
        for _ in range(20):
            batch = [memory.empty((LEAST,), BYTES) for _ in range(needed)]
            memory.next_batch()
            del batch
        assert memory.count_unused() == {LEAST: needed}
    for _ in range(4):
        memory.next_batch()
    assert memory.count_unused() == {}
    assert memory._bytes == 0


def test_files_of_many_sizes_share_a_piece() -> None:
    memory = PixelMemory()
    for height in range(300, 500):
        whole = memory.empty_for_a_while((height, 500, 4), BYTES)
        del whole
    assert memory.count_unused() == {1 << 20: 1}


def test_small_arrays_are_numpys() -> None:
    assert PixelMemory().empty((LEAST - 1,), BYTES).base is None
    assert PixelMemory().empty((LEAST,), BYTES).base is not None
    assert PixelMemory().empty((0, 5), BYTES).shape == (0, 5)


def test_threads_never_share_memory() -> None:
    memory = PixelMemory()
    wrong: list[Any] = []

    def use(number: int) -> None:
        kept: list[Any] = []
        for turn in range(300):
            array = memory.empty((LEAST + 4096 * (turn % 3),), BYTES)
            array[::4096] = number
            kept = [*kept[-3:], array]
            wrong.extend(1 for one in kept if (one[::4096] != number).any())

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_forked_child_allocates_for_itself() -> None:
    memory = PixelMemory()
    array = memory.empty(SHAPE, FLOATS)
    with memory._lock:
        child = os.fork()
        if child == 0:
            memory._lock = threading.RLock()  # as if another thread of the parent held it for ever
            threading.Thread(target=memory._lock.acquire).start()
            del array
            os._exit(0 if memory.empty(SHAPE, FLOATS).base is None else 1)
    assert os.waitpid(child, 0)[1] == 0


class Keeping(Dataset[Any]):
    """Keeps every tensor that it returns, and returns it again in the next epoch after its neighbour's sum."""

    def __init__(self, images: Any) -> None:
        self.images = images
        self.kept: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Any:
        if index not in self.kept:
            self.kept[index] = self.images[index][0]
            return self.kept[index], pixel_memory._memory is not None
        return self.kept[index], True


@pytest.mark.processes
@pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")
def test_a_dataset_that_keeps_its_tensors(photographs: list[Path]) -> None:
    T = import_torchvision().transforms
    images = OwnDataset(photographs[:24], T.Compose([T.Resize((224, 200)), T.ToTensor()]))
    expected = torch.stack([images[index][0] for index in range(24)])
    loader = headrace.DataLoader(Keeping(images), 4, num_workers=1, persistent_workers=True)
    for _ in range(3):
        for number, (batch, uses_again) in enumerate(loader):
            assert torch.equal(batch, expected[4 * number : 4 * number + 4])
            assert uses_again.all()
            batch.zero_()
    assert pixel_memory._memory is None
