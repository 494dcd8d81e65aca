"""Arguments and states of a loader that a newcomer gets wrong: each message names cause and remedy."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mistakes import Mistake, both, check, images, load, loading, make_folder, stepping
from torch.utils.data import Dataset

import headrace
from headrace import DataLoader, ImageFolder
from headrace import transforms as T

M = Mistake
make: Any = DataLoader
steps: Any = T  # arguments of wrong types are what is tested
RANDOM = torch.utils.data.RandomSampler(range(8))
MEAN = [0.5, 0.5, 0.5]

MISTAKES = {
    "a misspelt keyword": M(loading(2, nunm_workers=2), TypeError, "'nunm_workers'", "Did you mean 'num_workers'"),
    "workers": M(loading(2, workers=2), TypeError, "'workers'", "Did you mean 'num_workers'"),
    "batchsize": M(loading(batchsize=2), TypeError, "'batchsize'", "Did you mean 'batch_size'"),
    "an unknown keyword": M(loading(2, qqq=2), TypeError, "'qqq'", "There are dataset, batch_size"),
    "transform for the loader": M(loading(2, transform=0), TypeError, "'transform'", r"ImageFolder\(root, transform\)"),
    "batch_size=0": M((b := both(0))[0], ValueError, "batch_size=0", "whole number of 1 or more", b[1]),
    "batch_size=-1": M((b := both(-1))[0], ValueError, "batch_size=-1", "whole number of 1 or more", b[1]),
    "negative workers": M(
        (b := both(2, num_workers=-1))[0], ValueError, "num_workers", "num_workers=0 to disable", b[1]
    ),
    "workers 2.5": M(loading(2, num_workers=2.5), TypeError, "not 2.5", "must be a whole number"),
    "workers by a word": M(loading(2, num_workers="four"), ValueError, "not 'four'", "a number, 'auto'"),
    "sampler and shuffle": M(
        (b := both(2, shuffle=True, sampler=RANDOM))[0], ValueError, "sampler option", "leave shuffle out", b[1]
    ),
    "batch_sampler and batch_size": M(
        (b := both(2, batch_sampler=[[0]]))[0], ValueError, "batch_sampler option", "leave batch_size, shuffle", b[1]
    ),
    "negative timeout": M((b := both(2, timeout=-1))[0], ValueError, "timeout", "pass seconds, or 0", b[1]),
    "timeout by a word": M(loading(2, timeout="1"), TypeError, "not '1'", "a number of seconds"),
    "prefetch without workers": M(
        (b := both(2, prefetch_factor=2))[0], ValueError, "prefetch_factor", "num_workers > 0 to enable", b[1]
    ),
    "persistent without workers": M(
        (b := both(2, persistent_workers=True))[0], ValueError, "persistent_workers", "num_workers > 0", b[1]
    ),
    "negative prefetch": M(
        (b := both(2, num_workers=1, prefetch_factor=-1))[0], ValueError, "prefetch_factor", "pass 1 or more", b[1]
    ),
    "a collate_fn that is none": M(
        (b := both(2, collate_fn=3))[0], TypeError, "collate_fn=3", "of a list of samples", b[1]
    ),
    "sampler=5": M(loading(2, sampler=5), TypeError, "not 5", "must be iterable"),
    "an index out of range": M(loading(2, sampler=[0, 99]), IndexError, "index 99", "a dataset of 8 samples"),
    "generator=3": M(loading(2, shuffle=True, generator=3), TypeError, "not 3", r"a torch\.Generator or None"),
    "None as dataset": M(lambda folder: load(None), TypeError, "dataset is None", r"such as ImageFolder\(root"),
    "a class as dataset": M(
        lambda folder: load(ImageFolder), TypeError, "the class ImageFolder itself", r"such as ImageFolder\(root"
    ),
    "no batch at all": M(loading(20, drop_last=True), None, "batch_size=20", "larger than the dataset"),
    "seed by a word": M(loading(2, seed="a"), TypeError, "not 'a'", "a whole number"),
    "device='gpu'": M(loading(2, device="gpu"), ValueError, "not 'gpu'", "'cpu', 'cuda'"),
    "dtype='fp16'": M(loading(2, dtype="fp16"), ValueError, "not 'fp16'", r"one of torch\.float32, torch\.float16"),
    "dtype of numpy": M(loading(2, dtype=np.float32), ValueError, r"numpy\.float32", r"one of torch\.float32"),
    "memory_format='nhwc'": M(loading(2, memory_format="nhwc"), ValueError, "not 'nhwc'", r"torch\.channels_last"),
    "decoder='gpu'": M(loading(2, decoder="gpu"), ValueError, "not 'gpu'", "one of auto, hardware"),
    "on_error='ignore'": M(loading(2, on_error="ignore"), ValueError, "not 'ignore'", "one of raise, skip, replace"),
    "rank without world_size": M(loading(2, rank=0), ValueError, "rank=0 is given without", "distributed=True"),
    "world_size without rank": M(loading(2, world_size=2), ValueError, "world_size=2 is given", "distributed=True"),
    "a rank too large": M(loading(2, rank=2, world_size=2), ValueError, "rank 2", "ranks go from 0 to 1"),
    "out_transform=3": M(loading(2, out_transform=3), TypeError, "not 3", "a function of a batch"),
    "a core that is not there": M(loading(2, cpu_affinity=[9999]), ValueError, "core 9999", "choose from"),
    "entry_points='lots'": M(loading(2, entry_points="lots"), ValueError, "not 'lots'", "such as '100 GB'"),
    "set_epoch('1')": M(lambda folder: make(images(folder), 2).set_epoch("1"), TypeError, "not '1'", "a whole number"),
    "garbage as a state": M(
        lambda folder: make(images(folder), 2).load_state_dict({"a": 1}),
        ValueError,
        "{'a': 1}",
        r"pass what state_dict\(\)",
    ),
    "None as a state": M(
        lambda folder: make(images(folder), 2).load_state_dict(None),
        ValueError,
        "None",
        r"pass what state_dict\(\)",
    ),
    "a path as a state": M(
        lambda folder: make(images(folder), 2).load_state_dict("a.pt"),
        ValueError,
        r"'a\.pt'",
        r"torch\.load\(path\)",
    ),
    "ToTensor before a crop": M(
        stepping(T.ToTensor(), T.RandomResizedCrop(8)), TypeError, "torch.Tensor", "before the step that makes a tensor"
    ),
    "no ToTensor": M(stepping(T.Resize((9, 9))), TypeError, "PIL.Image.Image", r"ToTensor\(\)"),
    "sizes that differ": M(stepping(T.ToTensor()), RuntimeError, "equal size", r"CenterCrop\(size\)"),
    "Normalize before ToTensor": M(
        stepping(T.Normalize(MEAN, MEAN), T.ToTensor()), TypeError, "PIL images", r"put ToTensor\(\) before"
    ),
    "two means": M(
        stepping(T.Resize((9, 9)), T.ToTensor(), T.Normalize(MEAN[:2], MEAN[:2])), RuntimeError, "2 means", "a channel"
    ),
    "a crop larger than the image": M(
        stepping(T.RandomCrop(64), T.ToTensor()), ValueError, r"\(64, 64\)", "pad_if_needed=True"
    ),
    "scale=(1, .08)": M(
        lambda folder: stepping(T.RandomResizedCrop(8, scale=(1, 0.08)), T.ToTensor())(folder),
        RuntimeError,
        r"\(1, 0\.08\)",
        r"scale=\(0\.08, 1\)",
    ),
    "Resize(0)": M(stepping(T.Resize(0), T.ToTensor()), ValueError, "size=", "sizes of 1 or more"),
    "Resize('224')": M(lambda folder: steps.Resize("224"), ValueError, "got 224", "can be an integer"),
    "a probability of 50": M(lambda folder: T.RandomHorizontalFlip(50), ValueError, "p", r"interval \[0\.0, 1\.0\]"),
    "hue=1": M(lambda folder: T.ColorJitter(hue=1), ValueError, r"\[-1, 1\]", r"\(-0\.5, 0\.5\)"),
    "a misspelt keyword of a transform": M(
        lambda folder: steps.RandomResizedCrop(8, scales=(0.1, 1)), TypeError, "'scales'", "Did you mean 'scale'"
    ),
    "None in a Compose": M(
        stepping(T.Resize((9, 9)), None, T.ToTensor()), TypeError, "step 2 of transform, None", "pass a function"
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("mistakes"))


@pytest.mark.parametrize("name", MISTAKES)
def test_the_message_names_cause_and_remedy(folder: Path, name: str) -> None:
    check(MISTAKES[name], folder)


def test_the_signature_stays_torchs_and_subclasses_have_their_own(folder: Path) -> None:
    names = list(inspect.signature(DataLoader).parameters)
    theirs = list(inspect.signature(torch.utils.data.DataLoader).parameters)
    assert names[: len(theirs)] == theirs and "args" not in names

    class Mine(DataLoader[Any]):
        def __init__(self, dataset: Any, workers: int = 0, **options: Any) -> None:
            super().__init__(dataset, 2, num_workers=workers, **options)

    assert list(inspect.signature(Mine).parameters) == ["dataset", "workers", "options"]
    assert len(list(Mine(images(folder), workers=1))) == 4
    with pytest.raises(TypeError, match=r"'shufle'\. Did you mean 'shuffle'"):
        Mine(images(folder), shufle=True)
    crop = T.RandomResizedCrop(9)
    assert repr(pickle.loads(pickle.dumps(crop))) == repr(crop)
    assert next(iter(inspect.signature(T.RandomResizedCrop).parameters)) == "size"


def test_an_error_inside_of_the_constructor_gets_no_hint(folder: Path) -> None:
    def broken(**options: Any) -> None:
        raise TypeError("f() got an unexpected keyword argument 'nunm_workers'")

    class Bad(headrace.ImageFolder):
        def __len__(self) -> int:
            broken()
            return 0

    with pytest.raises(TypeError, match=r"'nunm_workers'$"):
        load(Bad(str(folder / "ok")))


def test_means_of_bytes_are_explained_and_nothing_is_read_before(folder: Path) -> None:
    loader = DataLoader(images(folder, T.Resize((9, 9)), T.ToTensor(), T.Normalize([124.0] * 3, [57.0] * 3)), 2)
    assert "mean=[124.0, 124.0, 124.0] follows ToTensor" in str(loader.explain())
    assert "divide mean and std by 255" in str(loader.explain())


class Private(Dataset[int]):
    """A dataset that counts who reads its transform."""

    reads = 0

    @property
    def transform(self) -> object:
        Private.reads += 1
        raise RuntimeError("not yet")

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index


def test_a_datasets_own_property_is_not_read_by_the_constructor() -> None:
    loader: DataLoader[Any] = DataLoader(Private(), 2)
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]
    assert Private.reads == 0
