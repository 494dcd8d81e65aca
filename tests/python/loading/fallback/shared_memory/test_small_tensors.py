"""Small tensors of workers, copied from memory that both processes have mapped: only the time differs from torch's."""

from __future__ import annotations

import gc
import warnings
from collections import UserDict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, IterableDataset

import headrace
from headrace._loading.fallback import opened_images
from headrace._loading.fallback.shared_memory import small_tensors
from headrace._loading.fallback.shared_memory.small_tensors import SLOT, Slots, SmallTensors, make_slots
from support import open_files

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not small_tensors.is_possible(), reason="this torch does not count references"),
]
Pair = namedtuple("Pair", ["image", "label"])


class Bag(UserDict):
    """As transformers' batches are."""


class OwnTensor(torch.Tensor):
    """A subclass of torch's."""


def floats(number: int, *shape: int) -> torch.Tensor:
    return torch.arange(float(np.prod(shape)), dtype=torch.float32).reshape(shape) + number


def twice(number: int) -> Any:
    one = floats(number, 4)
    return [one, {"again": one}]


def views(number: int) -> Any:
    one = floats(number, 6, 4)
    return one[1:3], one.t(), one[::2, 1:]


def with_gradient(number: int) -> Any:
    return [floats(number, 4).requires_grad_()]


def shared(number: int) -> Any:
    return [floats(number, 4).share_memory_()]


def cycle(number: int) -> Any:
    made: list[Any] = [floats(number, 4)]
    made.append({"cycle": made})
    return made


