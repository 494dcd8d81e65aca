"""headrace.ops on a device: what its module `_gpu` does, in tensors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from headrace.base.native import core
from headrace.engine import target as targets
from headrace.engine.layout import Layout
from headrace.engine.target import Target

Plan = dict[str, Any]  # of one image: see csrc/bind/plan.h


class Job(NamedTuple):
    """What is done to one image: the box that is resized, in which order of passes, and whether it is mirrored then."""

    left: int
    top: int
    width: int
    height: int
    vertical_first: bool
    flip: bool

    def plan(self, height: int, width: int, filter: int) -> Plan:
        """As the native modules take it, for an output of this size; `filter` is Pillow's number."""
        box = (self.left, self.top, self.width, self.height)
        if (self.height, self.width) == (height, width):
            return {"stages": [], "last": {"box": box, "flip_horizontal": self.flip}}
        stage = {"box": box, "resize": (width, height), "filter": filter, "vertical_first": self.vertical_first}
        return {"stages": [stage], "last": {"box": (0, 0, width, height), "flip_horizontal": self.flip}}


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
        plans: list[Plan],
        height: int,
        width: int,
        lut: torch.Tensor,
        layout: Layout,
    ) -> torch.Tensor:
        """(n, 3, height, width) of the dtype of `lut` (3, 256), by plans for that size."""
        rows = [image if image.stride(2) == 1 else image.contiguous() for image in images]
        places = [(one.data_ptr(), one.stride(1), one.stride(0), *one.shape[1:]) for one in rows]
        shape = (len(rows), 3, height, width)
        out = torch.empty(shape, dtype=lut.dtype, device=self._target.device, memory_format=layout.memory_format)
        table: np.ndarray[Any, Any] = lut.contiguous().view(torch.uint8).numpy()
        stream = targets.current_stream(self._target.device)
        self._native.fuse(places, plans, table, layout.value, out.data_ptr(), stream)
        return out


@functools.cache
def of(target: Target) -> DeviceOps:
    """The one for a device; made at first use."""
    return DeviceOps(target)
