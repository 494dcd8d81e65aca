"""Python steps of programs: each has a state of another kind, or looks at a setting of its thread or process."""

from __future__ import annotations

import collections
import contextvars
import decimal
import functools
import itertools
import random
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import get_worker_info

SETTING: contextvars.ContextVar[int] = contextvars.ContextVar("SETTING", default=1)


def shifted(value: Any, by: float) -> Any:
    """An image or a tensor with a visible trace of a number, which is also visible after a resize."""
    if isinstance(value, Image.Image):
        return value.point(lambda pixel: int(pixel * 0.5 + 64 * (by % 2)))
    return value * 0.5 + by


class Counter:
    """Counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, value: Any) -> Any:
        self.calls += 1
        return shifted(value, self.calls % 7 / 4)

    def label(self, target: Any) -> Any:
        """A target_transform that is coupled to the step."""
        return self.calls

    def other(self, value: Any) -> Any:
        """A bound method as a step."""
        return self(value)


class Slots:
    """Counts in a slot."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, value: Any) -> Any:
        self.calls += 1
        return shifted(value, self.calls % 5 / 3)


class Held:
    """Draws from a generator of its own: the method `draw` of `generator`."""

    def __init__(self, generator: Any, draw: Callable[[Any], Any]) -> None:
        self.generator, self.draw, self.drawn = generator, draw, -1.0

    def __call__(self, value: Any) -> Any:
        self.drawn = float(self.draw(self.generator))
        return shifted(value, self.drawn)

    def label(self, target: Any) -> float:
        """A target_transform that is coupled to the step."""
        return self.drawn


def of_python() -> Held:
    """Draws from a random.Random."""
    return Held(random.Random(3), lambda generator: generator.random())


def of_numpy() -> Held:
    """Draws from a numpy Generator."""
    return Held(np.random.default_rng(3), lambda generator: generator.random())


def of_legacy_numpy() -> Held:
    """Draws from a numpy RandomState."""
    return Held(np.random.RandomState(3), lambda generator: generator.rand())


def of_torch() -> Held:
    """Draws from a torch.Generator."""
    return Held(torch.Generator().manual_seed(3), lambda generator: torch.rand((), generator=generator))


def of_an_iterator() -> Held:
    """Takes the next of an iterator."""
    return Held(itertools.count(), lambda counter: next(counter) % 6 / 3)


def of_a_generator() -> Held:
    """Takes the next of a generator."""
    return Held((number % 5 / 2 for number in range(10_000)), next)


class Last:
    """Mixes each image with the one before it."""

    def __init__(self) -> None:
        self.last: Any = None

    def __call__(self, value: Any) -> Any:
        if isinstance(value, Image.Image):
            small = value.resize((8, 8)).convert("RGB")
            mixed = small if self.last is None else Image.blend(small, self.last, 0.5)
            self.last = small
            return mixed
        mixed = value if self.last is None or self.last.shape != value.shape else (value + self.last) / 2
        self.last = value
        return mixed


class Cache:
    """Remembers the first image of each size."""

    def __init__(self) -> None:
        self.seen: dict[Any, Any] = {}

    def __call__(self, value: Any) -> Any:
        key = value.size if isinstance(value, Image.Image) else tuple(value.shape)
        return self.seen.setdefault(key, value)


class Window:
    """Keeps the means of the last three in a deque."""

    def __init__(self) -> None:
        self.means: collections.deque[float] = collections.deque(maxlen=3)

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        self.means.append(float(value.double().mean()))
        return value - sum(self.means) / 3


class Module(torch.nn.Module):
    """A module with a buffer that counts."""

    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, value: Any) -> Any:
        """Counts in the buffer."""
        self.calls += 1
        return shifted(value, float(self.calls % 4) / 3)


class InPlaceTensor:
    """Counts in a tensor, in place."""

    def __init__(self) -> None:
        self.total = torch.zeros(1)

    def __call__(self, value: Any) -> Any:
        self.total.add_(1)
        return shifted(value, self.total.item() % 3 / 2)


class InPlaceArray:
    """Counts in an array, in place."""

    def __init__(self) -> None:
        self.total = np.zeros(1)

    def __call__(self, value: Any) -> Any:
        self.total += 1
        return shifted(value, float(self.total[0]) % 3 / 2)


class Inner:
    """Its state is two objects away."""

    def __init__(self) -> None:
        self.counter = [{"counter": Counter()}]

    def __call__(self, value: Any) -> Any:
        return self.counter[0]["counter"](value)


class Memo:
    """A cached method, whose function draws once for each size."""

    def __init__(self) -> None:
        generator = random.Random(5)
        self.amount = functools.lru_cache(maxsize=2)(lambda size: generator.random())

    def __call__(self, value: Any) -> Any:
        return shifted(value, self.amount(value.size if isinstance(value, Image.Image) else value.shape))


