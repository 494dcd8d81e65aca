"""The recipe while it grows, and what an image would be at this point of it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

import torch

import headrace.steps as S
from headrace.pointwise import Pointwise, TensorStep, table
from headrace.recipe import DTYPES, Column, Recipe


class LoweringError(TypeError):
    """The transforms cannot be lowered; the message names the step, the reason and a remedy."""


class Builder:
    """What has been lowered so far.

    Attributes:
        steps, columns, pointwise: of the recipe to be.
        size: (height, width) of the image at this point; None: varies from image to image.
        channels: of the image at this point, 1 or 3.
        values: the 256 bytes as the tensor steps mapped them so far, (C, 1, 256); None: still a PIL image.
        upright: the same as (C, 256, 1).
        converter: repr of the step that made a tensor.
        current: the transform that is being lowered.
    """

    def __init__(self, channels: int = 3, size: tuple[int, int] | None = None) -> None:
        self.steps: list[S.Step] = []
        self.columns: list[Column] = []
        self.pointwise: list[TensorStep] = []
        self.size = size
        self.channels = channels
        self.values: torch.Tensor | None = None
        self.upright = torch.empty(0)
        self.converter = ""
        self.current: Any = None
        self._names: list[tuple[str, str]] = []

    def refuse(self, reason: str, cause: Exception | None = None) -> NoReturn:
        """Raises LoweringError about the current transform."""
        raise LoweringError(f"step {len(self._names) + 1}, {shown(self.current)}: {reason}") from cause

    def draw(self, *columns: Column) -> int:
        """The number of the first of these new columns."""
        self.columns.extend(columns)
        return len(self.columns) - len(columns)

    def add(self, step: S.Step) -> str:
        """Appends a step; what `explain` shows."""
        self.steps.append(step)
        return f"native {step}"

    def note(self, lowered: str) -> None:
        """The current transform is done with."""
        self._names.append((shown(self.current), lowered))

    def finish(self, dtype: torch.dtype | None) -> Recipe:
        """The recipe, with a last conversion to `dtype`. Raises LoweringError where outputs would not be of one size
        and type."""
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
            tuple(self.steps), tuple(self.columns), height, width, self.channels, pointwise, lut, tuple(self._names)
        )


def shown(transform: Any) -> str:
    """The transform's repr, on one line of bounded length."""
    return textwrap.shorten(repr(transform), 200, placeholder=" ...")


def _list(dtypes: Sequence[torch.dtype]) -> str:
    return ", ".join(str(dtype) for dtype in dtypes)
