"""Lowers a dataset's transforms to a recipe, or says which step cannot be lowered, why, and what to do."""

from __future__ import annotations

import math
import operator
import textwrap
import warnings
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NoReturn

import torch
from PIL import Image

import headrace.recipe as R
from headrace import boxes, pillow_ops
from headrace.pointwise import FromArray, Pointwise, TensorStep, all_bytes, table
from headrace.recipe import DTYPES, Column, Recipe
from headrace.recognition import class_origin, has_hooks, leaves
from headrace.transforms import filter_name

#: What the native path can write.

_POINTWISE = {"ToTensor", "PILToTensor", "ToImage", "ToPureTensor", "ToDtype", "ConvertImageDtype", "Normalize"}
_FLIPS = {"RandomHorizontalFlip", "RandomVerticalFlip"}
_MIXES_PIXELS = {"Resize", "RandomResizedCrop", "Grayscale"}


class LoweringError(TypeError):
    """The transforms cannot be lowered; the message names the step, the reason and a remedy."""


def lower(transform: Any, *, dtype: torch.dtype | None = None) -> Recipe:
    """The recipe of `transform`.

    Args:
        transform: a transform of headrace.transforms, torchvision.transforms or torchvision.transforms.v2, or a
            Compose or nn.Sequential of them. It is not changed; its pointwise steps are kept and called.
        dtype: a last conversion, unscaled, to float32, float16, bfloat16 or uint8; None leaves the transforms' dtype.

    Raises:
        LoweringError: a step, an option or an order that has no native twin.
    """
    if transform is None:
        raise LoweringError(
            "the dataset has no transform, so its images have no common size; give it one that ends in ToTensor() or "
            "ToImage()"
        )
    lowering = _Lowering()
    for step in leaves(transform):
        lowering.add(step)
    return lowering.finish(dtype)


