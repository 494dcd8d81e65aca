"""torch's random numbers in blocks, so that torchvision's own code draws many samples a second."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

BLOCK = 1 << 14
#: Samples whose distributions are compared. The tests hold for more, too: HEADRACE_DRAWS=100000.
DRAWS = int(os.environ.get("HEADRACE_DRAWS", "20000"))


class BufferedTorch:
    """Replaces the module torch inside torchvision: numbers of one kind are drawn many at once, by the same calls."""

    def __init__(self) -> None:
        self._blocks: dict[Any, Iterator[torch.Tensor]] = {}
        self._generator = torch.Generator().manual_seed(1)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def _next(self, key: Any, size: Any, block: Callable[[tuple[int, ...]], torch.Tensor]) -> torch.Tensor:
        size = (size,) if isinstance(size, int) else tuple(size)
        key = (*key, size)
        made = next(self._blocks.get(key, iter(())), None)
        if made is None:
            self._blocks[key] = iter(block((BLOCK, *size)).unbind())
            made = next(self._blocks[key])
        return made

    def rand(self, size: Any) -> torch.Tensor:
        return self._next(("rand",), size, lambda shape: torch.rand(shape, generator=self._generator))

    def randint(self, *bounds: Any, size: Any = None, dtype: Any = None) -> torch.Tensor:
        if size is None:
            *numbers, size = bounds
            bounds = tuple(numbers)
        low, high = bounds if len(bounds) == 2 else (0, *bounds)
        drawn = lambda shape: torch.randint(low, high, shape, generator=self._generator)  # noqa: E731
        return self._next(("randint", low, high), size, drawn)

    def randperm(self, count: int) -> torch.Tensor:
        """As torch.randperm: each order as likely as the others; by sorting, many at once."""
        drawn = lambda shape: torch.rand(shape, generator=self._generator, dtype=torch.float64).argsort(-1)  # noqa: E731
        return self._next(("randperm",), count, drawn)

    def empty(self, *size: Any, **options: Any) -> Any:
        return _Empty(self, size) if size == (1,) and not options else torch.empty(*size, **options)


class _Empty:
    def __init__(self, buffered: BufferedTorch, size: Any) -> None:
        self._buffered, self._size = buffered, size

    def uniform_(self, low: float, high: float) -> torch.Tensor:
        generator, low, high = self._buffered._generator, float(low), float(high)  # they may be tensors
        drawn = lambda shape: torch.empty(shape).uniform_(low, high, generator=generator)  # noqa: E731
        return self._buffered._next(("uniform", low, high), self._size, drawn)


def buffer_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes torchvision's transforms draw from a BufferedTorch."""
    buffered = BufferedTorch()
    for module in (
        *("transforms", "autoaugment"),
        *(f"v2._{name}" for name in ("augment", "auto_augment", "color", "geometry", "transform")),
    ):
        monkeypatch.setattr(f"torchvision.transforms.{module}.torch", buffered)
