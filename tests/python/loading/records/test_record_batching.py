"""Records of single samples (``batch_size=None``), of streams, and of batches as samplers make them."""

from __future__ import annotations

import functools
import random
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from record_datasets import COUNT, Decoded, InMemory, Keeping, Labelled, Looking, Stateful, Stream, Views
from record_loaders import EDGE, ON_DEVICE, assert_alike, delivered
from torch.utils._pytree import tree_map_only
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import default_convert

from headrace import DataLoader
from headrace import transforms as T
from support import eventually, same

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [Labelled, InMemory, Stateful, Stream, Views])
@pytest.mark.parametrize("version", ["train", "train_v2"])
def test_single_samples_are_recorded(
    version: str, kind: Any, workers: int, paths: list[Path], request: pytest.FixtureRequest
) -> None:
    """Those of v2 are of torchvision's class, in the order in memory that its functions give them."""
    made = functools.partial(kind, paths, request.getfixturevalue(version))
    images = assert_alike(made, batch_size=None, num_workers=workers)
    assert not images.natively and not images.by_others, images
    assert images.recorded.total() == COUNT and set(images.fields.values()) == {"recorded"}


@pytest.mark.parametrize("workers", [0, 2])
def test_single_samples_keep_their_class_and_order_in_memory(workers: int, paths: list[Path], torchvision: Any) -> None:
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    steps = v2.Compose([v2.Resize((EDGE, EDGE)), v2.ToImage()])
    options: dict[str, Any] = {"batch_size": None, "num_workers": workers}
    images = assert_alike(lambda: Labelled(paths, steps), **options)
    assert images.recorded.total() == COUNT
    (first, *_), *_ = ON_DEVICE(Labelled(paths, steps), **options)
    assert type(first) is tv_tensors.Image and not first.is_contiguous()


class Sample(Mapping[str, Any]):
    """A mapping that torch cannot make of a dict: it collates the values once more, for a dict."""

    def __init__(self, image: Any, index: int) -> None:
        self.values_of = {"image": image, "index": index}

    def __getitem__(self, key: str) -> Any:
        return self.values_of[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_of)

    def __len__(self) -> int:
        return len(self.values_of)


class Mapped(Labelled):
    def __getitem__(self, index: int) -> Any:
        return Sample(super().__getitem__(index)[0], index)


@pytest.mark.parametrize("workers", [0, 2])
def test_what_torch_collates_twice_is_made_once(workers: int, paths: list[Path], train: Any) -> None:
    before = threading.active_count(), len(list(Path("/proc/self/task").iterdir()))
    loader = ON_DEVICE(Mapped(paths, train), 4, num_workers=workers)
    assert sum(len(batch["index"]) for batch in loader) == COUNT
    made = loader.stats().records
    loader.close()
    assert made["native"] == COUNT, made
    assert eventually(lambda: (threading.active_count(), len(list(Path("/proc/self/task").iterdir()))) <= before)


def test_single_samples_are_repeatable(paths: list[Path], train: Any) -> None:
    options: dict[str, Any] = {"batch_size": None, "seed": 4, "persistent_workers": True, "epochs": 2}
    here, _ = delivered(DataLoader, Labelled(paths, train), **options)
    there, _ = delivered(ON_DEVICE, Labelled(paths, train), **options)
    assert same(there, here)
    assert all(sample[0]._base is None for sample in there[:-1])  # no view of anything


def with_one_more_dimension(torchvision: Any) -> Any:
    """One dimension more, as programs add it that stack their samples later."""
    from torchvision.transforms import v2

    steps = [v2.ToImage(), v2.Resize((EDGE, EDGE)), v2.ToDtype(torch.float32, scale=True), v2.ToPureTensor()]
    return v2.Compose([*steps, lambda image: image.unsqueeze(0)])


@pytest.mark.parametrize("workers", [0, 2])
def test_single_samples_have_their_dimensions(workers: int, paths: list[Path], torchvision: Any) -> None:
    images = assert_alike(
        lambda: Labelled(paths, with_one_more_dimension(torchvision)), batch_size=None, num_workers=workers
    )
    assert images.native == COUNT


