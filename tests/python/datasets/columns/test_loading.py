"""Loaders of columns deliver torch's batches from native threads: order, state, ranks, memory, reports."""

from __future__ import annotations

import gc
import io
import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Subset, default_collate, random_split
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import Columns, DataLoader, ImageArray, VerificationError
from headrace._engine.columns_engine import ColumnsEngine
from headrace.datasets.columns.row_layout import Column
from support import eventually, same

RNG = np.random.default_rng(5)
COUNT = 37
FLOATS = RNG.standard_normal((COUNT, 4, 3), dtype=np.float32)


def mixed(count: int = COUNT, seed: int = 1) -> Columns:
    random = np.random.default_rng(seed)
    return Columns(
        {
            "x": random.standard_normal((count, 5, 4, 13), dtype=np.float32),
            "tokens": torch.from_numpy(random.integers(0, 999, (count, 7))),
            "label": np.arange(count),
            "mask": random.random((count, 3)) > 0.5,
            "half": torch.from_numpy(random.standard_normal((count, 3))).to(torch.bfloat16),
            "none": np.zeros((count, 0, 2)),
        }
    )


def assert_equal(ours: Any, theirs: Any) -> None:
    for a, b in itertools.zip_longest(ours, theirs):
        assert same(a, b)


@pytest.mark.parametrize("batch_size", [4, None])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_and_order_are_torchs(workers: int, shuffle: bool, batch_size: int | None) -> None:
    data = mixed()
    torch.manual_seed(3)
    theirs = list(TorchDataLoader(data, batch_size, shuffle))
    torch.manual_seed(3)
    loader = DataLoader(data, batch_size, shuffle, num_workers=workers)
    assert loader.native
    assert_equal(loader, theirs)
    assert torch.equal(torch.rand(3), (torch.manual_seed(3), list(TorchDataLoader(data, 4, shuffle)), torch.rand(3))[2])


DTYPES = [
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
    torch.float8_e4m3fn,
    torch.bool,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)], ids=str)
def test_dtypes_keep_their_bytes(dtype: torch.dtype, shape: tuple[Any, ...]) -> None:
    tensor = (torch.rand(9, *shape) * 2).to(torch.complex128 if dtype.is_complex else torch.float32).to(dtype)
    batches = list(DataLoader(Columns({"x": tensor}), 4, num_workers=2))
    made = torch.cat([one["x"].reshape(-1).view(torch.uint8) for one in batches])
    assert batches[0]["x"].dtype == dtype and batches[0]["x"].shape == (4, *shape)
    assert torch.equal(made, tensor.reshape(-1).view(torch.uint8))


STRIDED = {
    "every other row": FLOATS[::2],
    "backwards": FLOATS[::-1],
    "mirrored": FLOATS[:, :, ::-1],
    "every third value": RNG.random((COUNT, 9, 6))[:, ::3, ::2],
    "planes": FLOATS.transpose(0, 2, 1),
    "rows along the last axis": np.ascontiguousarray(FLOATS.transpose(1, 2, 0)).transpose(2, 0, 1),
    "columns first": np.asfortranarray(FLOATS),
    "one row for all": np.broadcast_to(FLOATS[3], FLOATS.shape),
    "labels": FLOATS[:, 2, 1],
    "a tensor": torch.from_numpy(FLOATS).permute(0, 2, 1)[:, 1:],
}


@pytest.mark.parametrize("array", STRIDED.values(), ids=STRIDED)
def test_any_strides(array: np.ndarray | torch.Tensor) -> None:
    data = Columns({"x": array})
    loader = DataLoader(data, 4, num_workers=2)
    assert_equal(loader, TorchDataLoader(data, 4))
    assert torch.equal(
        torch.cat([one["x"] for one in loader]),
        torch.as_tensor(array if isinstance(array, torch.Tensor) else array.copy()),
    )


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_mapped_files(tmp_path: Path, mode: Literal["r", "r+", "c"]) -> None:
    np.save(tmp_path / "x.npy", FLOATS)
    data = Columns({"x": np.load(tmp_path / "x.npy", mmap_mode=mode)})
    assert_equal(DataLoader(data, 5, num_workers=2), TorchDataLoader(data, 5))


