"""The recipe while it grows, and what an image would be at this point of it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any, NoReturn

import torch

import headrace.recipe.steps as S
from headrace.lowering.described import described
from headrace.lowering.origins import leaves
from headrace.lowering.sizes import Size, one_size_after, size_after
from headrace.recipe.byte_table import Pointwise, TensorStep, all_bytes, table
from headrace.recipe.recipe import DTYPES, Column, GaussianWeight, Recipe

#: Sizes (height, width) of the made-up images that a step is tried on where the image's own is not known.
_MADE_UP = ((375, 500), (500, 333))


class LoweringError(TypeError):
    """The transforms cannot be lowered; the message names the step, the reason and a remedy.

    Attributes:
        reason: the message without the step.
    """

    def __init__(self, reason: str, step: str = "") -> None:
        super().__init__(f"{step}: {reason}" if step else reason)
        self.reason = reason


class Builder:
    """What has been lowered so far.

    Args:
        lower_one: lowers one transform, which holds no others that are always applied, into a builder.
        channels: of the image that comes in, 1 or 3.
        size: (height, width) of the image that comes in; None: varies from image to image.

    Attributes:
        steps, columns, pointwise: of the recipe to be.
        channels: of the image at this point, 1 or 3.
        values: the 256 bytes as the tensor steps mapped them so far, (C, 1, 256); None: still a PIL image.
        upright: the same as (C, 256, 1).
        written: what each Erase writes, as the tensor steps behind it mapped it so far, each (C, 1, 256).
        converter: repr of the step that made a tensor.
        rest: the transforms that Python does to the end, from one on whose tensor is not of bytes; None: none so far.
        tried: how many of the steps come before some point, and the sizes that images have there in a trial.
        container: name of the transform in which this is a branch; "": none.
        current: the transform that is being lowered.
    """

    def __init__(self, lower_one: Callable[[Builder, Any], None], channels: int = 3, size: Size = None) -> None:
        self.steps: list[S.Step] = []
        self.columns: list[Column | GaussianWeight] = []
        self.pointwise: list[TensorStep] = []
        self.channels = channels
        self.values: torch.Tensor | None = None
        self.upright = torch.empty(0, device="cpu")
        self.written: list[torch.Tensor] = []
        self.converter = ""
        self.rest: list[Any] | None = None
        self.tried: tuple[int, tuple[tuple[int, int], ...]] = (0, _MADE_UP if size is None else (size,))
        self.container = ""
        self.current: Any = None
        self._lower_one = lower_one
        self._first_size = size
        self._names: list[tuple[str, str]] = []
        self._in_python: set[int] = set()
        self._where = ""

    @property
    def size(self) -> Size:
        """(height, width) of the image at this point; None: varies from image to image."""
        return size_after(self.steps, self._first_size)

    @property
    def trial_sizes(self) -> tuple[tuple[int, int], ...]:
        """(height, width) of made-up images as they may be at this point."""
        if self.size is not None:
            return (self.size,)
        steps, sizes = self.tried
        return tuple(one_size_after(self.steps[steps:], size) for size in sizes)

    @property
    def holds_bytes(self) -> bool:
        """Whether the image is a uint8 tensor here, of the image's own bytes."""
        return (
            self.values is not None
            and not self.written
            and self.values.dtype == torch.uint8
            and torch.equal(self.values.as_subclass(torch.Tensor), all_bytes(self.channels))
        )

    def refuse(self, reason: str, cause: Exception | None = None) -> NoReturn:
        """Raises LoweringError about the current transform."""
        raise LoweringError(reason, f"{self._where}step {len(self._names) + 1}, {shown(self.current)}") from cause

    def draw(self, *columns: Column | GaussianWeight) -> int:
        """The number of the first of these new columns."""
        self.columns.extend(columns)
        return len(self.columns) - len(columns)

    def add(self, step: S.Step) -> str:
        """Appends a step; what `explain` shows."""
        self.steps.append(step)
        return f"native {described(step)}"

    def erase(self, step: S.Erase) -> str:
        """Appends a step that erases, as torch's slice assignment does, on a tensor; what `explain` shows."""
        assert self.values is not None
        written = deepcopy(self.values)  # of the same kind, as a clone of a plain tensor is not
        written[...] = torch.tensor(step.value, device="cpu")[:, None, None]
        self.written.append(written)
        return self.add(step)

    def lower(self, transforms: Iterable[Any]) -> None:
        """Appends what the transforms do, one after the other."""
        for transform in transforms:
            for leaf in leaves(transform):
                self._lower_one(self, leaf)

    def branch(self, transforms: Iterable[Any]) -> Builder:
        """What the transforms inside the current one do to an image as it is here, in columns of the same draws."""
        inner = Builder(self._lower_one, self.channels, self.size)
        inner.columns = self.columns
        inner.tried = 0, self.trial_sizes
        inner.container = type(self.current).__name__
        inner._where = f"{self._where}step {len(self._names) + 1}, {inner.container}: "
        inner.lower(transforms)
        return inner

    def note(self, lowered: str, *, in_python: bool = False) -> None:
        """The current transform is done with."""
        if in_python:
            self._in_python.add(len(self._names))
        self._names.append((shown(self.current), lowered))

    def checkpoint(self) -> Callable[[], None]:
        """Call what it returns to have everything as it is now."""
        kept = vars(self).copy()
        kept.update({name: value.copy() for name, value in kept.items() if isinstance(value, (list, set))})
        return lambda: vars(self).update(kept)

    def finish(self, dtype: torch.dtype | None) -> Recipe:
        """The recipe, with a last conversion to `dtype`. Raises LoweringError where outputs would not be of one size
        and type."""
        if dtype is not None and dtype not in DTYPES:
            raise LoweringError(f"dtype={dtype} is not one of {_list(DTYPES)}")
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
        if dtype == torch.uint8 and made != torch.uint8:
            raise LoweringError(
                f"dtype=torch.uint8 would cut the transforms' {made} values to whole numbers; for bytes, end the "
                "transforms with ToImage() or PILToTensor()"
            )
        pointwise = Pointwise(tuple(self.pointwise), None if dtype == made else dtype)
        shape = (self.channels, *self.size)
        return self.recipe(shape, pointwise, table(pointwise, self.channels), type(self.values))

    def recipe(
        self, shape: tuple[int, int, int], pointwise: Pointwise, lut: torch.Tensor, kind: type[torch.Tensor]
    ) -> Recipe:
        """What has been lowered, for outputs of a shape (C, H, W) and a class."""
        channels, height, width = shape
        erased = [one.as_subclass(torch.Tensor)[:, 0, 0].to(lut.dtype) for one in self.written]
        return Recipe(
            tuple(self.steps),
            tuple(self.columns),
            height,
            width,
            channels,
            pointwise,
            lut,
            tuple(self._names),
            torch.stack(erased) if erased else None,
            frozenset(self._in_python),
            kind,
        )


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # Pillow writes capitals


def shown(transform: Any) -> str:
    """The transform's repr, on one line of bounded length, the same in every process."""
    return textwrap.shorten(_ADDRESS.sub("", repr(transform)), 200, placeholder=" ...")


def _list(dtypes: Sequence[torch.dtype]) -> str:
    return ", ".join(str(dtype) for dtype in dtypes)
