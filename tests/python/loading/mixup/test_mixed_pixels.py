"""MixUp and CutMix natively: equal to torchvision's and timm's own operations on every dtype and layout."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from headrace._base.native import core
from headrace._loading.mixup import in_place_mixes

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
LAYOUTS = [torch.contiguous_format, torch.channels_last]
SHARES = [0.0, 1.0, 0.5, 0.1, 2 / 3, 0.987654321]


def is_native(dtype: torch.dtype) -> bool:
    return dtype is not torch.float16 or core.instruction_set() != "scalar"


def batch_of(
    count: int, dtype: torch.dtype, layout: torch.memory_format, size: tuple[int, int] = (9, 11)
) -> torch.Tensor:
    made = torch.randn(count, 3, *size, generator=torch.Generator().manual_seed(count))
    return made.to(dtype).contiguous(memory_format=layout)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("count", [1, 2, 3, 256])
def test_mixed_as_torch_mixes(dtype: torch.dtype, layout: torch.memory_format, count: int) -> None:
    for share in SHARES:
        batch = batch_of(count, dtype, layout)
        assert in_place_mixes.is_mixable(batch) == is_native(dtype)
        if not is_native(dtype):
            return
        rolled = batch.roll(1, 0).mul_(1.0 - share).add_(batch.mul(share))
        mirrored = batch.clone().mul_(share).add_(batch.flip(0).mul_(1.0 - share))
        made = batch.clone()
        in_place_mixes.mix_batch_in_place(made, share)
        assert torch.equal(made, rolled)
        in_place_mixes.mix_batch_in_place(batch, share, mirrored=True)
        assert torch.equal(batch, mirrored)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("count", [1, 2, 3, 256])
def test_boxes_moved_as_torch_moves_them(dtype: torch.dtype, layout: torch.memory_format, count: int) -> None:
    if not is_native(dtype):
        return
    batch = batch_of(count, dtype, layout)
    for left, right, top, bottom in itertools.product((0, 4), (4, 11), (0, 5), (5, 9)):
        for mirrored, other in ((False, batch.roll(1, 0)), (True, batch.flip(0))):
            expected, made = batch.clone(), batch.clone()
            expected[..., top:bottom, left:right] = other[..., top:bottom, left:right]
            in_place_mixes.move_boxes(made, (left, top, right, bottom), mirrored=mirrored)
            assert torch.equal(made, expected)


@pytest.mark.parametrize("isa", core.isas())
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_every_value_of_two_bytes(isa: str, dtype: torch.dtype) -> None:
    """All 65,536 bit patterns, mixed with others: infinities, and values below the smallest normal one, included."""
    own = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    generator = torch.Generator().manual_seed(1)
    for share in SHARES:
        batch = torch.stack([own, own[torch.randperm(len(own), generator=generator)]])
        expected = batch.roll(1, 0).mul_(1.0 - share).add_(batch.mul(share))
        core.mix(batch.view(torch.int16).numpy(), str(dtype)[6:], share, 1.0 - share, mirrored=False, isa=isa)
        assert torch.equal(batch.isnan(), expected.isnan())
        assert torch.equal(batch.nan_to_num(7.0), expected.nan_to_num(7.0))
        zeros = (expected == 0) & ~expected.isnan()
        assert torch.equal(batch[zeros].signbit(), expected[zeros].signbit())


def test_samples_that_lie_apart_keep_what_is_between_them() -> None:
    memory = torch.randn(8, 3, 6, 6)
    batch, between = memory[::2], memory[1::2].clone()
    expected = batch.roll(1, 0).mul_(0.75).add_(batch.mul(0.25))
    assert in_place_mixes.is_mixable(batch)
    in_place_mixes.mix_batch_in_place(batch, 0.25)
    assert torch.equal(memory[::2], expected) and torch.equal(memory[1::2], between)


@pytest.mark.parametrize(
    "batch",
    [
        torch.rand(4, 3, 6, 6)[..., ::2],
        torch.rand(4, 3, 6, 6)[:, :2].permute(0, 1, 3, 2),
        torch.rand(1, 3, 6, 6).expand(4, 3, 6, 6),
        torch.rand(4, 3, 6, 6, requires_grad=True),
        torch.zeros(4, 3, 6, 6, dtype=torch.uint8),
        torch.zeros(0, 3, 6, 6),
        torch.zeros(4, 6, 6),
        torch.zeros(4, 3, 6, 6, device="meta"),
        torch.nn.Parameter(torch.zeros(4, 3, 6, 6)),
        None,
    ],
)
def test_what_is_left_to_torch(batch: Any) -> None:
    assert not in_place_mixes.is_mixable(batch)


def test_memory_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="samples without gaps and apart"):
        core.mix(torch.zeros(4, 6)[:, ::2].numpy(), "float32", 0.5, 0.5, mirrored=False)
    with pytest.raises(ValueError, match="samples without gaps and apart"):
        core.mix(torch.zeros(6).expand(4, 6).numpy(), "float32", 0.5, 0.5, mirrored=False)
    with pytest.raises(ValueError, match="samples without gaps and apart"):
        core.mix(torch.zeros(4, 6).numpy(), "float64", 0.5, 0.5, mirrored=False)
    with pytest.raises(ValueError, match="type: float16, bfloat16, float32 or float64, not int32"):
        core.mix(torch.zeros(4, 6).numpy(), "int32", 0.5, 0.5, mirrored=False)
    with pytest.raises(ValueError, match="rows without gaps and apart"):
        core.move_boxes(torch.zeros(4, 3, 6, 6)[..., ::2].numpy(), mirrored=False)
    with pytest.raises(ValueError, match="not writeable"):
        core.mix(read_only(), "float32", 0.5, 0.5, mirrored=False)


def read_only() -> np.ndarray:
    made = torch.zeros(4, 6).numpy()
    made.flags.writeable = False
    return made
