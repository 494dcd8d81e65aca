"""torchvision's MixUp and CutMix of batches that are still bytes: the values that it makes of finished ones."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import default_collate

from headrace import Blobs, DataLoader
from headrace import transforms as T
from headrace.base.native import core
from headrace.engine.layout import Layout
from headrace.lowering import lower
from headrace.mixing.from_bytes import ByteMixing
from support import TENSOR, pictures
from torchvision_shim import import_torchvision

try:
    import_torchvision()
    from torchvision.transforms import v2
except ImportError as error:
    pytest.skip(f"torchvision is needed: {error}", allow_module_level=True)

if core.instruction_set() not in ("avx2", "avx512"):
    pytest.skip("the loops are for AVX2 and AVX-512", allow_module_level=True)

CLASSES = 12
UP, CUT = v2.MixUp(num_classes=CLASSES, alpha=0.4), v2.CutMix(num_classes=CLASSES)
MIX = v2.RandomChoice([UP, CUT])
CROPPED = T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), *TENSOR])


def up(samples: list[Any]) -> Any:
    return UP(*default_collate(samples))


def cut(samples: list[Any]) -> Any:
    return CUT(*default_collate(samples))


def mixed(samples: list[Any]) -> Any:
    return MIX(*default_collate(samples))


def made_by(function: Any, transform: Any = CROPPED, layout: Layout = Layout.PLANAR) -> ByteMixing | None:
    return ByteMixing.of(function, lower(transform), layout, kept=2, pin=False)


def same(ours: Any, theirs: Any) -> bool:
    return type(ours) is type(theirs) and len(ours) == len(theirs) and all(map(torch.equal, ours, theirs))


@pytest.mark.parametrize("function", [up, cut, mixed])
def test_values(function):
    mixing = made_by(function)
    assert mixing is not None
    lut = mixing.finished.lut
    for seed, count in enumerate((1, 2, 7, 8, 9)):
        images = torch.randint(256, (count, 3, 24, 24), dtype=torch.uint8)
        labels = torch.arange(count)
        floats = torch.stack([lut[c][images[:, c].long()] for c in range(3)], dim=1)
        assert torch.equal(mixing.plain(images), floats)
        torch.manual_seed(seed)
        expected = function(list(zip(floats, labels, strict=True)))
        torch.manual_seed(seed)
        assert same(mixing.mixed(function, images, labels), expected)


@pytest.mark.parametrize("function", [up, cut, mixed])
@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("persistent", [False, True])
def test_loaders_equal_their_oracle(function, workers, persistent):
    data = Blobs(pictures(11), range(11), CROPPED)
    options: dict[str, Any] = {"num_workers": workers, "persistent_workers": persistent and workers > 0}
    loader = DataLoader(data, 4, True, collate_fn=function, seed=4, **options)
    kept = []
    for _ in range(3):
        expected = list(loader.reference())
        batches = list(loader)
        kept.append((batches, copy.deepcopy(expected)))
        assert loader._runner.engine.recipe.dtype is torch.uint8  # the batches were bytes
    for batches, expected in kept:  # memory that is referred to was not used again
        assert len(batches) == 3 and all(map(same, batches, expected))


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_samples_that_fail(on_error):
    blobs = list(pictures(9))
    blobs[2] = blobs[5] = b"no image"
    loader = DataLoader(Blobs(blobs, range(9), CROPPED), 3, collate_fn=mixed, num_workers=2, seed=1, on_error=on_error)
    expected = list(loader.reference())
    with pytest.warns(UserWarning):
        batches = list(loader)
    assert [len(images) for images, _ in batches] == ([2, 2, 3] if on_error == "skip" else [3, 3, 3])
    assert all(map(same, batches, expected))


def test_memory_is_used_again():
    loader = DataLoader(Blobs(pictures(8), range(8), CROPPED), 2, collate_fn=up, num_workers=1)
    places = {images.data_ptr() for _ in range(6) for images, _ in loader}
    assert len(places) <= 6


def test_a_function_that_changes_after_the_first_batches():
    calls = {"mix": UP}
    names: dict[str, Any] = {"default_collate": default_collate, **calls}
    exec("def changing(samples):\n    return mix(*default_collate(samples))", names)
    function = names["changing"]
    mixing = made_by(function)
    assert mixing is not None
    names["mix"] = lambda images, labels: (labels, images)
    assert mixing.mixed(function, torch.zeros(2, 3, 24, 24, dtype=torch.uint8), torch.arange(2)) is None


def plain(samples: list[Any]) -> Any:
    images, labels = default_collate(samples)
    return UP(images, labels)


@pytest.mark.parametrize(
    ("function", "transform", "layout"),
    [
        (plain, CROPPED, Layout.PLANAR),
        (up, CROPPED, Layout.CHANNELS_LAST),
        (up, T.Compose([T.RandomResizedCrop(24), T.PILToTensor()]), Layout.PLANAR),
        (up, T.Compose([*CROPPED.transforms, T.RandomErasing()]), Layout.PLANAR),
        (up, T.Compose([T.Grayscale(), T.RandomResizedCrop(24), T.ToTensor()]), Layout.PLANAR),
    ],
)
def test_what_is_mixed_where_it_lies_or_by_torchvision(function, transform, layout):
    assert made_by(function, transform, layout) is None


def test_labels_that_cannot_be_mixed_raise_torchvisions_error():
    data = Blobs(pictures(4), [[n, n] for n in range(4)], CROPPED)
    with pytest.raises(Exception) as ours:
        list(DataLoader(data, 2, collate_fn=up, num_workers=1))
    with pytest.raises(Exception) as theirs:
        list(torch.utils.data.DataLoader(data, 2, collate_fn=up))
    assert type(ours.value) is type(theirs.value) and str(theirs.value) in str(ours.value)


def test_arguments():
    lut = lower(CROPPED).lut.numpy()
    table = core.ByteTable.of(lut)
    assert table is not None and core.ByteTable.of(np.cos(lut)) is None and core.ByteTable.of(lut[:1]) is None
    images, out = np.zeros((2, 3, 4, 5), np.uint8), np.zeros((2, 3, 4, 5), np.float32)
    for wrong in (out[:1], out[:, :2].copy(), out[..., :4].copy(), out[0]):
        with pytest.raises(ValueError, match="bytes and out"):
            table.mix(images, wrong, 0.5, 0.5)
    with pytest.raises(ValueError, match="box"):
        table.cut(images, out, (0, 0, 6, 1))
    with pytest.raises(TypeError):
        table.mix(images, out[..., ::-1], 0.5, 0.5)
