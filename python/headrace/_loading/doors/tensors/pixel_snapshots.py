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

CHANNELS = 3
#: Pixels of an image: torch is quicker with a smaller one.
LEAST = 1 << 16


class Snapshot:
    """The pixels of an image, to be copied.

    Args:
        height, width: of the image.
        counts: those in force; the image is not counted, since its own door has counted it.

    Attributes:
        samples: uint8 (H, W, 3), to be filled before `describe`: other threads may make the tensor then.
    """

    def __init__(self, height: int, width: int, counts: ImageCounts) -> None:
        self.samples: Array = pixel_memory.empty_for_a_while((height, width, CHANNELS), np.dtype(np.uint8))
        self._counts = counts

    def describe(self) -> Recording:
        """Returns what a contiguous tensor (3, H, W) of these pixels stands for."""
        height, width, _ = self.samples.shape
        state = State(CHANNELS, height, width, Layout.PLANAR, torch.uint8, (), table_of(CHANNELS, ()))
        pixels = DecodedPixels(self.samples, "RGB", self._counts, counted=True)

        def make() -> torch.Tensor:
            return torch.from_numpy(self.samples).permute(2, 0, 1).contiguous()

        return Recording(Origin(pixels, make), state)


def is_size_known(height: int, width: int) -> bool:
    """Whether an image is large enough, and not too large."""
    return min(height, width) >= FEWEST and LEAST <= height * width <= MOST_PIXELS


def find_counts() -> ImageCounts | None:
    """Returns the counts in force; None where tensors are not deferred now."""
    counts = in_force.here()
    is_possible = counts is not None and is_deferring_possible() and torch._C._get_tracing_state() is None
    return counts if is_possible and checks.look() is None else None


def defer_array(array: Array) -> torch.Tensor | None:
    """Returns a deferred tensor (3, H, W), contiguous, of the bytes that an array (H, W, 3) has now; None for others.

    Args:
        array: of NumPy's own class. `torch.from_numpy` accepts it.
    """
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != CHANNELS or not is_size_known(*array.shape[:2]):
        return None
    counts = find_counts() if min(array.strides) >= 0 else None  # torch refuses others
    if counts is None:
        return None
    snapshot = Snapshot(array.shape[0], array.shape[1], counts)
    snapshot.samples[...] = array
    return defer(snapshot.describe())
