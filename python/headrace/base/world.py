"""Which rank of how many this process is: as given, as torch.distributed says, or as torchrun has set it."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist

from headrace.base.whole_number import whole_number

_warned = False  # once a process, whatever the number of loaders


@dataclass(frozen=True)
class World:
    """A process among those of a distributed job.

    Attributes:
        found: where rank and size were found, for messages; "": they were given, or not asked for, or there is no job.
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
    def asked_for(cls, rank: Any, size: Any, distributed: Any) -> World:
        """The world that a loader deals its order out to: one rank that is given everything, unless it is asked for.

        Args:
            rank, size: as given by the user, or None.
            distributed: whether those of torch.distributed, or of torchrun, are to be used.

        Raises:
            TypeError, ValueError: as `of`; or both are asked for.
        """
        if not isinstance(distributed, bool):
            raise TypeError(f"distributed must be True or False, not {distributed!r}")
        if rank is None and size is None:
            return cls.found_out() if distributed else cls()
        if distributed:
            raise ValueError("distributed=True takes rank and world_size from torch.distributed: leave these out")
        return cls.of(rank, size)

    @classmethod
    def found_out(cls) -> World:
        """torch.distributed's, where it is initialised, or else what torchrun has set in the environment."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size(), "torch.distributed")
        if dist.is_available() and dist.is_torchelastic_launched():
            return cls(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), "torchrun")
        return cls()

    @property
    def is_job(self) -> bool:
        """Whether the order is one of a distributed job, be it of one rank: it must follow from a seed."""
        return bool(self.found) or self.size > 1

    def check(self, distributed: bool) -> None:
        """Raises RuntimeError where a world that was found is another one now.

        Args:
            distributed: whether the loader asked for the world of torch.distributed.
        """
        if not distributed:
            return
        now = World.found_out()
        if (now.rank, now.size) != (self.rank, self.size):
            raise RuntimeError(
                f"this loader was made for rank {self.rank} of {self.size}, but {now.found or 'the process'} says "
                f"rank {now.rank} of {now.size} now; make a new DataLoader and give it the state_dict() of this one"
            )


def warn_of_whole_reads() -> None:
    """Warns, once a process, where a job of several ranks reads a loader that gives each of them all samples."""
    global _warned
    now = World.found_out()
    if _warned or now.size == 1:
        return
    _warned = True
    warnings.warn(
        f"each of the {now.size} ranks of {now.found} reads all samples of a loader without a sampler, as with torch's "
        "DataLoader; distributed=True deals the order out to the ranks, world_size=1 says that all samples are meant",
        UserWarning,
        stacklevel=4,
    )
