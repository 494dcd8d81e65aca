"""Lowers a transform without a native twin to a call of Python at its position among the steps."""

from __future__ import annotations

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

import headrace._recipe.steps.steps as S
from headrace._base.safe_exceptions import is_instance, message_of, type_name_of
from headrace._base.types import Function
from headrace._lowering.builder import Builder, LoweringError, repr_of
from headrace._lowering.python_steps.bytecode_analysis import Reach
from headrace._lowering.python_steps.file_metadata import has_metadata_after
from headrace._lowering.python_steps.step_copies import copy_function
from headrace._lowering.python_steps.step_state import Kept
from headrace._recipe.draws.python_randomness import FixedRand, draws_process_wide, sample_randomness
from headrace._recipe.draws.transform_reseeding import Reseeded, reseed_transform, without_reseeding
from headrace._recipe.images.part_kinds import as_pure
from headrace._recipe.steps.byte_table import Pointwise, make_byte_table
from headrace._recipe.steps.calls import CallError, CallFunction, OnBytes, OnImage, Rest, name_type
from headrace._recipe.steps.draw_columns import Column
from headrace._recipe.steps.recipe import DTYPES, Recipe


def append_python_call(builder: Builder, transform: Function, why: str) -> str:
    """Appends a call of `transform`, after trying a copy of it on synthetic images; returns the line of `explain`.

    Args:
        builder: the recipe so far.
        transform: the transform to call.
        why: the reason why it is not native.

    Raises:
        LoweringError: the transform cannot be tried or copied, or may change objects that it shares with other code.
    """
    reach = Reach(transform)
    kept = Kept([transform])
    if (reach.shares and kept.changes_anything()) or kept.reaches_out():
        raise LoweringError(
            f"{repr_of(transform)} may change an object that it shares with other code, while torch's workers change a "
            "copy each; make the object an attribute of a transform class"
        )
    if builder.rest is not None:
        builder.rest.append(transform)
    elif not _append_image_call(builder, transform, reach):
        _begin_final_call(builder, transform)
    return f"called in Python: {why}"


def _append_image_call(builder: Builder, transform: Function, reach: Reach) -> bool:
    """Appends a call that returns an image, so that native steps can follow; False if it returns anything else."""
    step = reseed_transform(transform)
    if builder.values is None:
        function: OnImage | OnBytes = OnImage(step, builder.channels)
    elif builder.holds_bytes:
        function = OnBytes(tuple(builder.pointwise), step, builder.channels)
    else:
        return False
    metadata = _has_metadata(builder, [transform], [reach])
    tried = _run_on_trial_images(builder, function)
    if tried is None:
        return False
    made, draws = tried
    if builder.values is not None and all(type(one) is torch.Tensor for one in made):
        builder.pointwise.append(as_pure)  # operations on a tv_tensor return a tensor
        builder.values = as_pure(builder.values)
    sizes = tuple(dict.fromkeys(_size_of_result(one) for one in made))
    size = sizes[0] if len(sizes) == 1 else None
    draws |= reach.draws or _is_shared(step)
    builder.add(S.Call(_name_transform(transform), builder.draw(Column()), draws, metadata, False, size, function))
    builder.tried = len(builder.steps), sizes
    return True


def _size_of_result(made: Image.Image | torch.Tensor) -> tuple[int, int]:
    """Returns (height, width)."""
    return (made.height, made.width) if isinstance(made, Image.Image) else (made.shape[-2], made.shape[-1])


def _begin_final_call(builder: Builder, transform: Function) -> None:
    if builder.written:
        raise LoweringError(f"{repr_of(transform)} comes after RandomErasing, and has no native twin")
    builder.rest = [transform]


