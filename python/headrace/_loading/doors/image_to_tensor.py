"""torchvision's `pil_to_tensor`, and with it PILToTensor and ToImage, of a deferred image: a deferred tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from headrace._base.types import Function
from headrace._loading.doors.code_replacement import CodeReplacement
from headrace._loading.doors.tensors.deferred_tensor import defer, is_deferring_possible
from headrace._loading.doors.tensors.memory_layout import FEWEST, Layout
from headrace._loading.doors.tensors.recording import Origin, Recording, State, table_of
from headrace._loading.doors.type_checks import checks
from headrace.pillow.deferred_image import is_deferred, recorded_bytes
from headrace.pillow.recording.image_counts import in_force


def _defer_tensor(plain: Function) -> Function:
    @functools.wraps(plain)
    def pil_to_tensor(pic: object) -> object:
        made = defer_tensor(pic, Layout.CHANNELS_LAST, plain)
        return plain(pic) if made is None else made

    return pil_to_tensor


def defer_tensor(image: object, layout: Layout, make: Callable[[Any], torch.Tensor]) -> torch.Tensor | None:
    """Returns the deferred tensor of a deferred image; None if the image is none.

    Args:
        layout: of the tensor's bytes, (C, H, W).
        make: makes the tensor of an image.
    """
    if not is_deferred(image) or in_force.here() is None or not is_deferring_possible():
        return None
    lazy = recorded_bytes(image)
    recorded = None if lazy is None else lazy.get_recording()
    if recorded is None or min(image.size) < FEWEST or checks.look() is not None:
        return None
    pixels, operations = recorded
    width, height = image.size
    copy = image.copy()  # what the program writes into the image later is not the tensor's
    state = State(len(image.mode), height, width, layout, torch.uint8, operations, table_of(len(image.mode), ()))
    return defer(Recording(Origin(pixels, lambda: make(copy)), state))


STEPS: CodeReplacement = CodeReplacement("torchvision.transforms.functional", "pil_to_tensor", _defer_tensor)
