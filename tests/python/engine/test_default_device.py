"""``torch.set_default_device`` does not affect the loader's own tensors; targets are on the device that torch uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages, sampler
from headrace import transforms as T
from headrace.ops import functions as ops
from support import MEAN, STD, pictures

COUNT = 12


@contextmanager
def default_device(device: str) -> Iterator[None]:
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)


def python_step(image: Any) -> Any:
    return image.rotate(90) if torch.rand(1, device="cpu") < 0.5 else image


TRANSFORMS = {
    "augmented": lambda: T.Compose(
        [
            T.RandomResizedCrop(16),
            T.ColorJitter(0.4, 0.4, 0.4),
            T.RandomApply([T.GaussianBlur(3)]),
            T.ToTensor(),
            T.Normalize(MEAN, STD),
            T.RandomErasing(value=[0.1, 0.2, 0.3]),
        ]
    ),
    "plain": lambda: T.Compose([T.Resize((16, 16)), T.ToImage(), T.ToDtype(torch.float32, scale=True)]),
    "a Python step": lambda: T.Compose([python_step, T.Resize((16, 16)), T.ToTensor()]),
    "all in Python": lambda: T.Compose([T.Resize((16, 16)), T.ToTensor(), lambda image: 2 * image]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_under_another_default_device(name: str, workers: int) -> None:
    """torch's own loader raises here: it draws its base seed on the default device, and reads the number."""

    def make() -> DataLoader:
        options: dict[str, Any] = {"num_workers": workers, "out_transform": lambda batch: batch}
        return DataLoader(
            EncodedImages(pictures(COUNT), list(range(COUNT)), TRANSFORMS[name]()), 4, True, seed=3, **options
        )

    want = list(make())
    with default_device("meta"):
        loader = make()
        assert loader.native
        got = list(loader)
        state = loader.state_dict()
        assert state["default_generator_state"].device.type == "cpu"
        with pytest.raises(RuntimeError, match="meta"):
            next(iter(TorchDataLoader(loader.dataset, 4)))
    for (images, targets), (expected, labels) in zip(got, want, strict=True):
        assert torch.equal(images, expected)
        assert targets.shape == labels.shape and targets.dtype == labels.dtype
        assert targets.device.type == ("cpu" if workers else "meta")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "labels",
    [
        list(range(COUNT)),
        [i / 2 for i in range(COUNT)],
        [{"a": i, "b": np.float32(i)} for i in range(COUNT)],
        list(np.eye(COUNT, dtype=np.float32)),
        torch.arange(COUNT),
    ],
    ids=["ints", "floats", "dicts", "arrays", "a tensor"],
)
@pytest.mark.parametrize("batch_size", [4, None])
def test_targets_are_where_torchs_are(workers: int, labels: Any, batch_size: int | None) -> None:
    """The device is set after the iterators are made, as a training loop may do: torch's workers do not see it."""
    data = EncodedImages(pictures(COUNT), labels, TRANSFORMS["plain"]())
    theirs, ours = (iter(kind(data, batch_size, num_workers=workers)) for kind in (TorchDataLoader, DataLoader))
    with default_device("meta"):
        batches = [(next(theirs), next(ours)) for _ in range(3)]
    for one, other in batches:
        assert described(one) == described(other)
        if "meta" not in described(one):
            assert str(one) == str(other)


def described(value: Any) -> str:
    """Types, shapes and devices."""
    if isinstance(value, torch.Tensor):
        return f"{value.device.type} {value.dtype} {tuple(value.shape)}"
    if isinstance(value, dict):
        return f"dict {[(key, described(one)) for key, one in value.items()]}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} {[described(one) for one in value]}"
    return type(value).__name__


def test_a_step_draws_on_the_device_that_it_names() -> None:
    """A sample has a CPU generator; tensors on another device use that device's generator, or none on meta."""

    def step(image: Any) -> torch.Tensor:
        assert torch.rand(2, device="meta").device.type == "meta"
        torch.empty(2, device="meta").normal_()
        return torch.rand(1, 1, 3)

    data = EncodedImages(pictures(COUNT), None, T.Compose([step]))
    assert DataLoader(data).native
    one, two = (torch.cat(list(DataLoader(data, 4, seed=1, num_workers=workers))) for workers in (0, 2))
    assert torch.equal(one, two)
    assert len(one.unique()) == one.numel()


def test_samplers_and_ops() -> None:
    sizes = [(40, 30)] * COUNT
    make = lambda: [  # noqa: E731
        list(sampler.DistributedSampler(range(COUNT), num_replicas=2, rank=1, seed=4)),
        list(sampler.AspectRatioBatchSampler(range(COUNT), 4, [(24, 32)], image_sizes=sizes)),
    ]
    want = make()
    image = ops.decode_jpeg(pictures(1))[0]
    with default_device("meta"):
        assert make() == want
        assert torch.equal(ops.decode_jpeg(pictures(1))[0], image)
