"""torch delivers what headrace does not know: the same batches, errors and random numbers, and a stated reason."""

from __future__ import annotations

import copy
import pickle
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, IterableDataset, TensorDataset, default_collate, default_convert, get_worker_info

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from support import TENSOR, assert_same, blobs, pictures, train

pytestmark = pytest.mark.processes

TINY = T.Compose([T.Resize((2, 2)), *TENSOR])


class Noise(Dataset[Any]):
    """Draws from the generators of torch and numpy, which torch's workers seed."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> dict[str, Any]:
        info = get_worker_info()
        worker = -1 if info is None else info.id
        return {"index": index, "torch": torch.rand(2), "numpy": np.random.rand(), "worker": worker}  # noqa: NPY002


class Sequences(Dataset[torch.Tensor]):
    """Tensors of different lengths."""

    def __len__(self) -> int:
        return 7

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.arange(index + 1)


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(10))


def padded(samples: list[torch.Tensor]) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)


def drawing(samples: list[Any]) -> Any:
    """Draws from a generator of the process, so that torch's workers have to call it."""
    random.random()
    return default_collate(samples)[::-1]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    return bool(a == b)


FOREIGN: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "tensors": (lambda: TensorDataset(torch.arange(9), torch.arange(9) * 2), {"batch_size": 2, "shuffle": True}),
    "dicts": (Noise, {"batch_size": 5, "shuffle": True}),
    "dicts from workers": (Noise, {"batch_size": 5, "num_workers": 2, "shuffle": True}),
    "sequences": (Sequences, {"batch_size": 3, "collate_fn": padded}),
    "a stream": (Stream, {"batch_size": 4, "drop_last": True}),
    "a stream from workers": (Stream, {"batch_size": 4, "num_workers": 2}),
    "unbatched": (Noise, {"batch_size": None}),
    "a list": (lambda: [3, 4, 5, 6], {"batch_size": 3}),
    "spawned": (
        lambda: TensorDataset(torch.arange(4)),
        {"batch_size": 2, "num_workers": 1, "multiprocessing_context": "spawn", "persistent_workers": True},
    ),
    "a batch sampler": (Noise, {"batch_sampler": [[1, 2], [3], [1, 4, 5]]}),
}


