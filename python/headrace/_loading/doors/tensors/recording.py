"""What a tensor without values stands for: the pixels of a file, and the functions that the program has called."""

from __future__ import annotations

import contextlib
import math
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import torch

from headrace._base.lifetimes.bounded_table import BoundedTable
from headrace._base.types import Array, Function
from headrace._loading.doors.tensors.memory_layout import Cut, Layout, Lead, few_of
from headrace.pillow.memory import pixel_memory
from headrace.pillow.recording.lazy_core import Operation

#: A function of torch, called with a tensor.
Replay: TypeAlias = "Callable[[torch.Tensor], torch.Tensor]"
_tables: BoundedTable[Hashable, Array] = BoundedTable(64)


class Pixels(Protocol):
    """The pixels of a file: `headrace.pillow.files.pixels.FilePixels`."""

    def hold(self, lazy: Any) -> None: ...

    def map_pixels(
        self, operations: tuple[Operation, ...], table: Array, layout: str, out: Array | None = None
    ) -> Array | None: ...


@dataclass(frozen=True)
class ValueStep:
    """A function that maps each value of an image alike.

    Attributes:
        key: what its result depends on beside the value.
        call: the function.
        default: the default dtype when it was called.
    """

    key: Hashable
    call: Callable[[torch.Tensor], torch.Tensor]
    default: torch.dtype = field(default_factory=torch.get_default_dtype)


@dataclass(frozen=True)
class Origin:
    """Where the values come from.

    Attributes:
        pixels: of the file.
        make: makes the tensor as the function would have made it that the program called.
    """

    pixels: Pixels
    make: Callable[[], torch.Tensor]


class State(NamedTuple):
    """A tensor (..., C, H, W), described.

    Attributes:
        operations: native ones, in order, that make its pixels.
        steps: what maps these.
        table: the values that the steps make of the 256 bytes, (channels, 256). Made when the steps are recorded: the
            default dtype may be another one later.
        lead: the dimensions before these three, of one image or of some frames.
        frames: which ones of a clip; None: the one image of a file.
        finish: changes the finished values in place; what is called after it is not recorded.
    """

    channels: int
    height: int
    width: int
    layout: Layout
    dtype: torch.dtype
    operations: tuple[Operation, ...]
    table: Array
    steps: tuple[ValueStep, ...] = ()
    lead: tuple[int, ...] = ()
    frames: range | None = None
    finish: Callable[[torch.Tensor], object] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return *self.lead, self.channels, self.height, self.width

    def is_of_default(self) -> bool:
        """Whether the default dtype is that of the steps so far: a table of more steps calls all of them again."""
        return not self.steps or all(step.default is torch.get_default_dtype() for step in self.steps)


@dataclass(frozen=True)
class Erasing:
    """Overwrites a box of an image (..., C, H, W), in place.

    Attributes:
        function: torchvision's.
        box: (top, left, height, width), inside the image.
        values: what is written, of a shape that can be expanded to the box.
    """

    function: Function
    box: tuple[int, int, int, int]
    values: torch.Tensor

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.function(image, *self.box, self.values, True)
        return made

    def constants(self, channels: int, dtype: torch.dtype) -> torch.Tensor | None:
        """Returns what each channel of the box becomes, (C,), in the dtype of the image; None where that differs from
        pixel to pixel, or the function does more. It is asked: what is converted how is its own choice."""
        several = self.values.shape[-3] if self.values.dim() > 2 else 1
        if math.prod(self.values.shape) != several:
            return None
        tried = self.function(torch.zeros((channels, 3, 4), dtype=dtype, device="cpu"), 1, 0, 1, 2, self.values, True)
        if not isinstance(tried, torch.Tensor) or tried.shape != (channels, 3, 4) or tried.dtype != dtype:
            return None
        found = tried[:, 1, 0].clone()
        expected = torch.zeros((channels, 3, 4), dtype=dtype, device="cpu")
        expected[:, 1, :2] = found[:, None]
        same = torch.equal(tried.view(torch.uint8), expected.view(torch.uint8))  # also where they are no numbers
        return found if same else None


