"""Random numbers of steps in Python: they depend on the sample or batch only, not on the thread or the order."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.overrides import (  # type: ignore[attr-defined]
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_torch_function_stack,
)

from headrace._base.safe_exceptions import contextmanager
from headrace._base.types import Function

_NAMES = (
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"),
    *("normal", "bernoulli", "multinomial", "poisson", "binomial"),
    *("_sample_dirichlet", "_standard_gamma"),  # of torch.distributions' Beta, Dirichlet and Gamma
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


class _Mode(TorchFunctionMode):
    """A mode that takes itself off the stack of modes, not what happens to be on top.

    After an interrupt `with` blocks may be left late, by the garbage collector: other code has taken the mode off
    already, or an inner one is still there.
    """

    def __exit__(self, *error: object) -> None:
        if any(mode is self for mode in _get_current_function_mode_stack()):  # type: ignore[no-untyped-call]
            while _pop_torch_function_stack() is not self:
                pass


class _OwnGenerator(_Mode):
    """Passes its own generator to every torch function that draws in this thread, unless the caller passed one.

    torch's default generator cannot be used, because it belongs to the whole process: a training step in the main
    thread draws from it at the same time.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed
        self._default: torch.device | None = None
        self._generators = {"cpu": torch.Generator("cpu").manual_seed(seed)}  # device name -> generator

    def __torch_function__(self, func: Function, types: object, args: Any = (), kwargs: Any = None) -> object:
        kwargs = kwargs or {}
        if func in _DRAWING and kwargs.get("generator") is None:
            where = next((one.device for one in args if isinstance(one, torch.Tensor)), None)
            where = torch.device(kwargs.get("device") or where or self._default_device())
            if where.type != "meta":  # the meta device draws nothing
                kwargs["generator"] = self._find_generator(where)
        return func(*args, **kwargs)

    def _default_device(self) -> torch.device:
        if self._default is None:  # looked up once: it takes longer than most draws
            self._default = torch.get_default_device()
        return self._default

    def _find_generator(self, device: torch.device) -> torch.Generator:
        name = str(device)
        if name not in self._generators:
            self._generators[name] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[name]


class FixedRand(_Mode):
    """While active, ``torch.rand`` and ``torch.rand_like`` return only `number` in this thread."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self._number = number

    def __torch_function__(self, func: Function, types: object, args: Any = (), kwargs: Any = None) -> object:
        made = func(*args, **(kwargs or {}))
        return made.fill_(self._number) if func in (torch.rand, torch.rand_like) else made


def seed_from_draw(uniform: float) -> int:
    """Returns the seed, of 53 bits, for a draw in [0, 1)."""
    return int(uniform * 2.0**53)


def numpy_seed_of(seed: int) -> int:
    """Returns the seed, of 32 bits, of numpy's generator where torch's has `seed`, of 53 bits.

    torch takes the low 32 bits of a seed, numpy gets the high ones: seeded alike, both yield the same words.
    """
    return seed >> 21


@contextmanager
def sample_randomness(
    uniform: float, *, process_wide: bool = False, device: torch.device | None = None
) -> Iterator[None]:
    """Makes all that torch draws inside follow from `uniform`, a draw in [0, 1).

    Args:
        uniform: the draw that seeds the generators.
        process_wide: whether to seed also `random`, `numpy.random` and torch's default generator. These belong to the
            whole process: their states are restored afterwards, and only a loader's threads may draw meanwhile.
        device: a CUDA device whose default generator is seeded too, with `process_wide`.
    """
    seed = seed_from_draw(uniform)
    if not process_wide:
        with _OwnGenerator(seed):
            yield
        return
    with preserve_process_generators(), _kept_generator_of(device):
        random.seed(seed)
        np.random.seed(numpy_seed_of(seed))  # noqa: NPY002 - the steps' own choice
        torch.default_generator.manual_seed(seed)
        if device is not None and device.type == "cuda":
            torch.cuda.default_generators[device.index or 0].manual_seed(seed)
        yield


def process_generator_states() -> tuple[Any, ...]:
    """Returns the states of the process's generators: Python's, NumPy's and torch's."""
    return random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002 - those that programs use


def restore_process_generators(states: tuple[Any, ...]) -> None:
    """Sets the states that `process_generator_states` has returned."""
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    torch.set_rng_state(states[2])


@contextmanager
def preserve_process_generators() -> Iterator[None]:
    """Restores the states of the process's generators at exit. A lock admits one thread of any loader at a time."""
    with _alone:
        before = process_generator_states()
        try:
            yield
        finally:
            restore_process_generators(before)


@contextmanager
def generators_held() -> Iterator[None]:
    """Keeps steps in other threads from seeding the process's generators meanwhile: draws follow their own states."""
    with _alone:
        yield


def _forget_the_parents_threads() -> None:
    global _alone
    _alone = threading.RLock()  # a thread that does not exist in the child may have held the parent's lock


_alone = threading.RLock()  # reentrant, because a step may iterate over a loader of its own
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


def draws_process_wide(function: Callable[[], object]) -> bool:
    """Calls `function` and returns whether it drew from a generator of the whole process; restores the generators.

    Raises what `function` raises.
    """
    with preserve_process_generators():
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002 - the steps' own choice
        before = comparable_generator_states()
        with _OwnGenerator(0):
            function()
        return before != comparable_generator_states()


def comparable_generator_states() -> tuple[object, ...]:
    """Returns the states of the process's generators as values: equal ones if nothing has drawn in between."""
    _, numbers, *place = np.random.get_state(legacy=True)  # noqa: NPY002
    return random.getstate(), np.asarray(numbers).tobytes(), place, torch.get_rng_state().numpy().tobytes()
