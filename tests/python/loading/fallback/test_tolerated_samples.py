"""`on_error` where torch delivers: failed samples are left out or replaced, named once, and all others are torch's."""

from __future__ import annotations

import copy
import io
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, UnidentifiedImageError
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, Subset, default_collate, get_worker_info

import headrace
from headrace import SampleError
from support import assert_same, pictures, truncated
from torchvision_shim import import_torchvision

T = import_torchvision().transforms
from torchvision.transforms import v2  # noqa: E402 - after the shim

COUNT, BATCH = 26, 4
BAD = (1, 2, 9, 12, 13, 14, 15, 25)  # among them a whole batch, and the last sample
TRAIN = T.Compose([T.RandomResizedCrop(16), T.RandomHorizontalFlip(), T.ToTensor()])
V2 = v2.Compose([v2.ToImage(), v2.RandomResizedCrop(16, antialias=True), v2.ToDtype(torch.float32, scale=True)])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder, data = tmp_path_factory.mktemp("files"), pictures(COUNT, 40)
    paths = [folder / f"{number}.jpg" for number in range(COUNT)]
    for number, path in enumerate(paths):
        Image.open(io.BytesIO(data[number])).convert("RGB").save(path, quality=90)
        if number in BAD:
            path.write_bytes(truncated(path.read_bytes()))
    paths[BAD[0]].write_bytes(b"no image")
    return paths


class Own(Dataset[Any]):
    """Samples of files that a program opens in its own way."""

    def __init__(self, files: list[Path], read: Callable[[Path, int], Any]) -> None:
        self.files, self.read = files, read

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        random.random()
        return self.read(self.files[index], index)


def pixels(path: Path, number: int) -> Any:
    cv2 = pytest.importorskip("cv2")
    image = cv2.imread(str(path))
    if number in BAD:  # as a program that has a list of them
        raise ValueError(f"{path.name} is damaged")
    return cv2.resize(image, (16, 16))


class Custom:
    """A sample of a class of the program's."""

    def __init__(self, image: Any, number: int) -> None:
        self.image, self.number = image, number


def join(samples: list[Custom]) -> Any:
    return torch.stack([one.image for one in samples]), [one.number for one in samples]


def by_arrays(samples: list[Any]) -> Any:
    return torch.from_numpy(np.stack([np.asarray(image.resize((8, 8))) for image, _ in samples])), len(samples)


#: name -> how the program reads a file, and its collate_fn.
KINDS: dict[str, tuple[Callable[[Path, int], Any], Any]] = {
    "Pillow": (lambda path, n: (TRAIN(Image.open(path).convert("RGB")), n), None),
    "not converted": (lambda path, n: {"image": TRAIN(Image.open(path)), "n": n}, None),
    "v2 on a tensor": (lambda path, n: (V2(Image.open(path).convert("RGB")), n, torch.rand(2)), None),
    "bytes": (lambda path, n: [TRAIN(Image.open(io.BytesIO(path.read_bytes())).convert("RGB")), n], None),
    "images": (lambda path, n: (Image.open(path).convert("RGB"), n), by_arrays),
    "own samples": (lambda path, n: Custom(TRAIN(Image.open(path).convert("RGB")), n), join),
    "OpenCV": (lambda path, n: (pixels(path, n), n), None),
}


class Trying(Dataset[Any]):
    """What a program would write with torch's loader."""

    def __init__(self, dataset: Any, replaces: bool) -> None:
        self.dataset, self.replaces = dataset, replaces

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        for at in range(index, index + (len(self.dataset) if self.replaces else 1)):
            try:
                made = self.dataset[at % len(self.dataset)]
                for one in made if isinstance(made, tuple) else ():
                    if isinstance(one, Image.Image):
                        one.load()
                return made
            except Exception:
                continue
        return None


def without_none(samples: list[Any], collate_fn: Any) -> Any:
    left = [one for one in samples if one is not None]
    return collate_fn(left) if left else None


def expected_of(dataset: Any, how: str, collate_fn: Any, **options: Any) -> list[Any]:
    function = collate_fn or default_collate
    loader = TorchDataLoader(
        Trying(dataset, how == "replace"), BATCH, collate_fn=lambda one: without_none(one, function), **options
    )
    torch.manual_seed(7)
    random.seed(7)
    return [one for one in loader if one is not None]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.processes)])
