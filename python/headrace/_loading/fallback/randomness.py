"""The states of torch's generators that determine an epoch, packed into strings that any checkpoint can hold."""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import BatchSampler, IterDataPipe, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

from headrace._base.types import State
from headrace._loading.epoch.sampler_state import is_stateful
from headrace._recipe.draws.generator_states import restore_generator
from headrace._recipe.draws.seeded_sampler import Seeded


@dataclass(frozen=True)
class Randomness:
    """States of the generators that determine the order; each is uint8 (n,).

    Attributes:
        own: states of the generators of the loader and its samplers.
        default: state of torch's default generator; None if the order cannot depend on it.
    """

    own: tuple[torch.Tensor, ...]
    default: torch.Tensor | None

    @classmethod
    def now(cls, generators: Sequence[torch.Generator], default: bool) -> Randomness:
        """Returns the current states."""
        return cls(tuple(one.get_state() for one in generators), torch.get_rng_state() if default else None)

    def restore(self, generators: Sequence[torch.Generator]) -> None:
        """Sets the generators to these states.

        Raises:
            ValueError: the number of generators differs, or these are no states of generators.
        """
        if len(generators) != len(self.own):
            raise ValueError(
                f"the state does not fit: the loader and its samplers have another number of torch.Generators "
                f"(saved {len(self.own)}, now {len(generators)})"
            )
        for generator, state in zip(generators, self.own, strict=True):
            restore_generator(generator, state)
        if self.default is not None:
            restore_generator(torch.default_generator, self.default)

    def same(self, other: Randomness) -> bool:
        """Returns whether the states are equal, so that nothing was drawn in between."""
        pairs = zip((*self.own, self.default), (*other.own, other.default), strict=True)
        return all(a is b or (a is not None and b is not None and torch.equal(a, b)) for a, b in pairs)

    @functools.cached_property
    def _packed_states(self) -> tuple[list[str], str | None]:
        return [_pack_state(one) for one in self.own], None if self.default is None else _pack_state(self.default)

    def pack(self) -> State:
        """Returns the states as strings."""
        own, default = self._packed_states  # cached, since a state may be saved with each batch
        return {"own": list(own), "default": default}

    @classmethod
    def unpack(cls, packed: State) -> Randomness:
        """Returns the states from the result of `pack`."""
        default = packed["default"]
        return cls(tuple(map(_unpack_state, packed["own"])), None if default is None else _unpack_state(default))


def _pack_state(state: torch.Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode()


def _unpack_state(text: str) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(base64.b64decode(text), np.uint8).copy())


def may_draw_from_default(samplers: Iterable[object], dataset: object) -> bool:
    """Returns whether the samplers, or torch itself for a data pipe, may draw from torch's default generator."""
    return isinstance(dataset, IterDataPipe) or not all(map(_is_known_not_to_draw, samplers))


def _is_known_not_to_draw(sampler: object) -> bool:
    if isinstance(sampler, (Seeded, list, tuple, range, np.ndarray, torch.Tensor)) or is_stateful(sampler):
        return True
    if type(sampler) in (BatchSampler, SequentialSampler, DistributedSampler):
        return True
    in_torch = type(sampler).__module__.startswith("torch.utils.data.")
    return in_torch and getattr(sampler, "generator", True) is not None
