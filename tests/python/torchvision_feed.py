"""Runs torchvision's own transforms on headrace's draws, by replacing the random generators that they call."""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
import torch

from headrace._lowering.transform_library import leaf_transforms
from headrace._recipe.steps import steps as S
from headrace._recipe.steps.recipe import Recipe

_MODULES = (
    "torchvision.transforms.transforms",
    "torchvision.transforms.v2._augment",
    "torchvision.transforms.v2._color",
    "torchvision.transforms.v2._container",
    "torchvision.transforms.v2._geometry",
    "torchvision.transforms.v2._misc",
    "torchvision.transforms.v2._transform",
)
_FACTORS = {"brightness": S.Brightness, "contrast": S.Contrast, "saturation": S.Saturation, "hue": S.Hue}


class _Value:
    """A number where torchvision expects a tensor of one element."""

    def __init__(self, value: float) -> None:
        self.value = value

    def item(self) -> float:
        return self.value

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __lt__(self, other: float) -> bool:
        return self.value < other

    def __gt__(self, other: float) -> bool:
        return self.value > other

    def __ge__(self, other: float) -> bool:
        return self.value >= other


class _Drawn(_Value):
    """A uniform number of torch.rand that stands for a draw: scaled and shifted to a range, it is the draw."""

    def __mul__(self, span: float) -> _Drawn:
        return self

    def __radd__(self, low: float) -> float:
        return self.value


class FedTorch:
    """Replaces the module torch inside torchvision: only the random numbers differ from torch's."""

    def __init__(self) -> None:
        self._tries: list[float] = []
        self._places: list[float] = []
        self._order: list[int] = []
        self._choice = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def feed(self, step: S.Step | None, draws: Sequence[float], transform: Any = None) -> None:
        """Makes the columns of `step`, the next transform, the next random numbers. None: it changes nothing."""
        if type(transform).__name__ == "ColorJitter":
            self._feed_jitter(step, draws, transform)
        elif type(transform).__name__ == "RandomChannelPermutation":
            (way,) = step.branches[int(draws[step.draw] * 6)] if isinstance(step, S.OneOf) else (None,)
            self._order = list(way.order) if isinstance(way, S.PermuteChannels) else [0]
        elif step is None:
            self._tries = [0.5]
        elif isinstance(step, S.RandomResizedCrop):
            self._tries = list(draws[step.draw : step.draw + 20])
            self._places = list(draws[step.draw + 20 : step.draw + 22])
        elif isinstance(step, S.RandomCrop):
            self._places = list(draws[step.draw : step.draw + 2])
        elif isinstance(step, (S.HorizontalFlip, S.VerticalFlip, S.When, S.GaussianBlur)):
            self._tries = [draws[step.draw]]
            if type(transform).__name__ == "RandomZoomOut":
                (zoom,) = step.steps if isinstance(step, S.When) else ()
                assert isinstance(zoom, S.ZoomOut)
                self._tries += draws[zoom.draw : zoom.draw + 3]
        elif isinstance(step, S.OneOf):
            self._choice = [bound > draws[step.draw] for bound in step.bounds].index(True)
            if hasattr(transform, "interpolation"):  # timm's crop with one of several filters
                self.feed(step.branches[self._choice][0], draws)
            if type(transform).__name__ == "RandomShortestSize":  # it draws the index of a size
                self._places = [(self._choice + 0.5) / len(step.bounds)]
        elif isinstance(step, S.Shuffled):
            self._order = _permutation(step, draws)
        elif isinstance(step, (S.RandomResize, S.RandomCropOrPad, S.RandomPad)):
            self._places = list(draws[step.draw : step.draw + 2])
        elif isinstance(step, S.ScaleShorter):
            self._places = [0.0]
        elif isinstance(step, S.ScaleJitter):
            self._tries = [draws[step.draw]]
        elif isinstance(step, S.RandomKeepRatio):
            self._tries = _kept_ratio(step, draws)
        elif isinstance(step, S.Erase):
            self._tries = list(draws[step.draw : step.draw + 21])
            self._places = list(draws[step.draw + 21 : step.draw + 23])

    def _feed_jitter(self, step: S.Step | None, draws: Sequence[float], jitter: Any) -> None:
        """ColorJitter draws an order of all four factors, then the factors that it has, in the order of _FACTORS."""
        done: list[Any] = [] if step is None else [step]
        if isinstance(step, S.Shuffled):
            done = [step.branches[i][0] for i in _permutation(step, draws)]
        kinds = list(_FACTORS.values())
        self._order = [kinds.index(type(one)) for one in done]
        self._order += [i for i in range(4) if i not in self._order]
        drawn = {type(one): draws[one.draw] for one in done}
        # Factors that do not change a gray image have no draw there.
        self._tries = [drawn.get(kind, 0.25) for name, kind in _FACTORS.items() if getattr(jitter, name) is not None]

    # What v2 calls: empty(1).uniform_(a, b).item(), exp(...).item(), rand(1) < p, randint(0, n, size), randperm(n),
    # multinomial(p, 1).

    def empty(self, size: int) -> FedTorch:
        return self

    def uniform_(self, low: float, high: float) -> _Value:
        return _Value(self._tries.pop(0))

    def exp(self, value: _Value) -> _Value:
        return value  # the draw is the ratio itself

    def rand(self, size: int) -> Any:
        return _Drawn(self._tries.pop(0)) if size == 1 else [self._tries.pop(0) for _ in range(size)]

    def randint(self, *bounds: Any, size: Any = None) -> _Value:
        low, high = (0, *(bounds[:-1] if size is None else bounds))[-2:]
        return _Value(low + int(self._places.pop(0) * (high - low)))

    def randperm(self, count: int) -> list[int]:
        assert sorted(self._order) == list(range(count))
        return self._order

    def multinomial(self, p: torch.Tensor, count: int) -> _Value:
        return _Value(self._choice)