@pytest.mark.parametrize(("make", "options"), FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("generator", [False, True])
def test_foreign_datasets_are_torchs_to_the_last_random_number(
    make: Callable[..., Any], options: dict[str, Any], generator: bool
) -> None:
    seen = []
    for kind in (TorchDataLoader, DataLoader):
        torch.manual_seed(5)
        np.random.seed(6)  # noqa: NPY002
        own = torch.Generator().manual_seed(7) if generator else None
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # headrace adds none
            loader = kind(make(), generator=own, **options)
            epochs = [list(loader), list(loader)]
        after = (torch.get_rng_state(), own.get_state() if own is not None else None)
        seen.append((epochs, after))
    (theirs, state), (ours, after) = seen
    assert not DataLoader(make(), **options).native
    for a, b in zip(ours, theirs, strict=True):
        assert len(a) == len(b) > 0 and all(same(x, y) for x, y in zip(a, b, strict=True))
    assert torch.equal(after[0], state[0]) and same(after[1], state[1])


def custom(image: Any) -> torch.Tensor:
    return torch.full((3, 2, 2), float(np.asarray(image).sum()))


@pytest.mark.parametrize("options", [{"collate_fn": drawing}, {"worker_init_fn": print}], ids=list)
def test_arguments_that_need_python_hand_a_native_dataset_over(options: dict[str, Any]) -> None:
    data = blobs(6, TINY)
    loader = DataLoader(data, 4, **options)
    assert not loader.native and DataLoader(data, 4).native
    assert_same(loader, TorchDataLoader(data, 4, **options))


def test_single_samples_are_collated_as_asked() -> None:
    data = EncodedImages(pictures(4), None, TINY)
    for batch_size, collate in ((None, default_collate), (2, default_convert)):
        results = []
        for kind in (DataLoader, TorchDataLoader):
            try:
                results.append(list(kind(data, batch_size, collate_fn=collate)))
            except TypeError as error:  # default_collate of one image
                results.append([str(error)])
        assert same(*results)


def test_a_transform_of_ones_own_is_called_behind_the_native_decoder() -> None:
    data = EncodedImages(pictures(6), range(6), custom)
    loader = DataLoader(data, 4, num_workers=1)
    assert loader.native
    assert_same(loader, TorchDataLoader(data, 4))


@pytest.mark.parametrize(
    ("transform", "words"),
    [
        (None, "the dataset has no transform"),
        (T.ToTensor(), "sizes vary after the last step"),
        (T.Compose([T.Resize((4, 4))]), "no step makes a tensor"),
    ],
)
def test_transforms_without_a_batch_fail_as_in_torch(transform: Any, words: str) -> None:
    data = EncodedImages(pictures(), None, transform)
    ours, theirs = DataLoader(data, 9), TorchDataLoader(data, 9)
    assert words in str(ours.explain()).splitlines()[0]
    with pytest.raises((TypeError, RuntimeError)) as wanted:
        next(iter(theirs))
    with pytest.raises(type(wanted.value)) as raised:
        next(iter(ours))
    assert str(raised.value) == str(wanted.value)


REFUSED: list[dict[str, Any]] = [
    {"dtype": torch.float16},
    {"memory_format": torch.channels_last},
]


@pytest.mark.parametrize("options", REFUSED, ids=repr)
def test_what_only_the_native_path_can_do_is_refused_with_the_reason(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError) as raised:
        DataLoader(Noise(), 3, **options)
    name, value = next(iter(options.items()))
    assert str(raised.value).startswith(
        f"{name}={value!r} needs headrace's native path, but torch's DataLoader would serve here: headrace does not "
        "know test_fallback.Noise; it reads "
    )
    assert "\n" not in str(raised.value)


def test_the_cpu_is_no_device_to_refuse() -> None:
    assert len(list(DataLoader(Noise(), 3, device="cpu", decoder="auto", max_errors=3))) == 4
    for device in ("cpu:0", torch.device("cpu"), torch.device("cpu", 0)):
        assert len(list(DataLoader(Noise(), 3, device=device))) == 4


def test_errors_in_torchs_arguments_are_torchs() -> None:
    for options in (
        {"batch_size": 2.5},
        {"num_workers": -1},
        {"timeout": -1},
        {"num_workers": 0, "prefetch_factor": 2},
    ):
        with pytest.raises(Exception) as theirs:
            next(iter(TorchDataLoader(Noise(), **options)))
        with pytest.raises(type(theirs.value)) as ours:
            next(iter(DataLoader(Noise(), **options)))
        assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_seed_decides_order_and_random_numbers(workers: int) -> None:
    def run(epochs: int = 3, **options: Any) -> list[list[Any]]:
        loader = DataLoader(Noise(), 4, True, num_workers=workers, seed=3, **options)
        torch.manual_seed(11)
        return [list(loader) for _ in range(epochs)]

    first = run()
    torch.rand(3)
    again = run()
    for a, b in zip(first, again, strict=True):
        assert all(same(x["index"], y["index"]) for x, y in zip(a, b, strict=True))
        assert all(torch.equal(x["torch"], y["torch"]) for x, y in zip(a, b, strict=True))
    orders = [torch.cat([one["index"] for one in epoch]).tolist() for epoch in first]
    assert sorted(orders[0]) == list(range(12)) and len({tuple(order) for order in orders}) == 3
    native = DataLoader(blobs(12, TINY), 4, True, seed=3)
    assert orders == [torch.cat([labels for _, labels in native]).tolist() for _ in range(3)]


def test_epochs_can_be_set_and_begun_side_by_side() -> None:
    loader = DataLoader(Noise(), 4, True, seed=3)
    orders = [[one["index"].tolist() for one in loader] for _ in range(2)]
    loader.set_epoch(0)
    assert [a["index"].tolist() for a in loader] == orders[0]
    loader.set_epoch(0)
    assert [(a["index"].tolist(), b["index"].tolist()) for a, b in zip(loader, loader, strict=True)] == [
        *zip(*orders, strict=True)
    ]
    with pytest.raises(ValueError, match="epoch must be 0 or more"):
        loader.set_epoch(-1)


def test_samplers_are_told_of_the_epoch() -> None:
    class Told(torch.utils.data.SequentialSampler):
        epoch = -1

        def set_epoch(self, epoch: int) -> None:
            self.epoch = epoch

    sampler = Told(Noise())
    DataLoader(Noise(), 4, sampler=sampler).set_epoch(7)
    assert sampler.epoch == 7


def test_a_generator_beside_a_seed_decides_the_order() -> None:
    orders = []
    kinds: tuple[tuple[Any, dict[str, Any]], ...] = ((TorchDataLoader, {}), (DataLoader, {"seed": 4}))
    for kind, options in kinds:
        loader = kind(Noise(), 4, True, generator=torch.Generator().manual_seed(1), **options)
        orders.append([[one["index"].tolist() for one in loader] for _ in range(2)])
    assert orders[0] == orders[1]


def test_what_torch_does_not_have_raises_one_sentence() -> None:
    loader = DataLoader(Noise(), 4)
    calls: dict[str, Callable[[], Any]] = {
        "verify()": loader.verify,
        "reference()": loader.reference,
        "peek_epoch()": loader._peek_epoch,
        "recipe()": loader.recipe,
    }
    for name, call in calls.items():
        with pytest.raises(RuntimeError) as raised:
            call()
        assert str(raised.value).startswith(
            f"{name} needs headrace's native path, but torch's DataLoader serves here: headrace does not know "
            "test_fallback.Noise; "
        )
    assert loader.stats().stages == () and "torch's DataLoader delivers" in str(loader.stats())
    assert loader.errors == []


def test_explain_says_who_and_why() -> None:
    loader = DataLoader(Noise(), 4, num_workers=2, collate_fn=drawing, seed=1)
    first, *rest = str(loader.explain()).splitlines()
    assert "torch" in first and "handed to torch's DataLoader: collate_fn draws random numbers" in first
    for words in ("Noise in 2 worker processes", "drawing", "follow from seed=1"):
        assert any(words in line for line in rest), words


def test_closing_ends_persistent_workers() -> None:
    loader = DataLoader(Noise(), 4, num_workers=1, persistent_workers=True)
    list(loader)
    iterator: Any = loader._iterator
    processes = iterator._workers
    del iterator
    loader.close()
    assert loader._iterator is None and not any(one.is_alive() for one in processes)
    assert len(list(loader)) == 3
    loader.close()


def test_copies() -> None:
    loader = DataLoader(Noise(), 4, True, seed=2)
    copies = [copy.copy(loader), copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))]
    orders = [[one["index"].tolist() for one in one_loader] for one_loader in (loader, *copies)]
    assert all(order == orders[0] for order in orders)


