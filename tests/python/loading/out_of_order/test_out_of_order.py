"""``in_order=False``: a complete batch overtakes one that waits for a slow sample."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from slow_samples import BATCH, COUNT, Gate, Slow, dataset, loader, numbers, sorted_batches, taken
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import Columns, DataLoader, ImageFiles, SampleError
from support import WATCHDOG_S, assert_same, pictures, train


def test_a_complete_batch_overtakes() -> None:
    gate = Gate(5)
    ours = loader(gate)
    assert ours.native and "in_order=False: a batch that is complete" in str(ours.explain())
    iterator = iter(ours)
    got = taken(iterator, COUNT // BATCH - 1)
    assert sorted(numbers(got)) == [0, *range(2, COUNT // BATCH)]
    gate.go.set()
    got += list(iterator)
    assert numbers(got)[-1] == 1 and ours.state_dict()["epoch"] == 1
    assert_same(sorted_batches(got), loader(in_order=True, num_workers=0))


@pytest.mark.parametrize(
    "options", [{}, {"in_order": True}, *({"num_workers": few, "in_order": False} for few in (0, 1))], ids=repr
)
def test_otherwise_batches_come_in_order(options: dict[str, Any]) -> None:
    slow = Slow(0.05, 5, 20)
    ours = DataLoader(dataset(slow), BATCH, **{"num_workers": 2, "seed": 3, **options})
    assert numbers(ours) == list(range(COUNT // BATCH)) and "in_order=False" not in str(ours.explain())


@pytest.mark.filterwarnings("ignore:epoch 0")
@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_failed_samples(on_error: Any) -> None:
    """Batch 1 is outstanding while batches 2 and 4 fail; what was passed over stays so."""
    bad = {9, *range(16, 20)}

    def fails(image: Any) -> Any:
        if image.getpixel((0, 0))[0] in bad:
            raise RuntimeError("a bad sample")
        return image

    def collected(iterator: Iterator[Any]) -> list[Any]:
        got: list[Any] = []
        while True:
            try:
                got.append(next(iterator))
            except StopIteration:
                return got
            except SampleError as error:
                errors.append(error.index)

    errors: list[int] = []
    options: dict[str, Any] = {"on_error": on_error, "max_errors": None}
    expected = collected(iter(loader(Gate(), fails, in_order=True, **options)))
    wanted, errors[:] = list(errors), []
    gate = Gate(5)
    ours = loader(gate, fails, **options)
    iterator = iter(ours)
    got: list[Any] = []
    while len(got) < len(expected) - 2:
        try:
            got.append(next(iterator))
        except SampleError as error:
            errors.append(error.index)
    state = ours.state_dict()
    assert 1 not in state["overtaking"] and state["position"] == 1 and 2 in state["overtaking"]
    resumed = loader(Gate(), fails, **options)
    resumed.load_state_dict(state)
    rest = collected(iter(resumed))
    assert_same(sorted_batches(got + rest), sorted_batches(expected))
    assert sorted(errors) == wanted
    gate.go.set()
    ours.close()


def test_an_error_counts_only_once_a_later_call_returned() -> None:
    """As in order: after an error that ends a training the batch is made again."""
    bad = {9}

    def fails(image: Any) -> Any:
        if image.getpixel((0, 0))[0] in bad:
            raise RuntimeError("a bad sample")
        return image

    ours = loader(Gate(5), Gate(9), fails, num_workers=3)
    iterator = iter(ours)
    before = numbers(taken(iterator, 3))
    assert sorted(before) == [0, 3, 4]
    Gate.made[1].go.set()
    with pytest.raises(SampleError):
        while True:
            before += numbers([next(iterator)])
    state = ours.state_dict()
    assert 2 not in state["overtaking"]
    before += numbers([next(iterator)])
    assert 2 in ours.state_dict()["overtaking"]
    bad.clear()
    resumed = loader(Gate(), Gate(), fails)
    resumed.load_state_dict(state)
    assert 2 in numbers(resumed)


def test_a_timeout_leaves_all_batches() -> None:
    gate = Gate(5, 9, 13)
    ours = loader(gate, num_workers=3, timeout=0.3)
    iterator = iter(ours)
    got: list[Any] = []
    with pytest.raises(RuntimeError, match=r"timed out after 0[.]3 seconds"):
        while True:
            got.append(next(iterator))
    gate.go.set()
    assert sorted(numbers(got + list(iterator))) == list(range(COUNT // BATCH))


def test_a_slow_collate_fn_is_overtaken() -> None:
    go = threading.Event()

    def collate(samples: list[Any]) -> int:
        if samples[0][1] == 4:
            assert go.wait(WATCHDOG_S)
        return int(samples[0][1]) // BATCH

    iterator = iter(loader(collate_fn=collate))
    got = taken(iterator, COUNT // BATCH - 1)
    go.set()
    assert sorted(got) == [0, *range(2, COUNT // BATCH)] and list(iterator) == [1]


def test_several_threads_share_an_iterator() -> None:
    slow = Slow(0.01, *range(0, COUNT, 9))
    expected, ours = list(loader(slow, in_order=True)), loader(slow, num_workers=3)
    iterator, got = iter(ours), list[Any]()
    threads = [threading.Thread(target=lambda: got.extend(iterator)) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert_same(sorted_batches(got), expected)
    assert ours.state_dict()["epoch"] == 1


def test_the_sampler_is_read_as_far_as_torch_reads_it() -> None:
    """While a batch is outstanding."""
    read: list[list[int]] = []
    for kind in (TorchDataLoader, DataLoader):
        seen: list[int] = []

        class Noting:
            def __len__(self) -> int:
                return COUNT

            def __iter__(self) -> Iterator[int]:
                for number in range(COUNT):
                    seen.append(number)  # noqa: B023
                    yield number

        gate = Gate(5)
        given: dict[str, Any] = {"sampler": Noting(), "num_workers": 2, "in_order": False}
        data: Any = dataset(gate) if kind is DataLoader else SlowNumbers()
        iterator = iter(kind(data, BATCH, **given))
        counts = []
        for _ in range(5):
            next(iterator)
            counts.append(len(seen))
        read.append(counts)
        gate.go.set()
        list(iterator)
    assert read[0] == read[1]


class SlowNumbers(torch.utils.data.Dataset[int]):
    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> int:
        time.sleep(0.5 * (index == 5))
        return index


def test_rows_of_columns_and_a_chosen_number_of_threads() -> None:
    columns = Columns({"number": torch.arange(COUNT)})
    got = list(DataLoader(columns, BATCH, num_workers=2, in_order=False))
    assert torch.equal(torch.cat([one["number"] for one in got]).sort()[0], torch.arange(COUNT))
    gate = Gate(5)
    iterator = iter(loader(gate, num_workers="auto"))
    early = numbers(taken(iterator, 2))
    gate.go.set()
    assert sorted(early + numbers(iterator)) == list(range(COUNT // BATCH))


@pytest.mark.parametrize("device", [None, "emulated"])
def test_a_file_that_does_not_answer_is_overtaken(device: str | None, tmp_path: Path) -> None:
    """Native threads alone; a pipe without a writer stands for a slow file system."""
    options: dict[str, Any] = {"seed": 1, "device": device}
    made = pictures(12)
    paths = [tmp_path / f"{number}.jpg" for number in range(12)]
    for path, data in zip(paths, made, strict=True):
        path.write_bytes(data)
    expected = list(DataLoader(ImageFiles(paths, list(range(12)), train(16)), 2, **options))
    paths[3].unlink()
    os.mkfifo(paths[3])
    iterator = iter(
        DataLoader(ImageFiles(paths, list(range(12)), train(16)), 2, num_workers=2, in_order=False, **options)
    )
    got = taken(iterator, 5)
    assert sorted(int(labels[0]) for _, labels in got) == [0, 4, 6, 8, 10]
    paths[3].write_bytes(made[3])
    assert_same(sorted_batches(got + list(iterator)), expected)