@pytest.mark.parametrize("how", ["skip", "replace"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # Pillow leaves those open that it cannot decode
def test_others_are_torchs_and_each_bad_one_is_named(kind: str, how: Any, workers: int, files: list[Path]) -> None:
    read, collate_fn = KINDS[kind]
    dataset = Own(files, read)
    expected = expected_of(dataset, how, collate_fn, num_workers=workers)
    after = torch.get_rng_state(), random.getstate()
    loader = headrace.DataLoader(dataset, BATCH, num_workers=workers, collate_fn=collate_fn, on_error=how)
    assert loader.route == "deferred"
    for _ in range(2):  # an epoch after the first: its errors are its own
        torch.manual_seed(7)
        random.seed(7)
        with pytest.warns(UserWarning, match=rf"{len(BAD)} samples could not be made and were"):
            made = list(loader)
        assert_same(made, expected)
        assert torch.equal(torch.get_rng_state(), after[0]) and random.getstate() == after[1]
        assert sorted(error.index for error in loader.errors) == sorted(BAD)
        assert all(error.stage == "dataset" and error.location == "Own" for error in loader.errors)
    if kind != "OpenCV":
        assert all(isinstance(error, OSError) for error in loader.errors)
        assert len([one for one in loader.errors if isinstance(one, UnidentifiedImageError)]) == 1


class Numbers(Dataset[Any]):
    def __init__(self, bad: tuple[int, ...], count: int = 12) -> None:
        self.bad, self.count = bad, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        if index in self.bad:
            raise KeyError(index)
        return index

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[index] for index in indices]


def test_too_many_errors_end_the_epoch() -> None:
    loader = headrace.DataLoader(Numbers((1, 5, 6)), 2, on_error="skip", max_errors=2)
    with pytest.raises(RuntimeError, match=r"3 samples of this epoch could not be made, more than max_errors=2"):
        list(loader)
    assert [error.index for error in loader.errors] == [1, 5, 6]
    assert isinstance(loader.errors[0], SampleError) and isinstance(loader.errors[0], KeyError)


def test_a_dataset_without_a_sample_that_can_be_made() -> None:
    with pytest.warns(UserWarning, match="3 samples could not be made and were skipped"):
        assert list(headrace.DataLoader(Numbers((0, 1, 2), 3), 2, on_error="skip")) == []
    with pytest.raises(RuntimeError, match="no sample of the dataset could be made"):
        list(headrace.DataLoader(Numbers((0, 1, 2), 3), 2, on_error="replace"))


def test_a_rank_without_a_batch_says_so() -> None:
    loader = headrace.DataLoader(Numbers((0, 1, 2, 3)), 2, on_error="skip", rank=0, world_size=2)
    with pytest.raises(RuntimeError, match="the other ranks would wait"):
        list(loader)


@pytest.mark.filterwarnings("ignore:epoch 0")
def test_single_samples_subsets_and_states() -> None:
    single = headrace.DataLoader(Numbers((3,)), None, on_error="skip")
    assert [int(one) for one in single] == [0, 1, 2, *range(4, 12)]
    subset = headrace.DataLoader(Subset(Numbers((3,)), [5, 3, 4]), 2, on_error="replace")
    assert [one.tolist() for one in subset] == [[5, 4], [4]]
    loader = headrace.DataLoader(Numbers((4, 5)), 2, on_error="skip", shuffle=False)
    iterator = iter(loader)
    first = [next(iterator).tolist() for _ in range(2)]
    state = loader.state_dict()
    resumed = headrace.DataLoader(Numbers((4, 5)), 2, on_error="skip", shuffle=False)
    resumed.load_state_dict(state)
    assert first + [one.tolist() for one in resumed] == [[0, 1], [2, 3], [6, 7], [8, 9], [10, 11]]


def looks_at_the_dataset(worker: int) -> None:
    info: Any = get_worker_info()
    assert type(info.dataset) is Numbers
    info.dataset.bad = (*info.dataset.bad, 0)


@pytest.mark.processes
@pytest.mark.filterwarnings("ignore:epoch [01]")
def test_functions_in_a_worker_see_the_programs_dataset() -> None:
    loader = headrace.DataLoader(
        Numbers((3,)), 4, num_workers=1, on_error="skip", worker_init_fn=looks_at_the_dataset, persistent_workers=True
    )
    for _ in range(2):
        assert [one.tolist() for one in loader] == [[1, 2], [4, 5, 6, 7], [8, 9, 10, 11]]
        assert sorted(error.index for error in loader.errors) == [0, 3]


def test_errors_of_a_collate_fn_are_raised() -> None:
    loader = headrace.DataLoader(Numbers((3,)), 4, on_error="skip", collate_fn=lambda samples: 1 // (len(samples) - 3))
    with pytest.raises(ZeroDivisionError):
        list(loader)


class ByKey(Dataset[Any]):
    """Samples with names in place of numbers."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, key: str) -> Any:
        if key in "bc":
            raise KeyError(key)
        return key


def test_samples_with_names_are_counted_one_by_one() -> None:
    loader = headrace.DataLoader(ByKey(), batch_sampler=[["a", "b"], ["c", "d"]], on_error="skip", max_errors=2)
    with pytest.warns(UserWarning, match="2 samples could not be made"):
        assert list(loader) == [["a"], ["d"]]
    assert [error.location for error in loader.errors] == ["ByKey, 'b'", "ByKey, 'c'"]


def test_nothing_changes_without_errors(files: list[Path]) -> None:
    good = [path for number, path in enumerate(files) if number not in BAD]
    dataset = Own(good, KINDS["Pillow"][0])
    torch.manual_seed(7)
    expected = list(TorchDataLoader(dataset, BATCH))
    loader = headrace.DataLoader(dataset, BATCH, on_error="replace")
    torch.manual_seed(7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(list(loader), expected)
    assert loader.errors == []


@pytest.mark.processes
@pytest.mark.filterwarnings("ignore:epoch 0")
def test_values_are_made_in_the_workers_and_copies_begin_without_errors(files: list[Path]) -> None:
    """A loader with half as many workers as cores has its images made in the main process otherwise."""
    loader = headrace.DataLoader(Own(files, KINDS["v2 on a tensor"][0]), BATCH, num_workers=1, on_error="skip")
    assert len(list(loader)) == 6 and len(loader.errors) == len(BAD)
    assert loader._torch_epochs.making == 0
    assert "made in the workers, because on_error has the values of each sample made there" in str(loader.explain())
    assert copy.deepcopy(loader).errors == []
