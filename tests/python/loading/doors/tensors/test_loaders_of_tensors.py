"""Loaders of datasets whose images are deferred tensors: batches, memory, errors and counts."""

from __future__ import annotations

import functools
import io
import pickle
import threading
import weakref
from collections import UserDict
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset

import headrace
from headrace._loading.doors import opened_doors
from headrace._loading.doors.tensors.deferred_tensor import recording_of
from headrace._loading.doors.type_checks import checks
from headrace.pillow.files.pixels import FilePixels
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from support import PHOTOS
from torchvision_shim import import_torchvision

torchvision = import_torchvision()
from torchvision import tv_tensors  # noqa: E402 - after the shim
from torchvision.transforms import functional as v1  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
TRANSFORMS: dict[str, Any] = {
    "recipe": v2.Compose(
        [
            v2.ToImage(),
            v2.RandomResizedCrop(32, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    ),
    "channels last": v2.Compose([v2.ToImage(), v2.Resize((32, 24))]),
    "part": v2.Compose([v2.PILToTensor(), v2.RandomCrop(32, pad_if_needed=True)]),
    "by hand": lambda image: (v1.resize(v1.pil_to_tensor(image), [20, 22]).float() / 255 - 0.5) / 0.5,
    "of boxes": lambda image: v2.Resize((30, 30))(
        tv_tensors.Image(v1.pil_to_tensor(image)),
        tv_tensors.BoundingBoxes([[1, 2, 9, 9]], format="XYXY", canvas_size=image.size[::-1]),
    ),
    "twice": lambda image: (lambda t: {"a": t, "b": [t, v1.hflip(t)]})(v1.resize(v1.pil_to_tensor(image), [16, 18])),
    "numpy": lambda image: np.asarray(v1.resize(v1.pil_to_tensor(image), [16, 18])),
    "kept": None,
}


class Tensors(Dataset[Any]):
    """Images opened by Pillow, turned into tensors at once."""

    def __init__(self, name: str) -> None:
        self.paths, self.name = sorted(PHOTOS.glob("*.jpg")), name
        self.kept: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.paths[index]).convert("RGB")
        if self.name != "kept":
            return TRANSFORMS[self.name](image), index
        if index not in self.kept:
            self.kept[index] = v1.resize(v1.pil_to_tensor(image), [16, 18])
        self.kept[index].add_(1)
        return self.kept[index], index


def flatten(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [one for key in value for one in flatten(value[key])]
    return [one for part in value for one in flatten(part)] if isinstance(value, (list, tuple)) else [value]


def run(loader: Any) -> list[Any]:
    made = []
    for _ in range(3):  # the memory of batches is used again from the second epoch on
        torch.manual_seed(3)
        for batch in loader:
            made += [(type(one), one.stride(), one.dtype, one.clone()) for one in flatten(batch)]
    return made


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_batches_are_equal(name: str, num_workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "look", lambda: None)
    arguments: dict[str, Any] = {"batch_size": 4, "num_workers": num_workers, "persistent_workers": num_workers > 0}
    expected = run(TorchDataLoader(Tensors(name), **arguments))
    loader = headrace.DataLoader(Tensors(name), **arguments)
    made = run(loader)
    assert [one[:3] for one in made] == [one[:3] for one in expected]
    assert all(torch.equal(one[3], other[3]) for one, other in zip(made, expected, strict=True))
    images = loader.stats().images
    assert (images is not None and images.native == images.total) or name == "kept"


def collate_of_program(samples: list[Any]) -> Any:
    images = [v1.convert_image_dtype(image) for image, _ in samples]
    return torch.stack(images), [type(image) for image in images]


def test_a_collate_fn_gets_deferred_tensors_and_returns_plain_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "look", lambda: None)
    arguments: dict[str, Any] = {"batch_size": 4, "collate_fn": lambda samples: [image for image, _ in samples]}
    for batch in headrace.DataLoader(Tensors("twice"), **arguments):
        for one in flatten(batch):
            assert type(one) is torch.Tensor
    batches = list(headrace.DataLoader(Tensors("channels last"), batch_size=4, collate_fn=collate_of_program))
    expected = list(TorchDataLoader(Tensors("channels last"), batch_size=4, collate_fn=collate_of_program))
    assert all(torch.equal(one, other) for (one, _), (other, _) in zip(batches, expected, strict=True))


class Holder:
    """An object of the program, as a collate_fn may return it."""

    def __init__(self, samples: list[Any]) -> None:
        self.images, self.more = [image for image, _ in samples], UserDict(first=tv_tensors.Image(samples[0][0]))


@pytest.mark.parametrize("num_workers", [0, 1])
def test_objects_of_the_program_may_hold_them(num_workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "look", lambda: None)
    arguments: dict[str, Any] = {"batch_size": 4, "collate_fn": Holder, "num_workers": num_workers}
    made = list(headrace.DataLoader(Tensors("channels last"), **arguments))
    for batch, expected in zip(made, TorchDataLoader(Tensors("channels last"), **arguments), strict=True):
        for one, other in zip(batch.images, expected.images, strict=True):
            assert torch.equal(one, other) and type(one) is type(other)
        assert torch.equal(batch.more["first"], expected.more["first"])
        assert type(batch.more["first"]) is tv_tensors.Image


@pytest.fixture
def deferred(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(checks, "look", lambda: None)
    opened_doors.add_doors()
    image = Image.open(next(PHOTOS.glob("*.jpg"))).convert("RGB")
    expected = v1.pil_to_tensor(image)
    with deferred_here(ImageCounts()):
        tensor = v1.pil_to_tensor(Image.open(next(PHOTOS.glob("*.jpg"))).convert("RGB"))
        assert recording_of(tensor) is not None
        yield tensor, expected


def test_metadata_needs_no_values(deferred: Any) -> None:
    tensor, expected = deferred
    for name in ("shape", "dtype", "device", "ndim", "layout", "requires_grad", "is_leaf", "is_cuda", "is_sparse"):
        assert getattr(tensor, name) == getattr(expected, name)
    for name in ("size", "dim", "numel", "stride", "is_floating_point", "element_size", "is_contiguous", "__len__"):
        assert getattr(tensor, name)() == getattr(expected, name)()
    assert isinstance(tensor, torch.Tensor) and torch.is_tensor(tensor)
    assert type(tensor) == torch.Tensor  # noqa: E721 - as programs write it
    assert recording_of(tensor) is not None


def saved_and_loaded(tensor: torch.Tensor) -> Any:
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


LOOKS: dict[str, Any] = {
    "numpy": lambda t: t.numpy(),
    "array": lambda t: np.asarray(t),
    "dlpack": lambda t: torch.utils.dlpack.from_dlpack(t),
    "pointer": lambda t: t.data_ptr() and t.sum(),
    "pickle": lambda t: pickle.loads(pickle.dumps(t)),
    "list": lambda t: t.tolist(),
    "text": lambda t: repr(t),
    "data": lambda t: t.data,
    "storage": lambda t: t.untyped_storage().tolist(),
    "einsum": lambda t: torch.einsum("chw->c", t.long()),
    "iteration": lambda t: list(t)[1],
    "comparison": lambda t: (t == 3).sum(),
    "deepcopy": lambda t: __import__("copy").deepcopy(t),
    "operator": lambda t: torch.ops.aten.sum(t),
    "index": lambda t: t[torch.tensor([1, 0])],
    "out": lambda t: torch.add(t, 1, out=torch.empty(0, dtype=torch.uint8)),
    "list of them": lambda t: torch.hstack([t, t]),
    "shared": lambda t: t.share_memory_(),
    "saved": lambda t: saved_and_loaded(t),
    "written": lambda t: t.mul_(2),
    "a part written": lambda t: t.__setitem__((0, slice(2, 9)), 7) or t,
    "exchanged": lambda t: t.set_(torch.arange(12, dtype=torch.uint8).view(3, 2, 2)),
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_makes_a_plain_tensor(name: str, deferred: Any) -> None:
    tensor, expected = deferred
    reference = weakref.ref(tensor)
    setattr(tensor, "note", "the program's")  # noqa: B010 - an attribute that tensors do not have
    made, wanted = LOOKS[name](tensor), LOOKS[name](expected)
    if isinstance(wanted, torch.Tensor):
        assert torch.equal(made, wanted) and made.stride() == wanted.stride()
    else:
        assert np.array_equal(made, wanted)
    assert type(tensor) is torch.Tensor
    assert reference() is tensor
    assert vars(tensor) == {"note": "the program's"}
    assert torch.equal(tensor, expected)


def test_gradients_are_torchs(deferred: Any) -> None:
    found = []
    for image in deferred:
        leaf = v1.convert_image_dtype(image).requires_grad_()
        (leaf * leaf).sum().backward()
        found.append((leaf, leaf.grad, leaf.is_leaf, leaf.requires_grad, leaf.detach().requires_grad))
    assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])
    assert found[0][2:] == found[1][2:] == (True, True, False)


def test_functions_by_type_find_that_of_tensors(deferred: Any) -> None:
    """Tables of types, `singledispatch` and a compiled collate_fn: nothing in them knows another class."""
    tensor, expected = deferred
    assert {torch.Tensor: "found"}.get(type(tensor)) == "found"
    single: Any = functools.singledispatch(lambda value: None)
    single.register(torch.Tensor, torch.clone)
    assert torch.equal(single(v1.hflip(tensor)), v1.hflip(expected))

    @torch.compile(backend="eager")
    def collate(samples: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack(samples).float() / 255

    samples = [v1.resize(one, [20, 20]) for one in (tensor, expected)]
    assert torch.equal(collate([samples[0]] * 2), collate([samples[1]] * 2))


def test_threads_may_look_at_once(deferred: Any) -> None:
    tensor, expected = deferred
    wanted, found = int(expected.sum()), []
    start = threading.Barrier(6)

    def look() -> None:
        start.wait()
        found.append(int(tensor.sum()))

    threads = [threading.Thread(target=look) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [wanted] * 6


def test_only_the_last_tensor_of_a_file_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where files are let go, the tensors that the last one was made of are not made, too."""
    monkeypatch.setattr(checks, "look", lambda: None)
    opened_doors.add_doors()
    made: list[tuple[int, ...]] = []
    plain = FilePixels.map_pixels

    def map_pixels(self: FilePixels, operations: Any, table: Any, layout: str, out: Any = None) -> Any:
        values: Any = plain(self, operations, table, layout, out)
        made.append(values.shape)
        return values

    monkeypatch.setattr(FilePixels, "map_pixels", map_pixels)
    with deferred_here(ImageCounts()):
        flipped = v1.hflip(v1.pil_to_tensor(Image.open(next(PHOTOS.glob("*.jpg"))).convert("RGB")))
        recording: Any = recording_of(flipped)
        recording.origin.pixels.make_images()
    assert len(made) == 1


def test_parts_share_memory_with_the_whole(deferred: Any) -> None:
    tensor, expected = deferred
    part = tensor[:, 3:9, 4:12]
    resized = v1.resize(tensor, [20, 20])
    before = v1.resize(expected, [20, 20])
    part.fill_(7)
    assert torch.equal(tensor[:, 3:9, 4:12], torch.full((3, 6, 8), 7, dtype=torch.uint8))
    assert torch.equal(resized, before)  # made from the file, as it was when the function was called


def test_a_mode_of_torch_sees_plain_tensors(deferred: Any) -> None:
    tensor, expected = deferred
    with torch.inference_mode():
        assert v1.hflip(tensor).is_inference()
    with torch.device("meta"):
        assert torch.equal(v1.hflip(tensor), v1.hflip(expected))