def append_final_call(builder: Builder, dtype: torch.dtype | None) -> Recipe:
    """Returns the recipe whose last call runs all remaining transforms in Python, then converts to `dtype` if given.

    Raises:
        LoweringError: the outputs cannot be stacked into a batch.
    """
    assert builder.rest is not None
    steps = tuple(map(reseed_transform, builder.rest)) + ((_Cast(dtype),) if dtype is not None else ())
    before = None if builder.values is None else tuple(builder.pointwise)
    rest = Rest(before, None, steps, builder.channels)
    if before is not None and builder.values is not None and builder.values.dtype in DTYPES:
        lut = make_byte_table(Pointwise(before, None), builder.channels)
        rest = replace(rest, lut=lut, like=builder.values)
    reaches = [Reach(transform) for transform in builder.rest]
    metadata = before is None and _has_metadata(builder, builder.rest, reaches)
    tried = _run_on_trial_images(builder, rest)
    if tried is None:
        raise LoweringError("the transforms do not return a tensor")
    made, draws = tried
    one = made[0]
    if one.ndim != 3:
        raise LoweringError(f"the transforms return {name_type(one)}, not one image (C, H, W)")
    if any((tensor.shape, tensor.dtype) != (one.shape, one.dtype) for tensor in made):
        raise LoweringError(f"the transforms return tensors of different shapes or dtypes, such as {name_type(one)}")
    if one.device.type != "cpu" or one.layout != torch.strided:
        raise LoweringError(f"the transforms return {one.layout} tensors on {one.device}, not in this machine's memory")
    if type(torch.stack(made[:1])) is not torch.Tensor:
        raise LoweringError(f"the transforms return a {type(one).__name__}, and torch makes a batch of that class")
    if any(tensor.requires_grad for tensor in made):
        raise LoweringError("the transforms return tensors that require gradients, which a native batch does not")
    if one.dtype not in DTYPES:
        raise LoweringError(f"the transforms return {one.dtype}, which the native path does not write")
    channels, height, width = one.shape
    rest = replace(rest, shape=(channels, height, width), dtype=one.dtype)
    draws |= any(reach.draws for reach in reaches) or any(map(_is_shared, steps))
    name = ", ".join(_name_transform(transform) for transform in steps)
    builder.add(S.Call(name, builder.draw(Column()), draws, metadata, True, (height, width), rest))
    lut = torch.zeros((channels, 256), dtype=one.dtype, device="cpu")
    return builder.recipe((channels, height, width), Pointwise((), None), lut, type(one))


def _has_metadata(builder: Builder, transforms: list[Function], reaches: list[Reach]) -> bool:
    """Whether the images passed to a call have the metadata of their files.

    Raises:
        LoweringError: only some images have it, and a transform may read it.
    """
    if builder.values is not None:
        return False
    known = has_metadata_after(builder.steps)
    looking = next((one for one, reach in zip(transforms, reaches, strict=True) if reach.reads_metadata), None)
    if known is None and looking is not None:
        raise LoweringError(
            f"{repr_of(looking)} may look at metadata of the image, such as its EXIF orientation, which the steps "
            "before it keep for some images only; put it first"
        )
    return bool(known)


def _run_on_trial_images(builder: Builder, function: CallFunction) -> tuple[list[Any], bool] | None:
    """Runs a copy of the function on synthetic images.

    Returns:
        The results, and whether it drew from generators of the whole process; None if it raised CallError, because a
        result has another type than needed.

    Raises:
        LoweringError: the function cannot be copied, or raised another error.
    """
    try:
        function = copy_function(function, tuple(map(without_reseeding, function.called)))
    except Exception as error:
        raise LoweringError(
            f"{repr_of(builder.current)} cannot be copied, but each thread needs a copy of its own: {message_of(error)}"
        ) from error
    made: list[Any] = []
    draws = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for (height, width), uniform in itertools.product(builder.trial_sizes, (0.25, 0.75)):
            image = make_trial_image(height, width, builder.channels)
            try:
                draws |= draws_process_wide(partial(_append_result, made, function, image, uniform))
            except CallError:
                return None
            except BaseException as error:
                if is_instance(error, KeyboardInterrupt):
                    raise
                raise LoweringError(
                    f"{repr_of(builder.current)} raised {type_name_of(error)} on a synthetic image of "
                    f"{width} x {height} pixels: {message_of(error)}"
                ) from error
        image = make_trial_image(*builder.trial_sizes[0], builder.channels)
        draws |= _rarely_draws_process_wide(lambda: function.call_image(image.copy()))
    return made, draws


def _append_result(made: list[Any], function: CallFunction, image: Image.Image, uniform: float) -> None:
    with sample_randomness(uniform):
        made.append(function.tensor_of(image) if isinstance(function, OnBytes) else function.call_image(image))


def _rarely_draws_process_wide(function: Callable[[], object]) -> bool:
    """Whether `function` draws from the process's generators if ``torch.rand`` returns its smallest or largest number.

    Transforms such as RandomApply run some of their code only for small or for large numbers.
    """
    found = False
    for number in (0.0, 1.0 - 2.0**-24):
        # Ignores errors: these extreme numbers may never occur.
        with suppress(Exception), FixedRand(number):
            found |= draws_process_wide(function)
    return found


def _is_shared(transform: object) -> bool:
    return isinstance(transform, Reseeded) and transform.shared


def make_trial_image(height: int, width: int, channels: int) -> Image.Image:
    """Returns an image of noise that is the same at each call."""
    noise = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    image = Image.fromarray(noise)
    return image if channels == 3 else image.convert("L")


class _Cast:
    """Converts to the loader's dtype, after all transforms."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self.dtype)

    def __repr__(self) -> str:
        return f"to({self.dtype})"


def _name_transform(transform: object) -> str:
    """Returns the transform's name without addresses: the same in every process."""
    transform = transform.transform if isinstance(transform, Reseeded) else transform
    if hasattr(transform, "__qualname__"):
        return f"{transform.__module__}.{transform.__qualname__}"
    return repr_of(transform)
