"""The worker's part: `default_collate` makes records of a batch's deferred tensors, in place of their values.

A tensor is left to torch where its samples are not alike (sizes, tables, types), where one has values already or cannot
be one native plan, and where the files have more bytes than the values.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch.utils.data._utils.collate import collate_tensor_fn, default_collate_fn_map

from headrace._base.types import Array, Function
from headrace._loading.doors.tensors.deferred_tensor import (
    Deferred,
    gives_plain,
    has_deferred_in,
    is_deferring_possible,
    make_samples,
    recorded_in,
)
from headrace._loading.doors.tensors.joined_tensors import Allocate, stack
from headrace._loading.doors.tensors.memory_layout import Layout as TensorLayout
from headrace._loading.doors.tensors.recording import Content, Erasing, Recording
from headrace._loading.doors.type_checks import checks
from headrace._loading.records.erased_values import ErasedValues
from headrace._loading.records.leaves_of_batches import named_leaves
from headrace._loading.records.record_batch import ImageRecord, RecordBatch, RecordedBatch
from headrace._recipe.images.memory_format import Layout
from headrace.pillow.files.jpeg_pixels import JpegPixels
from headrace.pillow.files.pixels import FilePixels
from headrace.pillow.recording.image_counts import LOOKED_AT, NO_JPEGS, ImageCounts


class RecordCollation:
    """Makes the records of one batch after another.

    Args:
        counts: counts the images, and says where those of a field are made.
        allocate: memory for the files' bytes; None: torch's.
        through: modules through which torch's fetcher calls `default_collate`.
        in_worker: whether torch writes batches to contiguous memory, as it does in worker processes.
    """

    def __init__(
        self,
        counts: ImageCounts,
        allocate: Allocate | None = None,
        through: tuple[str, ...] = (),
        *,
        in_worker: bool = True,
    ) -> None:
        self._counts, self._allocate, self._in_worker = counts, allocate, in_worker
        self._through = {_COLLATE, *through}
        self._where_else = "in the worker" if in_worker else "in the caller's thread"
        self._is_on = False
        self._erased = ErasedValues()
        self._forget()

    def _forget(self) -> None:
        self._files: dict[int, tuple[int, JpegPixels]] = {}  # by id: where its bytes begin
        self._bytes = 0
        self._made_here: dict[int, tuple[torch.Tensor, str]] = {}  # by id: a batch of values, and why

    def begin(self, samples: object) -> None:
        """Called before `default_collate`; from now on it makes records in this thread, unless the program has a
        function of its own for tensors. Where no sample is deferred, errors have torch's traceback."""
        self.end()  # after an error
        self._forget()
        if has_deferred_in(samples) and _entry.use():
            _here.collation, self._is_on = self, True

    def finish(self, batch: object) -> object:
        """Called with what `default_collate` has returned; returns it, or a `RecordedBatch`."""
        self.end()
        records = []  # those that are in the batch: torch collates some mappings twice
        for path, leaf in named_leaves(batch):
            if isinstance(leaf, RecordBatch):
                records.append(leaf)
                self._counts.fields[path] = "recorded"
            elif id(leaf) in self._made_here:
                self._counts.fields[path] = f"{self._where_else}, because {self._made_here[id(leaf)][1]}"
        here, checking = self._counts.here, checks.look()
        if checking is not None and LOOKED_AT in here:  # no tensor was deferred
            here[f"a program compares types with `is`, in {checking}"] += here.pop(LOOKED_AT)
        made = RecordedBatch(batch, records, self._join_files()) if records else batch
        self._forget()
        return made

    def end(self) -> None:
        """Called also where `default_collate` has raised an error."""
        if self._is_on:
            _here.collation, self._is_on = None, False
            _entry.leave()

    def collate(self, tensors: Sequence[Any], collate_fn_map: Any) -> object:
        """What `default_collate` calls for tensors, through `_collate_tensors`."""
        deferred = [isinstance(one, Deferred) for one in tensors]
        if not any(deferred) or not self._is_of_fetcher():
            return collate_tensor_fn(tensors, collate_fn_map=collate_fn_map)
        found = self._record(tensors) if all(deferred) else "a program has looked at some of them"
        if isinstance(found, RecordBatch):
            return found
        self._note_reason(tensors, found)
        made = stack(tensors)
        if made is None:
            make_samples(tensors)
            made = collate_tensor_fn(tensors, collate_fn_map=collate_fn_map)
        self._made_here[id(made)] = made, found
        return made

    @staticmethod
    def _note_reason(tensors: Iterable[Any], reason: str) -> None:
        """Notes why the files of some tensors are decoded here."""
        for one in tensors:
            recorded = recorded_in(one)
            if isinstance(recorded, Recording) and isinstance(recorded.origin.pixels, FilePixels):
                recorded.origin.pixels.why_here = reason

    def _is_of_fetcher(self) -> bool:
        """Whether torch's fetcher collates, and not a program's own code, which would get the records."""
        frame: FrameType | None = sys._getframe(3)  # after `collate` and `_collate_tensors`
        while frame is not None and frame.f_globals.get("__name__") in self._through:
            frame = frame.f_back
        return frame is not None and frame.f_globals.get("__name__") in _FETCHERS

    def _record(self, tensors: Sequence[Any]) -> RecordBatch | str:
        """Returns the records of some tensors, or why there are none."""
        if not is_deferring_possible() or not all(gives_plain(torch.stack, one) for one in tensors):
            return "torch's calls are watched, or tensors keep their class"
        contents = self._contents_of(tensors)
        if isinstance(contents, str):
            return contents
        layout = Layout.PLANAR if self._in_worker else _layout_of_stack(contents)
        if layout is None:
            return "torch stacks them in an order of its own"
        return self._record_contents(contents, layout)

    @staticmethod
    def _contents_of(tensors: Sequence[Any]) -> list[Content] | str:
        """Returns what deferred tensors stand for, if they are alike; or why there are no records of them."""
        contents: list[Content] = []
        for one in tensors:
            recorded = recorded_in(one)
            if type(recorded) is not Recording:
                return "a program has looked at some of them, or rearranged their values"
            content = recorded.content
            if (why := _why_not_recordable(content)) is not None:
                return why
            contents.append(content)
        first = contents[0].state
        for one in contents:
            state = one.state
            if state.shape != first.shape:
                return "their sizes differ"
            if state.dtype != first.dtype or not _are_equal(state.table, first.table):
                return "their values are mapped by different functions"
        return contents

    def _record_contents(self, contents: Sequence[Content], layout: Layout) -> RecordBatch | str:
        first = contents[0].state
        plans = [_pixels_of(one).plan(one.state.operations, one.state.channels) for one in contents]
        if any(plan is None for plan in plans):
            return "what is done to their pixels is not native"
        erased = self._erased.find_all([one.state for one in contents])
        if isinstance(erased, str):
            return erased
        boxes, values = erased
        pixels = [_pixels_of(one) for one in contents]
        new = sum(len(one.data) for one in {id(one): one for one in pixels}.values() if id(one) not in self._files)
        if new > math.prod(first.shape) * first.table.itemsize * len(contents):
            return "their files have more bytes than their values"
        images = []
        for one, plan, its_boxes in zip(pixels, plans, boxes, strict=True):
            assert plan is not None
            begin, steps = self._add_file(one), (plan.stages, plan.last, its_boxes)
            images.append(ImageRecord(begin, len(one.data), one.size, *steps, one.door.name, one.arguments, one.name))
        return RecordBatch(images, (len(images), *first.shape), first.table, layout, values)

    def _add_file(self, pixels: JpegPixels) -> int:
        """Returns where a file's bytes begin. Several images of a file share them."""
        known = self._files.get(id(pixels))
        if known is not None:
            return known[0]
        begin, self._bytes = self._bytes, self._bytes + len(pixels.data)
        self._files[id(pixels)] = begin, pixels
        pixels.count_record()
        return begin

    def _join_files(self) -> torch.Tensor:
        found = None if self._allocate is None else self._allocate((self._bytes,), torch.uint8)
        files, written = found or (torch.empty(self._bytes, dtype=torch.uint8, device="cpu"),) * 2
        to: Array = written.numpy()
        for begin, pixels in self._files.values():
            to[begin : begin + len(pixels.data)] = np.frombuffer(pixels.data, np.uint8)
        return files


