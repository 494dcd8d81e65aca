"""torchvision's functions that make a tensor of an image or an array: `pil_to_tensor`, `to_tensor` and `to_image`, and
with them PILToTensor, ToTensor and ToImage. Of a deferred image, and of an array of bytes, they make a deferred tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from headrace._base.types import Array, Function
from headrace._loading.doors.code_replacement import CodeReplacement
from headrace._loading.doors.tensors.deferred_tensor import defer, is_deferring_possible, kind_for, recording_of
from headrace._loading.doors.tensors.memory_layout import FEWEST, Layout
from headrace._loading.doors.tensors.pixel_snapshots import defer_array
from headrace._loading.doors.tensors.recorded_functions import record_values
from headrace._loading.doors.tensors.recording import Origin, Recording, State, ValueStep, table_of
from headrace._loading.doors.type_checks import checks
from headrace.pillow.deferred_image import is_deferred, recorded_bytes
from headrace.pillow.recording.image_counts import in_force
from headrace.pillow.value_tables import ValueTable


def _pil_to_tensor(plain: Function) -> Function:
    @functools.wraps(plain)
    def pil_to_tensor(pic: object) -> object:
        made = defer_tensor(pic, Layout.CHANNELS_LAST, plain)
        return plain(pic) if made is None else made

    return pil_to_tensor


def _to_image(plain: Function) -> Function:
    @functools.wraps(plain)
    def to_image(inpt: object) -> object:
        made = _defer_copy(inpt, plain) if type(inpt) is np.ndarray else None
        return plain(inpt) if made is None else plain.__globals__["tv_tensors"].Image(made)

    return to_image


def _to_tensor(plain: Function) -> Function:
    @functools.wraps(plain)
    def to_tensor(pic: object) -> object:
        if type(pic) is np.ndarray:
            made = _defer_copy(pic, plain)
        else:
            is_gray = getattr(pic, "mode", None) == "L"  # one channel is contiguous as it is, with other strides
            made = defer_tensor(pic, Layout.CHANNELS_LAST if is_gray else Layout.PLANAR, _bytes_of)
        scaled = None if made is None else record_values(made, ValueStep("to_tensor", _scale))
        return plain(pic) if scaled is None else scaled

    return to_tensor


def _scale(values: torch.Tensor) -> torch.Tensor:
    return values.to(dtype=torch.get_default_dtype()).div(255)


def _bytes_of(image: Any) -> torch.Tensor:
    values: Array = np.array(image)
    return torch.from_numpy(values.reshape(*image.size[::-1], -1)).permute(2, 0, 1).contiguous()


def _defer_copy(array: Array, plain: Function) -> torch.Tensor | None:
    """Returns the deferred tensor of an array's bytes, if torchvision would copy these."""
    if array.ndim != 3 or array.transpose(2, 0, 1).flags.c_contiguous:
        return None
    made = defer_array(array)
    if made is not None and not array.flags.writeable:
        plain(array[:1, :1])  # torch's warning
    return made


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


def defer_values(image: Any, values: ValueTable) -> torch.Tensor | None:
    """Returns the deferred tensor of a deferred image whose bytes a table maps; None if there is none for it.

    Args:
        values: what some transforms make of the image.
    """
    if values.marked or kind_for(values.kind) is None:
        return None
    bytes_of_image = defer_tensor(image, Layout(values.layout), _bytes_of)
    recording = None if bytes_of_image is None else recording_of(bytes_of_image)
    if recording is None:
        return None
    step, state, origin = _step_of(values), recording.state, recording.origin
    dtype = torch.from_numpy(values.values).dtype
    state = state._replace(dtype=dtype, table=values.values, steps=(step,))

    def make() -> torch.Tensor:
        mapped = step.call(origin.make())
        return mapped if state.layout is Layout.PLANAR else mapped.permute(1, 2, 0).contiguous().permute(2, 0, 1)

    return defer(Recording(Origin(origin.pixels, make), state), values.kind)


def _step_of(values: ValueTable) -> ValueStep:
    table = torch.from_numpy(values.values)

    def look_up(image: torch.Tensor) -> torch.Tensor:
        return torch.stack([table[channel][plane.long()] for channel, plane in enumerate(image)])

    return ValueStep((values.values.dtype.str, values.values.tobytes()), look_up)


_V1, _V2 = "torchvision.transforms.functional", "torchvision.transforms.v2.functional._type_conversion"
STEPS: CodeReplacement = CodeReplacement(_V1, "pil_to_tensor", _pil_to_tensor)
#: Those that get arrays, too.
STEPS_OF_ARRAYS: tuple[CodeReplacement, ...] = (
    CodeReplacement(_V1, "to_tensor", _to_tensor),
    CodeReplacement(_V2, "to_image", _to_image),
)
