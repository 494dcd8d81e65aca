"""One thread's settings, taken over by another: gradients, inference mode, autocast, context variables, NumPy's errors.

torch's worker processes are forked when an epoch begins, and have those of the thread that begins it. Threads that
stand for workers take them over.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch

T = TypeVar("T")


@dataclass(frozen=True)
class ThreadSettings:
    """The settings of one thread at one time.

    Attributes:
        context: values of all context variables, which `decimal` uses, too.
        gradients, inference: whether torch records gradients; whether inference mode is on.
        autocast: (type of device, dtype, whether casts are kept) of each autocast that is on.
        errors: what NumPy does at floating-point errors.
    """

    context: contextvars.Context
    gradients: bool
    inference: bool
    autocast: tuple[tuple[str, torch.dtype, bool], ...]
    errors: dict[str, Any]

    @classmethod
    def now(cls) -> ThreadSettings:
        """Returns those of the calling thread."""
        device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        kinds = ("cpu",) if device is None else ("cpu", device.type)
        autocast = tuple(
            (kind, torch.get_autocast_dtype(kind), torch.is_autocast_cache_enabled())
            for kind in kinds
            if torch.is_autocast_enabled(kind)
        )
        return cls(
            contextvars.copy_context(),
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            autocast,
            dict(np.geterr()),
        )

    def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Calls a function with these settings, in a copy of the context."""
        return self.context.copy().run(self._run_with_settings, function, arguments)

    def _run_with_settings(self, function: Callable[..., T], arguments: tuple[object, ...]) -> T:
        with self._enter_settings():
            return function(*arguments)

    @contextmanager
    def _enter_settings(self) -> Iterator[None]:
        with ExitStack() as stack:
            if self.inference != torch.is_inference_mode_enabled():
                stack.enter_context(torch.inference_mode(self.inference))
            stack.enter_context(torch.set_grad_enabled(self.gradients))
            for kind in {"cpu", *(one[0] for one in self.autocast)}:
                on = next((one for one in self.autocast if one[0] == kind), None)
                if on is not None:
                    stack.enter_context(torch.autocast(kind, dtype=on[1], cache_enabled=on[2]))
                elif torch.is_autocast_enabled(kind):
                    stack.enter_context(torch.autocast(kind, enabled=False))
            stack.enter_context(np.errstate(**self.errors))
            yield
