"""Records where batches stay in this machine's memory: when they are made, and that batches do not depend on it."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from PIL import Image
from record_datasets import COUNT, Labelled, Looking, Stateful, Stream
from record_loaders import EDGE, alike, assert_alike, delivered
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import default_collate

from headrace import DataLoader
from headrace import transforms as T
from headrace._engine.destination import resolve_destination
from headrace._engine.image_engine import ImageEngine
from headrace._loading.bottleneck.model import making_threads
from headrace._loading.records.record_batch import RecordBatch, RecordedBatch
from headrace._loading.records.record_engines import RecordEngines
from headrace._loading.records.record_makers import find_makers
from headrace._recipe.images.memory_format import Layout

pytestmark = pytest.mark.processes

HERE = resolve_destination(None, "auto")
NONE = [(0, 8, 0), (1, 1, 0), (2, 2, 0), (2, 3.9, 0), (9, 16, 0)]
THREADS = [*NONE, (1, 2, 1), (2, 4, 2), (1, 16, 2), (4, 16, 8), (7, 16, 9)]  # workers, cores, threads


@pytest.mark.parametrize("workers, cores, threads", THREADS)
def test_records_are_made_where_the_workers_leave_half_of_the_cores_idle(
    workers: int, cores: float, threads: int
) -> None:
    assert making_threads(workers, cores) == threads


def test_ranks_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = len(os.sched_getaffinity(0))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(cores))
    shared = find_makers(1, HERE, is_given=True, collates=False)
    assert shared.threads is None and "1 worker leaves too few cores idle" in shared.why


class Case(NamedTuple):
    """A dataset, and the options of its loader."""

    kind: Any
    options: dict[str, Any] = {}  # noqa: RUF012 - not changed


CASES = [
    Case(Labelled),
    Case(Labelled, {"seed": 5}),
    Case(Labelled, {"persistent_workers": True, "epochs": 2}),
    Case(Labelled, {"batch_size": None, "timeout": 60}),
    Case(Labelled, {"num_workers": 1, "in_order": False}),
    Case(Looking, {"batch_size": COUNT, "shuffle": False}),
    Case(Stateful, {"persistent_workers": True, "epochs": 2}),
    Case(Stream, {"drop_last": True}),
]


@pytest.mark.parametrize("cores", ["idle_cores", "busy_cores"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind.__name__}-{case.options}")
def test_batches_do_not_depend_on_the_cores(
    case: Case, cores: str, paths: list[Path], request: pytest.FixtureRequest
) -> None:
    """All batches of the epochs are kept: none is written to later."""
    request.getfixturevalue(cores)
    transform = T.Compose([T.RandomResizedCrop(EDGE), T.RandomHorizontalFlip(), T.ToTensor()])
    make, options = functools.partial(case.kind, paths, transform), dict(case.options)
    if "seed" in options:  # torch has no such argument: both loaders are ours
        here, _ = delivered(functools.partial(DataLoader, num_workers=0), make(), **options)
        there, loader = delivered(DataLoader, make(), **options)
        assert alike(there, here)
        images = loader._torch_epochs.images
    else:
        images = assert_alike(make, DataLoader, **options)
    are_recorded = cores == "idle_cores" and case.kind is not Looking
    assert images.recorded.total() == (COUNT - 2 * ("drop_last" in options) if are_recorded else 0), images


@pytest.mark.usefixtures("idle_cores")
def test_batches_have_what_programs_see_of_torchs(paths: list[Path], train: Any) -> None:
    """They are not in shared memory alone; what shared memory forbids is allowed."""
    options: dict[str, Any] = {"batch_size": 5, "num_workers": 2}
    theirs = TorchDataLoader(Labelled(paths, T.Compose(train.transforms)), **options)
    loader, kept = DataLoader(Labelled(paths, train), **options), []
    for (ours, *_), (other, *_) in zip(loader, theirs, strict=True):
        seen = [
            (one.stride(), one.storage_offset(), one.untyped_storage().nbytes(), one._base, one._version)
            for one in (ours, other)
        ]
        assert seen[0] == seen[1] and ours.is_contiguous() and not ours.requires_grad and not ours.is_inference()
        assert other.is_shared() and not ours.is_shared()
        kept.append(ours.fill_(0))  # the next batches are made in other memory
    assert not any(one.any() for one in kept)
    kept[0].resize_(7)
    assert kept[1].share_memory_().is_shared() and loader.stats().records["native"] == COUNT


@pytest.mark.usefixtures("idle_cores")
def test_an_interrupt_loses_no_batch(paths: list[Path], train: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the main process makes one, as while it waits for a worker."""
    theirs, _ = delivered(TorchDataLoader, Labelled(paths, train), batch_size=2)
    finish, begin, calls, begun = RecordEngines.finish, RecordEngines.begin, [], []

    def interrupt(self: RecordEngines, recorded: RecordedBatch) -> None:
        calls.append(recorded)
        if len(calls) in (2, 3):
            raise KeyboardInterrupt
        finish(self, recorded)

    def interrupt_begin(self: RecordEngines, *arguments: Any) -> None:
        begun.append(arguments)
        if len(begun) in (1, 3):
            raise KeyboardInterrupt
        begin(self, *arguments)

    monkeypatch.setattr(RecordEngines, "finish", interrupt)
    monkeypatch.setattr(RecordEngines, "begin", interrupt_begin)
    torch.manual_seed(2)
    random.seed(3)
    got: list[Any] = []
    iterator = iter(DataLoader(Labelled(paths, train), batch_size=2, shuffle=True, num_workers=2))
    while len(got) < COUNT // 2:
        with contextlib.suppress(KeyboardInterrupt):
            got.append(next(iterator))
    assert alike(got, theirs[:-1]) and len(calls) == len(got) + 2 and len(begun) > len(got)
    assert next(iterator, None) is None


