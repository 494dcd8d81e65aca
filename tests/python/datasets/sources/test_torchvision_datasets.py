"""torchvision's datasets, made from files in their own formats: native batches equal those of torch's loader."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader
from headrace import transforms as T
from headrace.datasets.sources import NotNative, as_source
from headrace.datasets.sources.arrays import ImageArray
from support import TENSOR, assert_same, pictures, write_folder

RNG = np.random.default_rng(3)
FIXED = T.Compose([T.Resize((20, 24)), *TENSOR])
GRAY = T.Compose([T.ToTensor(), T.Normalize([0.5], [0.25])])


def cifar(torchvision: Any, root: Path, monkeypatch: Any, name: str, **options: Any) -> Any:
    monkeypatch.setattr(torchvision.datasets.cifar, "check_integrity", lambda *arguments: True)
    kind = getattr(torchvision.datasets, name)
    folder = root / kind.base_folder
    folder.mkdir()
    for file, _ in kind.train_list:
        labels = RNG.integers(0, 10, 7).tolist()
        entry = {"data": RNG.integers(0, 256, (7, 3072), dtype=np.uint8), "labels": labels, "fine_labels": labels}
        (folder / file).write_bytes(pickle.dumps(entry))
    (folder / kind.meta["filename"]).write_bytes(pickle.dumps({kind.meta["key"]: list("abc")}))
    return kind(str(root), **options)


def mnist(torchvision: Any, root: Path, name: str, **options: Any) -> Any:
    raw = root / name / "raw"
    raw.mkdir(parents=True)
    for split, count in (("train", 19), ("t10k", 4)):
        images, labels = RNG.integers(0, 256, (count, 28, 28), dtype=np.uint8), RNG.integers(0, 10, count)
        heads = (b"\0\0\x08\x03", count.to_bytes(4, "big"), (28).to_bytes(4, "big"), (28).to_bytes(4, "big"))
        (raw / f"{split}-images-idx3-ubyte").write_bytes(b"".join(heads) + images.tobytes())
        counts = b"\0\0\x08\x01" + count.to_bytes(4, "big")
        (raw / f"{split}-labels-idx1-ubyte").write_bytes(counts + labels.astype(np.uint8).tobytes())
    return getattr(torchvision.datasets, name)(root, **options)


def food(torchvision: Any, root: Path, **options: Any) -> Any:
    names: dict[str, list[str]] = {"pho": [], "apple_pie": []}
    for i, data in enumerate(pictures(12)):
        dish = sorted(names)[i % 2]
        names[dish].append(f"{dish}/{i}")
        path = root / "food-101" / "images" / dish / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (root / "food-101" / "meta").mkdir()
    (root / "food-101" / "meta" / "train.json").write_text(json.dumps(names))
    return torchvision.datasets.Food101(root, **options)


def flowers(torchvision: Any, root: Path, **options: Any) -> Any:
    """Made without the constructor, which reads Matlab files."""
    kind = torchvision.datasets.Flowers102
    made = kind.__new__(kind)
    torchvision.datasets.VisionDataset.__init__(made, root, **options)
    made._split, made.loader = "train", torchvision.datasets.folder.default_loader
    made._image_files, made._labels = [], []
    for i, data in enumerate(pictures(8)):
        made._image_files.append(root / f"image_{i:05}.jpg")
        made._image_files[-1].write_bytes(data)
        made._labels.append(101 - i)
    return made


def pets(torchvision: Any, root: Path, **options: Any) -> Any:
    base = root / "oxford-iiit-pet"
    (base / "images").mkdir(parents=True)
    (base / "annotations" / "trimaps").mkdir(parents=True)
    lines = []
    for i, data in enumerate(pictures(9)):
        (base / "images" / f"Bombay_{i}.jpg").write_bytes(data)
        lines.append(f"Bombay_{i} {i % 3 + 1} {i % 2 + 1} 1\n")
    (base / "annotations" / "trainval.txt").write_text("".join(lines))
    return torchvision.datasets.OxfordIIITPet(root, **options)


@pytest.fixture(params=["CIFAR10", "CIFAR100", "MNIST", "FashionMNIST", "KMNIST", "food", "flowers", "pets", "folder"])
def family(
    request: pytest.FixtureRequest, torchvision: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """A function that makes a dataset of one family."""
    name = request.param
    if name.startswith("CIFAR"):
        return lambda **options: cifar(torchvision, tmp_path, monkeypatch, name, **{"transform": FIXED} | options)
    if name.endswith("MNIST"):
        return lambda **options: mnist(torchvision, tmp_path, name, **{"transform": GRAY} | options)
    if name == "folder":
        datasets = torchvision.datasets
        write_folder(tmp_path)
        return lambda **options: datasets.DatasetFolder(
            tmp_path, datasets.folder.default_loader, ("jpg",), **{"transform": FIXED} | options
        )
    make = {"food": food, "flowers": flowers, "pets": pets}[name]
    return lambda **options: make(torchvision, tmp_path, **{"transform": FIXED} | options)


@pytest.mark.parametrize("target_transform", [None, lambda label: (label, float(label) / 2)])
def test_batches_are_torchs(family: Callable[..., Any], target_transform: Callable[..., Any] | None) -> None:
    dataset = family(target_transform=target_transform)
    loaders: list[Any] = [
        kind(dataset, 4, True, generator=torch.Generator().manual_seed(2)) for kind in (DataLoader, TorchDataLoader)
    ]
    assert loaders[0].native, loaders[0].explain()
    batches = [[tuple(batch) for batch in loader] for loader in loaders]
    for (images, labels), (wanted, targets) in zip(*batches, strict=True):
        assert torch.equal(images, wanted) and images.dtype == wanted.dtype
        assert type(labels) is type(targets) and str(labels) == str(targets)


def test_explain_names_the_dataset_as_the_program_does(family: Callable[..., Any]) -> None:
    dataset = family()
    for data in (dataset, torch.utils.data.Subset(dataset, [0, 1])):
        line = str(DataLoader(data).explain()).splitlines()[0]
        assert type(data).__qualname__ in line and " _" not in line


def test_random_batches_are_the_oracles(family: Callable[..., Any]) -> None:
    dataset = family()
    gray = dataset.transform is GRAY
    dataset.transform = T.Compose(
        [T.RandomResizedCrop(16), T.RandomHorizontalFlip(), *(GRAY if gray else FIXED).transforms[-2:]]
    )
    if getattr(dataset, "transforms", None) is not None:
        dataset.transforms.transform = dataset.transform
    loader = DataLoader(dataset, 4, True, seed=2, num_workers=1)
    assert loader.native
    assert_same(loader, list(loader.reference()))


def test_arrays_are_not_copied(torchvision: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = cifar(torchvision, tmp_path, monkeypatch, "CIFAR10", transform=FIXED)
    assert not dataset.data.flags.c_contiguous  # a transposed view of colour planes
    source = as_source(dataset)
    assert isinstance(source, ImageArray) and np.shares_memory(source.images, dataset.data)


def test_exchanged_contents_are_seen(torchvision: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = cifar(torchvision, tmp_path, monkeypatch, "CIFAR10", transform=FIXED)
    loader = DataLoader(dataset, 35)
    before = next(iter(loader))
    dataset.data, dataset.targets = dataset.data[::-1], dataset.targets[::-1]
    after = next(iter(loader))
    assert torch.equal(after[0], before[0].flip(0)) and torch.equal(after[1], before[1].flip(0))
    assert loader.verify().samples == 35
    dataset.data, dataset.targets = dataset.data[:5], dataset.targets[:5]
    assert_same(loader, list(TorchDataLoader(dataset, 35)))
    assert loader.native


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target_types": "segmentation"}, "does not return one number as target"),
        ({"target_types": ["category", "binary-category"]}, "does not return one number as target"),
        ({"transforms": lambda image, target: (image, target)}, "may look at image and target together"),
    ],
)
def test_pets_with_other_targets_are_torchs(
    torchvision: ModuleType, tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    dataset = pets(torchvision, tmp_path, **options)
    with pytest.raises(NotNative, match=words):
        as_source(dataset)
    assert not DataLoader(dataset).native


def test_binary_categories(torchvision: ModuleType, tmp_path: Path) -> None:
    dataset = pets(torchvision, tmp_path, target_types="binary-category", transform=FIXED)
    labels = next(iter(DataLoader(dataset, 9)))[1]
    assert labels.tolist() == [dataset[i][1] for i in range(9)] and set(labels.tolist()) == {0, 1}


def test_transforms_together_may_be_standard_ones(torchvision: ModuleType, tmp_path: Path) -> None:
    standard = torchvision.datasets.vision.StandardTransform(FIXED, lambda label: -label)
    loader = DataLoader(pets(torchvision, tmp_path, transforms=standard), 9)
    assert loader.native and next(iter(loader))[1].max() == 0


def test_relatives_with_samples_of_their_own_are_torchs(
    torchvision: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Indexed(torchvision.datasets.MNIST):  # type: ignore[name-defined]
        def __getitem__(self, index: int) -> Any:
            return (*super().__getitem__(index), index)

    (tmp_path / "Indexed").symlink_to(tmp_path / "MNIST")
    mnist(torchvision, tmp_path, "MNIST")
    dataset = Indexed(tmp_path, transform=GRAY)
    loader: DataLoader = DataLoader(dataset, 19)
    assert not loader.native and "Indexed overrides __getitem__" in str(loader.explain())
    assert len(next(iter(loader))) == 3


def test_a_shorter_relative(torchvision: ModuleType, tmp_path: Path) -> None:
    class Few(torchvision.datasets.MNIST):  # type: ignore[name-defined]
        def __len__(self) -> int:
            return 3

    (tmp_path / "Few").symlink_to(tmp_path / "MNIST")
    mnist(torchvision, tmp_path, "MNIST")
    loader: DataLoader = DataLoader(Few(tmp_path, transform=GRAY), 2)
    assert loader.native and [len(labels) for _, labels in loader] == [2, 1]
    assert_same(loader, list(loader.reference()))


def test_odd_attributes_are_left_to_torch(torchvision: ModuleType, tmp_path: Path) -> None:
    dataset = mnist(torchvision, tmp_path, "MNIST", transform=GRAY)
    dataset.data = list(dataset.data)
    with pytest.raises(NotNative, match=r"MNIST\.data is list, not the type that torchvision uses; leave"):
        as_source(dataset)
    assert torch.equal(next(iter(DataLoader(dataset, 3)))[0], next(iter(TorchDataLoader(dataset, 3)))[0])


def test_lists_that_do_not_fit_are_torchs(torchvision: ModuleType, tmp_path: Path) -> None:
    class Long(torchvision.datasets.MNIST):  # type: ignore[name-defined]
        def __len__(self) -> int:
            return 100

    (tmp_path / "Long").symlink_to(tmp_path / "MNIST")
    dataset = mnist(torchvision, tmp_path, "MNIST", transform=GRAY)
    dataset.targets = dataset.targets[:-1]
    loader = DataLoader(dataset, 6)
    assert not loader.native and "MNIST has 19 images but 18 labels; give it one" in str(loader.explain())
    iterator = iter(loader)
    assert [len(next(iterator)[1]) for _ in range(3)] == [6, 6, 6]
    for kind in (DataLoader, TorchDataLoader):
        with pytest.raises(IndexError):
            list(kind(Long(tmp_path, transform=GRAY), 10))
    dataset.data = dataset.data.float()
    words = "MNIST.data is torch.float32 (19, 28, 28), not uint8 with 3 axes"
    assert words in str(DataLoader(dataset).explain())


@pytest.mark.processes
def test_recognition_imports_nothing() -> None:
    from support import output_of

    code = (
        "import sys, headrace; headrace.DataLoader([1, 2]).explain(); "
        "print([name for name in sys.modules if name.startswith('torchvision')])"
    )
    assert output_of(code) == "[]\n"


def test_imagenet(torchvision: ModuleType, tmp_path: Path) -> None:
    """ImageNet, made without its constructor, which needs the archives."""
    folder = torchvision.datasets.ImageFolder(write_folder(tmp_path), FIXED)
    made = torchvision.datasets.ImageNet.__new__(torchvision.datasets.ImageNet)
    made.__dict__.update(vars(folder))
    loader = DataLoader(made, 5)
    assert loader.native
    assert_same(loader, TorchDataLoader(made, 5))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_of_loaders(family: Callable[..., Any], duplicate: Callable[..., Any]) -> None:
    loader = DataLoader(family(), 4, True, seed=1)
    again = duplicate(loader)
    assert again.native and again._source.is_current()
    assert_same(again, list(loader))
