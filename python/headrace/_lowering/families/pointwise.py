"""Lowers the transforms that convert an image to a tensor or map its values one by one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from PIL import Image

from headrace._lowering.builder import Builder, repr_of
from headrace._lowering.pil_or_tensor import Lower
from headrace._recipe.steps.byte_table import FromArray, TensorStep, all_bytes

_FROM_ARRAYS = ("ToTensor", "MaybeToTensor")
_OF_BYTES = ("PILToTensor", "MaybePILToTensor")
_CONVERTERS = (*_FROM_ARRAYS, *_OF_BYTES, "ToImage")


def tensor_step(builder: Builder, transform: Any, library: str) -> str:
    """Runs the transform on the 256 byte values: their results define a pointwise transform completely."""
    name = type(transform).__name__
    converts = builder.values is None and name in _CONVERTERS
    if converts and builder.container:
        builder.refuse(
            f"makes a tensor inside {builder.container}, where only transforms of PIL images are lowered; put it "
            "after that"
        )
    try:
        if converts:
            step: TensorStep = FromArray(transform) if name in _FROM_ARRAYS else transform
            begin_tensor(builder)
            if name in _OF_BYTES:
                return "nothing: bytes stay as they are"
        elif builder.values is None:
            # Some transforms reject a PIL image (torchvision v1), others return it unchanged (most of v2): try it.
            transform(Image.new("RGB" if builder.channels == 3 else "L", (1, 1)))
            return "nothing: it does not change PIL images"
        else:
            step = transform
    except (TypeError, ValueError, RuntimeError) as error:
        builder.refuse(str(error), error)
    return add_pointwise(builder, step)


def begin_tensor(builder: Builder) -> None:
    """Continues with a uint8 tensor of the image's bytes, which the current transform makes."""
    builder.converter = repr_of(builder.current)
    builder.values = all_bytes(builder.channels)
    builder.upright = builder.values.transpose(1, 2)


def add_pointwise(builder: Builder, step: TensorStep) -> str:
    """Appends a step that maps the values of a tensor one by one; returns its line of `explain`."""
    assert builder.values is not None
    try:
        # Run on both layouts: a mean that varies over the image can broadcast to at most one of them, so torch raises.
        # deepcopy keeps the tensor's kind (the mark of ToImage too), which a later ToDtype may depend on.
        mapped, upright = step(deepcopy(builder.values)), step(deepcopy(builder.upright))
        written = [step(deepcopy(one)) for one in builder.written]
    except (TypeError, ValueError, RuntimeError) as error:
        builder.refuse(str(error), error)
    if mapped.shape != builder.values.shape:
        builder.refuse(
            f"turns {builder.values.shape[0]} channels into {mapped.shape[0]} by broadcasting; give it as many means "
            "as the image has channels, or use Grayscale(num_output_channels=3)"
        )
    builder.values, builder.upright, builder.written = mapped, upright, written
    builder.pointwise.append(step)
    return f"a table of the results for all 256 byte values, {mapped.dtype}"


_NAMES = ("ToTensor", "PILToTensor", "ToImage", "ToPureTensor", "ToDtype", "ConvertImageDtype", "Normalize")
LOWERS: dict[str, Lower] = dict.fromkeys(_NAMES, tensor_step)
