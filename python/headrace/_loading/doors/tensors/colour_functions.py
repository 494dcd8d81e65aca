"""torchvision's functions that change the colours of a byte tensor, v1's and v2's, recorded where they are native.

A function is native once a comparison with the installed one has shown it, for tensors of the same order in memory.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from headrace._base.types import Function
from headrace._loading.doors.tensors.deferred_tensor import recording_of
from headrace._loading.doors.tensors.memory_layout import Layout
from headrace._loading.doors.tensors.recorded_functions import record_pixels
from headrace._recipe.arithmetic import tensor_rule
from headrace.pillow.recording.lazy_core import Operation

#: What an effect is natively: its name, its parameter or factor and, for one on tensors, the flags of effect.h.
Effect = tuple[Any, ...]
_FIRST_VERSION, _FUSED, _ONE_CHANNEL = 1, 2, 4
_MOST_FACTOR = 1e5  # larger ones are torchvision's
_MOST_SUMMED = 65793  # pixels whose bytes a float32 sum holds exactly: 2^24 / 255
_LARGE = (264, 256)  # (height, width) of an image of more
_SIZES = [(41, 57), (32, 48), (5, 64), (17, 19)]  # (height, width) of comparisons, with and without odd last elements


class Colour(NamedTuple):
    """A function of torchvision.

    Attributes:
        effect: returns what it is natively, given (parameter, version, channels, whether torch rounds sums once); None
            if it is torchvision's, to refuse the parameter or to return the tensor itself.
        compared: parameters that are compared; (None,): it has none.
        fits: whether a tensor of (channels, height, width) is native, given the version.
    """

    effect: Callable[[Any, int, int, bool], Effect | None]
    compared: tuple[Any, ...]
    fits: Callable[[tuple[int, int, int], int], bool] = lambda shape, version: True


def _of_tensors(name: str, is_allowed: Callable[[Any], bool], *, gray: bool) -> Callable[..., Effect | None]:
    """An effect on tensors with a factor; `gray`: of one channel, too."""

    def effect(factor: Any, version: int, channels: int, once: bool) -> Effect | None:
        if not is_allowed(factor) or (channels == 1 and not gray):
            return None
        flags = _FIRST_VERSION * (version == 1) + _FUSED * (once and version == 2) + _ONE_CHANNEL * (channels == 1)
        return name, float(factor), flags, tensor_rule.find_lanes_of_sums() or 0

    return effect


def _of_bytes(name: str, is_allowed: Callable[[Any], bool]) -> Callable[..., Effect | None]:
    """An effect that changes a tensor as it changes Pillow's image."""

    def effect(parameter: Any, version: int, channels: int, once: bool) -> Effect | None:
        return (name, float(parameter or 0)) if is_allowed(parameter) else None

    return effect


