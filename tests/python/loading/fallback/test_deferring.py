"""torch's DataLoader with images that are opened deferred: batches, errors, counts, and what is patched when."""

from __future__ import annotations

import io
import pickle
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, IterableDataset, get_worker_info

import headrace
from headrace import transforms
from headrace._loading.epoch import torch_loader
from headrace.pillow.deferred_image import is_deferred, is_recorded
from own_dataset import OwnDataset
from support import let_go
from torchvision_shim import import_torchvision

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch's DataLoader delivers"),
    pytest.mark.filterwarnings("ignore:unclosed file"),  # Pillow leaves damaged files open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
WORKERS = pytest.mark.parametrize("num_workers", [0, pytest.param(2, marks=pytest.mark.processes)])
PILLOWS = Image.OPEN["JPEG"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Five JPEG files, one that is cut off, and a BMP file."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    paths = []
    for number in range(5):
        smooth = Image.fromarray(rng.integers(0, 256, (9, 12, 3), np.uint8)).resize((120 + number, 90))
        paths.append(folder / f"{number}.jpg")
        smooth.save(paths[-1], quality=90)
    data = paths[0].read_bytes()
    (folder / "cut.jpg").write_bytes(data[: len(data) * 2 // 3])
    smooth.save(folder / "5.bmp")
    return [*paths, folder / "cut.jpg", folder / "5.bmp"]


def _whole(files: list[Path]) -> list[Path]:
    return [path for path in files if path.name != "cut.jpg"]


def _transform() -> Any:
    T = import_torchvision().transforms
    return T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor(), T.RandomErasing(0.5)])


def _epochs(kind: Any, dataset: Any, **arguments: Any) -> tuple[Any, list[Any]]:
    """Returns a loader and the batches of two epochs."""
    torch.manual_seed(3)
    random.seed(4)
    loader = kind(dataset, **arguments)
    return loader, [batch for _ in range(2) for batch in loader]


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return bool(torch.equal(a, b))
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b)


@WORKERS
def test_batches_are_torchs_and_the_images_are_counted(files: list[Path], num_workers: int) -> None:
    dataset = OwnDataset(_whole(files), _transform())
    arguments = {"batch_size": 4, "shuffle": True, "num_workers": num_workers}
    _, expected = _epochs(TorchDataLoader, dataset, **arguments)
    loader, made = _epochs(headrace.DataLoader, dataset, **arguments)
    assert _equal(made, expected)
    assert loader.route == "deferred"
    assert not loader.native
    images = loader.stats().images
    assert (dict(images.natively), images.by_library()) == (
        {"PIL.Image.open": 5},
        {"Pillow": {"BMP": 1}},
    )  # of the newest epoch
    said = str(loader.explain())
    assert "so far 5 of 6 images natively" in said and "; by Pillow: 1 BMP" in said
    assert "5 of 6 images natively" in str(loader.stats())


@WORKERS
def test_one_argument_turns_it_off(files: list[Path], num_workers: int) -> None:
    dataset = OwnDataset(_whole(files), _is_deferred)
    loader = headrace.DataLoader(dataset, num_workers=num_workers, collate_fn=list, deferred_images=False)
    assert loader.route == "torch"
    assert [deferred for ((deferred, _),) in loader] == [False] * 6
    assert loader.stats().images == headrace.DataLoader(dataset).stats().images  # nothing counted
    assert "opened by Pillow as usual" in str(loader.explain())
    with pytest.raises(TypeError, match="deferred_images must be a bool, not 1"):
        headrace.DataLoader(dataset, deferred_images=1)  # type: ignore[arg-type]


def _is_deferred(image: Any) -> bool:
    return is_deferred(image)


@WORKERS
def test_images_are_deferred_in_the_dataset(files: list[Path], num_workers: int) -> None:
    loader = headrace.DataLoader(OwnDataset(files[:2], _is_deferred), num_workers=num_workers, collate_fn=list)
    assert [deferred for ((deferred, _),) in loader] == [True] * 2


