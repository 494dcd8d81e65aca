"""Records with ``pin_memory=True``: the main process makes them in pinned memory, as torch's thread pins the rest."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from record_datasets import COUNT, Crops, InMemory, Labelled, Looking, Stateful, Stream, Views
from record_loaders import EDGE, alike, delivered
from torch.utils._pytree import tree_flatten
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader
from headrace._loading.records.record_batch import RecordedBatch
from pinned_memory import pinned_memory

pytestmark = pytest.mark.processes


class Case(NamedTuple):
    """A dataset, the options of its loader, and how many of its files cross as records in an epoch."""

    kind: Any
    options: dict[str, Any] = {}  # noqa: RUF012 - not changed
    recorded: int = COUNT


CASES = [
    Case(Labelled),
    Case(Labelled, {"persistent_workers": True, "epochs": 2, "batch_size": 3}),
    Case(Labelled, {"batch_size": None}),
    Case(Labelled, {"in_order": False, "batch_size": COUNT}),
    Case(InMemory, {"drop_last": True}, COUNT - 2),
    Case(Looking, {"batch_size": COUNT, "shuffle": False}, 0),
    Case(Stateful),  # what a worker sends carries the dataset's state
    Case(Stream, {"shuffle": False}),
    Case(Views),
    Case(Views, {"batch_size": None}),
    Case(Crops, {"batch_size": 5}),
]


def pinned_parts(batches: Any) -> list[bool]:
    """Whether each tensor is pinned, in order."""
    return [one.is_pinned() for one in tree_flatten(batches)[0] if isinstance(one, torch.Tensor)]


def name_case(case: Case) -> str:
    return f"{case.kind.__name__}-{case.options}"


@pytest.mark.usefixtures("idle_cores")
@pytest.mark.parametrize("case", CASES, ids=name_case)
@pytest.mark.parametrize("version", ["train", "train_v2"])
def test_pinned_batches_are_torchs(case: Case, version: str, paths: list[Path], request: pytest.FixtureRequest) -> None:
    make = functools.partial(case.kind, paths, request.getfixturevalue(version))
    with pinned_memory():
        theirs, _ = delivered(TorchDataLoader, make(), pin_memory=True, **case.options)
        ours, loader = delivered(DataLoader, make(), pin_memory=True, **case.options)
        where = pinned_parts(theirs[:-1])
        assert where and all(where) and pinned_parts(ours[:-1]) == where
        assert alike(ours, theirs)
    assert loader._torch_epochs.images.recorded.total() == case.recorded


@pytest.mark.usefixtures("idle_cores")
def test_pinned_images_of_torchvision_are_torchs(paths: list[Path], torchvision: Any) -> None:
    """torch's `pin_memory` of a `tv_tensors.Image` gives a plain tensor, in the image's order in memory."""
    from torchvision.transforms import v2

    steps = v2.Compose([v2.Resize((EDGE, EDGE)), v2.ToImage()])
    options: dict[str, Any] = {"batch_size": None, "num_workers": 2, "pin_memory": True}
    with pinned_memory():
        theirs, _ = delivered(TorchDataLoader, Labelled(paths, steps), **options)
        ours, loader = delivered(DataLoader, Labelled(paths, steps), **options)
        assert alike(ours, theirs) and all(pinned_parts(ours[:-1]))
        assert type(ours[0][0]) is torch.Tensor and not ours[0][0].is_contiguous()
    assert loader._torch_epochs.images.recorded.total() == COUNT


@pytest.mark.usefixtures("idle_cores")
def test_bytes_of_files_are_not_pinned(paths: list[Path], train: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only threads of this process read them."""
    pin, received = RecordedBatch.pin_memory, []

    def note(self: RecordedBatch) -> RecordedBatch:
        received.append(pin(self))
        return received[-1]

    monkeypatch.setattr(RecordedBatch, "pin_memory", note)
    with pinned_memory():
        assert len(list(DataLoader(Labelled(paths, train), batch_size=5, num_workers=1, pin_memory=True))) == 2
        assert [one.files.is_pinned() for one in received] == [False, False]
