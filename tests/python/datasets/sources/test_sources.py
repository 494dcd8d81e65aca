"""The datasets: an ImageFolder identical to torchvision's, files, memory, labels of all kinds, wrong arguments."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from headrace import DataLoader, EncodedImages, ImageFiles, ImageFolder
from headrace import transforms as T
from support import TENSOR, assert_same, pictures

PICTURE = pictures(1)[0]
TINY = T.Compose([T.Resize((8, 8)), *TENSOR])


def tree(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PICTURE)
    return root


TREES = {
    "classes in order": ["b/1.jpg", "a/2.jpg", "B/3.jpg", "a b/4.jpg", "ä/5.jpg", "10/6.jpg", "9/7.jpg"],
    "files in order": [
        "c/10.jpg",
        "c/9.jpg",
        "c/B.jpg",
        "c/a.jpg",
        "c/a/1.jpg",
        "c/a.b/1.jpg",
        "c/Z/y/x.jpg",
        "c/z.jpg",
    ],
    "extensions": [
        *(f"c/1{end}" for end in (".jpg", ".JPEG", ".pNg", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")),
        *(f"c/2{end}" for end in (".gif", ".txt", ".jpg.bak", "", ".jp2", ".avif", "jpg")),
        "c/.jpg",
        "c/.hidden.jpg",
    ],
    "hidden": [".d/1.jpg", "c/.d/1.jpg"],
    "files beside the classes": ["c/1.jpg", "stray.jpg", "README"],
}


def both(torchvision: Any, root: Any, **options: Any) -> list[Any]:
    """headrace's and torchvision's ImageFolder, or the exceptions that they raise."""
    made = []
    for kind in (ImageFolder, torchvision.datasets.ImageFolder):
        try:
            made.append(kind(root, **options))
        except Exception as error:
            made.append(error)
    return made


def assert_same_folder(ours: Any, theirs: Any) -> None:
    assert not isinstance(theirs, Exception), theirs
    assert ours.classes == theirs.classes and ours.class_to_idx == theirs.class_to_idx
    assert list(ours.samples) == theirs.samples == list(ours.imgs) == ours.samples[:]
    assert ours.targets.tolist() == theirs.targets and len(ours) == len(theirs)
    assert ours.root == theirs.root


@pytest.mark.parametrize("names", TREES.values(), ids=TREES)
def test_image_folder_is_torchvisions(
    torchvision: ModuleType, tmp_path: Path, names: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(tmp_path, *names)
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    for given in (root, str(root), f"{root}/", os.path.relpath(root), f"~/{tmp_path.name}"):
        assert_same_folder(*both(torchvision, given))


def test_links_are_followed(torchvision: ModuleType, tmp_path: Path) -> None:
    root = tree(tmp_path / "root", "a/1.jpg", "b/2.jpg")
    other = tree(tmp_path / "other", "x/3.jpg", "4.jpg")
    (root / "linked").symlink_to(other)
    (root / "a" / "below").symlink_to(other / "x")
    (root / "b" / "5.jpg").symlink_to(other / "4.jpg")
    (root / "dangling").symlink_to(tmp_path / "nowhere")
    assert_same_folder(*both(torchvision, root))


def test_a_dangling_file_is_listed_and_raises_when_it_is_read(torchvision: ModuleType, tmp_path: Path) -> None:
    root = tree(tmp_path, "a/1.jpg")
    (root / "a" / "2.jpg").symlink_to(tmp_path / "nowhere")
    ours, theirs = both(torchvision, root)
    assert_same_folder(ours, theirs)
    for dataset in (ours, theirs):
        with pytest.raises(FileNotFoundError):
            dataset[1]


def test_real_folders(torchvision: ModuleType, imagenet_dev: Path) -> None:
    assert_same_folder(*both(torchvision, imagenet_dev))


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (["a/1.jpg", "b/x.txt"], {}),
        (["a/x.txt", "b/x.txt", "c/1.jpg"], {}),
        (["README"], {}),
        ([], {}),
        (["a/1.jpg"], {"is_valid_file": lambda path: False}),
    ],
    ids=["empty class", "empty classes", "no class", "nothing", "nothing valid"],
)
def test_errors_are_torchvisions(
    torchvision: ModuleType, tmp_path: Path, names: list[Any], options: dict[str, Any]
) -> None:
    ours, theirs = both(torchvision, tree(tmp_path, *names), **options)
    assert isinstance(theirs, FileNotFoundError) and type(ours) is type(theirs) and str(ours) == str(theirs)


def test_a_root_that_is_not_there(torchvision: ModuleType, tmp_path: Path) -> None:
    for root in (tmp_path / "nowhere", __file__):
        ours, theirs = both(torchvision, root)
        assert type(ours) is type(theirs) and str(ours) == str(theirs)
    assert isinstance(both(torchvision, 3)[0], TypeError)


def test_allow_empty_and_is_valid_file(torchvision: ModuleType, tmp_path: Path) -> None:
    root = tree(tmp_path, "a/1.jpg", "a/2.jpg", "b/x.txt", "c/3.jpg")
    assert_same_folder(*both(torchvision, root, allow_empty=True))
    assert_same_folder(*both(torchvision, root, allow_empty=True, is_valid_file=lambda path: path.endswith("t")))
    seen: list[list[str]] = [[], []]
    for kind, calls in zip((ImageFolder, torchvision.datasets.ImageFolder), seen, strict=True):
        kind(root, is_valid_file=lambda path, calls=calls: calls.append(path) is None)
    assert seen[0] == seen[1]


def test_names_that_are_no_text(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe.jpg")).write_bytes(PICTURE)
    data = ImageFolder(tmp_path, TINY)
    assert_same(DataLoader(data), DataLoader(data).reference())
    with pytest.raises(ValueError, match="a path holds a zero byte"):
        ImageFiles(["a\0b"])


@pytest.mark.parametrize("index", [0, 5, -1, np.int64(3)])
def test_getitem_is_torchvisions(torchvision: ModuleType, tmp_path: Path, index: Any) -> None:
    for i, data in enumerate(pictures(12)):
        tree(tmp_path, f"{i % 3}/{i:02}.png")
        (tmp_path / f"{i % 3}/{i:02}.png").write_bytes(data)
    double: Callable[[int], Any] = lambda label: {"label": label, "twice": 2 * label}  # noqa: E731
    for transform in (None, T.ToTensor()):
        (image, label), (wanted, target) = (
            one[index] for one in both(torchvision, tmp_path, transform=transform, target_transform=double)
        )
        assert type(image) is type(wanted) and label == target
        assert (
            torch.equal(image, wanted) if transform else (image.mode == "RGB" and image.tobytes() == wanted.tobytes())
        )


def test_indices_out_of_range() -> None:
    data = EncodedImages(pictures(2), [3, 4], TINY)
    assert data[-2][1] == data[0][1] == 3
    for index in (2, -3):
        with pytest.raises(IndexError, match=f"index {index} is out of range for a dataset of 2 samples"):
            data[index]


LABELS: dict[str, tuple[Any, Any]] = {
    "ints": ([3, 1, 2], torch.tensor([3, 1, 2])),
    "a tuple": ((3, 1, 2), torch.tensor([3, 1, 2])),
    "a range": (range(3), torch.tensor([0, 1, 2])),
    "bools": ([True, False, True], torch.tensor([True, False, True])),
    "floats": ([0.5, 1.0, 2.0], torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)),
    "words": (["a", "b", "c"], ("a", "b", "c")),
    "an int array": (np.array([3, 1, 2], dtype=np.int16), torch.tensor([3, 1, 2])),
    "a bool array": (np.array([True, False, True]), torch.tensor([True, False, True])),
    "a float array": (np.array([1, 2, 3], dtype=np.float32), torch.tensor([1.0, 2.0, 3.0])),
    "an array of words": (np.array(["a", "b"]), (np.str_("a"), np.str_("b"))),
    "rows": (np.arange(6).reshape(3, 2), torch.arange(6).reshape(3, 2)),
    "a tensor": (torch.tensor([3, 1, 2]), torch.tensor([3, 1, 2])),
    "tensors": (list(torch.eye(3)), torch.eye(3)),
    "pairs": ([(1, "a"), (2, "b"), (3, "c")], [torch.tensor([1, 2, 3]), ("a", "b", "c")]),
    "dicts": ([{"x": 1}, {"x": 2}, {"x": 3}], {"x": torch.tensor([1, 2, 3])}),
}


def assert_same_targets(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype and torch.equal(a, b)
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same_targets(one, other)
    elif isinstance(a, dict):
        assert_same_targets(list(a.items()), list(b.items()))
    else:
        assert a == b


@pytest.mark.parametrize(("labels", "expected"), LABELS.values(), ids=LABELS)
def test_labels_of_every_kind_are_collated_as_torch_does(labels: Any, expected: Any) -> None:
    data = EncodedImages(pictures(len(labels)), labels, TINY)
    made = next(iter(DataLoader(data, 3)))[1]
    assert_same_targets(made, expected)
    assert_same_targets(next(iter(DataLoader(data, 3).reference()))[1], made)
    one, wanted = (next(iter(loader))[1] for loader in (DataLoader(data, None), DataLoader(data, None).reference()))
    assert_same_targets(one, wanted)


def test_labels_that_do_not_fit_into_64_bits_are_refused_as_torch_does() -> None:
    for loader in (one := DataLoader(EncodedImages(pictures(1), [2**63], TINY)), one.reference()):
        with pytest.raises((RuntimeError, ValueError), match=r"[Oo]verflow"):
            next(iter(loader))


def test_no_labels() -> None:
    images = next(iter(DataLoader(EncodedImages(pictures(3), None, TINY), 3)))
    assert images.shape == (3, 3, 8, 8)
    assert next(iter(DataLoader(EncodedImages(pictures(3), None, TINY), None))).shape == (3, 8, 8)


def test_blobs_of_every_buffer() -> None:
    data = pictures(1)[0]
    kinds: list[Any] = [data, bytearray(data), memoryview(data), memoryview(bytearray(b"xx" + data))[2:]]
    batch = next(iter(DataLoader(EncodedImages(kinds, None, TINY), 4, num_workers=1)))
    assert all(torch.equal(image, batch[0]) for image in batch)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: EncodedImages(PICTURE), TypeError, "a list of bytes-like objects, not one"),  # type: ignore[arg-type]
        (lambda: EncodedImages([PICTURE, "a.jpg"]), TypeError, "blob 1 is str; a bytes-like object is needed"),  # type: ignore[list-item]
        (lambda: EncodedImages([PICTURE], [1, 2]), ValueError, "there are 1 blobs but 2 labels"),
        (lambda: EncodedImages([PICTURE], None, None, lambda label: label), ValueError, "but there are no labels"),
        (lambda: ImageFiles("a.jpg"), TypeError, "a list of paths, not one path: 'a.jpg'"),
        (lambda: ImageFiles(Path("a.jpg")), TypeError, "a list of paths, not one path"),  # type: ignore[arg-type]
        (lambda: ImageFiles(["a.jpg"], [1, 2]), ValueError, "there are 1 paths but 2 labels"),
        (lambda: ImageFiles([3]), TypeError, "expected str, bytes or os.PathLike object, not int"),  # type: ignore[list-item]
    ],
)
def test_wrong_arguments(make: Callable[..., Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        make()
