"""Records that are being made: how many there are, what ends them, and that none is left."""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import torch
from PIL import Image
from record_datasets import COUNT, Labelled
from record_loaders import ON_DEVICE, alike, assert_alike, delivered
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import default_collate
from torch.utils.data._utils.collate import collate_tensor_fn, default_collate_fn_map

from headrace import transforms as T
from headrace._engine.image_engine import ImageEngine
from headrace._loading.records import record_engines
from headrace._loading.records.record_batch import AHEAD
from headrace._loading.records.record_collation import RecordCollation
from headrace._loading.records.record_engines import RecordEngines
from support import eventually

pytestmark = pytest.mark.processes


def engines_of(loader: Any) -> list[Any]:
    """What makes the records of a loader."""
    device_batches = loader._torch_epochs._device_batches
    assert device_batches is not None
    return list(device_batches._engines._engines.values())


def are_idle(engines: list[Any]) -> bool:
    """Whether no batch is in flight, and no record is kept."""
    return not any(one.in_flight or one.under_way._images for one in engines)


@pytest.fixture
def begun_most(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many batches were being made, each time another one was begun."""
    seen: list[int] = []
    begin = RecordEngines.begin

    def note(self: RecordEngines, *arguments: Any) -> None:
        begin(self, *arguments)
        seen.append(sum(one.in_flight for one in self._engines.values()))

    monkeypatch.setattr(RecordEngines, "begin", note)
    return seen


class Slow(Labelled):
    """The first sample takes long: later batches arrive first."""

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.5 if index == 0 else 0)
        return super().__getitem__(index)


@pytest.mark.parametrize("persistent", [False, True])
def test_a_loop_that_ends_early_leaves_nothing(
    persistent: bool, paths: list[Path], train: Any, begun_most: list[int]
) -> None:
    options: dict[str, Any] = {"num_workers": 2, "prefetch_factor": 4, "persistent_workers": persistent}
    loader = ON_DEVICE(Slow(paths, train), batch_size=1, **options)
    for _ in range(3):
        for _ in loader:
            time.sleep(0.1)  # others arrive
            break
    if persistent:
        assert len(list(loader)) == COUNT
    engines = engines_of(loader)
    assert len(engines) == 1
    assert eventually(lambda: are_idle(engines))
    assert 1 < max(begun_most) <= AHEAD + 1
    loader.close()
    assert loader._torch_epochs._device_batches is None
    assert engines[0].native.closed


def test_batches_out_of_turn_are_begun_within_the_bound(paths: list[Path], train: Any, begun_most: list[int]) -> None:
    """The second worker has made all its batches when the first one sends the first."""
    assert_alike(lambda: Slow(paths, train), batch_size=1, prefetch_factor=4, shuffle=False)
    assert 1 < max(begun_most) <= AHEAD + 1


def test_an_iterator_goes_on_after_close(paths: list[Path], train: Any) -> None:
    theirs, _ = delivered(TorchDataLoader, Labelled(paths, train), batch_size=2)
    torch.manual_seed(2)
    random.seed(3)
    loader = ON_DEVICE(Labelled(paths, train), batch_size=2, shuffle=True, num_workers=2)
    iterator = iter(loader)
    got = [next(iterator)]
    engines = engines_of(loader)
    loader.close()
    got += iterator
    assert alike(got, theirs[:-1])
    assert are_idle(engines) and all(one.native.closed for one in engines)


def test_a_device_without_memory_raises_when_the_batch_is_due(
    paths: list[Path], train: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be begun before its turn is tried again, and no batch is lost."""
    got: list[Any] = []
    errors: list[int] = []
    begin = ImageEngine.submit_plans

    def refuse(self: ImageEngine, *arguments: Any) -> Any:
        if not errors:
            raise RuntimeError("out of memory")
        return begin(self, *arguments)

    monkeypatch.setattr(ImageEngine, "submit_plans", refuse)
    theirs, _ = delivered(TorchDataLoader, Labelled(paths, train), batch_size=2, shuffle=False, num_workers=1)
    torch.manual_seed(2)
    random.seed(3)
    iterator = iter(ON_DEVICE(Labelled(paths, train), batch_size=2, num_workers=1))
    for number in range(len(theirs) - 1):
        try:
            got.append(next(iterator))
        except RuntimeError as error:
            assert "out of memory" in str(error)
            errors.append(number)
    assert errors == [0] and len(got) == len(theirs) - 2
    assert alike(got, [one for number, one in enumerate(theirs[:-1]) if number not in errors])


def test_the_memory_of_files_is_used_again(tmp_path: Path, train: Any) -> None:
    """A batch's bytes are let go with it, not with the loader's threads."""
    noise = Image.effect_noise((400, 400), 90).convert("RGB")
    paths = [tmp_path / f"{number}.jpg" for number in range(24)]
    for path in paths:
        noise.save(path, quality=95)
    large = T.Compose([T.Resize((400, 400)), T.ToTensor()])
    loader = ON_DEVICE(Labelled(paths, large), batch_size=4, num_workers=1)
    for batch in loader:
        assert batch[0].shape == (4, 3, 400, 400)
    del batch
    iterator = iter(loader)
    next(iterator)
    engines = engines_of(loader)
    assert len(engines) == 1
    del iterator
    assert eventually(lambda: are_idle(engines))


def test_loaders_in_two_threads_do_not_mix_their_records(
    paths: list[Path], train_v2: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are inside `default_collate` at the same time."""
    whole = T.Compose([T.Resize((40, 40)), T.ToTensor()])
    other = T.Compose([T.Resize((56, 56)), T.ToTensor()])
    options: dict[str, Any] = {"batch_size": COUNT, "num_workers": 0}
    theirs = [list(TorchDataLoader(Labelled(paths, one), **options)) for one in (whole, other)]
    both, record = threading.Barrier(2, timeout=20), RecordCollation._record

    def record_together(self: RecordCollation, tensors: Any) -> Any:
        both.wait()
        return record(self, tensors)

    monkeypatch.setattr(RecordCollation, "_record", record_together)
    loaders = [ON_DEVICE(Labelled(paths, one), **options) for one in (whole, other)]
    with ThreadPoolExecutor(2) as pool:
        ours: list[Any] = list(pool.map(lambda one: list(one), loaders))
    assert alike([[one[:2] for one in made] for made in ours], [[one[:2] for one in made] for made in theirs])
    assert all(one._torch_epochs.images.recorded.total() == COUNT for one in loaders)
    assert default_collate_fn_map[torch.Tensor] is collate_tensor_fn


class Unchangeable(Mapping[str, Any]):
    """A mapping that cannot be copied, and not be made from a dict."""

    def __init__(self, *, image: Any) -> None:
        self.image = image

    def __getitem__(self, key: str) -> Any:
        if key != "image":
            raise KeyError(key)
        return self.image

    def __iter__(self) -> Any:
        return iter(["image"])

    def __len__(self) -> int:
        return 1

    def __copy__(self) -> Any:
        raise TypeError("not to be copied")


@pytest.mark.parametrize(
    "kind, made", [(MappingProxyType, MappingProxyType), (OrderedDict, OrderedDict), (Unchangeable, dict)]
)
def test_mappings_are_what_torchs_pinning_makes_of_them(
    kind: Any, made: type, paths: list[Path], train: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def collate(samples: Any) -> Any:
        values = {"image": default_collate([one[0] for one in samples])}
        return kind(**values) if kind is Unchangeable else kind(values)

    loader: Any = ON_DEVICE(Labelled(paths, train), 4, num_workers=0, collate_fn=collate)
    batches = loader._torch_epochs._find_device_batches(loader, None)
    assert batches is not None
    monkeypatch.setattr(batches, "_moved", torch.clone)  # stands for a copy to another device
    for batch in loader:
        assert batch["image"].shape[0] in (4, 2) and type(batch) is made


def test_engines_used_longest_ago_end(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_engines, "_MOST_ENGINES", 2)
    made: list[Any] = []
    new = RecordEngines._new_engine

    def note(self: RecordEngines, record: Any) -> Any:
        made.append(new(self, record))
        return made[-1]

    monkeypatch.setattr(RecordEngines, "_new_engine", note)

    class Sizes(Labelled):
        step = 1

        def __getitem__(self, index: int) -> Any:
            edge = 39 - (COUNT - 1 - index) * self.step
            return T.Compose([T.Resize((edge, edge)), T.ToTensor()])(self.open(index))

    sizes = Sizes(paths, bool)
    loader = ON_DEVICE(sizes, 1, num_workers=0)
    assert [one.shape[-1] for one in loader] == [30 + index for index in range(COUNT)]
    assert [one.native.closed for one in made] == [True] * (COUNT - 2) + [False] * 2
    sizes.step = 0
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", (Image.MAX_IMAGE_PIXELS or 0) + 1)
    assert [one.shape[-1] for one in loader] == [39] * COUNT
    assert [one.native.closed for one in made] == [True] * (COUNT - 2) + [False, True, False]  # the last is replaced


def test_an_error_that_is_met_early_is_raised_in_its_place(
    paths: list[Path], train: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches that have arrived before it are delivered."""
    loader = ON_DEVICE(Labelled(paths, train), 1, num_workers=1, prefetch_factor=4)
    iterator: Any = iter(loader)
    take, calls = iterator._data_queue.get, [0]

    def get(*arguments: Any, **options: Any) -> Any:
        found = take(*arguments, **options)
        calls[0] += 1
        if calls[0] == 3:
            raise ConnectionResetError("a file descriptor is lost")
        return found

    iterator._data_queue.get = get
    assert eventually(lambda: not iterator._data_queue.empty())
    for number in range(2):
        assert next(iterator)[1].tolist() == [number]
        time.sleep(0.2)  # others arrive
    assert calls[0] == 3
    with pytest.raises(ConnectionResetError, match="a file descriptor is lost"):
        next(iterator)
