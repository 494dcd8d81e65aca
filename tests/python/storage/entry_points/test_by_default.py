"""entry_points="auto", the default: one table for the loaders of a process, where enough of the samples may fit."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from test_learning import epochs, loader

import headrace
from headrace import transforms as T
from headrace._loading.autotune.budget import rank_memory
from headrace._loading.routes import epoch_runner
from headrace._storage.entry_points import process_table
from headrace._storage.entry_points.entry_points import EntryPoints
from headrace._storage.entry_points.process_table import ProcessTable
from support import assert_same

GIB = 1 << 30


@pytest.fixture(autouse=True)
def _no_table_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(process_table, "_of_process", None)
    yield


def shared_by_process(samples: int, memory: Callable[[], int]) -> ProcessTable | None:
    return process_table.shared_by_process(samples, memory, lambda: "a dataset")


def known() -> int:
    """Images in the table of this process; 0 without one."""
    table = None if process_table._of_process is None else process_table._of_process()
    return 0 if table is None else table.counts().images


def test_a_loader_learns_unless_told_otherwise() -> None:
    ours = loader("auto", num_workers=2)
    assert ours.entry_points == "auto"
    made = epochs(ours)
    found = ours.stats().entry_points
    assert found is not None and found.images == known() > 0 and found.entered >= 2 * found.images
    plain = loader(None, num_workers=2)
    assert_same(made, epochs(plain))
    assert plain.stats().entry_points is None
    by_default = headrace.DataLoader(headrace.EncodedImages([], None, T.ToTensor()))
    assert by_default.entry_points == "auto"


def test_the_loaders_of_a_process_share_one_table_which_ends_with_the_last() -> None:
    first, second = loader("auto"), loader("auto")
    epochs(first, 1)
    images = known()
    epochs(second, 1)
    found = second.stats().entry_points
    assert images > 0 and found is not None and found.entered >= images
    first.close()
    assert known() == images
    assert first.stats().entry_points is not None  # what it was when the loader was closed
    second.close()
    gc.collect()
    assert known() == 0
    assert_same(epochs(second, 1), epochs(loader(None), 1))  # a closed loader begins again
    assert known() > 0


def test_too_few_samples_would_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared_by_process(1_281_167, lambda: 24 * GIB) is not None
    monkeypatch.setattr(process_table, "_of_process", None)
    assert shared_by_process(1_281_167, lambda: 2 * GIB) is None  # a table of 64 MiB: 9%
    assert shared_by_process(1_000_000, lambda: 2 * GIB) is not None
    monkeypatch.setattr(process_table, "_of_process", None)
    monkeypatch.setattr(epoch_runner, "rank_memory", lambda: 1)
    ours = loader("auto")
    assert_same(epochs(ours, 2), epochs(loader(None), 2))
    assert ours.stats().entry_points is None


def test_one_table_has_one_limit() -> None:
    table = shared_by_process(1, lambda: GIB)
    assert isinstance(table, EntryPoints) and table.native.limit == GIB // 32
    assert shared_by_process(1, lambda: 2 * GIB) is table


def test_the_memory_of_a_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:       1000 kB\nMemAvailable:   10 kB\n")
    assert rank_memory(tmp_path) == 1_024_000
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert rank_memory(tmp_path) == 256_000
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("400000\n")
    (tmp_path / "proc/self").mkdir()
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    assert rank_memory(tmp_path) == 100_000
    (group / "memory.max").write_text("4000000\n")  # more than there is
    assert rank_memory(tmp_path) == 256_000


def test_what_has_no_jpegs_is_as_before() -> None:
    columns = headrace.DataLoader(headrace.Columns({"a": np.arange(4)}), 2)
    assert torch.equal(next(iter(columns))["a"], torch.tensor([0, 1]))
    assert columns.stats().entry_points is None
    assert [batch.tolist() for batch in headrace.DataLoader([1, 2], 2)] == [[1, 2]]  # type: ignore[arg-type]
    assert known() == 0
