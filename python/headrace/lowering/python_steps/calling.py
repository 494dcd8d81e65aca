"""Lowers what has no native twin to a call of Python, where it stands."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from PIL import Image

import headrace.recipe.steps as S
from headrace.lowering.builder import Builder, LoweringError, shown
from headrace.lowering.python_steps.metadata import carried
from headrace.lowering.python_steps.reach import Reach
from headrace.randomness.own_generators import Reseeded, reseeded
from headrace.randomness.python_randomness import FixedRand, draws_process_wide, sample_randomness
from headrace.recipe.byte_table import Pointwise, table
from headrace.recipe.calls import CallError, CallFunction, OnBytes, OnImage, Rest, described
from headrace.recipe.recipe import DTYPES, Column, Recipe


def call(builder: Builder, transform: Any, why: str) -> str:
    """Appends a call of `transform`, of which a copy is tried on made-up images to see what it takes and makes.

    Args:
        why: it is not native.

    Raises:
        LoweringError: it cannot be tried, or makes what has no place in a batch.
    """
    reach = Reach(transform)
    if reach.shares:
        raise LoweringError(
            f"{shown(transform)} may change an object that it shares with other code, of which each of torch's workers "
            "has a copy; make it an attribute of a transform of a class"
        )
    if builder.rest is not None:
        builder.rest.append(transform)
    elif not _goes_on(builder, transform, reach):
        _begin_rest(builder, transform)
    return f"called where it stands: {why}"


def _goes_on(builder: Builder, transform: Any, reach: Reach) -> bool:
    """Appends a call that gives an image back; False where it gives something else."""
    step = reseeded(transform)
    if builder.values is None:
        function: OnImage | OnBytes = OnImage(step, builder.channels)
    elif builder.holds_bytes:
        function = OnBytes(tuple(builder.pointwise), step, builder.channels)
    else:
        return False
    metadata = _metadata(builder, [transform], [reach])
    tried = _try(builder, function)
    if tried is None:
        return False
    made, draws = tried
    sizes = tuple(dict.fromkeys((image.height, image.width) for image in made))
    size = sizes[0] if len(sizes) == 1 else None
    draws |= reach.draws or _is_shared(step)
    builder.add(S.Call(_name(transform), builder.draw(Column()), draws, metadata, False, size, function))
    builder.tried = len(builder.steps), sizes
    return True


def _begin_rest(builder: Builder, transform: Any) -> None:
    if builder.written:
        raise LoweringError(f"{shown(transform)} comes after RandomErasing, and has no native twin")
    builder.rest = [transform]


def finish(builder: Builder, dtype: torch.dtype | None) -> Recipe:
    """The recipe whose last call finishes the samples, `dtype` the last conversion.

    Raises:
        LoweringError: what it makes cannot be stacked to a batch.
    """
    assert builder.rest is not None
    steps = tuple(map(reseeded, builder.rest)) + ((_Cast(dtype),) if dtype is not None else ())
    before = None if builder.values is None else tuple(builder.pointwise)
    rest = Rest(before, None, steps, builder.channels)
    if before is not None and builder.values is not None and builder.values.dtype in DTYPES:
        lut = table(Pointwise(before, None), builder.channels)
        rest = replace(rest, lut=lut, like=builder.values)
    reaches = [Reach(transform) for transform in builder.rest]
    metadata = before is None and _metadata(builder, builder.rest, reaches)
    tried = _try(builder, rest)
    if tried is None:
        raise LoweringError("the transforms do not return a tensor")
    made, draws = tried
    one = made[0]
    if one.ndim != 3:
        raise LoweringError(f"the transforms return {described(one)}, not one image (C, H, W)")
    if any((tensor.shape, tensor.dtype) != (one.shape, one.dtype) for tensor in made):
        raise LoweringError(f"the transforms return tensors of several shapes, such as {described(one)}")
    if one.device.type != "cpu" or one.layout != torch.strided:
        raise LoweringError(f"the transforms return {one.layout} tensors on {one.device}, not in this machine's memory")
    if one.dtype not in DTYPES:
        raise LoweringError(f"the transforms return {one.dtype}, which the native path does not write")
    channels, height, width = one.shape
    rest = replace(rest, shape=(channels, height, width), dtype=one.dtype)
    draws |= any(reach.draws for reach in reaches) or any(map(_is_shared, steps))
    name = ", ".join(_name(transform) for transform in steps)
    builder.add(S.Call(name, builder.draw(Column()), draws, metadata, True, (height, width), rest))
    lut = torch.zeros((channels, 256), dtype=one.dtype, device="cpu")
    return builder.recipe((channels, height, width), Pointwise((), None), lut, type(one))


def _metadata(builder: Builder, transforms: list[Any], reaches: list[Reach]) -> bool:
    """Whether a call's images carry the metadata of their files.

    Raises:
        LoweringError: they may or may not, and a transform may look at it.
    """
    if builder.values is not None:
        return False
    known = carried(builder.steps)
    looking = next((one for one, reach in zip(transforms, reaches, strict=True) if reach.looks), None)
    if known is None and looking is not None:
        raise LoweringError(
            f"{shown(looking)} may look at metadata of the image, such as its EXIF orientation, which the steps before "
            "it keep in some images and not in others; put it first"
        )
    return bool(known)


def _try(builder: Builder, function: CallFunction) -> tuple[list[Any], bool] | None:
    """What a copy of the function makes of made-up images, and whether it was seen to draw from the process's
    generators; None where what it makes is of another kind."""
    try:
        function = copy.deepcopy(function)
    except Exception as error:
        raise LoweringError(
            f"{shown(builder.current)} cannot be copied, as each thread would need it to be: {error}"
        ) from error
    made: list[Any] = []
    draws = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for (height, width), uniform in itertools.product(builder.trial_sizes, (0.25, 0.75)):
            image = made_up_image(height, width, builder.channels)
            try:
                draws |= draws_process_wide(partial(_append_made, made, function, image, uniform))
            except CallError:
                return None
            except Exception as error:
                raise LoweringError(
                    f"{shown(builder.current)} raised {type(error).__name__} on a made-up image of "
                    f"{width} x {height} pixels: {error}"
                ) from error
        image = made_up_image(*builder.trial_sizes[0], builder.channels)
        draws |= _rarely_draws_process_wide(lambda: function.on_image(image.copy()))
    return made, draws


def _append_made(made: list[Any], function: CallFunction, image: Image.Image, uniform: float) -> None:
    with sample_randomness(uniform):
        made.append(function.on_image(image))


def _rarely_draws_process_wide(function: Callable[[], Any]) -> bool:
    """The same of what is only done where ``torch.rand`` gives a small or a large number, as in RandomApply."""
    found = False
    for number in (0.0, 1.0 - 2.0**-24):
        # What it raises for a number that may never come is its own business.
        with suppress(Exception), FixedRand(number):
            found |= draws_process_wide(function)
    return found


def _is_shared(transform: Any) -> bool:
    return isinstance(transform, Reseeded) and transform.shared


def made_up_image(height: int, width: int, channels: int) -> Image.Image:
    """Noise, always the same."""
    noise = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    image = Image.fromarray(noise)
    return image if channels == 3 else image.convert("L")


class _Cast:
    """The loader's last conversion."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self.dtype)

    def __repr__(self) -> str:
        return f"to({self.dtype})"


def _name(transform: Any) -> str:
    """The same in every process: no addresses in it."""
    transform = transform.transform if isinstance(transform, Reseeded) else transform
    if hasattr(transform, "__qualname__"):
        return f"{transform.__module__}.{transform.__qualname__}"
    return shown(transform)
