"""The states of the generators that the order of an epoch follows from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class RandomState:
    """States of the torch.Generators that an epoch's order follows from, before the epoch draws from them."""

    own: tuple[torch.Tensor, ...]  # states of the generators that the loader and its samplers hold
    default: torch.Tensor  # state of torch's default generator

    @classmethod
    def now(cls, generators: Sequence[torch.Generator]) -> RandomState:
        return cls(tuple(one.get_state() for one in generators), torch.get_rng_state())

    def same(self, other: RandomState) -> bool:
        """Whether nothing was drawn in between."""
        pairs = zip((*self.own, self.default), (*other.own, other.default), strict=True)
        return all(torch.equal(one, another) for one, another in pairs)

    def restore(self, generators: Sequence[torch.Generator]) -> None:
        restore_generator(torch.default_generator, self.default)
        for generator, state in zip(generators, self.own, strict=True):
            restore_generator(generator, state)


def restore_generator(generator: torch.Generator, state: torch.Tensor) -> None:
    """Sets a generator to a saved state. Raises ValueError if it is not a state of such a generator."""
    try:
        generator.set_state(state)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"the state is damaged: it holds no state of a torch.Generator: {error}") from error


def generators_of(loader_generator: torch.Generator | None, samplers: Iterable[object]) -> tuple[torch.Generator, ...]:
    """Returns the generators that decide the order, each once: the loader's and those of its samplers."""
    found: list[torch.Generator] = []
    for one in (loader_generator, *(getattr(sampler, "generator", None) for sampler in samplers)):
        if isinstance(one, torch.Generator) and all(one is not known for known in found):
            found.append(one)
    return tuple(found)


def draw_base_seed(generator: torch.Generator | None) -> int:
    """Draws a base seed exactly as torch's DataLoader does at the start of an epoch: later draws stay the same."""
    device = "cpu" if generator is None else generator.device
    return int(torch.empty((), dtype=torch.int64, device=device).random_(generator=generator).item())
