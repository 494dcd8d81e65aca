"""`headrace.ops` on a device: tensor wrappers of the module `_gpu`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from headrace._base.native import core
from headrace._base.types import Array
from headrace._engine import destination as destinations
from headrace._engine.destination import Destination
from headrace._recipe.images.memory_format import Layout

Plan = dict[str, Any]  # plan of one image: see csrc/bind/plan.h


class Job(NamedTuple):
    """The operation on one image: the box to resize, the order of passes, and whether to mirror the result."""

    left: int
    top: int
    width: int
    height: int
    vertical_first: bool
    flip: bool

    def plan(self, height: int, width: int, filter: int) -> Plan:
        """Returns the native modules' plan for an output of this size; `filter` is Pillow's number."""
        box = (self.left, self.top, self.width, self.height)
        if (self.height, self.width) == (height, width):
            return {"stages": [], "last": {"box": box, "flip_horizontal": self.flip}}
        stage = {"box": box, "resize": (width, height), "filter": filter, "vertical_first": self.vertical_first}
        return {"stages": [stage], "last": {"box": (0, 0, width, height), "flip_horizontal": self.flip}}


class DeviceOps:
    """The operations of one device. All work is enqueued on the current stream."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._native = destinations.require_gpu().Ops(destination.kind, destination.device.index or 0)

    def decode(self, data: bytes, stream: int) -> torch.Tensor | None:
        """Returns uint8 (3, H, W) on the device; None if Pillow has to decode the image."""
        header = core.jpeg_header(data)
        if header["not_plain"] is not None:
            return None
        image = torch.empty((3, header["height"], header["width"]), dtype=torch.uint8, device=self._destination.device)
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
        """Returns (n, 3, height, width) in the dtype of `lut` (3, 256); `plans` must be for that size."""
        rows = [image if image.stride(2) == 1 else image.contiguous() for image in images]
        places = [(one.data_ptr(), one.stride(1), one.stride(0), *one.shape[1:]) for one in rows]
        shape = (len(rows), 3, height, width)
        out = torch.empty(shape, dtype=lut.dtype, device=self._destination.device, memory_format=layout.memory_format)
        table: Array = lut.contiguous().view(torch.uint8).numpy()
        stream = destinations.current_stream(self._destination.device)
        self._native.fuse(places, plans, table, layout.value, out.data_ptr(), stream)
        return out


@functools.cache
def find_ops(destination: Destination) -> DeviceOps:
    """Returns the operations of a device; made at first use."""
    return DeviceOps(destination)