def test_large_rows_from_a_file_that_is_not_in_memory(tmp_path: Path) -> None:
    """Rows above the sizes from which pages are requested as a whole and stores pass the caches."""
    random = RNG.integers(0, 256, (12, 1 << 20), dtype=np.uint8)
    np.save(tmp_path / "x.npy", random)
    data = Columns({"x": np.load(tmp_path / "x.npy", mmap_mode="r")[:, 5:-3], "n": np.arange(12)})
    for batch in DataLoader(data, 9, num_workers=2):
        assert np.array_equal(batch["x"].numpy(), random[batch["n"].numpy(), 5:-3])


def combined() -> dict[str, Any]:
    first, second = mixed(), mixed(11, 7)
    return {
        "subset": Subset(first, [5, 0, -1, 5]),
        "split": random_split(first, [30, 7], torch.Generator().manual_seed(0))[1],
        "nested": Subset(Subset(first, range(20, 30)), [9, 0]),
        "joined": ConcatDataset([first, second]),
        "joined parts": ConcatDataset([Subset(second, [3, 1]), first, Subset(ConcatDataset([first, second]), [40, 2])]),
        "part of joined": Subset(ConcatDataset([first, second]), [47, 0, 36, 37]),
    }


@pytest.mark.parametrize("kind", combined())
def test_subsets_and_concatenations_are_native(kind: str) -> None:
    data = combined()[kind]
    loader = DataLoader(data, 3, num_workers=2)
    assert loader.native and loader.verify(1).batches == 1
    assert_equal(loader, TorchDataLoader(data, 3))
    state = loader.state_dict()
    loader.load_state_dict(state)


def test_a_subset_that_changes_takes_effect_with_the_next_epoch() -> None:
    data = Subset(mixed(), [1, 2, 3])
    loader = DataLoader(data, 3, num_workers=1)
    assert next(iter(loader))["label"].tolist() == [1, 2, 3]
    data.indices = [4, 5, 6]
    assert next(iter(loader))["label"].tolist() == [4, 5, 6]
    data.indices = [4, 5]
    assert next(iter(loader))["label"].tolist() == [4, 5]


@pytest.mark.parametrize("workers", [0, 2])
def test_resuming_delivers_the_rest(workers: int) -> None:
    loader = DataLoader(mixed(), 4, True, seed=1, num_workers=workers)
    list(loader)
    batches = iter(loader)
    next(batches)
    state = torch.load(io.BytesIO(_saved(loader.state_dict())), weights_only=True)
    rest = list(batches)
    other = DataLoader(mixed(), 4, True, seed=1)
    other.load_state_dict(state)
    assert_equal(other, rest)
    with pytest.raises(ValueError, match="another number of samples"):
        DataLoader(mixed(20), 4, True, seed=1).load_state_dict(state)
    with pytest.raises(ValueError, match="holds other samples"):
        DataLoader(mixed(seed=2), 4, True, seed=1).load_state_dict(state)


def _saved(value: Any) -> bytes:
    out = io.BytesIO()
    torch.save(value, out)
    return out.getvalue()


def test_ranks_share_the_order() -> None:
    ranks = [DataLoader(mixed(), 3, True, seed=1, rank=rank, world_size=2, num_workers=1) for rank in (0, 1)]
    whole = DataLoader(mixed(), 6, True, seed=1, drop_last=True)
    for one, *parts in zip(whole, *ranks, strict=False):
        dealt = torch.stack([part["label"] for part in parts], dim=1).reshape(-1)
        assert torch.equal(one["label"], dealt)


def test_samplers_and_batch_samplers() -> None:
    data = mixed()
    order = [[3, 3, 36], [0], [7, 8]]
    assert_equal(DataLoader(data, batch_sampler=order, num_workers=2), TorchDataLoader(data, batch_sampler=order))
    assert_equal(DataLoader(data, 2, sampler=[9, 1, 9]), TorchDataLoader(data, 2, sampler=[9, 1, 9]))


def test_memory_belongs_to_its_holder_and_returns() -> None:
    loader = DataLoader(mixed(400), 4, num_workers=2, persistent_workers=True)
    list(loader)
    kept = [batch["label"] for batch in loader]  # one column keeps the slot
    assert torch.equal(torch.cat(kept), torch.arange(400))
    engine: Any = loader._engine
    assert engine.slots >= 100
    list(loader)
    assert torch.equal(torch.cat(kept), torch.arange(400))
    del kept
    gc.collect()
    assert eventually(lambda: engine.slots <= 8)
    batch = next(iter(loader))
    assert all(one.untyped_storage().nbytes() == one.nbytes for one in batch.values())
    assert len(_saved(batch["label"])) < 3000


