"""The transforms that choose among other transforms, or order them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from headrace.transforms._base import RandomTransform, Transform

Transforms = Sequence[Callable[[Any], Any]]


def _check(transforms: Any, kinds: tuple[type, ...], words: str) -> None:
    if not isinstance(transforms, kinds):
        raise TypeError(f"Argument transforms should be {words}")
    if not transforms:
        raise ValueError("Pass at least one transform")


class RandomApply(RandomTransform):
    """Applies all of `transforms`, in order, with probability `p`.

    Raises:
        TypeError: not a sequence. ValueError: an empty one, or p outside [0, 1].
    """

    def __init__(self, transforms: Transforms | nn.ModuleList, p: float = 0.5) -> None:
        _check(transforms, (Sequence, nn.ModuleList), "a sequence of callables or a `nn.ModuleList`")
        super().__init__(p)
        self.transforms = transforms

    def forward(self, image: Any) -> Any:
        if torch.rand(1) >= self.p:
            return image
        for transform in self.transforms:
            image = transform(image)
        return image

    def extra_repr(self) -> str:
        return "\n".join(f"    {transform}" for transform in self.transforms)


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

    def forward(self, image: Any) -> Any:
        return self.transforms[int(torch.multinomial(torch.tensor(self.p), 1))](image)


class RandomOrder(Transform):
    """Applies all of `transforms` in a random order.

    Raises:
        TypeError: not a sequence. ValueError: an empty one.
    """

    def __init__(self, transforms: Transforms) -> None:
        _check(transforms, (Sequence,), "a sequence of callables")
        super().__init__()
        self.transforms = transforms

    def forward(self, image: Any) -> Any:
        for i in torch.randperm(len(self.transforms)).tolist():
            image = self.transforms[i](image)
        return image