@pytest.mark.parametrize("workers", [0, 2])
def test_other_single_samples_are_made_by_the_worker(workers: int, paths: list[Path], train: Any) -> None:
    options = {"batch_size": None, "num_workers": workers, "shuffle": False}
    images = assert_alike(lambda: Looking(paths, train), **options)
    assert images.natively.total() == COUNT - images.recorded.total() == len(range(0, COUNT, 3))
    images = assert_alike(lambda: Labelled(paths, train), **options, collate_fn=lambda sample: sample[:2])
    assert images.natively.total() == COUNT


@pytest.mark.parametrize("workers", [0, 1])
def test_kept_single_samples_are_what_they_were(workers: int, paths: list[Path], train: Any) -> None:
    """What the program writes to a tensor that it keeps comes with the next epoch."""
    both = []
    kinds: tuple[Any, ...] = (TorchDataLoader, ON_DEVICE)
    for kind in kinds:
        random.seed(3)
        torch.manual_seed(2)
        loader = kind(Keeping(paths, train), batch_size=None, num_workers=workers, persistent_workers=workers > 0)
        # torch's tensors are in the memory that the worker writes to.
        both.append([[tree_map_only(torch.Tensor, torch.clone, one) for one in loader] for _ in range(3)])
    assert same(both[1], both[0])
    assert not loader._torch_epochs.images.recorded  # of the newest epoch


@pytest.mark.parametrize("workers", [0, 1])
def test_single_samples_of_many_sizes_are_made_by_the_worker(workers: int, paths: list[Path]) -> None:
    """Each size would need threads of its own in the main process."""
    images = assert_alike(
        lambda: Labelled(paths, T.Compose([T.ToTensor()])), batch_size=None, num_workers=workers, shuffle=False
    )
    assert images.recorded.total() == 4 and images.natively.total() == COUNT - 4
    assert images.fields["[0]"].endswith(", because their sizes differ")


class Batched(Labelled):
    """A dataset that is asked for whole batches and returns lists of images."""

    def __getitem__(self, indices: Any) -> Any:
        return [super(Batched, self).__getitem__(index)[0] for index in indices], torch.tensor(indices)


SAMPLERS: list[tuple[str, Any, dict[str, Any]]] = [
    ("the last batch is dropped", Labelled, {"batch_size": 3, "drop_last": True}),
    ("a stream's last batch is dropped", Stream, {"batch_size": 3, "drop_last": True}),
    ("a stream", Stream, {"batch_size": 4, "persistent_workers": True, "epochs": 2}),
    ("batches of a sampler", Labelled, {"batch_sampler": [[1, 4, 4], [0], [9, 8, 7, 6]]}),
    ("batches for the dataset", Batched, {"sampler": [[1, 4, 4], [0], [9, 8, 7, 6]], "batch_size": None}),
    ("out of order", Labelled, {"batch_size": COUNT, "in_order": False}),
    ("lists of samples", Labelled, {"collate_fn": default_convert}),
]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name, kind, options", SAMPLERS, ids=[one[0] for one in SAMPLERS])
def test_samplers_make_the_batches(
    name: str, kind: Any, options: dict[str, Any], workers: int, paths: list[Path], train: Any
) -> None:
    options = {"shuffle": False, "num_workers": workers, **options}
    if "batch_sampler" in options:
        options["batch_size"] = 1
    images = assert_alike(lambda: kind(paths, train), **options)
    assert images.any
    if name == "lists of samples":  # which are no batch, and whose function the program has chosen
        assert not images.recorded
    else:
        assert not images.natively and images.recorded


@pytest.mark.filterwarnings("ignore:The image decoding and encoding")  # torchvision 0.29's
@pytest.mark.parametrize("workers", [0, 2])
def test_single_samples_of_torchvisions_decoder(workers: int, paths: list[Path], train_v2: Any) -> None:
    if not hasattr(torch.ops.image, "decode_image"):
        pytest.skip("this torchvision has no compiled decoder")
    images = assert_alike(lambda: Decoded(paths, train_v2), batch_size=None, num_workers=workers)
    assert images.recorded.total() == COUNT and not images.natively