def _is_factor(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= _MOST_FACTOR


def _is_turn(value: Any) -> bool:
    return type(value) in (int, float) and -0.5 <= value <= 0.5 and value != 0


def _is_threshold(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 255


def _fits_contrast(shape: tuple[int, int, int], version: int) -> bool:
    pixels, lanes = shape[1] * shape[2], tensor_rule.find_lanes_of_sums()
    if pixels > _MOST_SUMMED and (lanes is None or pixels > 4 * lanes * _MOST_SUMMED or torch.get_num_threads() > 1):
        return False
    return version == 1 or tensor_rule.is_rounding_uniform(math.prod(shape))


def _order_of_channels(order: Any, version: int, channels: int, once: bool) -> Effect | None:
    if not isinstance(order, (list, tuple)) or channels != 3 or sorted(order) != [0, 1, 2]:
        return None
    return "PermuteChannels", float(order[0] | order[1] << 2 | order[2] << 4)


_FACTORS = (0.0, 0.3, 0.875, 1.0, 1.4, 2.5)
#: Name of v1's function, and of v2's functional -> what it is.
COLOURS: dict[str, Colour] = {
    "adjust_brightness": Colour(_of_bytes("Brightness", _is_factor), _FACTORS),
    "adjust_contrast": Colour(_of_tensors("TensorContrast", _is_factor, gray=True), _FACTORS, _fits_contrast),
    "adjust_saturation": Colour(_of_tensors("TensorSaturation", _is_factor, gray=False), _FACTORS),
    "adjust_hue": Colour(_of_tensors("TensorHue", _is_turn, gray=False), (-0.5, -0.2, 0.01, 0.1, 0.37, 0.5)),
    "adjust_sharpness": Colour(_of_tensors("TensorSharpness", _is_factor, gray=True), _FACTORS),
    "autocontrast": Colour(
        lambda value, version, channels, once: ("TensorAutocontrast", 0.0, _FIRST_VERSION * (version == 1)), (None,)
    ),
    "equalize": Colour(_of_bytes("Equalize", lambda value: value is None), (None,)),
    "invert": Colour(_of_bytes("Invert", lambda value: value is None), (None,)),
    "posterize": Colour(_of_bytes("Posterize", lambda value: type(value) is int and 1 <= value <= 7), (1, 3, 4, 7)),
    "solarize": Colour(
        lambda value, *_: ("Solarize", float(np.float32(value))) if _is_threshold(value) else None,
        (0, 1, 100.5, 128, 254.9, 255),
    ),
    "permute_channels": Colour(_order_of_channels, tuple(map(list, itertools.permutations(range(3))))),
}


def recorder_of(name: str, version: int) -> Callable[..., torch.Tensor | None]:
    """Returns a recorder, as `image_functions` has them, of v1's function or v2's kernel for tensors."""
    colour = COLOURS[name]

    def record(plain: Function, tensor: Any, value: Any = None) -> torch.Tensor | None:
        recording = recording_of(tensor)
        assert recording is not None
        state = recording.state
        once = tensor_rule.are_sums_rounded_once()
        if state.dtype != torch.uint8 or state.steps or state.lead or once is None:
            return None
        if state.layout is Layout.EXPANDED:
            return None
        effect = colour.effect(value, version, state.channels, once)
        shape = state.channels, state.height, state.width
        if effect is None or not colour.fits(shape, version) or min(shape[1:]) < 3:
            return None
        if not _is_native(plain, name, version, state.layout, state.channels, any(recording.cut)):
            return None
        given = () if value is None else (list(value) if isinstance(value, (list, tuple)) else value,)

        def replay(image: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = plain(image, *given)
            return made

        operation: Operation = ("effect_of_tensors", effect)
        return record_pixels(tensor, (name, version), (operation,), shape[1:], replay)

    return record


def record_gray(version: int, plain: Function, tensor: Any, channels: Any) -> torch.Tensor | None:
    """Records `rgb_to_grayscale` of three channels, to one, or to three with the same memory."""
    recording = recording_of(tensor)
    assert recording is not None
    state, once = recording.state, tensor_rule.are_sums_rounded_once()
    if state.dtype != torch.uint8 or state.steps or state.lead or state.channels != 3 or once is None:
        return None
    if state.layout is Layout.EXPANDED or type(channels) is not int or channels not in (1, 3):
        return None
    if not _is_gray_native(plain, version, state.layout, any(recording.cut)):
        return None

    def replay(image: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = plain(image, channels)
        return made

    name = "effect_of_tensors" if channels == 3 else "gray_of_tensors"
    operation: Operation = (name, _effect_of_gray(version, once))
    size = state.height, state.width
    return record_pixels(tensor, ("gray", version, channels), (operation,), size, replay, channels=channels)


def _effect_of_gray(version: int, once: bool) -> Effect:
    """Saturation 0 is gray: nothing of the colours, and all of the gray value, which has no fraction."""
    return "TensorSaturation", 0.0, _FIRST_VERSION * (version == 1) + _FUSED * (once and version == 2)


@functools.cache
def _is_gray_native(plain: Function, version: int, layout: Layout, is_part: bool) -> bool:
    random, once = np.random.default_rng(5), bool(tensor_rule.are_sums_rounded_once())
    for size in _SIZES:
        given, pixels = random_tensor(random, size, layout, 3, is_part)
        whole = size[::-1]
        stage = {"box": (0, 0, *whole), "resize": whole, "made": whole, "effects": [_effect_of_gray(version, once)]}
        made = tensor_rule.run_stage(pixels, stage, 3)
        for channels in (1, 3):
            expected = plain(given, channels).permute(1, 2, 0).numpy()
            if not np.array_equal(expected, made[..., :channels]):
                return False
    return True


@functools.cache
def _is_native(plain: Function, name: str, version: int, layout: Layout, channels: int, is_part: bool) -> bool:
    """Whether a function does what its effect does, for all parameters that are compared."""
    colour, random = COLOURS[name], np.random.default_rng(5)
    once = tensor_rule.are_sums_rounded_once()
    sizes = [*_SIZES, _LARGE] if name == "adjust_contrast" else _SIZES
    for size, value in itertools.product(sizes, colour.compared):
        effect = colour.effect(value, version, channels, bool(once))
        if effect is None or not colour.fits((channels, *size), version):
            continue
        given, pixels = random_tensor(random, size, layout, channels, is_part)
        expected = plain(given, *(() if value is None else (value,)))
        whole = size[::-1]
        stage = {"box": (0, 0, *whole), "resize": whole, "made": whole, "effects": [effect]}
        if not np.array_equal(expected.permute(1, 2, 0).numpy(), tensor_rule.run_stage(pixels, stage, channels)):
            return False
    return True


def random_tensor(
    random: np.random.Generator, size: tuple[int, int], layout: Layout, channels: int, is_part: bool
) -> tuple[torch.Tensor, Any]:
    """Returns a random byte tensor (C, H, W), maybe a part of a larger one, and the same as an RGBX image (H, W, 4)."""
    edge = 2 if is_part else 0
    height, width = size[0] + 2 * edge, size[1] + 2 * edge
    shape = channels, height, width
    whole = torch.empty_strided(shape, layout.strides(shape), dtype=torch.uint8)
    whole.copy_(torch.from_numpy(random.integers(20, 231, shape, dtype=np.uint8)))
    given = whole[:, edge : height - edge, edge : width - edge]
    pixels = np.empty((*size, 4), np.uint8)
    pixels[..., :3] = given.permute(1, 2, 0).numpy()
    return given, pixels
