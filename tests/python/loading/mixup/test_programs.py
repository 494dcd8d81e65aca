"""torchvision's MixUp and CutMix in a collate_fn: mixed in place, with the values that torchvision makes."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import default_collate

from headrace import DataLoader, EncodedImages
from headrace import transforms as T
from headrace._loading.collate.sample_views import StackedViews
from headrace._loading.mixup import mixes_without_forward
from headrace._loading.mixup.recognition import mixing_of_samples, mixing_of_stacked
from support import TENSOR, pictures
from torchvision_shim import import_torchvision

try:
    import_torchvision()
    from torchvision.transforms import v2
except ImportError as error:
    pytest.skip(f"torchvision is needed: {error}", allow_module_level=True)

CLASSES = 10


def collates(mix: Any) -> list[Callable[[list[Any]], Any]]:
    """The same collate_fn in the ways that people write it."""

    def named(batch: list[Any]) -> Any:
        return mix(*default_collate(batch))

    return [named, lambda samples: mix(*default_collate(samples))]


def mixes() -> list[Any]:
    up, cut = v2.MixUp(num_classes=CLASSES, alpha=0.4), v2.CutMix(num_classes=CLASSES)
    return [up, cut, v2.RandomChoice([up, cut]), v2.RandomChoice([cut, up], p=[0.9, 0.1])]


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_values(number: int, dtype: torch.dtype, layout: torch.memory_format) -> None:
    mix = mixes()[number]
    for seed, count in ((0, 1), (1, 2), (2, 7), (3, 7), (4, 7)):
        images = torch.rand(count, 3, 9, 11).to(dtype).contiguous(memory_format=layout)
        samples = [(image, place) for place, image in enumerate(images.clone())]
        for collate in collates(mix):
            torch.manual_seed(seed)
            expected = collate(samples)
            torch.manual_seed(seed)
            mixing = mixing_of_samples(collate)
            assert mixing is not None
            made = mixing(samples, 0)
            assert all(map(torch.equal, made, expected))


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader(number: int, workers: int) -> None:
    data = EncodedImages(pictures(10), range(10), T.Compose([T.RandomResizedCrop(8), *TENSOR]))
    loader = DataLoader(data, 4, True, collate_fn=collates(mixes()[number])[0], num_workers=workers, seed=4)
    assert loader.native
    for _ in range(2):
        expected = list(loader.reference())
        batches = list(loader)
        assert len(batches) == 3
        assert all(
            torch.equal(*pair)
            for ours, theirs in zip(batches, expected, strict=True)
            for pair in zip(ours, theirs, strict=True)
        )


def test_the_batch_is_mixed_where_it_lies() -> None:
    data = EncodedImages(pictures(8), range(8), T.Compose([T.Resize((8, 8)), *TENSOR]))
    ((images, _),) = DataLoader(data, 8, collate_fn=collates(mixes()[0])[0], num_workers=1)
    assert images.data_ptr() % 4096 == 0 and images.untyped_storage().nbytes() == images.nbytes  # a slot of the pool


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("target_transform", "apart"), [(None, False), (lambda label: 6 - label, True)])
def test_samples_are_made_only_where_their_labels_are_not_plain_ints(
    monkeypatch: pytest.MonkeyPatch, target_transform: Callable[..., Any] | None, apart: bool, workers: int
) -> None:
    made: list[int] = []
    real = StackedViews.views_of

    def views_of(*given: Any) -> Any:
        made.append(1)
        return real(*given)

    monkeypatch.setattr(StackedViews, "views_of", views_of)
    transform = T.Compose([T.RandomCrop(8), T.ToTensor()])
    data = EncodedImages(pictures(7), range(7), transform, target_transform=target_transform)
    (collate, _) = collates(v2.MixUp(num_classes=CLASSES))
    loader = DataLoader(data, 4, True, seed=3, num_workers=workers, collate_fn=collate)
    assert loader.native
    batches = list(loader)
    assert len(made) == (2 if apart else 0)
    loader.set_epoch(0)
    for ours, theirs in zip(batches, loader.reference(), strict=True):
        assert all(map(torch.equal, ours, theirs))


MIX = v2.MixUp(num_classes=CLASSES)


def kept(samples: list[Any]) -> Any:
    batch = default_collate(samples)
    return MIX(*batch)


def twice(samples: list[Any]) -> Any:
    return MIX(*default_collate(samples)), samples


def keyword(samples: list[Any], mix: Any = MIX) -> Any:
    return mix(*default_collate(samples))


def other_collate(samples: list[Any]) -> Any:
    return MIX(*list(samples))


class Own(v2.MixUp):
    pass


OWN = Own(num_classes=CLASSES)
HOOKED = v2.MixUp(num_classes=CLASSES)
HOOKED.register_forward_hook(lambda module, given, made: None)


@pytest.mark.parametrize(
    "collate",
    [
        *(kept, twice, keyword, other_collate, default_collate, len, MIX),
        *(lambda samples: OWN(*default_collate(samples)), lambda samples: HOOKED(*default_collate(samples))),
        lambda samples: v2.Identity()(*default_collate(samples)),
    ],
)
def test_what_may_be_noticed_is_left_to_torchvision(collate: Any) -> None:
    assert mixing_of_samples(collate) is None


@pytest.mark.parametrize("collate", [kept, twice])
def test_torchvisions_own_arithmetic_on_views(collate: Callable[..., Any]) -> None:
    data = EncodedImages(pictures(6), range(6), T.Compose([T.Resize((8, 8)), *TENSOR]))
    loader = DataLoader(data, 3, collate_fn=collate, num_workers=1, seed=2)
    assert loader.native
    plain = [[image for image, _ in batch] for batch in TorchDataLoader(data, 3, collate_fn=list)]
    for ours, theirs, images in zip(loader, loader.reference(), plain, strict=True):
        mixed, expected = (one[0] if collate is twice else one for one in (ours, theirs))
        assert torch.equal(mixed[0], expected[0]) and torch.equal(mixed[1], expected[1])
        if collate is twice:  # the samples keep their values
            assert all(torch.equal(one, image) for (one, _), image in zip(ours[1], images, strict=True))


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_direct_way_has_the_values_of_torchvisions_own_code(number: int, dtype: torch.dtype) -> None:
    mix, seen = mixes()[number], set()
    for seed in range(60):
        images = torch.rand(5, 3, 9, 11).to(dtype)
        labels = torch.randint(CLASSES, (5,))
        torch.manual_seed(seed)
        expected = mix(images, labels)
        made = mixes_without_forward.mix_without_forward(mix, [images, labels], seed)
        assert made is not None and type(made) is type(expected)
        assert made[0].data_ptr() == images.data_ptr()
        assert all(map(torch.equal, made, expected))
        seen.add(made[1].max().item())
    assert len(seen) > 12


def test_what_is_left_to_torchvisions_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    up = mixes()[0]
    images, labels = torch.rand(4, 3, 8, 8), torch.tensor([1, 2, 3, 4])
    soft = torch.nn.functional.one_hot(labels, CLASSES).float()

    class Other(v2.MixUp):
        pass

    hooked = v2.MixUp(num_classes=CLASSES)
    hooked.register_forward_hook(lambda *_: None)
    others = [Other(num_classes=CLASSES), hooked, v2.MixUp(num_classes=CLASSES, labels_getter=lambda batch: batch[1])]
    others += [v2.MixUp(), v2.RandomChoice([up, v2.Identity()]), None, len]
    for mix in others:
        assert mixes_without_forward.mix_without_forward(mix, [images, labels], 0) is None
    for batch in ([images, soft], [images, labels.int()], [images, labels[:3]], [images.byte(), labels], [images]):
        assert mixes_without_forward.mix_without_forward(up, batch, 0) is None
    with torch.device("cpu"):  # a mode
        assert mixes_without_forward.mix_without_forward(up, [images, labels], 0) is None
    for wrong in (labels + CLASSES, labels - 2):  # torchvision raises torch's error
        assert mixes_without_forward.mix_without_forward(up, [images, wrong], 0) is None
    mixes_without_forward._matches_installed.cache_clear()
    monkeypatch.setattr(v2.MixUp, "make_params", lambda self, flat: {"lam": 0.25})  # another version draws nothing
    assert mixes_without_forward.mix_without_forward(up, [images, labels], 0) is None
    mixes_without_forward._matches_installed.cache_clear()


def test_a_loader_mixes_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    real = mixes_without_forward.mix_without_forward

    def mixed(*given: Any) -> Any:
        made.append(real(*given))
        return made[-1]

    monkeypatch.setattr(mixes_without_forward, "mix_without_forward", mixed)
    data = EncodedImages(pictures(8), range(8), T.Compose([T.Resize((8, 8)), *TENSOR]))
    assert len(list(DataLoader(data, 4, collate_fn=collates(mixes()[2])[1], num_workers=1))) == len(made) == 2
    assert None not in made


@pytest.mark.parametrize(("name", "of"), [("transform", "MixUp"), ("make_params", "MixUp"), ("forward", "Transform")])
def test_replaced_methods_are_called(
    torchvision: ModuleType, monkeypatch: pytest.MonkeyPatch, name: str, of: str
) -> None:
    v2 = torchvision.transforms.v2
    mix = v2.MixUp(num_classes=3)
    assert mixing_of_stacked(lambda samples: mix(*default_collate(samples))) is not None
    cls = getattr(v2, of)
    before = getattr(cls, name)
    monkeypatch.setattr(cls, name, lambda self, *given: before(self, *given))
    assert mixing_of_stacked(lambda samples: mix(*default_collate(samples))) is None
    monkeypatch.undo()
    assert mixing_of_stacked(lambda samples: mix(*default_collate(samples))) is not None