def test_native_loaders_say_so() -> None:
    assert DataLoader(blobs(6, train(8))).native


def test_what_is_set_later_holds_from_the_next_epoch_on() -> None:
    orders = []
    for late in (False, True):
        loader = DataLoader(blobs(6, TINY), 4, True, seed=3)
        orders.append([[labels.tolist() for _, labels in loader]])
        if late:
            loader.worker_init_fn = print
        orders[-1] += [[labels.tolist() for _, labels in loader] for _ in range(2)]
        assert loader.native is not late
    assert orders[0] == orders[1]
    loader = DataLoader(blobs(6, TINY), 4)
    loader.collate_fn = len
    assert list(loader) == [4, 2] and loader.native
    loader.collate_fn = drawing
    assert len(list(loader)) == 2 and not loader.native


def test_a_transform_exchanged_for_one_that_makes_no_batch_fails_as_in_torch() -> None:
    data = blobs(6, TINY)
    ours, theirs = DataLoader(data, 6), TorchDataLoader(data, 6)
    list(ours)
    data.transform = T.ToTensor()
    with pytest.raises(RuntimeError) as wanted:
        next(iter(theirs))
    with pytest.raises(RuntimeError) as raised:
        next(iter(ours))
    assert str(raised.value) == str(wanted.value) and not ours.native
    data = blobs(6, TINY)
    kept = DataLoader(data, 6, dtype=torch.float16)
    data.transform = None
    for call in (kept.verify, kept.state_dict, lambda: iter(kept)):
        with pytest.raises(
            TypeError, match=r"dtype=torch.float16 needs headrace's native path, .*: the dataset has no"
        ):
            call()
    assert kept.native
