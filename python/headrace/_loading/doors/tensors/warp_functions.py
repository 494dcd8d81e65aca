"""torchvision's `affine` and `rotate` of byte tensors, v1's and v2's, recorded where they are native.

The positions come from a product of matrices, whose rounding depends on the size of the image, and the pixels from
`grid_sample`. Both are compared with torch's before the first image, and a few functions with torchvision's.
"""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from headrace._base.types import Function
from headrace._loading.doors.tensors.colour_functions import random_tensor
from headrace._loading.doors.tensors.deferred_tensor import recording_of
from headrace._loading.doors.tensors.memory_layout import Layout
from headrace._loading.doors.tensors.recorded_functions import record_pixels
from headrace._recipe.arithmetic import tensor_rule
from headrace.pillow.recording.lazy_core import Operation

if TYPE_CHECKING:
    from headrace._recipe.steps.byte_tensor_steps import Rounding

_FIRST_VERSION, _FUSED = 1, 2
_MOST_SIZES = 24  # of images whose roundings are looked for, which takes milliseconds each
_SIZES = ((41, 57), (32, 32))  # (height, width) of comparisons
_HALF_TURN = 3  # PIL.Image.Transpose.ROTATE_180
_GEOMETRY = "torchvision.transforms.v2.functional._geometry"


class Warp(NamedTuple):
    """What a function does to an image, of which it makes one of the same size.

    Attributes:
        matrix: as of `byte_tensor_steps.TensorWarp`; None: `operations` do it.
        filter: "nearest" or "bilinear".
        fill: as the function gets it.
        operations: flips.
    """

    matrix: Sequence[float] | None
    filter: str = "nearest"
    fill: Any = None
    operations: tuple[Operation, ...] = ()


def _affine_of_v1(size: tuple[int, int], matrix: Any, interpolation: Any, fill: Any) -> Warp | None:
    return Warp(matrix, interpolation, fill)


def _rotation_of_v1(size: tuple[int, int], matrix: Any, interpolation: Any, expand: Any, fill: Any) -> Warp | None:
    return None if expand is not False else Warp(matrix, interpolation, fill)


def _affine_of_v2(
    size: tuple[int, int],
    angle: Any,
    translate: Any,
    scale: Any,
    shear: Any,
    interpolation: Any,
    fill: Any,
    center: Any,
) -> Warp | None:
    geometry = sys.modules[_GEOMETRY]
    interpolation = geometry._check_interpolation(interpolation)
    angle, translate, shear, center = geometry._affine_parse_args(angle, translate, scale, shear, interpolation, center)
    moved = [float(one) for one in translate]
    matrix = geometry._get_inverse_affine_matrix(_center_of(size, center), angle, moved, scale, shear)
    return Warp(matrix, interpolation.value, fill)


def _rotation_of_v2(
    size: tuple[int, int], angle: Any, interpolation: Any, expand: Any, center: Any, fill: Any
) -> Warp | None:
    geometry, (height, width) = sys.modules[_GEOMETRY], size
    angle = angle % 360
    if center is None and angle == 0:
        return Warp(None)
    if center is None and angle == 180:
        return Warp(None, operations=(("transpose", _HALF_TURN),))
    if expand is not False or (center is None and height == width and angle in (90, 270)):
        return None
    interpolation = geometry._check_interpolation(interpolation)
    matrix = geometry._get_inverse_affine_matrix(_center_of(size, center), -angle, [0.0, 0.0], 1.0, [0.0, 0.0])
    return Warp(matrix, interpolation.value, fill)


def _center_of(size: tuple[int, int], center: Any) -> list[float]:
    """Returns (x, y), counted from the centre of an image."""
    return [0.0, 0.0] if center is None else [one - edge * 0.5 for one, edge in zip(center, size[::-1], strict=True)]


_MATRIX = [0.9396926, 0.3420201, 1.25, -0.3420201, 0.9396926, -3.5]
#: (name of v1's function and of v2's functional, version) -> what it does, given the size and the arguments; calls that
#: are compared, without filter and fill.
_WARPS: dict[tuple[str, int], tuple[Callable[..., Warp | None], list[dict[str, Any]]]] = {
    ("affine", 1): (_affine_of_v1, [{"matrix": _MATRIX}, {"matrix": [0.7, 0.0, 0.0, 0.1, 1.2, 4.0]}]),
    ("rotate", 1): (_rotation_of_v1, [{"matrix": _MATRIX, "expand": False}]),
    ("affine", 2): (
        _affine_of_v2,
        [
            {"angle": 20, "translate": [3, -2.5], "scale": 1.1, "shear": [5.0, -7.0], "center": None},
            {"angle": -70.5, "translate": (0, 0), "scale": 0.7, "shear": 9, "center": [4, 30.5]},
        ],
    ),
    ("rotate", 2): (
        _rotation_of_v2,
        [
            {"angle": 33.3, "expand": False, "center": None},
            {"angle": -14, "expand": False, "center": [3.0, 9]},
            {"angle": 360, "expand": False, "center": None},
            {"angle": 180, "expand": True, "center": None},
        ],
    ),
}
WARPS: tuple[str, ...] = ("affine", "rotate")


