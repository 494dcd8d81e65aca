"""Copies of the pixels of arrays and plain tensors, of which deferred tensors are made.

A program may change an array or a tensor at any time, so a deferred tensor has the bytes as they were. Copying them in
their order is quicker than what torch does instead: it copies them in another order, or resizes them by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from headrace._base.types import Array, Function
from headrace._loading.doors.tensors.deferred_tensor import defer, is_deferring_possible
from headrace._loading.doors.tensors.memory_layout import FEWEST, Cut, Layout
from headrace._loading.doors.tensors.recording import Origin, Recording, State, table_of
from headrace._loading.doors.tensors.resize_functions import record_resize
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

    def describe(self, layout: Layout, cut: Cut = Cut()) -> Recording:  # noqa: B008 - a tuple
        """Returns what a tensor (3, H, W) of these pixels stands for.

        Args:
            layout, cut: of the tensor.
        """
        height, width, _ = self.samples.shape
        state = State(CHANNELS, height, width, layout, torch.uint8, (), table_of(CHANNELS, ()))
        pixels = DecodedPixels(self.samples, "RGB", self._counts, counted=True)

        def make() -> torch.Tensor:
            values = torch.from_numpy(self.samples.copy()).permute(2, 0, 1)
            return values.contiguous() if layout is Layout.PLANAR else values

        recording = Recording(Origin(pixels, make), state)
        recording.cut = cut
        return recording


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
    return defer(snapshot.describe(Layout.PLANAR))


def record_resize_of_plain(plain: Function, tensor: Any, size: Any, *options: Any) -> torch.Tensor | None:
    """A recorder, as `image_functions` has them, of the resize of a tensor with values: (3, H, W), bytes, with the
    colours of a pixel next to each other in memory, as ``torch.from_numpy(array).permute(2, 0, 1)``."""
    if not is_plain_image(tensor):
        return None
    counts = find_counts()
    if counts is None:
        return None
    _, height, width = tensor.shape
    _, row, _ = tensor.stride()
    snapshot = Snapshot(height, width, counts)
    snapshot.samples[...] = tensor.permute(1, 2, 0).numpy()
    whole = defer(snapshot.describe(Layout.CHANNELS_LAST, Cut(width=row != CHANNELS * width)))
    made = record_resize(plain, whole, size, *options)
    return tensor if made is whole else made


def is_plain_image(tensor: object) -> bool:
    """Whether these are bytes on the CPU whose resize may be recorded."""
    if type(tensor) is not torch.Tensor or tensor.dtype != torch.uint8 or tensor.dim() != 3:
        return False
    channels, height, width = tensor.shape
    if channels != CHANNELS or not is_size_known(height, width) or tensor.layout != torch.strided:
        return False
    channel, row, column = tensor.stride()
    is_by_pixel = channel == 1 and column == CHANNELS and row >= CHANNELS * width
    is_named = any(getattr(tensor, "names", ()))  # torch before 2.13
    return is_by_pixel and tensor.device.type == "cpu" and not is_named
