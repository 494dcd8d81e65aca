"""A sample that cannot be made raises Pillow's error with stage, path and index, or is skipped or replaced."""

from __future__ import annotations

import errno
import os
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import PIL
import pytest
import torch

import headrace
from headrace import DataLoader, EncodedImages, ImageFiles, ImageFolder, SampleError
from headrace import transforms as T
from headrace._loading.native.loader_attributes import OnError
from support import (
    TENSOR,
    assert_same,
    blobs,
    hard_files,
    judge,
    pictures,
    silent_pillow,
    train,
    truncated,
    write_folder,
)

FULL = T.Compose([T.Resize((40, 40)), *TENSOR])
TINY_CROPS = T.Compose([T.RandomResizedCrop(32, scale=(0.01, 0.1)), T.RandomHorizontalFlip(), *TENSOR])


@pytest.fixture(scope="module")
def broken(request: pytest.FixtureRequest) -> dict[Path, Exception]:
    """Files that Pillow refuses, and what it raises."""
    return judge(hard_files(request.getfixturevalue("hard_dev")))[1]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("transform", [FULL, TINY_CROPS, train(224)], ids=["full", "tiny crops", "crops"])
def test_each_broken_file_raises_what_pillow_raises(
    broken: dict[Path, Exception], transform: Any, workers: int
) -> None:
    files = list(broken)
    with silent_pillow():  # from Python 3.14t on, threads have the filters of the thread that starts them
        iterator = iter(DataLoader(ImageFiles(files, range(len(files)), transform), num_workers=workers, seed=2))
        for index, path in enumerate(files):
            with pytest.raises(SampleError) as raised:
                next(iterator)
            error, original = raised.value, broken[path]
            assert isinstance(error, type(original)) and type(error.__cause__) is type(original)
            assert (error.index, error.location) == (index, str(path))
            assert error.stage in ("header", "decode")
            words = re.sub(" ?<_io.BytesIO object at .*>", "", str(original)) or type(original).__name__
            assert str(error) == f"{error.stage}: sample {index} ({path}): {words}; {headrace._base.errors.REMEDY}"
        with pytest.raises(StopIteration):
            next(iterator)


def test_broken_files_among_good_ones_are_skipped_and_replaced(hard_dev: Path) -> None:
    files = sorted(hard_files(hard_dev))[::4]
    with silent_pillow():
        bad = judge(files)[1]
        for policy in ("skip", "replace"):
            data = ImageFiles(files, range(len(files)), T.Compose([T.Resize((32, 32)), *TENSOR]))
            ours = DataLoader(data, 6, True, seed=3, num_workers=2, on_error=policy, max_errors=None)
            expected = list(ours.reference())
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                batches = list(ours)
            assert any("samples could not be made" in str(one.message) for one in told)
            assert_same(batches, expected)
            assert {error.location for error in ours.errors} == {str(path) for path in bad}
            if policy == "skip":
                assert sum(len(labels) for _, labels in batches) == len(files) - len(bad)


def faulty(count: int, *bad: int) -> list[bytes]:
    """Pictures, truncated at the positions `bad`."""
    return [truncated(data) if i in bad else data for i, data in enumerate(pictures(count))]


def faulty_loader(policy: OnError, *bad: int, size: int | None = 4, **options: Any) -> DataLoader:
    data = EncodedImages(faulty(12, *bad), range(100, 112), train(24), target_transform=lambda label: label * 2)
    return DataLoader(data, size, seed=4, on_error=policy, **options)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("size", [1, 4, 12, None])
