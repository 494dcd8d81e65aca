"""torch's antialiased resizes of floats that bytes stand for, as `ToDtype` and `to_tensor` make them of an image.

Their results have no table any more, so they are made at once: of the bytes, in one pass. `torchvision`'s functions and
`torch.nn.functional.interpolate` are compared with the kernels before the first resize.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import torch

from headrace._base.native import core
from headrace._base.types import Array
from headrace._loading.doors.tensors.deferred_tensor import (
    DeferredTensor,
    handlers,
    is_deferring_possible,
    recording_of,
)
from headrace._loading.doors.tensors.memory_layout import FEWEST, Layout, probe_layout
from headrace._loading.doors.tensors.recording import Recording
from headrace._recipe.arithmetic import tensor_rule
from headrace.pillow.files.decoded_pixels import DecodedPixels
from headrace.pillow.files.pixels import BYTES
from headrace.pillow.memory import pixel_memory
from headrace.pillow.recording.lazy_core import MOST_PIXELS

_CHANNELS = 3
FILTERS = ("bilinear", "bicubic")
#: Called with a tensor and a size (height, width).
Resize = Callable[[torch.Tensor, tuple[int, int]], torch.Tensor]


def resize_values(
    recording: Recording, size: tuple[int, int], mode: str, resize: Resize, key: Hashable
) -> torch.Tensor | None:
    """Returns what an antialiased resize makes of a deferred tensor; None if it is left to torch.

    Args:
        size: (height, width) of the result.
        mode: bilinear or bicubic.
        resize: the function. It has no effect but its result.
        key: equal for equal functions.
    """
    state = recording.state
    height, width = size
    if state.dtype != torch.float32 or state.channels != _CHANNELS or state.finish is not None or state.frames:
        return None
    if state.layout is Layout.EXPANDED or min(size) < FEWEST or height * width > MOST_PIXELS:
        return None
    if size == (state.height, state.width) or not is_deferring_possible():
        return None
    kind = _find_kind(resize, key, mode, state.layout, any(recording.cut), bool(state.lead))
    found = probe_layout(
        (key, mode),
        lambda small: resize(small, size),
        state.layout,
        _CHANNELS,
        state.dtype,
        recording.cut,
        recording.lead,
    )
    if kind is None or found is None or found[0] is Layout.EXPANDED:
        return None
    return _make(recording, size, mode, kind == "fused", found[0])


def _make(recording: Recording, size: tuple[int, int], mode: str, fused: bool, layout: Layout) -> torch.Tensor | None:
    state = recording.state
    pixels = _find_pixels(recording)
    if pixels is None:
        return None
    planar = layout is Layout.PLANAR
    made = pixel_memory.empty_for_a_while((_CHANNELS, *size) if planar else (*size, _CHANNELS), np.dtype(np.float32))
    core.resize_values(pixels, state.table, mode == "bicubic", fused, made, layout.value)
    values = torch.from_numpy(made if planar else made.transpose(2, 0, 1))
    whole = *state.lead, _CHANNELS, *size
    return values.as_strided(whole, layout.strides(whole)) if state.lead else values


def _find_pixels(recording: Recording) -> Array | None:
    """Returns the pixels (H, W, 3 or 4) that the values are made of; None if they cannot be made natively."""
    state, pixels = recording.state, recording.origin.pixels
    if not state.operations and isinstance(pixels, DecodedPixels):
        return pixels.get_colours()
    out = pixel_memory.empty_for_a_while((state.height, state.width, _CHANNELS), np.dtype(np.uint8))
    return pixels.map_pixels(state.operations, BYTES, Layout.CHANNELS_LAST.value, out)


_kinds: dict[Hashable, str | None] = {}


def _find_kind(resize: Resize, key: Hashable, mode: str, layout: Layout, is_part: bool, is_batch: bool) -> str | None:
    """Returns which of the kernels does what a function does, "float" or "fused"; None if none does."""
    whole = key, mode, layout, is_part, is_batch
    if whole not in _kinds:
        kind = tensor_rule.kind_of_resize(mode, in_bytes=False)
        is_equal = kind is not None and _compare(resize, mode, kind == "fused", layout, is_part, is_batch)
        _kinds[whole] = kind if is_equal else None
    return _kinds[whole]


def _compare(resize: Resize, mode: str, fused: bool, layout: Layout, is_part: bool, is_batch: bool) -> bool:
    random = np.random.default_rng(6)
    table = random.normal(0, 1, (_CHANNELS, 256)).astype(np.float32)
    pixels = random.integers(0, 256, (41, 57, _CHANNELS), dtype=np.uint8)
    values = torch.empty_strided((_CHANNELS, 41, 57), layout.strides((_CHANNELS, 41, 57)))
    values.copy_(torch.from_numpy(np.stack([table[c][pixels[..., c]] for c in range(_CHANNELS)])))
    left, top, width, height = (3, 2, 50, 37) if is_part else (0, 0, 57, 41)
    given = values[:, top : top + height, left : left + width]
    part = np.ascontiguousarray(pixels[top : top + height, left : left + width])
    for size in tensor_rule.SIZES:
        made = np.empty((_CHANNELS, *size), np.float32)
        core.resize_values(part, table, mode == "bicubic", fused, made)
        expected = resize(given.unsqueeze(0) if is_batch else given, (size[0], size[1]))
        if not np.array_equal(expected.reshape(_CHANNELS, *size).numpy(), made):
            return False
    return True


def _interpolate(func: Any, args: Any, kwargs: Any) -> Any:
    recording = recording_of(args[0]) if args else None
    if recording is None or type(args[0]) is not DeferredTensor or not recording.state.lead:
        return NotImplemented
    made = _interpolate_batch(recording, *args[1:], **kwargs)
    return NotImplemented if made is None else made


def _interpolate_batch(
    recording: Recording,
    size: Any = None,
    scale_factor: Any = None,
    mode: Any = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: Any = False,
) -> torch.Tensor | None:
    edges = [size, size] if type(size) is int else list(size) if isinstance(size, (list, tuple)) else []
    if len(edges) != 2 or not all(type(one) is int for one in edges) or mode not in FILTERS or antialias is not True:
        return None
    if scale_factor is not None or recompute_scale_factor is not None or align_corners not in (None, False):
        return None

    def resize(values: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
        return torch.nn.functional.interpolate(values, size, mode=mode, antialias=True)

    return resize_values(recording, (edges[0], edges[1]), mode, resize, "interpolate")


handlers[torch.nn.functional.interpolate] = _interpolate
