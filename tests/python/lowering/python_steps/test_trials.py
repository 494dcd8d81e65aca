"""The trial of a Python step when a loader is made: on a copy, at sizes that occur, again after a change."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from headrace._lowering import LoweringError, lower
from support import TENSOR, assert_same, pictures

TO_TENSOR = T.ToTensor()


def own_crop(image: Image.Image) -> Image.Image:
    """A RandomCrop(224) written by hand."""
    left, top = (int(torch.randint(0, edge - 223, ())) for edge in image.size)
    return image.crop((left, top, left + 224, top + 224))


def strict(image: Image.Image) -> Image.Image:
    assert min(image.size) == 256, image.size
    return image


@pytest.mark.parametrize(
    "before",
    [
        [T.Resize(256)],
        [T.Resize((256, 256))],
        [T.RandomCrop(256, pad_if_needed=True)],
        [T.Resize(256), T.RandomApply([T.RandomHorizontalFlip()])],
        [T.Resize(256), strict, T.Pad(2)],
    ],
)
def test_a_step_is_tried_at_sizes_that_occur(before: list[Any]) -> None:
    dataset = EncodedImages(pictures(4, edge=300), None, T.Compose([*before, own_crop, *TENSOR]))
    loader = DataLoader(dataset, 2, seed=0, num_workers=2)
    assert loader.native, loader.explain()
    assert_same(loader, list(loader.reference()))


def test_a_stack_of_images_is_no_image(torchvision: ModuleType) -> None:
    v1 = torchvision.transforms
    stack = v1.Lambda(lambda image: torch.stack([TO_TENSOR(image)] * 10))
    with pytest.raises(LoweringError, match=r"return torch.float32 \(10, 3, 224, 224\), not one image \(C, H, W\)"):
        lower(v1.Compose([v1.Resize((224, 224)), stack]))


class Counting:
    def __init__(self) -> None:
        self.calls = 0
        self.seen: list[tuple[int, int]] = []

    def __call__(self, image: Image.Image) -> torch.Tensor:
        self.calls += 1
        self.seen.append(image.size)
        return torch.full((1, 2, 2), float(self.calls))


def test_the_users_own_object_is_not_called_before_the_first_batch() -> None:
    ours, theirs = Counting(), Counting()
    loader = DataLoader(EncodedImages(pictures(8), None, ours), 4, seed=0)
    assert loader.native and ours.calls == 0 and ours.seen == []
    assert_same(loader, list(TorchDataLoader(EncodedImages(pictures(8), None, theirs), 4)))
    assert ours.seen == theirs.seen


class Uncopied(Counting):
    def __deepcopy__(self, memo: Any) -> Uncopied:
        raise TypeError("a handle of the system")


def test_what_cannot_be_copied_is_left_to_torch() -> None:
    step = Uncopied()
    loader = DataLoader(EncodedImages(pictures(8), None, step), 4)
    assert not loader.native and step.calls == 0
    assert "cannot be copied, but each thread needs a copy of its own: a handle of the system" in str(loader.explain())
    assert_same(loader, list(TorchDataLoader(EncodedImages(pictures(8), None, Uncopied()), 4)))


class Progressive:
    size = 16

    def __call__(self, image: Image.Image) -> torch.Tensor:
        return TO_TENSOR(image.resize((self.size, self.size)))


EDGE = 16


def edge_of_a_global(image: Image.Image) -> torch.Tensor:
    return TO_TENSOR(image.resize((EDGE, EDGE)))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_output_size_that_changes_between_epochs(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Progressive()
    for transform, change in (
        (step, lambda: setattr(step, "size", 24)),
        (edge_of_a_global, lambda: monkeypatch.setitem(globals(), "EDGE", 24)),
    ):
        dataset = EncodedImages(pictures(8), None, transform)
        loader = DataLoader(dataset, 4, num_workers=workers)
        for edge in (16, 24):
            assert next(iter(loader)).shape == (4, 3, edge, edge)
            assert_same(loader, list(TorchDataLoader(dataset, 4)))
            change()


def test_workers_that_stay_keep_their_copies() -> None:
    step = Progressive()
    loader = DataLoader(EncodedImages(pictures(8), None, step), 4, num_workers=1, persistent_workers=True)
    for _ in range(2):
        assert {images.shape[-1] for images in loader} == {16}
        step.size = 24
    loader.close()


class Flaky:
    """Fails at each seventh call, as a step that queries a server may."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, image: Image.Image) -> Image.Image:
        self.calls += 1
        if self.calls % 7 == 0:
            raise OSError("the server does not answer")
        return image


def test_the_constructor_raises_nothing_of_a_step() -> None:
    loader = DataLoader(EncodedImages(pictures(4), None, T.Compose([Flaky(), T.Resize((8, 8)), T.ToTensor()])), 2)
    assert len(list(loader)) == 2


def test_the_constructor_raises_nothing_of_a_resize_to_nothing() -> None:
    steps = [T.CenterCrop((3, 394)), T.Resize(7, max_size=8), T.Resize(1), T.CenterCrop(4), T.ToTensor()]
    dataset = EncodedImages(pictures(4), None, T.Compose(steps))
    errors = []
    for kind in (TorchDataLoader, DataLoader):
        loader = kind(dataset, 2)
        with pytest.raises(Exception) as raised:
            list(loader)
        errors.append(raised.type)
    assert issubclass(errors[1], errors[0])
