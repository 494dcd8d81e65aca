"""Which rank of how many this process is: as given, as torch.distributed says, or as torchrun has told it."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist

from headrace.whole_number import whole_number


@dataclass(frozen=True)
class World:
    """A process among those of a distributed job.

    Attributes:
        found: where rank and size were found, for messages; "": they were given, or there is no job.
        given: whether the user gave them.
    """

    rank: int = 0
    size: int = 1
    found: str = ""
    given: bool = False

    @classmethod
    def of(cls, rank: Any = None, size: Any = None, name: str = "world_size") -> World:
        """This process's.

        Args:
            rank, size: as given by the user; None: found.
            name: what the user calls the size.

        Raises:
            TypeError: they are no whole numbers. ValueError: a rank without a size, or outside of it.
        """
        if size is None:
            if rank is not None:
                raise ValueError(f"rank={rank!r} is given without {name}")
            return cls.found_out()
        size = whole_number(name, size, smallest=1)
        if rank is None:
            if size > 1:
                raise ValueError(f"{name}={size} is given without rank")
            rank = 0
        rank = whole_number("rank", rank)
        if not 0 <= rank < size:
            raise ValueError(f"rank {rank} is outside of a world of {size}: ranks go from 0 to {size - 1}")
        return cls(rank, size, given=True)

    @classmethod
    def found_out(cls) -> World:
        """torch.distributed's, where it is initialised, or else what torchrun has set in the environment."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size(), "torch.distributed")
        if dist.is_available() and dist.is_torchelastic_launched():
            return cls(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), "torchrun")
        return cls()

    def deals_out(self, sampler_given: bool) -> bool:
        """Whether an order is to be dealt out: one of the user's only where the world was given, too."""
        return (self.size > 1 and self.given) or (bool(self.found) and not sampler_given)

    def check(self, sampler_given: bool) -> None:
        """Raises RuntimeError where a world that was found is another one now; warns where one has come up since."""
        if self.given:
            return
        now = World.found_out()
        if not self.found:
            if now.size > 1 and not sampler_given:
                warnings.warn(
                    f"this loader was made before {now.found} was there, so each of its {now.size} ranks reads all "
                    "samples; make it later, or give it rank= and world_size= (world_size=1 if that is meant)",
                    UserWarning,
                    stacklevel=3,
                )
            return
        if (now.rank, now.size) != (self.rank, self.size):
            raise RuntimeError(
                f"this loader was made for rank {self.rank} of {self.size}, but {now.found or 'the process'} says "
                f"rank {now.rank} of {now.size} now; make a new DataLoader and give it the state_dict() of this one"
            )
