"""The random numbers of what Python does: a sample's or a batch's own, in whatever thread and order it is made."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

_NAMES = (
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"),
    *("normal", "bernoulli", "multinomial", "poisson"),
)
_IN_PLACE = (
    *("random_", "uniform_", "normal_", "bernoulli_"),
    *("exponential_", "geometric_", "cauchy_", "log_normal_"),
)
_DRAWING = frozenset(
    [getattr(torch, name) for name in _NAMES]
    + [getattr(torch.Tensor, name) for name in _IN_PLACE]
    + [torch.Tensor.bernoulli, torch.Tensor.multinomial]
)


class _OwnGenerator(TorchFunctionMode):
    """Gives every function of torch that draws, in this thread, a generator where the caller gave none.

    torch's default generator belongs to the whole process: a training step in the main thread draws from it at the same
    time.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed
        self._default: torch.device | None = None
        self._generators = {"cpu": torch.Generator("cpu").manual_seed(seed)}  # by the device that draws

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _DRAWING and kwargs.get("generator") is None:
            where = next((one.device for one in args if isinstance(one, torch.Tensor)), None)
            where = torch.device(kwargs.get("device") or where or self._default_device())
            if where.type != "meta":  # which draws nothing
                kwargs["generator"] = self._on(where)
        return func(*args, **kwargs)

    def _default_device(self) -> torch.device:
        if self._default is None:  # asked once: it takes longer than most draws
            self._default = torch.get_default_device()
        return self._default

    def _on(self, device: torch.device) -> torch.Generator:
        name = str(device)
        if name not in self._generators:
            self._generators[name] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[name]


class FixedRand(TorchFunctionMode):
    """Inside it ``torch.rand`` gives `number` alone, in this thread."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self._number = number

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        return made.fill_(self._number) if func in (torch.rand, torch.rand_like) else made


def seed_of(uniform: float) -> int:
    """The seed that a draw in [0, 1) stands for: 53 bits."""
    return int(uniform * 2.0**53)


@contextmanager
def sample_randomness(
    uniform: float, *, process_wide: bool = False, device: torch.device | None = None
) -> Iterator[None]:
    """What torch draws inside follows from `uniform` alone, a draw in [0, 1).

    Args:
        process_wide: also `random`, `numpy.random` and what torch draws past its Python functions. Their generators are
            the whole process's: they are put back afterwards, and no thread but a loader's may draw
            meanwhile.
        device: of which torch's default generator is meant too.
    """
    seed = seed_of(uniform)
    if not process_wide:
        with _OwnGenerator(seed):
            yield
        return
    with kept_generators(), _kept_generator_of(device):
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002 - the steps' own choice
        torch.default_generator.manual_seed(seed)
        if device is not None and device.type == "cuda":
            torch.cuda.default_generators[device.index or 0].manual_seed(seed)
        yield


@contextmanager
def kept_generators() -> Iterator[None]:
    """The process's generators are afterwards where they were. One thread at a time: two loaders' may both ask."""
    with _alone:
        before = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002
            torch.set_rng_state(before[2])


@contextmanager
def generators_held() -> Iterator[None]:
    """No other thread's step has seeded the process's generators meanwhile: what is drawn from them is their own."""
    with _alone:
        yield


def _forget_the_parents_threads() -> None:
    global _alone
    _alone = threading.RLock()  # one of them may have held it


_alone = threading.RLock()  # a step may iterate over a loader of its own
os.register_at_fork(after_in_child=_forget_the_parents_threads)


@contextmanager
def _kept_generator_of(device: torch.device | None) -> Iterator[None]:
    if device is None or device.type != "cuda":
        yield
        return
    before = torch.cuda.get_rng_state(device)
    try:
        yield
    finally:
        torch.cuda.set_rng_state(before, device)


def draws_process_wide(function: Callable[[], Any]) -> bool:
    """Whether calling `function` draws from a generator of the whole process; puts these back.

    Raises what it raises.
    """
    with kept_generators():
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002 - the steps' own choice
        before = _states()
        with _OwnGenerator(0):
            function()
        return before != _states()


def _states() -> tuple[Any, ...]:
    _, numbers, *place = np.random.get_state(legacy=True)  # noqa: NPY002
    return random.getstate(), np.asarray(numbers).tobytes(), place, torch.get_rng_state().numpy().tobytes()
