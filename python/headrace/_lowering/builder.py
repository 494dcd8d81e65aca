"""Builds a recipe step by step, and tracks what an image is at the current point of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

import torch

import headrace._recipe.steps.steps as S
from headrace._base.errors import HeadraceError
from headrace._base.messages import shorten_text
from headrace._base.types import Function
from headrace._lowering.sizes import Size, one_size_after, size_after
from headrace._lowering.transform_library import leaf_transforms
from headrace._recipe.images.part_kinds import wrap_as
from headrace._recipe.steps.byte_table import Pointwise, TensorStep, all_bytes, make_byte_table
from headrace._recipe.steps.draw_columns import AnyColumn
from headrace._recipe.steps.recipe import DTYPES, Recipe
from headrace._recipe.steps.step_numbers import LEVELS, noise_quantiles

#: (height, width) of the synthetic images that a step is tried on if the image size is unknown.
_MADE_UP = ((375, 500), (500, 333))


class LoweringError(HeadraceError, TypeError):
    """The transforms cannot be lowered. The message names the step, the reason and a remedy.

    Attributes:
        reason: the message without the step.
    """

    def __init__(self, reason: str, step: str = "") -> None:
        super().__init__(f"{step}: {reason}" if step else reason)
        self.reason = reason


class Builder:
    """The part of a recipe that has been lowered so far.

    Args:
        lower_one: lowers one transform, other than a Compose or similar container, into a builder.
        channels: channels of the input image: 1 or 3.
        size: (height, width) of the input image; None if it varies.

    Attributes:
        steps, columns, pointwise: those of the future recipe.
        channels: channels of the image at this point: 1 or 3.
        mode: mode in which encoded images are opened.
        values: the 256 byte values as mapped by the tensor steps so far, (C, 1, 256); None: still a PIL image.
        upright: the same values as (C, 256, 1).
        written: the values that each EraseStep may write, mapped by the tensor steps after it so far: (C, 1, n) each.
        converter: repr of the step that converted the image to a tensor.
        rest: the transforms that run in Python up to the end; None: none so far.
        tried: a number of steps, and the sizes of the trial's images after these steps.
        container: class name of the transform that this builder is a branch of; "" if it is not a branch.
        current: the transform that is being lowered.
        following: name of the next transform, or of a conversion, after this one; "" if it is the last.
    """

    def __init__(self, lower_one: Callable[[Builder, object], None], channels: int = 3, size: Size = None) -> None:
        self.steps: list[S.Step] = []
        self.columns: list[AnyColumn] = []
        self.pointwise: list[TensorStep] = []
        self.channels = channels
        self.mode = "RGB"
        self.values: torch.Tensor | None = None
        self.upright = torch.empty(0, device="cpu")
        self.written: list[torch.Tensor] = []
        self.converter = ""
        self.rest: list[Function] | None = None
        self.tried: tuple[int, tuple[tuple[int, int], ...]] = (0, _MADE_UP if size is None else (size,))
        self.container = ""
        self.current: object = None
        self.following = ""
        self._lower_one = lower_one
        self._first_size = size
        self._names: list[tuple[str, str]] = []
        self._in_python: set[int] = set()
        self._where = ""

    @property
    def size(self) -> Size:
        """(height, width) of the image at this point; None if it varies."""
        return size_after(self.steps, self._first_size)

    @property
    def trial_sizes(self) -> tuple[tuple[int, int], ...]:
        """(height, width) of the synthetic images at this point, for trials."""
        if self.size is not None:
            return (self.size,)
        steps, sizes = self.tried
        return tuple(one_size_after(self.steps[steps:], size) for size in sizes)

    @property
    def holds_bytes(self) -> bool:
        """Whether the image is a uint8 tensor at this point, with unchanged byte values."""
        return (
            self.values is not None
            and not self.written
            and self.values.dtype == torch.uint8
            and torch.equal(self.values.as_subclass(torch.Tensor), all_bytes(self.channels))
        )

    def refuse(self, reason: str, cause: Exception | None = None) -> NoReturn:
        """Raises LoweringError about the current transform."""
        raise LoweringError(reason, f"{self._where}step {len(self._names) + 1}, {repr_of(self.current)}") from cause

    def draw(self, *columns: AnyColumn) -> int:
        """Appends columns and returns the number of the first one."""
        self.columns.extend(columns)
        return len(self.columns) - len(columns)

    def add(self, step: S.Step) -> str:
        """Appends a step and returns its line of `explain`."""
        self.steps.append(step)
        return f"native {describe_step(step)}"

    def erase(self, step: S.EraseStep) -> str:
        """Appends an Erase of a tensor and returns its line of `explain`."""
        assert self.values is not None
        given = torch.tensor(step.value, device="cpu")[:, None, None] if step.value else noise_quantiles()
        count = 1 if step.value else LEVELS
        written = wrap_as(torch.empty((self.channels, 1, count), dtype=self.values.dtype, device="cpu"), self.values)
        written[...] = given  # casts as RandomErasing's assignment does
        self.written.append(written)
        return self.add(step)

    def lower(self, transforms: Iterable[object]) -> None:
        """Lowers the transforms in order and appends their steps."""
        for transform in transforms:
            for leaf in leaf_transforms(transform):
                self._lower_one(self, leaf)

    def lower_branch(self, transforms: Iterable[object]) -> Builder:
        """Lowers transforms inside the current one into a new builder, which starts here and shares the columns."""
        inner = Builder(self._lower_one, self.channels, self.size)
        inner.columns = self.columns
        inner.tried = 0, self.trial_sizes
        inner.container = type(self.current).__name__
        inner._where = f"{self._where}step {len(self._names) + 1}, {inner.container}: "
        inner.lower(transforms)
        return inner

    def note(self, lowered: str, *, in_python: bool = False) -> None:
        """Records the line of `explain` for the current transform."""
        if in_python:
            self._in_python.add(len(self._names))
        self._names.append((repr_of(self.current), lowered))

    def checkpoint(self) -> Callable[[], None]:
        """Returns a function that restores the current state of the builder."""
        kept = vars(self).copy()
        kept.update({name: value.copy() for name, value in kept.items() if isinstance(value, (list, set))})
        return lambda: vars(self).update(kept)

    def finish(self, dtype: torch.dtype | None, may_vary: bool) -> Recipe:
        """Returns the recipe, with outputs converted to `dtype` unless that is None.

        Args:
            may_vary: whether outputs may have different sizes.

        Raises:
            LoweringError: the outputs would not be tensors of a supported dtype, and of one size unless they may vary.
        """
        if dtype is not None and dtype not in DTYPES:
            raise LoweringError(f"dtype={dtype} is not one of {_list_dtypes(DTYPES)}")
        if self.steps and isinstance(self.steps[-1], S.Texture):
            assert self.size is not None
            return self.recipe(
                (13, *self.size), Pointwise((), None), torch.zeros((13, 256), device="cpu"), torch.Tensor
            )
        if self.values is None:
            raise LoweringError(
                "no step makes a tensor, so the dataset would return PIL images; end the transforms with ToTensor(), "
                "or with ToImage() and ToDtype(torch.float32, scale=True)"
            )
        if self.size is None and not may_vary:
            raise LoweringError(
                "the images' sizes vary after the last step, so they cannot be stacked; add CenterCrop(size), "
                "Resize((height, width)) or RandomResizedCrop(size)"
            )
        made = self.values.dtype
        if dtype is None and made not in DTYPES:
            raise LoweringError(
                f"the transforms make {made}, which is not one of {_list_dtypes(DTYPES)}; end them with one of these "
                "and convert the batch, or pass one as dtype="
            )
        if dtype == torch.uint8 and made != torch.uint8:
            raise LoweringError(
                f"dtype=torch.uint8 would cut the transforms' {made} values to whole numbers; for bytes, end the "
                "transforms with ToImage() or PILToTensor()"
            )
        pointwise = Pointwise(tuple(self.pointwise), None if dtype == made else dtype)
        shape = (self.channels, *(self.size or (0, 0)))
        return self.recipe(shape, pointwise, make_byte_table(pointwise, self.channels), type(self.values))

    def recipe(
        self, shape: tuple[int, int, int], pointwise: Pointwise, lut: torch.Tensor, kind: type[torch.Tensor]
    ) -> Recipe:
        """Returns the recipe lowered so far, for outputs of the given shape (C, H, W) and tensor class."""
        channels, height, width = shape
        erased = [one.as_subclass(torch.Tensor)[:, 0].T.to(lut.dtype) for one in self.written]
        return Recipe(
            tuple(self.steps),
            tuple(self.columns),
            height,
            width,
            channels,
            pointwise,
            lut,
            tuple(self._names),
            torch.cat(erased) if erased else None,
            frozenset(self._in_python),
            kind,
            self.mode,
        )


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # Pillow's reprs use capital digits


def repr_of(transform: object) -> str:
    """Returns the transform's repr without addresses, on one line of bounded length: the same in every process."""
    return shorten_text(_ADDRESS.sub("", repr(transform)), 200)