_here = threading.local()  # `collation`: what makes the records in this thread, or None


def _collate_tensors(tensors: Sequence[Any], *, collate_fn_map: Any = None) -> object:
    """torch's table of functions is one for all threads, so the entry for tensors is, too."""
    collation: RecordCollation | None = getattr(_here, "collation", None)
    if collation is None:
        return collate_tensor_fn(tensors, collate_fn_map=collate_fn_map)
    return collation.collate(tensors, collate_fn_map)


class _Entry:
    """The entry for tensors in torch's table: ours while any thread needs it."""

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0

    def use(self) -> bool:
        """Returns whether the entry is ours; if not, the program has a function of its own."""
        with self._lock:
            if default_collate_fn_map.get(torch.Tensor) not in (collate_tensor_fn, _collate_tensors):
                return False
            default_collate_fn_map[torch.Tensor] = _collate_tensors
            self._users += 1
            return True

    def leave(self) -> None:
        with self._lock:
            self._users = max(0, self._users - 1)  # none in a child of a thread that forked while it collated
            if not self._users:
                self._give_back()

    def forget_threads(self) -> None:
        """Called in a child process, which has only the thread that forked."""
        self._lock, self._users = threading.Lock(), 0
        _here.collation = None
        self._give_back()

    @staticmethod
    def _give_back() -> None:
        if default_collate_fn_map.get(torch.Tensor) is _collate_tensors:
            default_collate_fn_map[torch.Tensor] = collate_tensor_fn


