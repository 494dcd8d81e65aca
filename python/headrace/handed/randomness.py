"""The states of torch's generators that an epoch follows from, as strings that any checkpoint can hold."""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, IterDataPipe, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from headrace.handed.protocol import stateful
from headrace.sampler.seeded import Seeded


@dataclass(frozen=True)
class Randomness:
    """Of the generators that loader and samplers hold, and of torch's default one where the order may follow from it.

    A state is uint8 (n,), and None where it is not needed.
    """

    own: tuple[torch.Tensor, ...]
    default: torch.Tensor | None

    @classmethod
    def now(cls, generators: Sequence[torch.Generator], default: bool) -> Randomness:
        """Of this moment."""
        return cls(tuple(one.get_state() for one in generators), torch.get_rng_state() if default else None)

    def restore(self, generators: Sequence[torch.Generator]) -> None:
        """Sets the generators.

        Raises:
            ValueError: there are more of them, or fewer.
        """
        if len(generators) != len(self.own):
            raise ValueError(
                f"the state does not fit: the loader and its samplers have another number of torch.Generators "
                f"(saved {len(self.own)}, now {len(generators)})"
            )
        for generator, state in zip(generators, self.own, strict=True):
            generator.set_state(state)
        if self.default is not None:
            torch.set_rng_state(self.default)

    def same(self, other: Randomness) -> bool:
        """Whether nothing was drawn in between."""
        pairs = zip((*self.own, self.default), (*other.own, other.default), strict=True)
        return all(a is b or (a is not None and b is not None and torch.equal(a, b)) for a, b in pairs)

    @functools.cached_property
    def _strings(self) -> tuple[list[str], str | None]:
        return [_packed(one) for one in self.own], None if self.default is None else _packed(self.default)

    def pack(self) -> dict[str, Any]:
        """As strings."""
        own, default = self._strings  # made once: a state may be saved with each batch
        return {"own": list(own), "default": default}

    @classmethod
    def unpack(cls, packed: dict[str, Any]) -> Randomness:
        """What `pack` has made."""
        default = packed["default"]
        return cls(tuple(map(_unpacked, packed["own"])), None if default is None else _unpacked(default))


def _packed(state: torch.Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode()


def _unpacked(text: str) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(base64.b64decode(text), np.uint8).copy())


def may_draw_from_default(samplers: Iterable[Any], dataset: Any) -> bool:
    """Whether samplers of a loader may draw from torch's default generator, or torch itself for a pipe."""
    return isinstance(dataset, IterDataPipe) or not all(map(_known_not_to, samplers))


def _known_not_to(sampler: Any) -> bool:
    if isinstance(sampler, (Seeded, list, tuple, range, np.ndarray, torch.Tensor)) or stateful(sampler):
        return True
    if type(sampler) in (BatchSampler, SequentialSampler, DistributedSampler):
        return True
    in_torch = type(sampler).__module__.startswith("torch.utils.data.")
    return in_torch and getattr(sampler, "generator", True) is not None