def _list_dtypes(dtypes: Sequence[torch.dtype]) -> str:
    return ", ".join(str(dtype) for dtype in dtypes)


def describe_step(step: S.Step) -> str:
    """Returns the step's repr, or words for a random choice of steps."""
    if isinstance(step, S.When):
        return f"with p={step.p:g} [{_describe_steps(step.steps)}]"
    if isinstance(step, S.OneOf):
        shares = [high - low for low, high in zip((0.0, *step.bounds), step.bounds, strict=False)]
        ways = [
            f"p={share:.4g}: {_describe_steps(branch)}" for share, branch in zip(shares, step.branches, strict=True)
        ]
        return f"one of [{' | '.join(ways)}]"
    if isinstance(step, S.Shuffled):
        return f"in random order [{' | '.join(_describe_steps(branch) for branch in step.branches)}]"
    if isinstance(step, S.MixChains):
        how = "blends" if step.blended else "sums"
        return f"{how} of {len(step.chains)} chains [{' | '.join(_describe_steps(chain) for chain in step.chains)}]"
    if isinstance(step, S.SumChains):
        return (
            f"weighted sum of the image and {len(step.chains)} chains [{' | '.join(map(_describe_steps, step.chains))}]"
        )
    return str(step)


def _describe_steps(steps: Sequence[S.Step]) -> str:
    return ", ".join(describe_step(step) for step in steps) or "nothing"
