"""Lowers what has no native twin to a call of Python, where it stands."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
import torch
from PIL import ExifTags, Image

import headrace.steps as S
from headrace.calls import CallError, OnBytes, OnImage, Rest, described
from headrace.lowering.builder import Builder, LoweringError, shown
from headrace.own_generators import Reseeded, reseeded
from headrace.pointwise import Pointwise, table
from headrace.recipe import DTYPES, Column, Recipe
from headrace.sample_randomness import FixedRand, draws_process_wide, kept_generators, sample_randomness

#: Sizes (height, width) of the made-up images that a transform is tried on where the image's own is not known.
_SIZES = ((240, 320), (300, 200))


def call(builder: Builder, transform: Any, why: str) -> str:
    """Appends a call of `transform`, which is tried on made-up images to see what it takes and makes.

    Args:
        why: it is not native.

    Raises:
        LoweringError: it cannot be tried, or makes what has no place in a batch.
    """
    transform = reseeded(transform)
    if builder.rest is not None:
        builder.rest.append(transform)
    elif not _goes_on(builder, transform):
        _begin_rest(builder, transform)
    return f"called where it stands: {why}"


def _goes_on(builder: Builder, transform: Any) -> bool:
    """Appends a call that gives an image back; False where it gives something else."""
    if builder.values is None:
        function: OnImage | OnBytes = OnImage(transform, builder.channels)
    elif builder.holds_bytes:
        function = OnBytes(tuple(builder.pointwise), transform, builder.channels)
    else:
        return False
    tried = _try(builder, function.on_image)
    if tried is None:
        return False
    made, process_wide = tried
    sizes = {(image.height, image.width) for image in made}
    size = sizes.pop() if len(sizes) == 1 else None
    process_wide = process_wide or _is_shared(transform)
    builder.add(S.Call(_name(transform), builder.draw(Column()), process_wide, False, size, function))
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
    transforms = tuple(builder.rest) + ((_Cast(dtype),) if dtype is not None else ())
    before = None if builder.values is None else tuple(builder.pointwise)
    lut = None
    if before is not None and builder.values is not None and builder.values.dtype in DTYPES:
        lut = table(Pointwise(before, None), builder.channels)
    rest = Rest(before, lut, transforms, builder.channels)
    tried = _try(builder, rest.on_image)
    if tried is None:
        raise LoweringError("the transforms do not return a tensor")
    made, process_wide = tried
    one = made[0]
    if one.ndim != 3 or any((tensor.shape, tensor.dtype) != (one.shape, one.dtype) for tensor in made):
        raise LoweringError(f"the transforms return tensors of several shapes, such as {described(one)}")
    if one.device.type != "cpu" or one.layout != torch.strided:
        raise LoweringError(f"the transforms return {one.layout} tensors on {one.device}, not in this machine's memory")
    if one.dtype not in DTYPES:
        raise LoweringError(f"the transforms return {one.dtype}, which the native path does not write")
    channels, height, width = one.shape
    rest = replace(rest, shape=(channels, height, width), dtype=one.dtype)
    process_wide = process_wide or any(map(_is_shared, transforms))
    name = ", ".join(_name(transform) for transform in transforms)
    builder.add(S.Call(name, builder.draw(Column()), process_wide, True, (height, width), rest))
    return builder.recipe((channels, height, width), Pointwise((), None), torch.zeros((channels, 256), dtype=one.dtype))


def _try(builder: Builder, function: Callable[[Any], Any]) -> tuple[list[Any], bool] | None:
    """What the function makes of made-up images, and whether it draws process-wide; None where the kind is wrong."""
    made: list[Any] = []
    process_wide = False
    sizes = (builder.size,) if builder.size else _SIZES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for (height, width), uniform in itertools.product(sizes, (0.25, 0.75)):
            image = made_up_image(height, width, builder.channels)
            try:
                process_wide |= draws_process_wide(partial(_append_made, made, function, image, uniform))
            except CallError:
                return None
            except Exception as error:
                raise LoweringError(
                    f"{shown(builder.current)} raised {type(error).__name__} on a made-up image of "
                    f"{width} x {height} pixels: {error}"
                ) from error
        image = made_up_image(*sizes[0], builder.channels)
        process_wide |= _rarely_draws_process_wide(lambda: function(image.copy()))
        _check_metadata(builder, function, image, process_wide)
    return made, process_wide


def _append_made(made: list[Any], function: Callable[[Any], Any], image: Image.Image, uniform: float) -> None:
    with sample_randomness(uniform):
        made.append(function(image))


def _rarely_draws_process_wide(function: Callable[[], Any]) -> bool:
    """The same of what is only done where ``torch.rand`` gives a small or a large number, as in RandomApply."""
    found = False
    for number in (0.0, 1.0 - 2.0**-24):
        # What it raises for a number that may never come is its own business.
        with suppress(Exception), FixedRand(number):
            found |= draws_process_wide(function)
    return found


def _check_metadata(builder: Builder, function: Callable[[Any], Any], image: Image.Image, process_wide: bool) -> None:
    """Raises LoweringError for what makes something else of an image that has metadata: natively there is none."""

    def made(one: Image.Image) -> Any:
        with kept_generators(), sample_randomness(0.25, process_wide=process_wide):
            return function(one)

    with_metadata = image.copy()
    with_metadata.info.update(_metadata())
    first = made(image.copy())
    try:
        if _same(first, made(with_metadata)):
            return
    except Exception as error:
        _refuse_metadata(builder, error)
    if _same(first, made(image.copy())):  # else it differs each time, by a generator of its own
        _refuse_metadata(builder)


def _refuse_metadata(builder: Builder, cause: Exception | None = None) -> NoReturn:
    raise LoweringError(
        f"{shown(builder.current)} looks at metadata of the image, such as its EXIF orientation, which native steps do "
        "not carry along"
    ) from cause


def _metadata() -> dict[str, Any]:
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    return {"exif": exif.tobytes(), "icc_profile": b"unknown"}


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        if a.device.type != "cpu":  # nothing that the native path takes
            return True
        return a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num())
    return bool(a.size == b.size and a.tobytes() == b.tobytes())


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