@pytest.mark.processes
@pytest.mark.parametrize("context", ["spawn", "forkserver"])
def test_other_ways_to_start_workers(files: list[Path], context: str) -> None:
    steps = [transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    dataset = OwnDataset(_whole(files), transforms.Compose(steps))
    arguments = {"num_workers": 1, "multiprocessing_context": context}
    _, expected = _epochs(TorchDataLoader, dataset, num_workers=1)
    loader, made = _epochs(headrace.DataLoader, dataset, persistent_workers=True, **arguments)
    _, again = _epochs(TorchDataLoader, dataset, persistent_workers=True, **arguments)
    assert _equal(made, again)
    assert _equal(made[:6], expected[:6])
    assert loader.stats().images.native == 5


class Bare(Dataset[Any]):
    """Yields images of Pillow's classes: opened, converted, cropped."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index])
        rgb = image.convert("RGB")
        return image, rgb, rgb.crop((5, 5, 50, 40))


@WORKERS
def test_images_that_leave_the_dataset_have_their_pixels(files: list[Path], num_workers: int) -> None:
    paths = _whole(files)
    _, expected = _epochs(TorchDataLoader, Bare(paths), batch_size=None, num_workers=num_workers)
    _, made = _epochs(headrace.DataLoader, Bare(paths), batch_size=None, num_workers=num_workers)
    for ours, theirs in zip(made, expected, strict=True):
        assert [type(one) for one in ours[1:]] == [Image.Image] * 2
        assert [one.tobytes() for one in ours] == [one.tobytes() for one in theirs]
        assert [type(one) for one in ours] == [type(one) for one in theirs]
    assert pickle.loads(pickle.dumps(made[0][1])) == expected[0][1]


@WORKERS
def test_a_damaged_file_raises_torchs_error(files: list[Path], num_workers: int) -> None:
    dataset = OwnDataset(files[5:6], _transform())
    errors = []
    for kind in (TorchDataLoader, headrace.DataLoader):
        with pytest.raises(OSError) as caught:
            list(kind(dataset, num_workers=num_workers))
        errors.append(str(let_go(caught.value)).splitlines()[-1])
    assert errors[0] == errors[1]
    assert "image file is truncated" in errors[0]


class Forgiving(OwnDataset):
    """Takes the next sample if one is damaged."""

    def __getitem__(self, index: int) -> Any:
        try:
            image = Image.open(self.paths[index]).convert("RGB")
        except OSError:
            return self[index + 1]
        return self.transform(image), index


@WORKERS
def test_a_dataset_that_catches_errors_catches_them(files: list[Path], num_workers: int) -> None:
    arguments = {"batch_size": 3, "shuffle": True, "num_workers": num_workers}
    _, expected = _epochs(TorchDataLoader, Forgiving(files, _transform()), **arguments)
    _, made = _epochs(headrace.DataLoader, Forgiving(files, _transform()), **arguments)
    assert _equal(made, expected)


class Stream(IterableDataset[Any]):
    """Images of a list in memory, dealt out to the workers."""

    def __init__(self, paths: list[Path], transform: Any) -> None:
        self.blobs, self.transform = [path.read_bytes() for path in paths], transform

    def __iter__(self) -> Any:
        info = get_worker_info()
        for blob in self.blobs[info.id :: info.num_workers] if info else self.blobs:
            image = Image.open(io.BytesIO(blob))
            image.load()
            yield self.transform(image.convert("RGB"))


@WORKERS
def test_iterable_datasets(files: list[Path], num_workers: int) -> None:
    dataset = Stream(_whole(files), _transform())
    _, expected = _epochs(TorchDataLoader, dataset, batch_size=2, num_workers=num_workers)
    loader, made = _epochs(headrace.DataLoader, dataset, batch_size=2, num_workers=num_workers)
    assert _equal(made, expected)
    assert loader.stats().images.native == 5


class Seeing(OwnDataset):
    """Records what PIL.Image.open opens while a sample is made, here and in another thread."""

    def __getitem__(self, index: int) -> Any:
        data = self.paths[index].read_bytes()
        kinds: list[Any] = []
        thread = threading.Thread(target=lambda: kinds.append(is_deferred(Image.open(io.BytesIO(data)))))
        thread.start()
        thread.join()
        return is_deferred(Image.open(io.BytesIO(data))), kinds[0]


def test_without_workers_only_the_calling_thread_is_concerned(files: list[Path]) -> None:
    loader = headrace.DataLoader(Seeing(files[:1], None), batch_size=None)
    for here, elsewhere in loader:
        assert here
        assert not elsewhere
        assert Image.OPEN["JPEG"] == PILLOWS  # between two batches nothing is patched
    assert Image.OPEN["JPEG"] == PILLOWS


def test_two_loops_in_two_threads_do_not_disturb_each_other(files: list[Path]) -> None:
    expected = list(TorchDataLoader(OwnDataset(files[:5], np.array), batch_size=None))
    wrong: list[str] = []

    def loop() -> None:
        loader = headrace.DataLoader(OwnDataset(files[:5], np.array), batch_size=None)
        for _ in range(20):
            for (ours, _), (theirs, _) in zip(loader, expected, strict=True):
                if not np.array_equal(ours, theirs):
                    wrong.append("other pixels")
            counts = loader.stats().images
            if counts is None or counts.native != 5:
                wrong.append(str(loader.stats()))

    threads = [threading.Thread(target=loop) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert Image.OPEN["JPEG"] == PILLOWS


def test_an_error_in_the_dataset_leaves_nothing_patched(files: list[Path]) -> None:
    loader = headrace.DataLoader(OwnDataset(files[:1], lambda image: 1 / 0))
    with pytest.raises(ZeroDivisionError):
        next(iter(loader))
    assert Image.OPEN["JPEG"] == PILLOWS


@pytest.mark.processes
def test_workers_of_a_process_with_deferred_images_count_their_own(files: list[Path]) -> None:
    loader = headrace.DataLoader(OwnDataset(files[:4], _is_deferred), num_workers=2, collate_fn=list)
    with headrace.pillow.deferred():
        assert [deferred for ((deferred, _),) in loader] == [True] * 4


def test_another_version_of_torch_opens_images_as_usual(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(torch_loader._HOOKS, "_SingleProcessDataLoaderIter", ("a_method",))
    loader = headrace.DataLoader(OwnDataset(files[:2], _is_deferred), collate_fn=list)
    assert loader.route == "torch"
    assert [deferred for ((deferred, _),) in loader] == [False] * 2


class LateImages(Dataset[Any]):
    """Numbers; later, whether an image is deferred."""

    def __init__(self, path: Path, first: int) -> None:
        self.path, self.first = path, first

    def __len__(self) -> int:
        return 70

    def __getitem__(self, index: int) -> Any:
        return index if index < self.first else is_deferred(Image.open(self.path))


def test_batches_without_images_leave_the_functions_and_look_now_and_then(files: list[Path]) -> None:
    looked: list[bool] = []

    class Looking(LateImages):
        def __getitem__(self, index: int) -> Any:
            looked.append(Image.OPEN["JPEG"] != PILLOWS)
            return super().__getitem__(index)

    seen = list(headrace.DataLoader(Looking(files[0], 30), batch_size=None))
    assert seen[:30] == list(range(30))
    found = next(number for number, one in enumerate(seen) if one is True)
    assert 30 <= found < 30 + 16
    assert all(seen[found:])  # once there was an image
    assert sum(looked[:30]) < 8
    assert Image.OPEN["JPEG"] == PILLOWS


def test_images_that_a_dataset_has_kept_are_made_in_a_batch_without_a_look(files: list[Path]) -> None:
    kept: list[Any] = []

    class Keeping(LateImages):
        def __getitem__(self, index: int) -> Any:
            return kept[0]

    loader = headrace.DataLoader(Keeping(files[0], 0), batch_size=None)
    with headrace.pillow.deferred():
        kept.append(Image.open(files[0]).convert("RGB").resize((9, 9)))
    for number, image in enumerate(loader):
        assert not is_recorded(image), number