@pytest.mark.parametrize("bad", [(0,), (2, 5), (4, 5, 6, 7), (8, 9, 10, 11), tuple(range(11))], ids=str)
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_policies_equal_the_oracle(policy: OnError, bad: tuple[Any, ...], size: int | None, workers: int) -> None:
    ours = faulty_loader(policy, *bad, size=size, num_workers=workers)
    expected = list(ours.reference())
    with pytest.warns(UserWarning, match=f"epoch 0: {len(bad)} samples could not be made.* sample {bad[0]} "):
        batches = list(ours)
    assert_same(batches, expected)
    labels = [label // 2 - 100 for batch in batches for label in torch.as_tensor(batch[1]).reshape(-1).tolist()]
    if policy == "skip":
        assert labels == [i for i in range(12) if i not in bad]
    else:
        good = [i for i in range(12) if i not in bad]
        assert labels == [next(j % 12 for j in range(i, 24) if j % 12 in good) for i in range(12)]
    assert sorted(error.index for error in ours.errors) == list(bad)


def test_where_nothing_can_be_made() -> None:
    every = tuple(range(12))
    with pytest.warns(UserWarning, match="12 samples could not be made and were skipped"):
        assert list(faulty_loader("skip", *every)) == []
    with pytest.raises(RuntimeError, match="no sample of the dataset could be made"):
        next(iter(faulty_loader("replace", *every, size=1)))


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_max_errors(policy: OnError) -> None:
    ours = faulty_loader(policy, 1, 5, 9, max_errors=2, num_workers=1)
    iterator = iter(ours)
    assert len(next(iterator)[1]) == (3 if policy == "skip" else 4)
    next(iterator)
    with pytest.raises(RuntimeError, match=r"3 samples of this epoch .* more than max_errors=2; .*sample 9 ") as raised:
        next(iterator)
    assert isinstance(raised.value.__cause__, SampleError)
    with pytest.raises(RuntimeError, match="closed before its end"):
        next(iterator)
    with pytest.raises(RuntimeError, match="1 sample of this epoch could not be made"):
        next(iter(faulty_loader(policy, 1, 5, 9, max_errors=0)))
    exactly = faulty_loader(policy, 1, 5, 9, max_errors=3)
    with pytest.warns(UserWarning, match="3 samples"):
        assert len(list(exactly)) == 3


def test_the_warning_comes_even_where_the_loop_is_left() -> None:
    """With the next epoch of any loader, or when the program ends: where the iterator is dropped, Ctrl-C is lost."""
    for _ in faulty_loader("skip", 1):
        break
    with pytest.warns(UserWarning, match="1 samples could not be made and were skipped; .*blob 1 in memory"):
        iter(faulty_loader("skip"))


def test_after_an_error_the_next_batches_can_be_had() -> None:
    iterator = iter(faulty_loader("raise", 5, num_workers=2))
    assert next(iterator)[1].tolist() == [200, 202, 204, 206]
    with pytest.raises(OSError, match=r"decode: sample 5 \(blob 5 in memory, \d+ bytes\): image file is truncated"):
        next(iterator)
    assert next(iterator)[1].tolist() == [216, 218, 220, 222]
    with pytest.raises(StopIteration):
        next(iterator)


def test_an_error_is_pillows_and_carries_no_frames() -> None:
    with pytest.raises(
        PIL.UnidentifiedImageError, match=r"(header|decode): sample 0 .*cannot identify image file; on_error"
    ):
        next(iter(DataLoader(EncodedImages([b"not an image"], None, FULL))))
    with pytest.raises(SampleError) as raised:
        next(iter(faulty_loader("raise", 0, num_workers=1)))
    assert raised.value.__cause__ is not None and raised.value.__cause__.__traceback__ is None
    copy = pickle.loads(pickle.dumps(raised.value))
    assert isinstance(copy, SampleError) and isinstance(copy, OSError)
    assert str(copy) == str(raised.value) and copy.index == 0


@pytest.mark.parametrize("policy", ["raise", "skip", "replace"])
def test_a_target_transform_that_raises_is_no_bad_image(policy: OnError) -> None:
    def target(label: int) -> int:
        if label == 6:
            raise LookupError("no such label")
        return label

    ours = DataLoader(blobs(12, FULL, target_transform=target), 4, on_error=policy, num_workers=1)
    for iterator in (iter(ours), iter(ours.reference())):
        assert next(iterator)[1].tolist() == [0, 1, 2, 3]
        with pytest.raises(LookupError, match="no such label"):
            next(iterator)
        assert next(iterator)[1].tolist() == [8, 9, 10, 11]


def test_an_image_too_small_for_its_crop() -> None:
    data = blobs(12, T.Compose([T.RandomCrop(95), *TENSOR]))
    with pytest.raises(ValueError, match=r"plan: sample 0 .*Required crop size"):
        list(DataLoader(data, 4, num_workers=1))


def files_loader(path: Path, **options: Any) -> DataLoader:
    return DataLoader(ImageFiles([path], None, FULL), **options)


@pytest.mark.parametrize("workers", [0, 1])
def test_files_that_cannot_be_read(tmp_path: Path, workers: int) -> None:
    (tmp_path / "folder.jpg").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "loop.jpg").symlink_to(tmp_path / "loop.jpg")
    (tmp_path / "empty.jpg").touch()
    cases: list[tuple[str, type[Exception], int]] = [
        ("missing.jpg", FileNotFoundError, errno.ENOENT),
        ("folder.jpg", IsADirectoryError, errno.EISDIR),
        ("file/below.jpg", NotADirectoryError, errno.ENOTDIR),
        ("loop.jpg", OSError, errno.ELOOP),
        (f"{'long' * 100}.jpg", OSError, errno.ENAMETOOLONG),
        ("empty.jpg", PIL.UnidentifiedImageError, 0),
    ]
    for name, kind, number in cases:
        path = tmp_path / name
        with pytest.raises(kind) as raised:
            next(iter(files_loader(path, num_workers=workers)))
        assert isinstance(raised.value, SampleError) and str(path) in str(raised.value)
        if number:
            assert str(raised.value).startswith(f"read: sample 0 ({path}): {os.strerror(number)}; ")
            assert (raised.value.errno, raised.value.filename) == (number, str(path))
            copy = pickle.loads(pickle.dumps(raised.value))
            assert (type(copy).__bases__, copy.errno, str(copy)) == (
                type(raised.value).__bases__,
                number,
                str(raised.value),
            )


