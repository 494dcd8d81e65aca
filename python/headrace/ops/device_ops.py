"""headrace.ops on a device: what its module `_gpu` does, in tensors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from headrace.base.native import core
from headrace.engine import target as targets
from headrace.engine.target import Target


class Job(NamedTuple):
    """What is done to one image: the box that is resized, in which order of passes, and whether it is mirrored then."""

    left: int
    top: int
    width: int
    height: int
    vertical_first: bool
    flip: bool


class DeviceOps:
    """The stages of one device. Everything is put on the stream that is current."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._native = targets.required().Ops(target.kind, target.device.index or 0)

    def decode(self, data: bytes, stream: int) -> torch.Tensor | None:
        """uint8 (3, H, W) on the device; None for what Pillow has to decode."""
        header: dict[str, Any] = core.jpeg_header(data)
        if header["not_plain"] is not None:
            return None
        image = torch.empty((3, header["height"], header["width"]), dtype=torch.uint8, device=self._target.device)
        return image if self._native.decode(data, image.data_ptr(), stream) else None

    def resize(
        self,
        images: Sequence[torch.Tensor] | torch.Tensor,
        jobs: list[Job],
        height: int,
        width: int,
        filter: int,
        lut: torch.Tensor,
        memory_format: torch.memory_format,
    ) -> torch.Tensor:
        """(n, 3, height, width) of `lut`'s dtype; `filter` is Pillow's number, `lut` (3, 256)."""
        rows = [image if image.stride(2) == 1 else image.contiguous() for image in images]
        places = [(one.data_ptr(), one.stride(1), one.stride(0), *one.shape[1:]) for one in rows]
        shape = (len(rows), 3, height, width)
        out = torch.empty(shape, dtype=lut.dtype, device=self._target.device, memory_format=memory_format)
        table: np.ndarray[Any, Any] = lut.contiguous().view(torch.uint8).numpy()
        nhwc = memory_format == torch.channels_last
        stream = targets.current_stream(self._target.device)
        plans = [tuple(job) for job in jobs]
        self._native.fuse(places, plans, height, width, filter, table, nhwc, out.data_ptr(), stream)
        return out


@functools.cache
def of(target: Target) -> DeviceOps:
    """The one for a device; made at first use."""
    return DeviceOps(target)
