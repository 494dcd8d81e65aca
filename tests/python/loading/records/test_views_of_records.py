"""Several images of a file in one sample, without a device: the main process decodes the file once for all of them."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from record_datasets import COUNT, Crops, Labelled, Views, write_damaged
from record_loaders import EDGE, alike, assert_alike, delivered
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader
from headrace import transforms as T
from headrace._loading.records.record_engines import RecordEngines
from headrace._loading.records.record_lane import RecordLane

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("idle_cores")]

WHOLE = T.Compose([T.Resize((EDGE, EDGE)), T.ToTensor()])


class Neighbours(Labelled):
    """Two views of a file, one of the next file, and a gray one of the first."""

    def __getitem__(self, index: int) -> Any:
        image, other = self.open(index), self.open((index + 1) % COUNT)
        gray = T.Compose([T.Resize((20, 30)), T.ToTensor()])(image.convert("L"))
        return self.transform(image), self.transform(other), {"gray": gray, "second": self.transform(image)}


FILES = {Views: COUNT, Crops: COUNT, Neighbours: 2 * COUNT}


@pytest.mark.parametrize("options", [{"persistent_workers": True, "epochs": 2}, {"batch_size": None}], ids=str)
@pytest.mark.parametrize("kind, version", [(Views, "train"), (Crops, "train_v2"), (Neighbours, "train")])
def test_a_file_is_decoded_once(
    kind: Any, version: str, options: dict[str, Any], paths: list[Path], request: pytest.FixtureRequest
) -> None:
    """Views of several sizes, in lists and dicts; the values, orders in memory and types are torch's."""
    make = functools.partial(kind, paths, request.getfixturevalue(version))
    theirs, _ = delivered(TorchDataLoader, make(), **options)
    ours, loader = delivered(DataLoader, make(), **options)
    assert alike(ours, theirs)
    stats, images = loader.stats(), loader._torch_epochs.images
    assert images.recorded.total() == FILES[kind] and not images.natively
    assert set(images.fields.values()) == {"recorded"}
    read = {one.name: one.items for one in stats.stages}["read"]  # each is decoded, which is timed for some
    assert read == stats.records["native"] == FILES[kind]
    assert stats.bytes_read == FILES[kind] // COUNT * sum(path.stat().st_size for path in paths)


def test_each_view_has_memory_of_its_own(paths: list[Path], train: Any) -> None:
    """As torch's have: one can be kept or saved without the others, and is not written to later."""
    theirs = TorchDataLoader(Views(paths, train), 5, num_workers=1)
    ours, kept = DataLoader(Views(paths, train), 5, num_workers=1), []
    for here, there in zip(ours, theirs, strict=True):
        both = [[*one["views"], one["again"]] for one in (here, there)]
        seen = [[(one.storage_offset(), one.untyped_storage().nbytes(), one._base) for one in all] for all in both]
        assert seen[0] == seen[1] and not any(one.is_shared() for one in both[0])
        kept += [one.fill_(number) for number, one in enumerate(both[0])]
    assert [one.unique().tolist() for one in kept] == [[0], [1], [2]] * 2
    assert len({one.untyped_storage().data_ptr() for one in kept}) == len(kept)


def test_memory_of_views_is_used_again(paths: list[Path], train: Any) -> None:
    loader = DataLoader(Crops(paths * 4, train), 2, num_workers=1)
    places = [{view.data_ptr() for view in batch} for batch in loader]
    assert len(places) == 20 and len(set().union(*places)) <= 6 * 6  # of six views, in six batches at most


def test_a_damaged_file_is_decoded_once_by_its_library(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, run = [], RecordLane._run_job

    def note(self: RecordLane, job: Any) -> None:
        jobs.append(job.sample)
        run(self, job)

    monkeypatch.setattr(RecordLane, "_run_job", note)
    broken = write_damaged(paths[0], tmp_path / "broken.jpg")
    images = assert_alike(lambda: Views([*paths[1:], broken], WHOLE), DataLoader, shuffle=False)
    assert images.total == COUNT and jobs == [(COUNT - 1) % 4]


def test_an_interrupt_between_the_views_of_a_batch_loses_none(
    paths: list[Path], train: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The view that was handed out is made again, alone."""
    theirs, _ = delivered(TorchDataLoader, Views(paths, train), batch_size=2, num_workers=1)
    hand_over, calls = RecordEngines.hand_over, [0]

    def interrupt(self: RecordEngines, record: Any) -> Any:
        calls[0] += 1
        if calls[0] in (2, 4):
            raise KeyboardInterrupt
        return hand_over(self, record)

    monkeypatch.setattr(RecordEngines, "hand_over", interrupt)
    torch.manual_seed(2)
    random.seed(3)
    got: list[Any] = []
    loader = DataLoader(Views(paths, train), batch_size=2, shuffle=True, num_workers=1)
    iterator = iter(loader)
    engines = loader._torch_epochs._device_batches._engines._engines  # type: ignore[union-attr]
    while len(got) < COUNT // 2:
        try:
            got.append(next(iterator))
        except KeyboardInterrupt:
            continue
    assert alike(got, theirs[:-1]) and calls[0] > 3 * len(got)
    assert not any(one.in_flight for one in engines.values())
    assert next(iterator, None) is None


class Patches(Labelled):
    """Samples that are parts of the same files, which the dataset keeps open."""

    def __init__(self, paths: list[Path], transform: Any) -> None:
        super().__init__(paths, transform)
        self.open_files: dict[int, Any] = {}

    def __getitem__(self, index: int) -> Any:
        if index // 5 not in self.open_files:
            self.open_files[index // 5] = Image.open(self.paths[index // 5]).convert("RGB")
        return self.transform(self.open_files[index // 5])


def test_several_samples_of_a_file_are_made_by_the_worker(paths: list[Path], train: Any) -> None:
    """It decodes the file once. Its first batch tells."""
    images = assert_alike(lambda: Patches(paths, train), DataLoader, batch_size=5, num_workers=1, shuffle=False)
    assert images.recorded.total() == images.natively.total() == 1
    assert set(images.fields.values()) == {"in the worker, because several samples are made of each file"}