def test_permission_denied() -> None:
    """Root may read every file, so the test reads a file of the kernel that fails for root, too."""
    path = Path("/proc/self/mem")  # opens, but a read at address 0 fails
    with pytest.raises(OSError, match=r"read: sample 0 ./proc/self/mem.: Input/output error") as raised:
        next(iter(files_loader(path)))
    assert raised.value.errno == errno.EIO
    denied = headrace._base.errors.make_native_cause("read", "Permission denied", errno.EACCES, "a.jpg")
    assert isinstance(
        headrace._base.errors.sample_error("read", 3, "a.jpg", "Permission denied", denied), PermissionError
    )


def test_an_image_for_which_there_is_no_memory() -> None:
    no_memory = headrace._base.errors.make_native_cause("resize", "out of memory", errno.ENOMEM, "a.jpg")
    error = headrace._base.errors.sample_error("resize", 3, "a.jpg", "out of memory", no_memory)
    assert isinstance(error, MemoryError) and isinstance(error, headrace.SampleError)
    assert str(error).startswith("resize: sample 3 (a.jpg): out of memory; ")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy).__bases__, str(copy)) == (type(error).__bases__, str(error))


def test_a_directory_that_vanishes_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    root = write_folder(tmp_path / "data", 24, 1)
    iterator = iter(DataLoader(ImageFolder(root, FULL), 2, num_workers=1, prefetch_factor=1))
    next(iterator)
    root.rename(tmp_path / "elsewhere")
    raised = 0
    with pytest.raises(StopIteration):
        while True:
            try:
                next(iterator)
            except FileNotFoundError as error:
                assert re.match(rf"read: sample \d+ \({root}/class_0/\d+.jpg\): No such file or directory", str(error))
                raised += 1
    assert raised >= 8  # of the 11 remaining batches, at most three were in flight