def recorder_of_warp(name: str, version: int) -> Callable[..., torch.Tensor | None]:
    """Returns a recorder, as `image_functions` has them, of v1's function or v2's kernel for tensors."""
    find_warp = _WARPS[name, version][0]

    def record(plain: Function, tensor: Any, *arguments: Any) -> torch.Tensor | None:
        recording = recording_of(tensor)
        assert recording is not None
        state = recording.state
        if state.dtype != torch.uint8 or state.steps or state.lead or state.layout is Layout.EXPANDED:
            return None
        size = state.height, state.width
        try:
            warp = find_warp(size, *arguments)
            operations = None if warp is None else _operations_of(warp, size, version, state.channels)
        except Exception:  # raised again by the function
            return None
        if warp is None or operations is None:
            return None
        filled = warp.fill is not None
        if not _is_native(plain, name, version, warp.filter, filled, state.layout, state.channels, any(recording.cut)):
            return None
        given = [list(one) if isinstance(one, list) else one for one in arguments]  # as they are now

        def replay(image: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = plain(image, *given)
            return made

        key = (name, version, warp.filter, filled, warp.matrix is None, len(warp.operations))
        return record_pixels(tensor, key, operations, size, replay)

    return record


def _operations_of(warp: Warp, size: tuple[int, int], version: int, channels: int) -> tuple[Operation, ...] | None:
    """Returns what a function does natively; None if it is torchvision's."""
    if warp.matrix is None:
        return warp.operations
    matrix = [float(one) for one in warp.matrix]
    if len(matrix) != 6 or not all(map(math.isfinite, matrix)) or warp.filter not in ("nearest", "bilinear"):
        return None
    fill = None
    if warp.fill is not None:
        values = list(warp.fill) if isinstance(warp.fill, (list, tuple)) else [warp.fill]
        if len(values) not in (1, channels) or not all(type(one) in (int, float) and 0 <= one <= 255 for one in values):
            return None
        fill = tuple(float(one) for one in values * (3 // len(values)))
    rounding = _rounding_of(size)
    if rounding is None:
        return None
    flags = _FIRST_VERSION * (version == 1) + _FUSED * rounding.samples
    effect = ("TensorWarp", (matrix, warp.filter == "bilinear", fill, flags, rounding.positions))
    return (("effect_of_tensors", effect, True),)


_roundings: dict[tuple[int, int], Rounding | None] = {}


def _rounding_of(size: tuple[int, int]) -> Rounding | None:
    """Returns how torch rounds for images of a size; None if that is not known, or there are too many sizes."""
    if size not in _roundings:
        if len(_roundings) >= _MOST_SIZES:
            return None
        _roundings[size] = tensor_rule.find_rounding(*size)
    return _roundings[size]


@functools.cache
def _is_native(
    plain: Function,
    name: str,
    version: int,
    filter: str,
    filled: bool,
    layout: Layout,
    channels: int,
    is_part: bool,
) -> bool:
    """Whether a function does what its operations do, for all calls that are compared."""
    find_warp, calls = _WARPS[name, version]
    random = np.random.default_rng(5)
    interpolation = filter if version == 1 else sys.modules["torchvision.transforms"].InterpolationMode(filter)
    fills = ([7.0] if version == 1 else 7, [3.5, 120, 250]) if filled else (None,)
    for size, call, fill in itertools.product(_SIZES, calls, fills):
        if isinstance(fill, list) and len(fill) not in (1, channels):
            continue
        named = {**call, "interpolation": interpolation, "fill": fill}
        warp = find_warp(size, **named)
        operations = None if warp is None else _operations_of(warp, size, version, channels)
        if operations is None:
            return False
        given, pixels = random_tensor(random, size, layout, channels, is_part)
        expected = plain(given, **named).permute(1, 2, 0).numpy()
        whole = size[::-1]
        stage: dict[str, Any] = {"box": (0, 0, *whole), "resize": whole, "made": whole}
        if warp is not None and warp.matrix is None:
            stage |= {"flip_horizontal": bool(operations), "flip_vertical": bool(operations)}
        else:
            stage["effects"] = [operations[0][1]]
        if not np.array_equal(expected, tensor_rule.run_stage(pixels, stage, channels)):
            return False
    return True
