"""torchvision's resizes of byte tensors, v1's and v2's, recorded where they are native.

A resize is native once a comparison with the installed function has shown it, for tensors of the same order in memory.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.functional import interpolate

from headrace._base.types import Function
from headrace._loading.doors.tensors.deferred_tensor import defer, recording_of
from headrace._loading.doors.tensors.memory_layout import Layout, Lead, add_lead
from headrace._loading.doors.tensors.recorded_functions import change_pixels
from headrace._loading.doors.tensors.recording import Recording
from headrace._loading.doors.tensors.value_resizes import FILTERS, resize_values
from headrace._recipe.arithmetic import tensor_rule, torch_resize_blur
from headrace.pillow.recording.lazy_core import Operation

#: torch's name of a filter -> the kernels'.
_NEAREST = {"nearest": "tensor_nearest", "nearest-exact": "tensor_nearest_exact"}
_MOST_SIZES = 4096  # pairs of lengths whose pixels are known


def record_resize(plain: Function, tensor: Any, size: Any, *options: Any) -> torch.Tensor | None:
    """A recorder, as `image_functions` has them. Options: see `resize`."""
    recording = recording_of(tensor)
    assert recording is not None
    made = resize(plain, recording, size, *options)
    if made is recording:
        return tensor  # type: ignore[no-any-return]
    return defer(made) if isinstance(made, Recording) else made


def resize(plain: Function, recording: Recording, size: Any, *options: Any) -> Recording | torch.Tensor | None:
    """Returns what a resized tensor stands for, or its values; the same recording where torchvision returns the same
    tensor; None if it is left to the function. Options of v2: interpolation, max_size, antialias; of v1: interpolation
    and antialias."""
    state = recording.state
    *others, antialias = options
    mode = _name_of_filter(others[0], antialias)
    is_v2 = len(others) == 2
    is_of_bytes = state.dtype == torch.uint8 and not state.steps
    if mode is None or state.layout is Layout.EXPANDED or not (is_of_bytes or state.dtype == torch.float32):
        return None
    edges = state.height, state.width
    try:
        height, width = _size_of_v2(edges, size, others[1]) if is_v2 else size
    except Exception:  # raised again by the function
        return None
    if type(height) is not int or type(width) is not int or height < 1 or width < 1:
        return None
    if (height, width) == edges:
        return recording if is_v2 else None
    extra = {"max_size": None} if is_v2 else {}
    interpolation = others[0]

    def call(image: torch.Tensor, edges: Sequence[int]) -> torch.Tensor:
        made: torch.Tensor = plain(image, list(edges), interpolation=interpolation, antialias=antialias, **extra)
        return made

    if not is_of_bytes:
        return resize_values(recording, (height, width), mode, call, (plain, is_v2)) if mode in FILTERS else None
    if mode in _NEAREST and not (
        _takes_known_pixels(mode, edges[0], height) and _takes_known_pixels(mode, edges[1], width)
    ):
        return None
    filter = _find_filter(plain, mode, is_v2, state.layout, state.channels, any(recording.cut), recording.lead)
    if filter is None:
        return None

    def replay(image: torch.Tensor) -> torch.Tensor:
        return call(image, (height, width))

    operation: Operation = ("resize_tensor", (width, height), filter)
    return change_pixels(recording, ("resize", mode, is_v2), (operation,), (height, width), replay)


def _name_of_filter(interpolation: Any, antialias: Any) -> str | None:
    """Returns the name of a filter; None for others, for what may be refused, and for mixed pixels without
    antialiasing."""
    value = getattr(interpolation, "value", interpolation)
    if not isinstance(value, str):
        return None
    if value in _NEAREST:
        return value if antialias in (True, False, None) else None
    return value if value in FILTERS and antialias is True else None


def _size_of_v2(canvas: tuple[int, ...], size: Any, max_size: Any) -> Sequence[int]:
    made: Sequence[int] = sys.modules["torchvision.transforms.v2.functional._geometry"]._compute_resized_output_size(
        canvas, size=size, max_size=max_size
    )
    return made


@functools.lru_cache(_MOST_SIZES)
def _takes_known_pixels(mode: str, length: int, made: int) -> bool:
    """Whether torch takes the pixels that the kernels take, along an edge: they depend on the last bit of a float."""
    numbers = torch.arange(length).view(1, 1, length)
    whole = torch.cat([numbers & 255, numbers >> 8 & 255, numbers >> 16], 1).to(torch.uint8)  # in three channels
    found = [interpolate(one, made, mode=mode)[0].to(torch.int64) for one in (whole, whole.to(torch.float32))]
    found += [interpolate(_with_dimension(whole), (made, 2), mode=mode)[0, :, :, 0].to(torch.int64)]
    scale = np.float32(length) / np.float32(made)
    places = np.arange(made, dtype=np.float64) + (0.5 if mode == "nearest-exact" else 0.0)
    expected = np.minimum((places * np.float64(scale)).astype(np.float32).astype(np.int64), length - 1)
    return all(np.array_equal((one[0] + 256 * one[1] + 65536 * one[2]).numpy(), expected) for one in found)


def _with_dimension(values: torch.Tensor) -> torch.Tensor:
    """The same values (1, C, L, 2), whose channels are adjacent in memory."""
    return values.unsqueeze(-1).repeat(1, 1, 1, 2).contiguous(memory_format=torch.channels_last)


@functools.cache
def _find_filter(
    plain: Function, mode: str, is_v2: bool, layout: Layout, channels: int, is_part: bool, lead: Lead
) -> str | None:
    """Returns the name of the native filter that does what a function does; None if none does, as a comparison of
    both shows."""
    filter = _NEAREST.get(mode)
    if filter is None:
        kind = tensor_rule.kind_of_resize(mode, is_v2 and torch_resize_blur.resizes_bytes(mode))
        if kind is None:
            return None
        filter = f"{kind}_{mode}"
    shape = *(one or 1 for one in lead), channels, 41, 57
    pixels = np.random.default_rng(3).integers(0, 256, (math.prod(shape[:-3]), 41, 57, 4), dtype=np.uint8)
    values = torch.empty_strided(shape, layout.strides(shape), dtype=torch.uint8)
    if channels == 1:
        pixels[..., 1:] = pixels[..., :1]
    values.copy_(torch.from_numpy(pixels).permute(0, 3, 1, 2)[:, :channels].reshape(shape))
    box = (3, 2, 50, 37) if is_part else (0, 0, 57, 41)
    left, top, width, height = box
    given = add_lead(values[..., top : top + height, left : left + width], lead)
    for size in tensor_rule.SIZES:
        stage = {"box": box, "resize": size[::-1], "filter": filter}
        made = np.stack([tensor_rule.run_stage(one, stage, channels) for one in pixels])
        interpolation = sys.modules["torchvision.transforms"].InterpolationMode(mode) if is_v2 else mode
        try:
            expected = plain(given, list(size), interpolation=interpolation, antialias=True)
        except Exception:  # raised again where the function is called with the tensor itself
            return None
        if not np.array_equal(expected.reshape(-1, channels, *size).permute(0, 2, 3, 1).numpy(), made):
            return None
    return filter