@pytest.mark.usefixtures("idle_cores")
def test_no_batch_is_begun_in_inference_mode_for_later(paths: list[Path], train: Any) -> None:
    """It could not be trained on then."""
    iterator = iter(DataLoader(Labelled(paths, train), batch_size=2, num_workers=1, prefetch_factor=5))
    with torch.inference_mode():
        next(iterator)
        time.sleep(1.0)  # the others arrive
        next(iterator)
    assert not any(one.is_inference() for images, labels, _ in iterator for one in (images, labels))


@pytest.mark.usefixtures("idle_cores")
def test_threads_end_with_the_workers(paths: list[Path], train: Any) -> None:
    """None is there when the next workers are forked. What they have counted stays."""
    for persistent in (False, True):
        loader = DataLoader(Labelled(paths, train), batch_size=2, num_workers=2, persistent_workers=persistent)
        for epoch in range(2):
            for number, _ in enumerate(loader):
                engines = list(loader._torch_epochs._device_batches._engines._engines.values())  # type: ignore[union-attr]
                assert len(engines) == 1 and not engines[0].native.closed
                assert 1 <= engines[0].native.counters().working <= 4
                if epoch and number == 2:
                    assert persistent or len(list(loader)) == COUNT // 2  # an iterator beside this one
                    assert not engines[0].native.closed
                    break
            assert engines[0].native.closed is not persistent
        assert loader.stats().records["native"] >= 6
        loader.close()
        assert engines[0].native.closed


@pytest.mark.usefixtures("idle_cores")
def test_a_worker_gives_up_where_nothing_can_be_recorded(tmp_path: Path, torchvision: Any) -> None:
    """Then it makes values in the batch's own memory, as without records."""
    paths = [tmp_path / f"{number}.png" for number in range(12)]
    for path in paths:
        Image.effect_noise((150, 150), 70).convert("RGB").save(path)
    transform = T.Compose([T.RandomResizedCrop(150), T.ToTensor()])
    images = assert_alike(lambda: Labelled(paths, transform), DataLoader, batch_size=2, num_workers=1, shuffle=False)
    assert images.natively.total() == 12 and not images.recorded
    assert images.here == {"their files are not JPEGs": 8}  # those of four batches


def default_collate_of_my_own(samples: list[Any]) -> Any:
    return default_collate(samples)


@pytest.mark.usefixtures("idle_cores")
def test_arguments_that_turn_deferred_tensors_off_turn_records_off(paths: list[Path], train: Any) -> None:
    for options in ({"deferred_images": False}, {"num_workers": "auto"}, {"collate_fn": default_collate_of_my_own}):
        theirs, _ = delivered(TorchDataLoader, Labelled(paths, train), shuffle=False)
        ours, loader = delivered(DataLoader, Labelled(paths, train), shuffle=False, **options)
        assert [one[1].tolist() for one in ours[:-1]] == [one[1].tolist() for one in theirs[:-1]]
        assert not loader._torch_epochs.images.recorded and not loader.stats().records


def test_what_is_pinned(paths: list[Path], train: Any, idle_cores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of records are made in pinned memory where torch's iterator pins; the rest is pinned by torch's thread,
    which is called with the batch."""
    pinned: list[Any] = []
    torchs = torch.utils.data._utils.pin_memory.pin_memory

    def pin(data: Any, device: Any = None) -> Any:
        if isinstance(data, torch.Tensor):
            pinned.append(data)
            return data.clone()
        return torchs(data, device)

    monkeypatch.setattr(torch.utils.data._utils.pin_memory, "pin_memory", pin)
    nothing = torch.zeros(0, 3).numpy()
    record = RecordBatch([], (0, 3, 4, 4), torch.zeros(3, 256).numpy(), Layout.PLANAR, nothing)
    labels, files = torch.arange(3), torch.zeros(9, dtype=torch.uint8)
    made = RecordedBatch((record, {"labels": labels}), [record], files, worker=1).pin_memory()
    assert pinned == [labels] and made.batch[0] is record and made.batch[1]["labels"] is not labels
    assert made.files is files and made.worker == 1

    asked: list[bool] = []
    allocate = ImageEngine._allocate_batch

    def note(self: ImageEngine, count: int, device: Any = "cpu", *, pin_memory: bool = False) -> torch.Tensor:
        asked.append(pin_memory)
        return allocate(self, count, device)

    monkeypatch.setattr(ImageEngine, "_allocate_batch", note)
    loader = DataLoader(Labelled(paths, train), batch_size=5, num_workers=1)
    for pins in (False, True):
        random.seed(1)
        iterator = iter(loader)
        loader._torch_epochs._device_batches.serve(loader, pins=pins)  # type: ignore[union-attr]
        assert len(list(iterator)) == 2
    assert asked == [False] * 2 + [True] * 2