class FedRandom:
    """Replaces the module random inside v1 and timm: only the random numbers differ from Python's."""

    def __init__(self, fed: FedTorch) -> None:
        self._fed = fed

    def __getattr__(self, name: str) -> Any:
        return getattr(random, name)

    def shuffle(self, items: list[int]) -> None:
        items[:] = self._fed.randperm(len(items))

    def choices(self, items: Sequence[Any], weights: Sequence[float] | None) -> list[Any]:
        return [items[self._fed._choice]]

    def choice(self, items: Sequence[Any]) -> Any:
        return items[self._fed._choice]

    def random(self) -> float:
        return self._fed._tries.pop(0)

    def uniform(self, low: float, high: float) -> float:
        return self._fed._tries.pop(0)

    def randint(self, low: int, high: int) -> int:
        assert low == 0
        return int(self._fed._places.pop(0) * (high + 1))


class FedMath:
    """Replaces the module math inside timm: the draw is the ratio itself, not its logarithm."""

    def __getattr__(self, name: str) -> Any:
        return getattr(math, name)

    def exp(self, value: float) -> float:
        return value


class Feeder:
    """Calls torchvision's transforms one by one, each with the draws of the step it was lowered to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.torch = FedTorch()
        self._steps: dict[int, S.Step | None] = {}
        self._draws: Sequence[float] = ()
        self._monkeypatch = monkeypatch
        for module in _MODULES:
            monkeypatch.setattr(f"{module}.torch", self.torch)
        v1 = sys.modules["torchvision.transforms.transforms"]
        monkeypatch.setattr(v1, "random", FedRandom(self.torch))
        self.watch(torch.nn.Module)
        self.watch(v1.RandomOrder)
        self.watch(v1.RandomChoice)

    def feed_timm(self) -> None:
        """Feeds timm's own transforms, too."""
        transforms, erasing = (sys.modules[f"timm.data.{name}"] for name in ("transforms", "random_erasing"))
        for module in (transforms, erasing):
            self._monkeypatch.setattr(module, "random", FedRandom(self.torch))
            self._monkeypatch.setattr(module, "math", FedMath())
        self.watch(transforms.RandomResizedCropAndInterpolation)
        self.watch(transforms.ResizeKeepRatio)
        self.watch(transforms.RandomPad)
        self.watch(erasing.RandomErasing)

    def watch(self, cls: type) -> None:
        """Feeds the objects of the class whenever they are called, also by a container."""
        called = cls.__call__

        def fed_call(transform: Any, *args: Any, **kwargs: Any) -> Any:
            if id(transform) in self._steps:
                self.torch.feed(self._steps[id(transform)], self._draws, transform)
            return called(transform, *args, **kwargs)

        self._monkeypatch.setattr(cls, "__call__", fed_call)

    def __call__(self, transform: Any, image: Any, recipe: Recipe, draws: Sequence[float]) -> torch.Tensor:
        made: torch.Tensor = self.run(transform, image, recipe, draws).as_subclass(torch.Tensor)
        return made

    def run(self, transform: Any, sample: Any, recipe: Recipe, draws: Sequence[float]) -> Any:
        """Returns what torchvision makes of a sample: an image, or whatever else its transforms take."""
        self._steps, self._draws = {}, draws
        steps, outer = iter(recipe.steps), list(leaf_transforms(transform))
        for leaf, (_, lowered) in zip(outer, recipe.names, strict=True):
            self._pair(leaf, next(steps) if lowered.startswith("native") else None)
        for leaf in outer:
            sample = leaf(sample)
        return sample

    def _pair(self, transform: Any, step: S.Step | None) -> None:
        self._steps[id(transform)] = step
        if isinstance(step, S.When) and hasattr(transform, "transforms"):
            self._pair_all(transform.transforms, step.steps)
        elif isinstance(step, (S.OneOf, S.Shuffled)) and hasattr(transform, "transforms"):
            for one, branch in zip(transform.transforms, step.branches, strict=True):
                self._pair_all([one], branch)

    def _pair_all(self, transforms: Iterable[Any], steps: Sequence[S.Step]) -> None:
        inner = [leaf for transform in transforms for leaf in leaf_transforms(transform)]
        for leaf, step in zip(inner, steps, strict=True):
            self._pair(leaf, step)


def _kept_ratio(step: S.RandomKeepRatio, draws: Sequence[float]) -> list[float]:
    """What timm's ResizeKeepRatio draws: it draws no chance that is 0, and no number that it does not use."""
    scales, scale, changes, aspect = draws[step.draw : step.draw + 4]
    chances = (step.scale_p, scales, scale), (step.aspect_p, changes, aspect)
    return [one for p, happens, value in chances if p > 0 for one in ((happens, value) if happens < p else (happens,))]


def _permutation(step: S.Shuffled, draws: Sequence[float]) -> list[int]:
    count = len(step.branches)
    return list(list(itertools.permutations(range(count)))[int(draws[step.draw] * math.factorial(count))])