class Local:
    """Counts for each thread."""

    def __init__(self) -> None:
        self.local = threading.local()

    def __call__(self, value: Any) -> Any:
        self.local.calls = getattr(self.local, "calls", 0) + 1
        return shifted(value, self.local.calls % 5 / 4)


class Hidden:
    """A property that changes the object that it reads."""

    def __init__(self) -> None:
        self._number = 0

    @property
    def number(self) -> int:
        """The next number."""
        self._number += 1
        return self._number

    def __call__(self, value: Any) -> Any:
        return shifted(value, self.number % 6 / 5)


class Shared:
    """Counts in the class."""

    calls = 0

    def __call__(self, value: Any) -> Any:
        Shared.calls += 1
        return shifted(value, Shared.calls % 5 / 4)


STATEFUL = {
    "Counter()": "image tensor",
    "Slots()": "image tensor",
    "of_python()": "image tensor",
    "of_numpy()": "image tensor",
    "of_legacy_numpy()": "image tensor",
    "of_torch()": "image tensor",
    "of_an_iterator()": "image tensor",
    "of_a_generator()": "image tensor",
    "Last()": "image tensor",
    "Cache()": "image tensor",
    "Window()": "tensor",
    "Module()": "image tensor",
    "InPlaceTensor()": "image tensor",
    "InPlaceArray()": "image tensor",
    "Inner()": "image tensor",
    "Memo()": "image tensor",
    "Local()": "image tensor",
    "Hidden()": "image tensor",
    "Shared()": "image tensor",
    "Counter().other": "image tensor",
    "functools.partial(by, [])": "image tensor",
    "V.Lambda(Counter())": "image tensor",
    "V.RandomApply([Counter()], p=1.0)": "",  # draws from torch's generator
    "torch.nn.BatchNorm2d(3).train()": "",
    "torch.nn.Sequential(Module())": "image tensor",
}


def by(calls: list[int], value: Any) -> Any:
    """A function whose first argument is changed."""
    calls.append(1)
    return shifted(value, len(calls) % 6 / 4)


def of_context(value: Any) -> Any:
    """Looks at a context variable."""
    return shifted(value, SETTING.get() / 4)


def of_precision(value: Any) -> Any:
    """Looks at the precision of decimal numbers."""
    return shifted(value, float(decimal.Decimal(1) / decimal.Decimal(3)))


def of_gradients(value: Any) -> Any:
    """Looks at the mode of gradients."""
    return shifted(value, torch.is_grad_enabled() + torch.is_inference_mode_enabled() / 2)


def of_autocast(value: torch.Tensor) -> torch.Tensor:
    """Computes what autocast computes in another dtype."""
    return (value.flatten(1) @ torch.ones(value[0].numel(), 2)).float()


def of_dtype(value: Any) -> Any:
    """Makes a number of the default dtype."""
    return shifted(value, float(torch.tensor(1 / 3)))


def of_threads(value: Any) -> Any:
    """Looks at whether it runs in a worker, and among how many."""
    info = get_worker_info()
    return shifted(value, 0.0 if info is None else info.num_workers / 4)


def of_numpys_errors(value: Any) -> Any:
    """Looks at how numpy handles divisions by zero."""
    return shifted(value, {"warn": 0.25, "ignore": 0.5, "raise": 0.75}.get(np.geterr()["divide"], 0.0))


def of_warnings(value: Any) -> Any:
    """Warns; an error if warnings are errors."""
    warnings.warn("boom", UserWarning, stacklevel=1)
    return value


def of_requires_grad(value: torch.Tensor) -> torch.Tensor:
    """Multiplies by a parameter: the result says if it needs gradients."""
    made = value * torch.nn.Parameter(torch.ones(()))
    return torch.full_like(value, float(made.requires_grad))


class Mine(torch.Tensor):
    """A subclass of tensors."""


#: A tensor that a step returns each time.
ZERO = torch.zeros(3, 4, 4)

LOOKING = {
    "of_context": "image tensor",
    "of_precision": "image tensor",
    "of_gradients": "image tensor",
    "of_autocast": "tensor",
    "of_dtype": "image tensor",
    "of_threads": "image tensor",
    "of_numpys_errors": "image tensor",
    "of_warnings": "image tensor",
    "of_requires_grad": "tensor",
}

#: Settings that programs change around their epochs, for the steps that look at them.
SETTINGS = (
    "see.under(SETTING.set, 3)",
    "see.under(decimal.setcontext, decimal.Context(prec=3))",
    "see.under(torch.set_grad_enabled, False)",
    "see.under(torch.set_default_dtype, torch.float64)",
    "see.within(torch.no_grad())",
    "see.within(torch.inference_mode())",
    "see.within(torch.autocast('cpu', torch.bfloat16))",
    "see.within(np.errstate(divide='raise'))",
    "see.within(np.errstate(divide='ignore'))",
    "see.within(warnings_as_errors())",
)


class warnings_as_errors(warnings.catch_warnings):
    """A context in which warnings are errors."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("error", UserWarning)
