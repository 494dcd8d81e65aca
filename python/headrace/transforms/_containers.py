"""The transforms that apply other transforms: one after the other, perhaps, one of them, or in a random order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import nn

from headrace.transforms._base import RandomTransform, Transform

Transforms = Sequence[Callable[..., Any]]


def _check(transforms: Any, kinds: tuple[type, ...], words: str) -> None:
    if not isinstance(transforms, kinds):
        raise TypeError(f"Argument transforms should be {words}")
    if not transforms:
        raise ValueError("Pass at least one transform")


def _apply(transforms: Iterable[Callable[..., Any]], inputs: tuple[Any, ...]) -> Any:
    """What the transforms make of a sample, one after the other; they get several arguments where there are several."""
    several = len(inputs) > 1
    made: Any = inputs if several else inputs[0]
    for transform in transforms:
        made = transform(*made) if several else transform(made)
    return made


class _Listed(Transform):
    """Has `transforms`, each on a line of its repr."""

    transforms: Any

    def extra_repr(self) -> str:
        return "\n".join(f"    {transform}" for transform in self.transforms)


class Compose(_Listed):
    """Applies `transforms` one after the other.

    Raises:
        TypeError: not a sequence. ValueError: an empty one.
    """

    def __init__(self, transforms: Transforms) -> None:
        super().__init__()
        _check(transforms, (Sequence,), "a sequence of callables")
        self.transforms = transforms

    def forward(self, *inputs: Any) -> Any:
        return _apply(self.transforms, inputs)


class RandomApply(_Listed, RandomTransform):
    """Applies all of `transforms`, in order, with probability `p`.

    Raises:
        TypeError: not a sequence. ValueError: an empty one, or p outside [0, 1].
    """

    def __init__(self, transforms: Transforms | nn.ModuleList, p: float = 0.5) -> None:
        _check(transforms, (Sequence, nn.ModuleList), "a sequence of callables or a `nn.ModuleList`")
        super().__init__(p)
        self.transforms = transforms

    def forward(self, *inputs: Any) -> Any:
        return _apply(self.transforms if self._happens() else (), inputs)


class RandomChoice(Transform):
    """Applies one of `transforms`; `p` are their weights, None: equal ones.

    Raises:
        TypeError: not a sequence. ValueError: an empty one, or another number of weights.
    """

    def __init__(self, transforms: Transforms, p: list[float] | None = None) -> None:
        _check(transforms, (Sequence,), "a sequence of callables")
        weights = [1.0] * len(transforms) if p is None else p
        if len(weights) != len(transforms):
            raise ValueError(f"Length of p doesn't match the number of transforms: {len(weights)} != {len(transforms)}")
        super().__init__()
        self.transforms = transforms
        total = sum(weights)
        self.p = [weight / total for weight in weights]

    def forward(self, *inputs: Any) -> Any:
        return self.transforms[int(torch.multinomial(torch.tensor(self.p), 1))](*inputs)


class RandomOrder(Transform):
    """Applies all of `transforms` in a random order.

    Raises:
        TypeError: not a sequence. ValueError: an empty one.
    """

    def __init__(self, transforms: Transforms) -> None:
        _check(transforms, (Sequence,), "a sequence of callables")
        super().__init__()
        self.transforms = transforms

    def forward(self, *inputs: Any) -> Any:
        order = torch.randperm(len(self.transforms)).tolist()
        return _apply((self.transforms[i] for i in order), inputs)
