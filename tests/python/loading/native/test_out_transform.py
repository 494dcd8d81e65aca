"""`out_transform` on finished batches: the same in every run, after resume, and in the oracle."""

from __future__ import annotations

import random
from collections.abc import Sized
from types import ModuleType
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset, default_collate

from headrace import DataLoader, EncodedImages
from headrace._loading.mixup import in_place_mixes
from support import assert_same, pictures, train

DATA = EncodedImages(pictures(), range(24), train(32))


def mixed(batch: list[torch.Tensor]) -> list[torch.Tensor]:
    """MixUp by hand, with numbers from three generators."""
    images, targets = batch
    share = random.betavariate(0.4, 0.4) * float(np.random.rand()) * float(torch.rand(1))  # noqa: NPY002
    return [images.lerp(images.roll(1, 0), share), targets]


def batches(**options: Any) -> list[torch.Tensor]:
    loader = DataLoader(DATA, 5, shuffle=True, seed=2, out_transform=mixed, **options)
    return [images for images, _ in loader]


def test_it_gets_the_batch_and_its_result_is_yielded() -> None:
    plain, doubled = DataLoader(DATA, 5, seed=1), DataLoader(DATA, 5, seed=1, out_transform=lambda batch: batch[0] * 2)
    for (images, _), twice in zip(plain, doubled, strict=True):
        assert torch.equal(images * 2, twice)


def test_same_numbers_with_any_number_of_threads_and_after_resume() -> None:
    alone = batches()
    for threads in (2, 7):
        random.seed(threads)
        assert all(map(torch.equal, batches(num_workers=threads), alone))
    first = DataLoader(DATA, 5, shuffle=True, seed=2, out_transform=mixed, num_workers=2)
    iterator = iter(first)
    next(iterator), next(iterator)
    second = DataLoader(DATA, 5, shuffle=True, seed=2, out_transform=mixed)
    second.load_state_dict(first.state_dict())
    assert assert_same(second, list(second.reference())) == 3
    second.load_state_dict(first.state_dict())
    assert all(torch.equal(images, expected) for (images, _), expected in zip(second, alone[2:], strict=True))


def test_epochs_and_batches_draw_other_numbers() -> None:
    drawn: list[float] = []
    loader = DataLoader(DATA, 8, seed=2, out_transform=lambda batch: drawn.append(random.random()))
    list(loader), list(loader)
    assert len(set(drawn)) == 6


def test_the_callers_generators_stay_where_they_are() -> None:
    iterator = iter(DataLoader(DATA, 8, seed=2, out_transform=mixed))
    before = random.getstate(), torch.get_rng_state()
    next(iterator)
    assert random.getstate() == before[0] and torch.equal(torch.get_rng_state(), before[1])


def test_the_oracle_has_it_too() -> None:
    loader = DataLoader(DATA, 5, shuffle=True, seed=4, out_transform=mixed, num_workers=2)
    for _ in range(2):
        assert assert_same(loader, list(loader.reference())) == 5
    assert loader.verify(2).batches == 2


def test_its_exception_is_its_own() -> None:
    def broken(batch: Any) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match=r"^mine$"):
        next(iter(DataLoader(DATA, 5, out_transform=broken)))


@pytest.mark.parametrize("name", ["MixUp", "CutMix"])
def test_torchvisions_own(torchvision: ModuleType, name: str) -> None:
    mix = getattr(torchvision.transforms.v2, name)(num_classes=24)
    loader = DataLoader(DATA, 6, seed=3, out_transform=mix, num_workers=2)
    assert assert_same(loader, list(loader.reference())) == 4
    images, targets = next(iter(loader))
    assert images.shape == (6, 3, 32, 32) and targets.shape == (6, 24)
    # Three roundings, all near or below 1: each share by at most eps / 4, their sum by at most eps / 2.
    assert (targets.sum(1) - 1).abs().max() <= torch.finfo(torch.float32).eps


@pytest.mark.parametrize("threads", [0, 2])
def test_mixing_overwrites_the_batch_where_nothing_else_refers_to_it(
    torchvision: ModuleType, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    v2, native = torchvision.transforms.v2, []
    for name in ("mix_batch_in_place", "move_boxes"):
        function = getattr(in_place_mixes, name)
        monkeypatch.setattr(in_place_mixes, name, lambda *args, function=function: native.append(function(*args)))
    mixes = [v2.MixUp(num_classes=24), v2.CutMix(num_classes=24)]
    for number, mix in enumerate((*mixes, v2.RandomChoice(mixes)), 1):
        for out in (mix, lambda batch: mix(*batch)):  # noqa: B023 - called before the next mix
            loader = DataLoader(DATA, 6, seed=3, out_transform=out, num_workers=threads)
            expected = list(loader.reference())
            assert len(native) == 8 * number - (8 if out is mix else 4)
            assert assert_same(loader, expected) == 4
        assert len(native) == 8 * number


class Keeping:
    """A collate_fn that keeps the batches."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def __call__(self, samples: Any) -> Any:
        self.kept.append(default_collate(samples))
        return self.kept[-1]


def test_mixing_leaves_what_a_collate_fn_keeps(torchvision: ModuleType) -> None:
    plain = [images for images, _ in DataLoader(DATA, 6, seed=3)]
    mix, keeping = torchvision.transforms.v2.MixUp(num_classes=24), Keeping()
    loader = DataLoader(DATA, 6, seed=3, collate_fn=keeping, out_transform=mix)
    assert loader.native
    mixed = [images for images, _ in loader]
    assert len(keeping.kept) == len(plain) == 4
    for (images, _), expected, other in zip(keeping.kept, plain, mixed, strict=True):
        assert torch.equal(images, expected) and not torch.equal(images, other)


def test_where_torch_delivers_it_is_called_as_well() -> None:
    foreign = TensorDataset(torch.arange(10.0))
    loader = DataLoader(foreign, 4, out_transform=lambda batch: batch[0] + 1)
    assert not loader.native
    assert [batch.tolist() for batch in loader] == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    assert len(cast(Sized, iter(loader))) == 3


def test_what_is_not_a_function_is_refused() -> None:
    with pytest.raises(TypeError, match="out_transform must be a function of a batch or None, not 3"):
        DataLoader(DATA, 5, out_transform=3)  # type: ignore[arg-type]
