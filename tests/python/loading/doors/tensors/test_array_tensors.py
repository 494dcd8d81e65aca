"""Deferred tensors of arrays: what torchvision makes of them is equal, and so is what it shares with the array."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tensor_chains import Step, apply_chain, make_step, see
from test_tensor_chains import CHAINS
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset

import headrace
from headrace._loading.doors.tensors import pixel_snapshots
from headrace._loading.doors.tensors.deferred_tensor import Deferred, recording_of
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision import tv_tensors  # noqa: E402 - after the shim
from torchvision.transforms import functional as v1  # noqa: E402
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as f2  # noqa: E402

pytestmark = pytest.mark.usefixtures("open_doors")

#: What programs make of an array (H, W, 3).
SOURCES: dict[str, Callable[[Any], Any]] = {
    "to_image": f2.to_image,
    "to_tensor": v1.to_tensor,
    "from_numpy": lambda array: torch.from_numpy(array).permute(2, 0, 1),
    "part": lambda array: torch.from_numpy(array[3:40, 5:50]).permute(2, 0, 1),
    "image of from_numpy": lambda array: tv_tensors.Image(torch.from_numpy(array).permute(2, 0, 1)),
    "planes": lambda array: torch.from_numpy(array).permute(2, 0, 1).contiguous(),
}
#: Those that make deferred tensors; the others share the array's memory, and stay torch's.
COPYING = ("to_image", "to_tensor")


@pytest.fixture
def of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixel_snapshots, "LEAST", 1)


def make_array(height: int = 47, width: int = 61) -> Any:
    return np.random.default_rng(8).integers(0, 256, (height, width, 3), np.uint8)


def write_to(array: Any) -> Step:
    """A step that changes the array, of which the tensor may be a view."""

    def call(tensor: Any) -> Any:
        array[4:9, 5:] += 1
        return tensor

    return "array changes", call


def run(source: str, number: int) -> list[Any]:
    draw, array = random.Random(number), make_array()
    steps = [make_step(draw) if draw.random() < 0.85 else write_to(array) for _ in range(draw.randint(1, 5))]
    looks = draw.getrandbits(5) if draw.random() < 0.3 else 0
    torch.manual_seed(7)
    return [*apply_chain(SOURCES[source](array), steps, looks), array.tolist()]


@pytest.mark.usefixtures("of_any_size")
@pytest.mark.parametrize("source", SOURCES)
def test_chains_are_equal(source: str) -> None:
    for number in range(CHAINS // 6):
        expected = run(source, number)
        with deferred_here(ImageCounts()):
            assert isinstance(SOURCES[source](make_array()), Deferred) is (source in COPYING)
            found = run(source, number)
        assert found == expected, f"chain {number} of {source}"


def transposed(height: int, width: int) -> Any:
    """An array whose planes are contiguous, so that torchvision copies nothing."""
    return np.arange(3 * height * width, dtype=np.uint32).astype(np.uint8).reshape(3, height, width).transpose(1, 2, 0)


def read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


class OfProgram(np.ndarray):
    """A class of the program."""


ARRAYS: dict[str, Callable[[], Any]] = {
    "RGB": make_array,
    "part": lambda: make_array()[2:40, 3:50],
    "every second": lambda: make_array()[::2, ::3],
    "Fortran": lambda: np.asfortranarray(make_array()),
    "turned": lambda: make_array().transpose(1, 0, 2),
    "planes": lambda: transposed(20, 30),
    "BGR of it": lambda: make_array()[..., ::-1],
    "mirrored": lambda: make_array()[:, ::-1],
    "copied BGR": lambda: np.ascontiguousarray(make_array()[..., ::-1]),
    "repeated": lambda: np.broadcast_to(np.arange(3, dtype=np.uint8), (9, 8, 3)),
    "read-only": lambda: read_only(make_array()),
    "gray": lambda: make_array()[..., 0].copy(),
    "gray, part": lambda: make_array()[..., 0],
    "one channel": lambda: make_array()[..., :1].copy(),
    "two channels": lambda: make_array()[..., :2].copy(),
    "RGBA": lambda: np.dstack([make_array(), make_array()[..., 0]]),
    "no pixels": lambda: make_array()[:0],
    "one row": lambda: make_array()[:1],
    "one column": lambda: make_array()[:, :1],
    "one pixel": lambda: make_array()[:1, :1].copy(),
    "16 bits": lambda: make_array().astype(np.uint16),
    "floats": lambda: make_array().astype(np.float32),
    "signed": lambda: make_array().view(np.int8),
    "truth values": lambda: make_array() > 99,
    "four dimensions": lambda: make_array()[None],
    "one dimension": lambda: make_array()[0, :, 0],
    "of the program": lambda: make_array().view(OfProgram),
}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "to_image": f2.to_image,
    "to_tensor": v1.to_tensor,
    "ToImage": v2.ToImage(),
    "ToTensor": torchvision.transforms.ToTensor(),
    "resize": lambda array: f2.resize(f2.to_image(array), [20, 30]),
    "resize of floats": lambda array: v1.resize(v1.to_tensor(array), [20, 30]),
    "of a view": lambda array: f2.resize(torch.from_numpy(array).permute(2, 0, 1), [20, 30]),
    "of v1": lambda array: v1.resized_crop(torch.from_numpy(array).permute(2, 0, 1), 1, 2, 8, 7, [9, 12]),
}


def observe(function: Callable[[Any], Any], array: Any) -> Any:
    """What is seen of a function's result, its warnings, and the same after the array has changed."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            made = function(array)
        except Exception as error:  # compared
            return type(error), str(error)
        shape = getattr(made, "shape", None)
        array = array.base if not array.flags.writeable and array.base is not None else array
        if array.flags.writeable:
            array += np.ones(1, array.dtype)
        texts = [(one.category, str(one.message), one.filename, one.lineno) for one in warned]
    return texts, shape, see(made), type(made)