class _Lowering:
    """The recipe while it grows, and what an image would be at this point of it."""

    def __init__(self) -> None:
        self.steps: list[R.Step] = []
        self.columns: list[Column] = []
        self.pointwise: list[TensorStep] = []
        self.names: list[tuple[str, str]] = []
        self.size: tuple[int, int] | None = None  # (height, width); None: varies from image to image
        self.channels = 3
        self.values: torch.Tensor | None = None  # the 256 bytes as mapped so far, (C, 1, 256); None: still a PIL image
        self.upright = torch.empty(0)  # the same as (C, 256, 1)
        self.converter = ""  # repr of the step that made a tensor
        self.current: Any = None

    def refuse(self, reason: str, cause: Exception | None = None) -> NoReturn:
        raise LoweringError(f"step {len(self.names) + 1}, {_repr(self.current)}: {reason}") from cause

    def add(self, transform: Any) -> None:
        self.current = transform
        home, name = class_origin(type(transform)) or ("", "")
        if has_hooks(transform):
            self.refuse("has forward hooks or a replaced method, which would not run; remove them")
        if name == "Identity":
            lowered = "nothing"
        elif name in _POINTWISE:
            lowered = self.tensor_step(transform, name)
        elif name in _FLIPS:
            lowered = self.flip(transform, name)
        elif name not in _GEOMETRY:
            self._refuse_unknown(type(transform))
        elif self.values is not None:
            why = "other pixels than Pillow's" if name in _MIXES_PIXELS else "no native twin"
            self.refuse(f"works on a tensor here, through a kernel of torch with {why}; put it before {self.converter}")
        else:
            try:
                lowered = _GEOMETRY[name](self, transform, home)
            except (ValueError, TypeError) as error:
                if isinstance(error, LoweringError):
                    raise
                self.refuse(str(error), error)
        self.names.append((_repr(transform), lowered))

    def _refuse_unknown(self, cls: type) -> NoReturn:
        for base in cls.__mro__[1:]:
            name = (class_origin(base) or ("", ""))[1]
            if name in _POINTWISE or name in _FLIPS or name in _GEOMETRY:
                self.refuse(f"is a subclass that may do something else than {name}; use {name} itself")
        self.refuse("has no native twin in headrace; remove it, or use torch.utils.data.DataLoader for this dataset")

    def finish(self, dtype: torch.dtype | None) -> Recipe:
        if self.values is None:
            raise LoweringError(
                "no step makes a tensor, so the dataset would return PIL images; end the transforms with ToTensor(), "
                "or with ToImage() and ToDtype(torch.float32, scale=True)"
            )
        if self.size is None:
            raise LoweringError(
                "the images' sizes vary after the last step, so they cannot be stacked; add CenterCrop(size), "
                "Resize((height, width)) or RandomResizedCrop(size)"
            )
        made = self.values.dtype
        if dtype is None and made not in DTYPES:
            raise LoweringError(f"the transforms make {made}, which is not one of {_list(DTYPES)}; pass one as dtype=")
        if dtype is not None and dtype not in DTYPES:
            raise LoweringError(f"dtype={dtype} is not one of {_list(DTYPES)}")
        if dtype == torch.uint8 and made != torch.uint8:
            raise LoweringError(
                f"dtype=torch.uint8 would cut the transforms' {made} values to whole numbers; for bytes, end the "
                "transforms with ToImage() or PILToTensor()"
            )
        pointwise = Pointwise(tuple(self.pointwise), None if dtype == made else dtype)
        lut = table(pointwise, self.channels)
        height, width = self.size
        return Recipe(
            tuple(self.steps), tuple(self.columns), height, width, self.channels, pointwise, lut, tuple(self.names)
        )

    # Tensor steps.

    def tensor_step(self, transform: Any, name: str) -> str:
        try:
            if self.values is None and name in ("ToTensor", "PILToTensor", "ToImage"):
                self.converter = _repr(transform)
                step: TensorStep = FromArray(transform) if name == "ToTensor" else transform
                self.values = all_bytes(self.channels)
                self.upright = self.values.transpose(1, 2)
                if name == "PILToTensor":
                    return "nothing: bytes stay as they are"
            elif self.values is None:
                # On a PIL image torchvision's v1 raises here and most of v2 passes it on: ask the object itself.
                transform(Image.new("RGB" if self.channels == 3 else "L", (1, 1)))
                return "nothing: it does not change PIL images"
            else:
                step = transform
            # In both shapes: a mean that varies over the image can fit one of them at most, and is refused by torch.
            mapped, upright = step(self.values.clone()), step(self.upright.clone())
        except (TypeError, ValueError, RuntimeError) as error:
            self.refuse(str(error), error)
        if mapped.shape != self.values.shape:
            self.refuse(
                f"turns {self.values.shape[0]} channels into {mapped.shape[0]} by broadcasting; give it as many means "
                "as the image has channels, or use Grayscale(num_output_channels=3)"
            )
        self.values, self.upright = mapped, upright
        self.pointwise.append(step)
        return f"a table of 256 values a channel, {mapped.dtype}"

    # Geometry. Each method appends its step and returns what `explain` shows.

    def _step(self, step: R.Step, *columns: Column) -> str:
        self.steps.append(step)
        self.columns.extend(columns)
        return f"native {step}"

    def flip(self, transform: Any, name: str) -> str:
        # A flip of a tensor commutes with the pointwise steps before it: it may be done on the image.
        kind = R.HorizontalFlip if name == "RandomHorizontalFlip" else R.VerticalFlip
        return self._step(kind(float(transform.p), len(self.columns)), Column())

    def resize(self, transform: Any, home: str) -> str:
        size, max_size = transform.size, transform.max_size
        edges = [] if size is None else [size] if isinstance(size, int) else list(size)
        if len(edges) == 2 and max_size is not None:
            self.refuse("max_size goes with the length of the shorter edge alone; leave it out")
        filter = self._filter(transform)
        if len(edges) == 2:
            height, width = self._positive(edges)
            self.size = height, width
            return self._step(R.Resize(height, width, filter))
        edge = self._positive(edges)[0] if edges else 0
        limit = None if max_size is None else self._positive([max_size])[0]
        boxes.resize_by_edge(1, 1, edge or None, limit)  # torchvision's own refusals
        if self.size is not None:
            self.size = boxes.resize_by_edge(*self.size, edge or None, limit)
        return self._step(R.ResizeShorter(edge, limit, filter))

    def center_crop(self, transform: Any, home: str) -> str:
        height, width = self.size = self._pair(transform.size)
        return self._step(R.CenterCrop(height, width))

    def random_resized_crop(self, transform: Any, home: str) -> str:
        height, width = self.size = self._pair(transform.size)
        if len(transform.scale) != 2 or len(transform.ratio) != 2:
            self.refuse("scale and ratio are two numbers each; mend them")
        (low, high), (narrow, wide) = transform.scale, transform.ratio
        if not 0 <= low <= high < math.inf or not 0 < narrow <= wide < math.inf:
            self.refuse("scale and ratio are (smallest, largest) with 0 <= scale and 0 < ratio; mend them")
        area = Column(float(low), float(high))
        # Decimal's logarithm is correctly rounded, so that the recipe's fingerprint is the same on every machine.
        aspect = Column(float(Decimal(narrow).ln()), float(Decimal(wide).ln()), exp=True)
        step = R.RandomResizedCrop(
            height,
            width,
            (float(low), float(high)),
            (float(narrow), float(wide)),
            self._filter(transform),
            len(self.columns),
        )
        return self._step(step, *[area, aspect] * 10, Column(), Column())

    def random_crop(self, transform: Any, home: str) -> str:
        height, width = self.size = self._pair(transform.size)
        padding, fill = transform.padding or None, transform.fill
        if home == "v2":
            if padding:
                left, right, top, bottom = padding  # the order in which v2 keeps it
                padding = left, top, right, bottom
            fill = transform._fill.get(Image.Image, transform._fill.get("others"))
        padding = pillow_ops.four_paddings(padding)
        if min(padding) < 0:
            self.refuse("a negative padding crops; use CenterCrop or leave it out")
        mode = transform.padding_mode
        if mode not in pillow_ops.PADDING_MODES:
            self.refuse("padding_mode is one of constant, edge, reflect and symmetric")
        needed = bool(transform.pad_if_needed)
        if home == "v1" and any(padding) and needed and mode in ("reflect", "symmetric"):
            self.refuse("torchvision v1 pads a small image twice, mirroring its own border; use v2.RandomCrop")
        color = pillow_ops.fill_color(fill, self.channels)
        step = R.RandomCrop(height, width, padding, needed, color, mode, len(self.columns))
        return self._step(step, Column(), Column())

    def grayscale(self, transform: Any, home: str) -> str:
        channels = transform.num_output_channels
        if channels not in (1, 3):
            self.refuse(f"num_output_channels must be 1 or 3, got {channels}")
        self.channels = channels
        return self._step(R.Grayscale(channels))

    def rgb(self, transform: Any, home: str) -> str:
        if self.channels == 3:
            return "nothing: images are RGB already"
        self.channels = 3
        return self._step(R.Grayscale(3))

    def _filter(self, transform: Any) -> str:
        if transform.antialias is False:
            warnings.warn(
                "Anti-alias option is always applied for PIL Image input. Argument antialias is ignored.", stacklevel=5
            )
        return filter_name(transform.interpolation)

    def _pair(self, size: Any) -> tuple[int, int]:
        height, width = self._positive(list(size))
        return height, width

    def _positive(self, numbers: Sequence[Any]) -> list[int]:
        values = [operator.index(number) for number in numbers]
        if min(values) < 1:
            self.refuse("sizes are positive numbers of pixels")
        return values


_GEOMETRY = {
    "Resize": _Lowering.resize,
    "CenterCrop": _Lowering.center_crop,
    "RandomResizedCrop": _Lowering.random_resized_crop,
    "RandomCrop": _Lowering.random_crop,
    "Grayscale": _Lowering.grayscale,
    "RGB": _Lowering.rgb,
}


def _repr(transform: Any) -> str:
    return textwrap.shorten(repr(transform), 200, placeholder=" ...")


def _list(dtypes: Sequence[torch.dtype]) -> str:
    return ", ".join(str(dtype) for dtype in dtypes)