@dataclass(frozen=True)
class Content:
    """The values of an image tensor, whatever a program writes into the tensor later.

    Attributes:
        origin: where the values come from.
        state: the tensor's.
        replays: functions that make the tensor of the origin's own, where the file is damaged.
    """

    origin: Origin
    state: State
    replays: tuple[Replay, ...]

    def make(self, *, for_a_while: bool = False) -> torch.Tensor:
        """Returns the values, in new memory, in the order that the state says.

        Args:
            for_a_while: whether the memory is soon free again.
        """
        state = self.state
        if state.layout is Layout.EXPANDED:
            operations = (*state.operations, ("equal_colours",))
            made = self._make_pixels(operations, state.table[:1], Layout.PLANAR, for_a_while=for_a_while)
        else:
            made = self._make_pixels(state.operations, state.table, state.layout, for_a_while=for_a_while)
        if made is None:
            return self._make_by_torch()
        if state.layout is Layout.EXPANDED or state.lead or state.frames is not None:
            made = made.as_strided(state.shape, state.layout.strides(state.shape))
        if state.finish is not None:
            state.finish(made)
        return made

    def make_in_order(self, layout: Layout) -> torch.Tensor | None:
        """Returns the values of an image (C, H, W) without a `finish`, in another order, in memory that is soon free
        again; None if they cannot be made natively."""
        return self._make_pixels(self.state.operations, self.state.table, layout, for_a_while=True)

    def _make_pixels(
        self, operations: tuple[Operation, ...], table: Array, layout: Layout, *, for_a_while: bool
    ) -> torch.Tensor | None:
        size, channels = (self.state.height, self.state.width), len(table)
        shape: tuple[int, ...] = (channels, *size) if layout is Layout.PLANAR else (*size, channels)
        shape = shape if self.state.frames is None else (len(self.state.frames), *shape)
        out = pixel_memory.empty_for_a_while(shape, table.dtype) if for_a_while else None
        values = self._pixels.map_pixels(operations, table, layout.value, out)
        if values is None:
            return None
        made = torch.from_numpy(values)
        return made if layout is Layout.PLANAR else made.movedim(-1, -3)

    def make_into(self, out: torch.Tensor) -> None:
        """Writes the values into a contiguous tensor of the state's shape."""
        state = self.state
        if state.layout is Layout.EXPANDED:
            out.copy_(self.make(for_a_while=True))
            return
        image = state.channels, state.height, state.width
        array = out.view(image if state.frames is None else (len(state.frames), *image)).numpy()
        if self._pixels.map_pixels(state.operations, state.table, Layout.PLANAR.value, array) is None:
            out.copy_(self._make_by_torch())
        elif state.finish is not None:
            state.finish(out)

    @property
    def _pixels(self) -> Pixels:
        pixels, frames = self.origin.pixels, self.state.frames
        return pixels if frames is None else pixels.choose(frames)  # type: ignore[attr-defined]

    def _make_by_torch(self) -> torch.Tensor:
        """Not from tensors that the program may have changed."""
        made = self.origin.make()
        for replay in self.replays:
            made = replay(made)
        return made


class Recorded(ABC):
    """What a deferred tensor stands for; its values, once they are made.

    Note [views]: a part of a tensor is a view of it, in torch and here: its values are made as a part of the whole's,
    so what is written to one is seen in the other. So is one with another first dimension. A view counts as made once
    the whole is: something may have been written to it. Other functions make new memory, which nothing shares, so only
    what they need is decoded.

    Args:
        pixels: the file's.
        whole: the recording of a tensor that has the same memory, of which this is a view; or None.

    Attributes:
        shape, dtype: of the tensor.
        strides: of the tensor, in elements.
        is_shared: whether other tensors have the same memory.
    """

    def __init__(
        self,
        pixels: Pixels,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: torch.dtype,
        whole: Recorded | None = None,
    ) -> None:
        self.shape, self.strides, self.dtype = shape, strides, dtype
        self.is_shared: bool = whole is not None
        if whole is not None:
            whole.is_shared = True
        self._whole = whole
        self._made: torch.Tensor | None = None
        self._making, self._process = threading.RLock(), os.getpid()
        pixels.hold(self)

    @property
    def is_made(self) -> bool:
        return self._made is not None or (self._whole is not None and self._whole.is_made)

    def make_native(self) -> torch.Tensor:
        """Returns the values, made at the first call."""
        if self._process != os.getpid():  # another thread of the parent may have held the lock
            self._making, self._process = threading.RLock(), os.getpid()
        with self._making:
            if self._made is None:
                with plainly():
                    self._made = self._make()
                self._whole = None
                self._forget()
            return self._made

    def hand_over(self, tensor: torch.Tensor) -> None:
        """Called with the tensor that has the values now."""
        if not self.is_shared:
            self._made = tensor.detach()

    @abstractmethod
    def _make(self) -> torch.Tensor:
        """Returns the values: of a view, a view of the whole's."""

    @abstractmethod
    def _forget(self) -> None:
        """Called once the values are made: lets go of what made them."""


