"""Mixes the samples of a batch in its memory, natively."""

from __future__ import annotations

from typing import TypedDict, TypeGuard

import torch

from headrace._base.native import core

Box = tuple[int, int, int, int]  # left, top, right, bottom

_NAMES = {
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.float64: "float64",
}


class Params(TypedDict, total=False):
    """What a transform of torchvision's passes to its method `transform`: `lam` MixUp's, `box` CutMix's."""

    labels: torch.Tensor
    batch_size: int
    lam: float
    box: Box


def is_mixable(batch: object) -> TypeGuard[torch.Tensor]:
    """Whether `batch` is a tensor (n, C, H, W) of floats in this machine's memory whose samples have no gaps."""
    if type(batch) is not torch.Tensor:
        return False
    with torch._C.DisableTorchFunction():  # modes of the calling thread would see each of these
        if batch.device.type != "cpu" or batch.layout is not torch.strided or batch.ndim != 4 or batch.numel() == 0:
            return False
        if batch.dtype not in _NAMES or batch.requires_grad or batch.is_neg():
            return False
        if batch.dtype is torch.float16 and core.instruction_set() == "scalar":
            return False  # without F16C, torch's operations are faster
        sample = batch[0]
        apart = len(batch) == 1 or batch.stride(0) >= sample.numel()
        return apart and (_is_planar(sample) or _is_channels_last(sample))


def mix_batch_in_place(batch: torch.Tensor, share: float, *, mirrored: bool = False) -> None:
    """Sets each sample to ``share`` of itself plus ``1 - share`` of the sample before it; the products and the sum are
    rounded as torch rounds them.

    Args:
        batch: a mixable one.
        mirrored: whether each is mixed with the sample at its place from the end instead.
    """
    with torch._C.DisableTorchFunction():
        count, elements = len(batch), batch[0].numel()
        flat = batch.detach().as_strided((count, elements), (batch.stride(0) if count > 1 else elements, 1))
        values = (flat.view(torch.int16) if batch.dtype is torch.bfloat16 else flat).numpy()
        name = _NAMES[batch.dtype]
    core.mix(values, name, share, 1.0 - share, mirrored=mirrored)


def move_boxes(batch: torch.Tensor, box: Box, *, mirrored: bool = False) -> None:
    """Sets a box of each sample to that of the sample before it.

    Args:
        batch: a mixable one.
        mirrored: whether it is that of the sample at its place from the end instead.
    """
    left, top, right, bottom = box
    with torch._C.DisableTorchFunction():
        boxes = batch.detach()[..., top:bottom, left:right]
        if boxes.numel() == 0:
            return
        if not _is_planar(batch[0]):
            count, channels, height, width = boxes.shape
            strides = (batch.stride(0), width * channels, batch.stride(2), 1)
            boxes = boxes.as_strided((count, 1, height, width * channels), strides)
        values = (boxes.view(torch.int16) if batch.dtype is torch.bfloat16 else boxes).numpy()
    core.move_boxes(values, mirrored=mirrored)


def _is_planar(sample: torch.Tensor) -> bool:
    return sample.is_contiguous()


def _is_channels_last(sample: torch.Tensor) -> bool:
    return sample.permute(1, 2, 0).is_contiguous()
