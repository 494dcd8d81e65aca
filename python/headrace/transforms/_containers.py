"""Transforms that apply other transforms: in order, with a probability, one, in random order, or each to the input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from headrace.transforms._arguments import Step
from headrace.transforms._base import RandomTransform, Transform

Transforms = Sequence[Step]
Callables = Sequence[Callable[..., object]]  # what attributes hold: each can be called with any number of values


def _check_transforms(transforms: object, kinds: tuple[type, ...], words: str) -> None:
    if not isinstance(transforms, kinds):
        raise TypeError(f"Argument transforms should be {words}")
    if not transforms:
        raise ValueError("Pass at least one transform")


def _apply_in_order(transforms: Iterable[Callable[..., object]], inputs: tuple[object, ...]) -> object:
    """Applies the transforms in order; several inputs are passed on as several arguments."""
    several = len(inputs) > 1
    made: Any = inputs if several else inputs[0]
    for transform in transforms:
        made = transform(*made) if several else transform(made)
    return made


class _Listed(Transform):
    """Shows each of `transforms` on its own line of the repr."""

    transforms: Iterable[Callable[..., object]]

    def extra_repr(self) -> str:
        return "\n".join(f"    {transform}" for transform in self.transforms)


class Compose(_Listed):
    """Applies `transforms` in order.

    Raises:
        TypeError: `transforms` is not a sequence.
        ValueError: `transforms` is empty.
    """

    transforms: Callables

    def __init__(self, transforms: Transforms) -> None:
        super().__init__()
        _check_transforms(transforms, (Sequence,), "a sequence of callables")
        self.transforms = transforms

    def forward(self, *inputs: object) -> object:
        return _apply_in_order(self.transforms, inputs)


class RandomApply(_Listed, RandomTransform):
    """Applies all of `transforms`, in order, with probability `p`.

    Raises:
        TypeError: `transforms` is neither a sequence nor an nn.ModuleList.
        ValueError: `transforms` is empty, or `p` is outside [0, 1].
    """

    def __init__(self, transforms: Transforms | nn.ModuleList, p: float = 0.5) -> None:
        _check_transforms(transforms, (Sequence, nn.ModuleList), "a sequence of callables or a `nn.ModuleList`")
        super().__init__(p)
        self.transforms: Callables | nn.ModuleList = transforms

    def forward(self, *inputs: object) -> object:
        return _apply_in_order(self.transforms if self._is_applied() else (), inputs)


class RandomChoice(Transform):
    """Applies one of `transforms`, chosen at random.

    Args:
        transforms: the transforms to choose from.
        p: one weight per transform, need not sum to 1. None: equal weights.

    Raises:
        TypeError: `transforms` is not a sequence.
        ValueError: `transforms` is empty, or the numbers of weights and transforms differ.
    """

    def __init__(self, transforms: Transforms, p: list[float] | None = None) -> None:
        _check_transforms(transforms, (Sequence,), "a sequence of callables")
        weights = [1.0] * len(transforms) if p is None else p
        if len(weights) != len(transforms):
            raise ValueError(f"Length of p doesn't match the number of transforms: {len(weights)} != {len(transforms)}")
        super().__init__()
        self.transforms: Callables = transforms
        total = sum(weights)
        self.p: list[float] = [weight / total for weight in weights]

    def forward(self, *inputs: object) -> object:
        return self.transforms[int(torch.multinomial(torch.tensor(self.p), 1))](*inputs)


class RandomOrder(Transform):
    """Applies all of `transforms` in a random order.

    Raises:
        TypeError: `transforms` is not a sequence.
        ValueError: `transforms` is empty.
    """

    def __init__(self, transforms: Transforms) -> None:
        _check_transforms(transforms, (Sequence,), "a sequence of callables")
        super().__init__()
        self.transforms: Callables = transforms

    def forward(self, *inputs: object) -> object:
        order = torch.randperm(len(self.transforms)).tolist()
        return _apply_in_order((self.transforms[i] for i in order), inputs)


class Views(Transform):
    """Applies each of `transforms` to the same input and returns all results: several views of one image.

    The loader decodes the image once for all views, if every step is native, and yields a batch (n, C, H, W) per view:
    ``[[first, second], targets]``, or ``[first, second]`` without targets. Views may differ in size, channels and
    dtype. Each view draws its own random numbers. Steps before Views in a Compose are done once, with one draw for all
    views; no step can follow it.

    Args:
        transforms: the transforms, each of which ends in a tensor. A dict makes dicts instead of lists.

    Raises:
        TypeError: `transforms` is neither a sequence nor a dict.
        ValueError: `transforms` is empty.
    """

    def __init__(self, transforms: Transforms | Mapping[str, Step]) -> None:
        super().__init__()
        _check_transforms(transforms, (Sequence, Mapping), "a sequence or a dict of callables")
        self.transforms: Callables | Mapping[str, Callable[..., object]] = transforms

    def forward(self, *inputs: object) -> object:
        if isinstance(self.transforms, Mapping):
            return {name: transform(*inputs) for name, transform in self.transforms.items()}
        return [transform(*inputs) for transform in self.transforms]

    def extra_repr(self) -> str:
        if isinstance(self.transforms, Mapping):
            return "\n".join(f"    {name!r}: {transform}" for name, transform in self.transforms.items())
        return "\n".join(f"    {transform}" for transform in self.transforms)
