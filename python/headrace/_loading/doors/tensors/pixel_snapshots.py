"""Copies of the pixels of arrays, of which deferred tensors are made.

A program may change an array at any time, so a deferred tensor has the bytes as they were. Copying them in their order
is quicker than what torch does instead: it copies them in another order.
"""

from __future__ import annotations

import numpy as np
import torch

from headrace._base.types import Array
from headrace._loading.doors.tensors.deferred_tensor import defer, is_deferring_possible
from headrace._loading.doors.tensors.memory_layout import FEWEST, Layout
from headrace._loading.doors.tensors.recording import Origin, Recording, State, table_of
from headrace._loading.doors.type_checks import checks
from headrace.pillow.files.decoded_pixels import DecodedPixels
from headrace.pillow.memory import pixel_memory
from headrace.pillow.recording.image_counts import ImageCounts, in_force
from headrace.pillow.recording.lazy_core import MOST_PIXELS

_CHANNELS = 3
#: Pixels of an image: torch is quicker with a smaller one.
LEAST = 1 << 16


def defer_array(array: Array) -> torch.Tensor | None:
    """Returns a deferred tensor (3, H, W), contiguous, of the bytes that an array (H, W, 3) has now; None for others.

    Args:
        array: of NumPy's own class. `torch.from_numpy` accepts it.
    """
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != _CHANNELS:
        return None
    height, width = array.shape[:2]
    if min(height, width) < FEWEST or not LEAST <= height * width <= MOST_PIXELS or min(array.strides) < 0:
        return None
    counts = find_counts()
    if counts is None:
        return None
    samples = pixel_memory.empty_for_a_while(array.shape, array.dtype)
    samples[...] = array

    def make() -> torch.Tensor:
        return torch.from_numpy(samples).permute(2, 0, 1).contiguous()

    pixels = DecodedPixels(samples, "RGB", counts, counted=True)  # by the door that gave the array
    state = State(_CHANNELS, height, width, Layout.PLANAR, torch.uint8, (), table_of(_CHANNELS, ()))
    return defer(Recording(Origin(pixels, make), state))


def find_counts() -> ImageCounts | None:
    """Returns the counts in force; None where tensors are not deferred now."""
    counts = in_force.here()
    is_possible = counts is not None and is_deferring_possible() and torch._C._get_tracing_state() is None
    return counts if is_possible and checks.look() is None else None