class Recording(Recorded):
    """A tensor's origin and state. Several tensors share one if they share memory.

    Args:
        origin: where the values come from.
        state: the tensor's.
        before: the recording that the last function got; None for the origin's own tensor.
        replay: the last function, called with that one's tensor.
        is_view: whether the function's result has the memory of what it got.
        strides: of a view of frames; None: they follow from the states.

    Attributes:
        cut: which edges are shorter than those of the image in memory.
    """

    def __init__(
        self,
        origin: Origin,
        state: State,
        before: Recording | None = None,
        replay: Replay | None = None,
        *,
        is_view: bool = False,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        self.origin, self.state = origin, state
        self.cut: Cut = Cut()
        self._replays: tuple[Replay, ...] = ()
        if before is not None and replay is not None:
            self._replays = (*before._replays, replay)
        whole = before if is_view else None
        if whole is not None:
            edges = state.height < whole.state.height, state.width < whole.state.width
            self.cut = Cut(edges[0] or whole.cut.height, edges[1] or whole.cut.width)
            strides = strides or _strides_of_view(whole, state)
        strides = strides or state.layout.strides(state.shape)
        super().__init__(origin.pixels, state.shape, strides, state.dtype, whole)

    @property
    def content(self) -> Content:
        """What the values are made of, until they are made."""
        return Content(self.origin, self.state, self._replays)

    @property
    def lead(self) -> Lead:
        """Which small tensor stands for this."""
        return few_of(self.state.lead, self.strides, self.state.channels, self.state.layout)

    def find_whole(self, lead: tuple[int, ...]) -> Recording | None:
        """Returns the recording of which this is a view, if that has the same elements and these first dimensions."""
        whole = self._whole
        if not isinstance(whole, Recording) or whole.state.lead != lead or lead == self.state.lead:
            return None
        return whole if whole.state.frames == self.state.frames else None

    def _make(self) -> torch.Tensor:
        if self._whole is not None:
            return self._replays[-1](self._whole.make_native())
        with torch.no_grad():
            return self.content.make().data  # no view, of nothing

    def _forget(self) -> None:
        self._replays = ()


def plainly() -> AbstractContextManager[None]:
    """Inside ``with``, torch makes plain tensors: no inference tensors, no levels of `torch.func`."""
    is_plain = torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    if is_plain and torch._C._functorch.peek_interpreter_stack() is None:
        return _nothing
    return _leave_modes()


_nothing: AbstractContextManager[None] = contextlib.nullcontext()


@contextlib.contextmanager
def _leave_modes() -> Iterator[None]:
    with torch.inference_mode(False), torch._C._DisableFuncTorch():
        yield


def _strides_of_view(before: Recording, state: State) -> tuple[int, ...]:
    """Returns the strides of a part of a tensor, or of one with or without a first dimension."""
    added = len(state.lead) - len(before.state.lead)
    if added == 1:  # as Tensor.unsqueeze
        return before.shape[0] * before.strides[0], *before.strides
    return before.strides[1:] if added == -1 else before.strides


def table_of(channels: int, steps: tuple[ValueStep, ...]) -> Array:
    """Returns the values that steps make of the 256 bytes, (channels, 256)."""
    key = (channels, torch.get_default_dtype(), *(step.key for step in steps))
    return _tables.find_or_make(
        key, lambda: np.ascontiguousarray(map_every_byte(channels, steps).numpy().reshape(channels, 256))
    )


def map_every_byte(channels: int, steps: Sequence[ValueStep]) -> torch.Tensor:
    """Returns what steps make of a tensor (channels, 16, 16) that has all bytes in each channel."""
    values = torch.arange(256, dtype=torch.uint8).repeat(channels).view(channels, 16, 16)
    for step in steps:
        values = step.call(values)
    return values.contiguous()
