"""Versions of Compose and ToTensor, of torchvision and of headrace.transforms, that make tensors of deferred images in
one native pass.

They do what those in whose place they are put do. Where an image without pixels reaches a step that turns it into a
tensor, this step and those after it that map single values are one pass over the decoded rows (`value_tables`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from PIL import Image

from headrace._base.types import Function
from headrace.pillow.composed_images import record_steps
from headrace.pillow.deferred_image import is_deferred, recorded_bytes
from headrace.pillow.recording.image_counts import in_force
from headrace.pillow.recording.lazy_core import MODES
from headrace.pillow.recording.patches import Replacements, method
from headrace.pillow.value_tables import ValueTable, table_of


class Later:
    """What happens to a tensor of bytes that no step maps.

    Attributes:
        defers_bytes: torchvision's function makes a deferred tensor, so that the steps after it are made natively, too.
        defer_values: makes a deferred tensor of an image and the table of its values, where records are kept; returns
            None where it cannot.
        inputs: the classes of deferred tensors, and of what the first transform may make them of.
        record_steps: calls consecutive steps of v2 with a deferred tensor, from the step with the given number on;
            returns the result and the number of steps, or None where it cannot.
    """

    defers_bytes: bool = False
    defer_values: Callable[[Image.Image, ValueTable], torch.Tensor | None] | None = None
    inputs: tuple[type, ...] = ()
    record_steps: Callable[[object, Sequence[Any], int], tuple[torch.Tensor, int] | None] | None = None


def _fuse_steps(image: object, steps: Sequence[Callable[..., object]], first: int) -> tuple[torch.Tensor, int] | None:
    """Returns the tensor that some of the steps from `first` on make of a deferred image, and the number of these."""
    if not is_deferred(image) or image.mode not in MODES:
        return None
    table = table_of(steps, first, image.mode)
    if table is not None and table.are_bytes and Later.defers_bytes:
        return None
    counts, defer = in_force.here(), Later.defer_values
    if table is not None and defer is not None and counts is not None and counts.keeps_records:
        deferred = defer(image, table)
        if deferred is not None:
            return deferred, table.steps
    # `table_of` has looked at Pillow's functions that make bytes of an image.
    lazy = None if table is None else recorded_bytes(image)
    values = None if table is None or lazy is None else lazy.map_pixels(table.values, table.layout)
    return None if table is None or values is None else (table.tensor(values), table.steps)


def _patch_compose(plain: Function) -> Function:
    @functools.wraps(plain)
    def call(self: Any, *inputs: object) -> object:
        if len(inputs) != 1 or not (isinstance(inputs[0], Later.inputs) or is_deferred(inputs[0])):
            return plain(self, *inputs)
        steps = self.transforms  # no copy: a step may add others
        if type(steps) not in (list, tuple) or not steps:
            return plain(self, *inputs)
        made: object = inputs[0]
        at = 0
        while at < len(steps):
            fused: tuple[object, int] | None = None
            if type(made) is Image.Image:
                fused = record_steps(made, steps, at)
            if fused is None:
                fused = _fuse_steps(made, steps, at)
            if fused is None and Later.record_steps is not None and isinstance(made, torch.Tensor):
                fused = Later.record_steps(made, steps, at)
            made, done = (steps[at](made), 1) if fused is None else fused
            at += done
        return made

    return call


def _patch_to_tensor(plain: Function) -> Function:
    @functools.wraps(plain)
    def call(self: Function, pic: object) -> object:
        fused = _fuse_steps(pic, (self,), 0)
        return plain(self, pic) if fused is None else fused[0]

    return call


STEPS = Replacements(
    [
        method("torchvision.transforms.transforms", "Compose", "__call__", _patch_compose),
        method("torchvision.transforms.transforms", "ToTensor", "__call__", _patch_to_tensor),
        method("torchvision.transforms.transforms", "PILToTensor", "__call__", _patch_to_tensor),
        method("torchvision.transforms.v2._container", "Compose", "forward", _patch_compose),
        method("headrace.transforms._containers", "Compose", "forward", _patch_compose),
    ]
)