@pytest.mark.usefixtures("of_any_size")
@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_arrays_of_all_kinds(name: str, kind: str) -> None:
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # of arrays that are read-only; else once a process
    try:
        expected = observe(FUNCTIONS[name], ARRAYS[kind]())
        with deferred_here(ImageCounts()):
            found = observe(FUNCTIONS[name], ARRAYS[kind]())
    finally:
        torch.set_warn_always(before)
    assert found == expected
    assert kind != "read-only" or "not writable" in expected[0][0][1]


def test_files_in_mapped_memory(tmp_path: Path, of_any_size: None) -> None:
    np.save(tmp_path / "pixels.npy", make_array())
    for mode in ("r", "c", "r+"):
        with deferred_here(ImageCounts()):
            mapped = np.load(tmp_path / "pixels.npy", mmap_mode=mode)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a read-only file
                made = [f2.to_image(mapped), f2.to_image(np.asarray(mapped))]
            assert [isinstance(one, Deferred) for one in made] == [False, True]
            if mode == "r+":
                mapped[...] = 0
            assert all(torch.equal(one, f2.to_image(make_array())) for one in made)


def test_small_images_are_torchs() -> None:
    with deferred_here(ImageCounts()):
        small, large = make_array(200, 200), make_array(300, 260)
        assert not isinstance(f2.to_image(small), Deferred) and isinstance(f2.to_image(large), Deferred)
        for left_out in (small.transpose(2, 0, 1), large.transpose(2, 0, 1), large.transpose(2, 0, 1).copy()):
            assert type(f2.resize(torch.from_numpy(left_out), [9, 9])) is torch.Tensor


def test_outside_of_loaders_all_is_torchs(of_any_size: None) -> None:
    assert type(f2.to_image(make_array())) is tv_tensors.Image
    assert type(v1.to_tensor(make_array())) is torch.Tensor


def test_a_size_that_stays_returns_the_tensor_itself(of_any_size: None) -> None:
    with deferred_here(ImageCounts()):
        tensor = torch.from_numpy(make_array()).permute(2, 0, 1)
        assert f2.resize(tensor, [47, 61]) is tensor


def test_subclasses_of_tensors_are_torchs(of_any_size: None) -> None:
    class Mine(torch.Tensor):
        pass

    class MyImage(tv_tensors.Image):
        pass

    tensor = torch.from_numpy(make_array()).permute(2, 0, 1)
    expected = f2.resize(tensor, [9, 9])
    with deferred_here(ImageCounts()):
        f2.to_image(make_array())  # has torchvision's functions replaced
        for kind in (Mine, MyImage):
            for made in (
                f2.resize(tensor.as_subclass(kind), [9, 9]),
                f2.resized_crop(kind(tensor), 0, 0, 47, 61, [9, 9]),
            ):
                assert type(made) is kind and torch.equal(made.as_subclass(torch.Tensor), expected)


RECIPE = v2.Compose(
    [
        v2.RandomResizedCrop(32, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ]
)
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "ToImage": lambda array: RECIPE(v2.ToImage()(array)),
    "from_numpy": lambda array: RECIPE(torch.from_numpy(array).permute(2, 0, 1)),
    "to_tensor": lambda array: v1.normalize(v1.to_tensor(array), [0.5] * 3, [0.2] * 3),
    "to_tensor, resized": lambda array: v1.resize(v1.to_tensor(array), [40, 30]),
    "interpolate": lambda array: torch.nn.functional.interpolate(
        f2.to_image(array).float().div(255)[None], (30, 40), mode="bilinear", antialias=True
    )[0],
}


class Arrays(Dataset[Any]):
    """One buffer, which each sample is written to; as readers of files and cameras have one."""

    def __init__(self, name: str) -> None:
        self.buffer, self.program = np.empty((260, 300, 3), np.uint8), PROGRAMS[name]

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Any:
        self.buffer[...] = np.random.default_rng(index).integers(0, 256, self.buffer.shape, np.uint8)
        made = self.program(self.buffer)
        self.buffer[:60] = index
        return made, index


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_batches_are_equal(name: str, num_workers: int) -> None:
    arguments: dict[str, Any] = {"batch_size": 4, "num_workers": num_workers, "persistent_workers": num_workers > 0}
    made: list[list[Any]] = []
    for kind in (TorchDataLoader, headrace.DataLoader):
        loader: Any = kind(Arrays(name), **arguments)
        made.append([])
        for _ in range(3):  # the memory of batches is used again from the second epoch on
            torch.manual_seed(3)
            made[-1] += [(type(images), images.stride(), images.clone(), rows) for images, rows in loader]
    assert all(one[:2] == other[:2] for one, other in zip(*made, strict=True))
    assert all(torch.equal(one[2], other[2]) for one, other in zip(*made, strict=True))


def test_recorded_up_to_the_last_step(of_any_size: None) -> None:
    with deferred_here(ImageCounts()):
        made = RECIPE(f2.to_image(make_array()))
        assert recording_of(made) is not None
        scaled = v1.normalize(v1.to_tensor(make_array()), [0.5] * 3, [0.2] * 3)
        assert recording_of(scaled) is not None
