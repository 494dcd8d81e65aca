"""The datasets: torchvision's classes, order and samples; labels of all kinds; what is recognised and what refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import support
import torch
from PIL import Image

import headrace
from headrace.sources import as_source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = support.write_folder(tmp_path / "set", count=15)
    (root / "class_0" / "notes.txt").write_text("not an image")
    (root / "class_0" / "sub" / "deeper").mkdir(parents=True)
    (root / "class_0" / "sub" / "deeper" / "a.PNG").write_bytes(support.pictures(4)[3])
    (root / "class_1" / "LOUD.JPEG").write_bytes(support.pictures(1)[0])
    (root / "class_2" / "linked").symlink_to(root / "class_0" / "sub", target_is_directory=True)
    (root / "stray.jpg").write_bytes(support.pictures(1)[0])
    return root


def test_image_folder_is_torchvisions(folder: Path, torchvision: Any) -> None:
    ours, theirs = headrace.ImageFolder(folder), torchvision.datasets.ImageFolder(folder)
    assert ours.classes == theirs.classes
    assert ours.class_to_idx == theirs.class_to_idx
    assert list(ours.samples) == theirs.samples
    assert list(ours.imgs) == theirs.imgs
    assert ours.targets.tolist() == theirs.targets
    assert len(ours) == len(theirs) == 18
    assert ours.samples[-1] == theirs.samples[-1]
    assert ours.samples[2:5] == theirs.samples[2:5]
    for i in (0, 7, -1):
        (our_image, our_label), (their_image, their_label) = ours[i], theirs[i]
        assert our_image.tobytes() == their_image.tobytes()
        assert (our_label, type(our_label)) == (their_label, type(their_label))


def test_image_folder_options_are_torchvisions(folder: Path, torchvision: Any) -> None:
    (folder / "class_9").mkdir()
    for make in (headrace.ImageFolder, torchvision.datasets.ImageFolder):
        with pytest.raises(FileNotFoundError, match="Found no valid file for the classes class_9. Supported extensions are: .jpg"):
            make(folder)
        with pytest.raises(FileNotFoundError, match="class folder"):
            make(folder / "class_9")
    ours = headrace.ImageFolder(folder, allow_empty=True, is_valid_file=lambda path: path.endswith("txt"))
    theirs = torchvision.datasets.ImageFolder(folder, allow_empty=True, is_valid_file=lambda path: path.endswith("txt"))
    assert list(ours.samples) == theirs.samples != []


def test_torchvisions_folder_gives_the_same_batches(folder: Path, torchvision: Any) -> None:
    theirs = torchvision.datasets.ImageFolder(folder, transform=support.train(32), target_transform=lambda label: label + 0.5)
    ours = headrace.ImageFolder(folder, support.train(32), lambda label: label + 0.5)
    loaders = [headrace.DataLoader(dataset, batch_size=5, seed=3, shuffle=True, num_workers=2) for dataset in (ours, theirs)]
    assert support.assert_same(*loaders) == 4


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (list(range(8)), torch.int64),
        (np.arange(8, dtype=np.uint8), torch.int64),
        ([0.5 * i for i in range(8)], torch.float64),
        ([bool(i % 2) for i in range(8)], torch.bool),
        (torch.arange(8.0), torch.float32),
    ],
)
def test_labels_are_collated_as_torch_does(labels: Any, dtype: torch.dtype) -> None:
    dataset = headrace.Blobs(support.pictures(8), labels, support.evaluation(20, 16))
    theirs = torch.utils.data.DataLoader(dataset, batch_size=3)
    ours = headrace.DataLoader(dataset, batch_size=3, num_workers=1)
    for (_, a), (_, b) in zip(ours, theirs, strict=True):
        assert torch.equal(a, b)
        if not isinstance(labels, np.ndarray):
            assert a.dtype == b.dtype == dtype


def test_labels_that_are_no_numbers(tmp_path: Path) -> None:
    labels = [{"name": f"picture {i}", "box": (i, i + 1)} for i in range(6)]
    dataset = headrace.Blobs(support.pictures(6), labels, support.evaluation(20, 16))
    ours = list(headrace.DataLoader(dataset, batch_size=4))
    theirs = list(torch.utils.data.DataLoader(dataset, batch_size=4))
    assert [batch[1]["name"] for batch in ours] == [batch[1]["name"] for batch in theirs]
    assert torch.equal(ours[1][1]["box"][1], theirs[1][1]["box"][1])


def test_no_labels_gives_images_alone() -> None:
    dataset = headrace.Blobs(support.pictures(5), transform=support.evaluation(20, 16))
    batches = list(headrace.DataLoader(dataset, batch_size=2, num_workers=1))
    assert [type(batch) for batch in batches] == [torch.Tensor] * 3
    assert torch.equal(batches[0][1], dataset[1])
    with pytest.raises(ValueError, match="no labels"):
        headrace.Blobs(support.pictures(5), target_transform=lambda label: label)


def test_files_and_memory_give_the_same_batches(tmp_path: Path) -> None:
    paths = []
    for i, data in enumerate(support.pictures(10)):
        paths.append(tmp_path / f"pícture {i}.jpg")
        paths[-1].write_bytes(data)
    files = headrace.ImageFiles(paths, range(10), support.train(24))
    memory = headrace.Blobs([memoryview(bytearray(data)) for data in support.pictures(10)], range(10), support.train(24))
    loaders = [headrace.DataLoader(dataset, batch_size=4, seed=1, num_workers=2) for dataset in (files, memory)]
    assert support.assert_same(*loaders) == 3
    assert files.location(3) == str(paths[3])
    assert "blob 3 in memory" in memory.location(3)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: headrace.ImageFiles(["a", "b"], [1]), ValueError, "2 paths but 1 labels"),
        (lambda: headrace.ImageFiles("a.jpg"), TypeError, "not one path"),
        (lambda: headrace.ImageFiles(["a\0b"]), ValueError, "zero byte"),
        (lambda: headrace.Blobs([b"x"], [1, 2]), ValueError, "1 blobs but 2 labels"),
        (lambda: headrace.Blobs(b"x"), TypeError, "not one"),
        (lambda: headrace.Blobs([b"x", "y"]), TypeError, "blob 1 is str"),  # type: ignore[list-item]
    ],
)
def test_bad_input_is_one_sentence(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_index_out_of_range() -> None:
    dataset = support.blobs(4)
    assert dataset[-1][1] == 3
    with pytest.raises(IndexError, match="index 4 is out of range for a dataset of 4 samples"):
        dataset[4]


def test_unknown_datasets_are_refused_by_name(folder: Path, torchvision: Any) -> None:
    class Mine(torch.utils.data.Dataset[Any]):
        pass

    class Overriding(headrace.ImageFolder):
        def __getitem__(self, index: int) -> Any:
            return super().__getitem__(index)

    class Derived(torchvision.datasets.ImageFolder):  # type: ignore[misc]
        def __getitem__(self, index: int) -> Any:
            return super().__getitem__(index)

    with pytest.raises(TypeError, match="does not know .*Mine; it reads headrace.ImageFolder"):
        headrace.DataLoader(Mine())
    with pytest.raises(TypeError, match="Overriding overrides __getitem__"):
        headrace.DataLoader(Overriding(folder, support.train(16)))
    with pytest.raises(TypeError, match="Derived overrides __getitem__"):
        as_source(Derived(folder))
    with pytest.raises(TypeError, match="opens files its own way"):
        as_source(torchvision.datasets.ImageFolder(folder, loader=Image.open))