_entry = _Entry()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_entry.forget_threads)

_COLLATE: str = collate_tensor_fn.__module__
_FEW = 5  # pixels along an edge
_FETCHERS = ("torch.utils.data._utils.fetch", __name__)


def _layout_of_stack(contents: Sequence[Content]) -> Layout | None:
    """Returns the layout of the batch that `torch.stack` makes; None if it is none of the kernels'."""
    # Of small images, and of one for each order: tensors without memory are torch's Python code, which takes seconds to
    # import.
    *lead, channels, height, width = contents[0].state.shape
    few = (*lead, channels, min(height, _FEW), min(width, _FEW))
    orders = list(dict.fromkeys(one.state.layout for one in contents))
    orders += orders[:1] * (len(contents) > 1)
    parts = [torch.empty_strided(few, one.strides(few), device="cpu") for one in orders]
    made = torch.stack(parts)
    if made.is_contiguous():
        return Layout.PLANAR
    is_last = made.ndim == 4 and made.is_contiguous(memory_format=torch.channels_last)
    return Layout.CHANNELS_LAST if is_last else None


def _pixels_of(content: Content) -> JpegPixels:
    pixels = content.origin.pixels
    assert type(pixels) is JpegPixels
    return pixels


def _why_not_recordable(content: Content) -> str | None:
    """Returns why an image's values cannot be made by another process; None if they can."""
    from headrace._recipe.steps.recipe import DTYPES  # only now, as in pillow_rule

    state = content.state
    if type(content.origin.pixels) is not JpegPixels:
        return NO_JPEGS
    if state.finish is not None and not isinstance(state.finish, Erasing):
        return "their finished values are changed"
    if state.frames is not None or state.layout is TensorLayout.EXPANDED or math.prod(state.lead) != 1:
        return "their values are rearranged"
    if state.dtype not in DTYPES:
        return f"no native pipeline makes {state.dtype}"
    return None


def _are_equal(one: Array, other: Array) -> bool:
    return one is other or (one.dtype == other.dtype and np.array_equal(one.view(np.uint8), other.view(np.uint8)))


class RecordingCall:
    """torch's function with records in place of deferred tensors, for batches that are made in this process.

    Args:
        function: `default_collate` or `default_convert`.
        collation: makes the records.
    """

    def __init__(self, function: Function, collation: RecordCollation) -> None:
        self._function, self._collation = function, collation

    def __call__(self, samples: Any) -> object:
        self._collation.begin(samples)
        try:
            batch = self._function(samples)
        except BaseException:
            self._collation.end()
            raise
        return self._collation.finish(batch)
