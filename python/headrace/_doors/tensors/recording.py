"""What a tensor without values stands for: the pixels of a file, and the functions that the program has called."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from headrace._base.types import Array
from headrace._doors.tensors.memory_layout import Cut, Layout
from headrace.pillow.lazy_core import Operation

_MOST_TABLES = 64
_tables: dict[Hashable, Array] = {}


class Pixels(Protocol):
    """The pixels of a file: `headrace.pillow.file_pixels.FilePixels`."""

    def hold(self, lazy: Any) -> None: ...

    def map_pixels(self, operations: tuple[Operation, ...], table: Array, layout: str) -> Array | None: ...


@dataclass(frozen=True)
class ValueStep:
    """A function that maps each value of an image alike.

    Attributes:
        key: what its result depends on beside the value.
        call: the function.
    """

    key: Hashable
    call: Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Origin:
    """Where the values come from.

    Attributes:
        pixels: of the file.
        operations: before the program got a tensor.
        make: makes the tensor as the function would have made it that the program called.
    """

    pixels: Pixels
    operations: tuple[Operation, ...]
    make: Callable[[], torch.Tensor]


@dataclass(slots=True)
class State:
    """A tensor (C, H, W), described. Not changed once it is made.

    Attributes:
        operations: native ones, in order, that make its pixels.
        steps: what maps these.
    """

    channels: int
    height: int
    width: int
    layout: Layout
    dtype: torch.dtype
    operations: tuple[Operation, ...] = ()
    steps: tuple[ValueStep, ...] = ()

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.channels, self.height, self.width


class Recording:
    """A tensor's origin and state; its values, once they are made. Several tensors share one if they share memory.

    Note [views]: a part of a tensor is a view of it, in torch and here: its values are made as a part of the whole's,
    so what is written to one is seen in the other. Other functions make new memory, which nothing shares, so only what
    they need is decoded.

    Args:
        origin: where the values come from.
        state: the tensor's.
        before: the recording that the last function got; None for the origin's own tensor.
        replay: the last function, called with that one's tensor.
        box: (top, bottom, left, right) of the part of `before` that this is; None if it is not a part.
    """

    def __init__(
        self,
        origin: Origin,
        state: State,
        before: Recording | None = None,
        replay: Callable[[torch.Tensor], torch.Tensor] | None = None,
        box: tuple[int, int, int, int] | None = None,
    ) -> None:
        self.origin, self.state, self.box = origin, state, box
        self.cut: Cut = Cut()
        if box is not None and before is not None:
            edges = state.height < before.state.height, state.width < before.state.width
            self.cut = Cut(edges[0] or before.cut.height, edges[1] or before.cut.width)
        self._before, self._replay = before, replay
        self._made: torch.Tensor | None = None
        self._making = threading.RLock()
        origin.pixels.hold(self)

    @property
    def strides(self) -> tuple[int, ...]:
        """Of the tensor, in elements."""
        if self.box is not None and self._before is not None:
            return self._before.strides
        return self.state.layout.strides(*self.state.shape)

    @property
    def is_made(self) -> bool:
        return self._made is not None

    def make_native(self) -> torch.Tensor:
        """Returns the values, made at the first call."""
        with self._making:
            made = self._made
            if made is None:
                made = self._made = self._make()
                self._before = self._replay = None
            return made

    def _make(self) -> torch.Tensor:
        if self.box is not None and self._before is not None:
            top, bottom, left, right = self.box
            return self._before.make_native()[..., top:bottom, left:right]
        with torch.no_grad():
            state = self.state
            values = self.origin.pixels.map_pixels(
                state.operations, table_of(state.channels, state.steps), state.layout.value
            )
            if values is not None:
                made = torch.from_numpy(values)
                return made if state.layout is Layout.PLANAR else made.permute(2, 0, 1)
        return self._make_by_torch()

    def _make_by_torch(self) -> torch.Tensor:
        if self._before is None or self._replay is None:
            return self.origin.make()
        return self._replay(self._before.make_native())


def table_of(channels: int, steps: tuple[ValueStep, ...]) -> Array:
    """Returns the values that steps make of the 256 bytes, (channels, 256)."""
    key = (channels, torch.get_default_dtype(), *(step.key for step in steps))
    if key not in _tables:
        if len(_tables) >= _MOST_TABLES:
            _tables.clear()
        _tables[key] = np.ascontiguousarray(map_every_byte(channels, steps).numpy().reshape(channels, 256))
    return _tables[key]


def map_every_byte(channels: int, steps: Sequence[ValueStep]) -> torch.Tensor:
    """Returns what steps make of a tensor (channels, 16, 16) that has all bytes in each channel."""
    values = torch.arange(256, dtype=torch.uint8).repeat(channels).view(channels, 16, 16)
    for step in steps:
        values = step.call(values)
    return values.contiguous()