def test_pinned_memory_is_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an accelerator nothing can be pinned, so plain memory takes its place."""
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *size, pin_memory=False, **where: empty(*size, **where))
    data = mixed()
    source: Any = DataLoader(data)._source
    engine = ColumnsEngine(source.layout, threads=2, slots_kept=2, pin=True)
    rows = np.array([5, 0, 36])
    flight = engine.submit(source.blob_table(), rows, np.empty((3, 0)))
    assert engine.wait(flight, 10) and not engine.failures(flight)
    batch = engine.tensor(flight)
    assert same(batch, default_collate([data[i] for i in rows])) and engine.slots == 0
    assert len({one.untyped_storage().data_ptr() for one in batch.values()}) == 1
    engine.cancel(engine.submit(source.blob_table(), rows, np.empty((3, 0))))
    engine.close()


def test_the_arrays_live_as_long_as_batches_need_them() -> None:
    def begin() -> Any:
        return iter(DataLoader(mixed(200), 4, num_workers=1))

    batches = begin()
    gc.collect()
    assert torch.equal(torch.cat([one["label"] for one in batches]), torch.arange(200))


def test_reports() -> None:
    loader = DataLoader(mixed(), 4, True, seed=2, num_workers=2, pin_memory=False)
    report = loader.verify(2)
    assert str(report) == f"2 batches, 8 samples, {report.bytes:,} bytes compared with dataset[i]: 0 differ"
    assert_equal(loader.reference(), list(loader))
    text = str(loader.explain())
    assert "column 'x'" in text and "float32, (n, 5, 4, 13), contiguous rows" in text and "2 threads" in text
    assert loader.stats().stages[0].items == COUNT
    assert "Columns(37 rows" in repr(loader._source)
    with pytest.raises(RuntimeError, match="no transforms, and so no recipe"):
        loader.recipe()


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = DataLoader(mixed(), 4)
    right = Column.rows
    wrong = lambda self, indices: right(self, indices) * (self.name != "label")  # noqa: E731
    monkeypatch.setattr(Column, "rows", wrong)
    with pytest.raises(VerificationError, match=r"^batch 0: column 'label' differs"):
        loader.verify(1)


def test_nans_equal_themselves() -> None:
    assert DataLoader(Columns({"x": np.full((4, 2), np.nan)}), 2).verify().batches == 2


def test_out_transform_and_unbatched_samples() -> None:
    loader = DataLoader(mixed(), 4, num_workers=1, out_transform=lambda batch: batch["label"] * 2)
    assert torch.equal(torch.cat(list(loader)), 2 * torch.arange(COUNT))


def test_a_loader_can_be_pickled_and_used_by_many_threads() -> None:
    loader = pickle.loads(pickle.dumps(DataLoader(mixed(), 4, seed=1, shuffle=True, num_workers=1)))
    assert_equal(loader, list(loader.reference()) and DataLoader(mixed(), 4, seed=1, shuffle=True))


@pytest.mark.parametrize(
    "argument", [{"device": "emulated"}, {"dtype": torch.float16}, {"memory_format": torch.channels_last}]
)
def test_arguments_of_images_are_refused_in_a_sentence(argument: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=rf"^{next(iter(argument))}=.* applies to images, .*; leave it out$"):
        DataLoader(mixed(), 4, **argument)
    assert DataLoader(mixed(), 4, device="cpu").native


class Labelled(Columns):
    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index), index


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: DataLoader(mixed(), 4, worker_init_fn=print), "worker_init_fn does more"),
        (lambda: DataLoader(Labelled({"x": FLOATS}), 4), "overrides __getitem__"),
        (lambda: DataLoader(Subset(mixed(), [99]), 4), "names index 99 of a dataset of 37"),
        (lambda: DataLoader(ConcatDataset([mixed(), Columns({"x": FLOATS})]), 4), "joins columns of different layouts"),
        (
            lambda: DataLoader(ConcatDataset([mixed(), ImageArray(np.zeros((3, 4, 4), np.uint8))]), 4),
            "columns with another",
        ),
    ],
)
def test_what_torch_delivers(make: Callable[..., Any], reason: str) -> None:
    loader = make()
    assert not loader.native and reason in str(loader.explain()).partition("\n")[0]
    assert str(loader.explain()).count("handed to torch") == 1


def test_an_index_that_is_out_of_range() -> None:
    with pytest.raises(IndexError):
        list(DataLoader(mixed(), 2, sampler=[0, 37], num_workers=1))
