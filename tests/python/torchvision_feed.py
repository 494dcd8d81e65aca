"""Runs torchvision's own transforms on headrace's draws, by answering the calls they make to torch's generator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from headrace import steps as S
from headrace.recognition import leaves

_MODULES = (
    "torchvision.transforms.transforms",
    "torchvision.transforms.v2._geometry",
    "torchvision.transforms.v2._transform",
)


class _Value:
    """A number where torchvision expects a tensor of one element."""

    def __init__(self, value: float) -> None:
        self.value = value

    def item(self) -> float:
        return self.value

    def __int__(self) -> int:
        return int(self.value)

    def __lt__(self, other: float) -> bool:
        return self.value < other

    def __ge__(self, other: float) -> bool:
        return self.value >= other


class FedTorch:
    """Stands for the module torch inside torchvision: everything is torch's but the random numbers."""

    def __init__(self) -> None:
        self._tries: list[float] = []
        self._places: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def feed(self, step: S.Step, draws: Sequence[float]) -> None:
        """The next transform is `step`: its columns are the next random numbers."""
        if isinstance(step, S.RandomResizedCrop):
            self._tries = list(draws[step.draw : step.draw + 20])
            self._places = list(draws[step.draw + 20 : step.draw + 22])
        elif isinstance(step, S.RandomCrop):
            self._places = list(draws[step.draw : step.draw + 2])
        elif isinstance(step, (S.HorizontalFlip, S.VerticalFlip)):
            self._tries = [draws[step.draw]]

    # What torchvision calls: empty(1).uniform_(a, b).item(), exp(...).item(), rand(1) < p, randint(0, n, size).

    def empty(self, size: int) -> FedTorch:
        return self

    def uniform_(self, low: float, high: float) -> _Value:
        return _Value(self._tries.pop(0))

    def exp(self, value: _Value) -> _Value:
        return value  # the draw is the ratio itself

    def rand(self, size: int) -> _Value:
        return _Value(self._tries.pop(0))

    def randint(self, low: int, high: int, size: Sequence[int]) -> _Value:
        assert low == 0
        return _Value(int(self._places.pop(0) * high))


class Feeder:
    """Calls torchvision's transforms one by one, each with the draws of the step it was lowered to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.torch = FedTorch()
        for module in _MODULES:
            monkeypatch.setattr(f"{module}.torch", self.torch)

    def __call__(self, transform: Any, image: Any, recipe: S.Recipe, draws: Sequence[float]) -> torch.Tensor:
        steps = iter(recipe.steps)
        for leaf, (_, lowered) in zip(leaves(transform), recipe.names, strict=True):
            if lowered.startswith("native"):
                self.torch.feed(next(steps), draws)
            image = leaf(image)
        return image.as_subclass(torch.Tensor)