#: name -> whether its tensors go by slots, and what makes a sample.
KINDS: dict[str, tuple[bool, Callable[[int], Any]]] = {
    "tensor": (True, lambda n: floats(n, 5)),
    "list": (True, lambda n: [floats(n, 2, 3), n]),
    "tuple": (True, lambda n: (floats(n, 2, 3), "text", n)),
    "dict": (True, lambda n: {"a": floats(n, 7), "b": torch.tensor(n), 3: None}),
    "nested": (True, lambda n: {"a": [(floats(n, 1), {"b": floats(n, 2)})], "c": floats(n, 3)}),
    "many": (True, lambda n: [floats(n + k, k + 1) for k in range(400)]),
    "scalar": (True, lambda n: torch.tensor(float(n))),
    "types": (
        True,
        lambda n: [
            floats(n, 3).to(one) for one in (torch.bool, torch.uint8, torch.bfloat16, torch.float16, torch.complex64)
        ],
    ),
    # A view refers to the tensor that it was made from.
    "transposed": (False, lambda n: [floats(n, 3, 4).clone().t()]),
    "expanded": (False, lambda n: [floats(n, 3, 1).expand(3, 5)]),
    "a part of a storage": (False, lambda n: [floats(n, 9)[2:5]]),
    "of an array": (True, lambda n: [torch.from_numpy(np.full((4, 4), n, np.int32))]),
    "just small": (True, lambda n: [floats(n, SLOT // 4 - 16)]),
    "two, one of which fits": (True, lambda n: [floats(n, SLOT // 8), floats(n, SLOT // 8 + 16)]),
    "empty": (False, lambda n: [torch.empty(0), torch.empty(3, 0, 2)]),
    "large": (False, lambda n: [floats(n, SLOT // 4)]),
    "own mapping": (False, lambda n: Bag(ids=floats(n, 4), mask=floats(n, 4) > 1)),
    "named tuple": (False, lambda n: Pair(floats(n, 4), n)),
    "the same twice": (True, twice),
    "views of one storage": (False, views),
    "with gradient": (False, with_gradient),
    "shared": (False, shared),
    "sparse": (False, lambda n: [floats(n, 3).to_sparse()]),
    "subclass": (False, lambda n: [floats(n, 3).as_subclass(OwnTensor)]),
    "parameter": (False, lambda n: [torch.nn.Parameter(floats(n, 3))]),
    "conjugate": (False, lambda n: [floats(n, 3).to(torch.complex64).conj()]),
    "negative": (False, lambda n: [floats(n, 3).to(torch.complex64).conj().imag]),
    "nested tensor": (False, lambda n: [torch.nested.nested_tensor([floats(n, 2), floats(n, 3)])]),
    "quantized": (False, lambda n: [torch.quantize_per_tensor(floats(n, 3), 0.5, 0, torch.quint8)]),
    "cycle": (False, cycle),
}


class Samples(Dataset[Any]):
    """One sample, made again for each index."""

    def __init__(self, make: Callable[[int], Any], count: int = 6) -> None:
        self.make, self.count = make, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return self.make(index)


def as_it_is(samples: Any) -> Any:
    return samples


def described(batch: Any, storages: dict[int, int] | None = None, seen: dict[int, int] | None = None) -> Any:
    """All that can be seen of a batch: values, layouts, memory, and which objects and storages are the same."""
    storages, seen = ({} if storages is None else storages), ({} if seen is None else seen)
    if id(batch) in seen:
        return "seen", seen[id(batch)]
    if isinstance(batch, (torch.Tensor, dict, list, tuple, UserDict)):
        seen[id(batch)] = len(seen)
    if isinstance(batch, torch.Tensor):
        if batch.is_sparse:
            return type(batch), batch.to_dense().tolist()
        if batch.is_nested:
            return type(batch), [one.tolist() for one in batch.unbind()]
        storage = batch.untyped_storage()
        number = storages.setdefault(storage._cdata, len(storages)) if storage.nbytes() else -1
        of_memory = number, storage.nbytes(), storage.resizable(), batch.is_shared(), batch.storage_offset()
        layout = batch.dtype, batch.shape, batch.stride(), batch.requires_grad, batch.is_leaf, batch.is_conj()
        values = batch.int_repr() if batch.is_quantized else batch.detach()
        return type(batch), of_memory, layout, batch.is_neg(), values.tolist()
    if isinstance(batch, (dict, UserDict)):
        return type(batch), [(key, described(one, storages, seen)) for key, one in batch.items()]
    if isinstance(batch, (list, tuple)):
        return type(batch), [described(one, storages, seen) for one in batch]
    return batch


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the storages that came by slots."""
    sizes: list[int] = []
    take = Slots.take

    def counted(self: Slots, slot: int, offset: int, size: int) -> torch.UntypedStorage:
        sizes.append(size)
        return take(self, slot, offset, size)

    monkeypatch.setattr(Slots, "take", counted)
    return sizes


@pytest.mark.filterwarnings(
    "ignore:Sparse invariant checks", "ignore:torch.quantize_per_tensor", "ignore:The PyTorch API of nested"
)
@pytest.mark.parametrize("name", KINDS)
def test_what_arrives_is_torchs(name: str, taken: list[int]) -> None:
    """Made by the dataset, and passed on by a collate_fn: only the samples and the batch refer to it."""
    by_slots, make = KINDS[name]
    options: dict[str, Any] = {"batch_size": None, "num_workers": 1, "collate_fn": as_it_is}
    expected = list(TorchDataLoader(Samples(make), **options))
    kept = list(headrace.DataLoader(Samples(make), **options))  # all of them: slots are used again meanwhile
    assert [described(one) for one in kept] == [described(one) for one in expected]
    assert bool(taken) == by_slots


def pairs(samples: Any) -> Any:
    return tuple(zip(*samples, strict=True))


def as_bag(samples: list[Any]) -> Bag:
    return Bag(x=torch.stack([one for one, _ in samples]), y=torch.tensor([n for _, n in samples]))


def as_dict(samples: list[Any]) -> dict[str, Any]:
    return {"x": torch.stack([one for one, _ in samples]), "y": torch.tensor([n for _, n in samples]), "all": samples}


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        for number in range(22):
            yield floats(number, 4), number


@pytest.mark.parametrize("collate_fn", [None, pairs, as_dict, as_bag, as_it_is])
@pytest.mark.parametrize("batch_size", [4, None])
@pytest.mark.parametrize("is_stream", [False, True])
def test_collated(collate_fn: Any, batch_size: int | None, is_stream: bool, taken: list[int]) -> None:
    if batch_size is None and collate_fn in (pairs, as_dict, as_bag):
        return
    dataset: Any = Stream() if is_stream else Samples(lambda n: (floats(n, 4), n), 22)
    options: dict[str, Any] = {"batch_size": batch_size, "num_workers": 2, "collate_fn": collate_fn}
    expected = list(TorchDataLoader(dataset, **options))
    kept = list(headrace.DataLoader(dataset, **options))
    assert [described(one) for one in kept] == [described(one) for one in expected]
    if not (is_stream and collate_fn is as_it_is):  # a batch with a state, which is its samples, too
        assert len(taken) >= len(kept)


class Keeping(Dataset[Any]):
    """Keeps what it returns: torch shares it with the main process."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.rows = [floats(10 * number, 3) for number in range(4)]
        self.pair = (self.rows[0], 1)

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        row = self.rows[index % 4]
        if self.how == "container":
            return self.pair
        if self.how == "storage":
            other: Any = torch.empty(0)
            return other.set_(row.untyped_storage(), 0, (3,))
        return row if self.how == "tensor" else row[:2]


last: list[Any] = []


def keep_batch(samples: Any) -> Any:
    """Keeps the batch of the first samples, and returns it again."""
    last.append([floats(0, 3)] if not last else last[0])
    return last[0]


def keep_samples(samples: Any) -> Any:
    last.append(samples)
    return samples if len(last) == 1 else last[0]


@pytest.mark.parametrize("how", ["tensor", "view", "storage", "container"])
@pytest.mark.parametrize("collate_fn", [None, as_it_is, keep_batch, keep_samples])
def test_what_a_worker_keeps_is_shared_as_torch_does(how: str, collate_fn: Any, taken: list[int]) -> None:
    """What the main process writes to a batch is in later batches, if the worker has kept its memory."""

    def seen(kind: Any) -> list[Any]:
        last.clear()
        made = []
        for batch in kind(Keeping(how), None, num_workers=1, collate_fn=collate_fn, prefetch_factor=1):
            for one in batch if isinstance(batch, (list, tuple)) else [batch]:
                if isinstance(one, torch.Tensor):
                    one += 1
            made.append(described(batch))
        return made

    # A sample is on its way while the one before is written to: without a race, the sums at the end are the same.
    assert seen(headrace.DataLoader)[-1][1:2] == seen(TorchDataLoader)[-1][1:2]
    assert not taken


def test_slots_that_are_not_read_are_not_used_again() -> None:
    slots = make_slots(2, ahead=1)
    assert slots is not None and slots.each == 3
    slots.serve()
    small = SmallTensors(slots, 1)
    small._as_batch = 4
    messages = []
    batches = [[floats(number, 4)] for number in range(5)]
    for batch in batches:
        small.prepare(batch, 4)
        made = small._sent.get(batch[0].untyped_storage()._cdata)
        messages.append(None if made is None else small._reduce(batch[0].untyped_storage()))
    assert [one is not None for one in messages] == [True] * 3 + [False] * 2
    function, arguments = messages[1]  # type: ignore[misc]
    storage = function(*arguments)
    copy: Any = torch.empty(0)
    assert copy.set_(storage, 0, (4,)).tolist() == batches[1][0].tolist() and storage.is_shared()
    small.prepare(batches[3], 4)
    assert small._sent[batches[3][0].untyped_storage()._cdata][1][0] == arguments[1]
    small.prepare(batches[4], 5)  # something else refers to the batch
    assert batches[4][0].untyped_storage()._cdata not in small._sent


def test_other_ways_to_start_workers(taken: list[int]) -> None:
    dataset = torch.utils.data.TensorDataset(floats(0, 32, 4), torch.arange(32))
    options: dict[str, Any] = {"num_workers": 1, "multiprocessing_context": "spawn"}
    expected = [described(one) for one in TorchDataLoader(dataset, 8)]
    made = [described(one) for one in headrace.DataLoader(dataset, 8, **options)]
    assert [[one[2:] for one in batch[1]] for batch in made] == [[one[2:] for one in batch[1]] for batch in expected]
    assert len(taken) == 8


def test_nothing_is_left() -> None:
    def open_slots() -> int:
        return sum("headrace-slots" in one for one in open_files())

    gc.collect()
    before = open_slots()
    loader = headrace.DataLoader(Samples(lambda n: floats(n, 4), 64), 2, num_workers=2, persistent_workers=True)
    iterator = iter(loader)
    kept = next(iterator)
    assert open_slots() > before
    del iterator, loader
    gc.collect()
    assert open_slots() == before
    assert kept.tolist() == [floats(0, 4).tolist(), floats(1, 4).tolist()]


class Large(Samples):
    def __getitem__(self, index: int) -> Any:
        return torch.zeros(1 << 17), index


@pytest.mark.parametrize("is_large", [False, True])
def test_a_loader_of_small_tensors_is_not_called_slow(is_large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened_images, "_warned", False)
    dataset: Any = Large(as_it_is, 24) if is_large else torch.utils.data.TensorDataset(floats(0, 24, 4))
    loader = headrace.DataLoader(dataset, 2, num_workers=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", headrace.PerformanceWarning)
        assert len(list(loader)) == 12
    assert len([one for one in caught if one.category is headrace.PerformanceWarning]) == is_large
    assert "small tensors come by memory that stays mapped" in str(loader.explain())
