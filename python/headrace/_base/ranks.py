"""Rank and number of ranks of this process: as given by the caller, or from torch.distributed or torchrun."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch.distributed as dist

from headrace._base import messages
from headrace._base.checks import whole_number

_warned = False  # whether `warn_of_whole_reads` has warned; it does so once per process
_BOTH = "give both, or distributed=True, which finds them"


@dataclass(frozen=True)
class World:
    """The rank of this process and the number of processes (ranks) of a distributed job.

    Attributes:
        rank: from 0 to size - 1.
        size: number of ranks.
        found: name of the source of rank and size, for messages; "" if the caller gave them, did not want them, or
            if there is no job.
        given: whether the caller gave them.
    """

    rank: int = 0
    size: int = 1
    found: str = ""
    given: bool = False

    @classmethod
    def of(cls, rank: object = None, size: object = None, name: str = "world_size") -> World:
        """Returns the world with the given rank and size, or the one found in this process.

        Args:
            rank, size: as given by the caller; both None: as found.
            name: name of the argument `size`, for messages.

        Raises:
            TypeError: `rank` or `size` is not an integer.
            ValueError: only one of them is given, or the rank is not in [0, size).
        """
        if size is None:
            if rank is not None:
                raise ValueError(f"rank={rank!r} is given without {name}: {_BOTH}")
            return cls.found_out()
        size = whole_number(name, size, smallest=1)
        if rank is None:
            if size > 1:
                raise ValueError(f"{name}={size} is given without rank: {_BOTH}")
            rank = 0
        rank = whole_number("rank", rank)
        if not 0 <= rank < size:
            raise ValueError(f"rank {rank} is outside of a world of {size}: ranks go from 0 to {size - 1}")
        return cls(rank, size, given=True)

    @classmethod
    def requested(cls, rank: object, size: object, distributed: object) -> World:
        """Returns the world among whose ranks a loader splits its order; one rank, unless the caller asks for more.

        Args:
            rank, size: as given by the caller, or None.
            distributed: whether to use those of torch.distributed or torchrun.

        Raises:
            TypeError: `distributed` is not a bool, or as for `of`.
            ValueError: `distributed` is given together with `rank` or `size`, or as for `of`.
        """
        if not isinstance(distributed, bool):
            raise TypeError(f"distributed must be True or False, not {distributed!r}")
        if rank is None and size is None:
            return cls._require_job() if distributed else cls()
        if distributed:
            raise ValueError("distributed=True takes rank and world_size from torch.distributed: leave these out")
        return cls.of(rank, size)

    @classmethod
    def _require_job(cls) -> World:
        found, (rank, size) = cls.found_out(), _ranks_in_environment()
        if not found.found and (rank or size) and (rank, size) != ("0", "1"):
            stated = f"RANK={rank or '(unset)'} and WORLD_SIZE={size or '(unset)'}"
            raise ValueError(
                f"distributed=True: the variables {stated} name no rank of a job: correct them, or call "
                "torch.distributed.init_process_group first"
            )
        return found

    @classmethod
    def found_out(cls) -> World:
        """Returns the world of torch.distributed if it is initialised, otherwise torchrun's, otherwise that of the
        variables with which ``init_process_group`` begins, otherwise one rank."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size(), "torch.distributed")
        if dist.is_available() and dist.is_torchelastic_launched():
            return cls(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), "torchrun")
        rank, size = _ranks_in_environment()
        known = rank.isdecimal() and size.isdecimal() and int(rank) < int(size) and size != "1"
        return cls(int(rank), int(size), "the variables RANK and WORLD_SIZE") if known else cls()

    @property
    def is_job(self) -> bool:
        """Whether this is a distributed job, even one of a single rank: its order must follow from a seed."""
        return bool(self.found) or self.size > 1

    def check(self, distributed: bool) -> None:
        """Raises RuntimeError if rank or size of the job have changed since they were found.

        Args:
            distributed: whether the loader was made with ``distributed=True``; otherwise nothing is checked.
        """
        if not distributed:
            return
        now = World.found_out()
        if (now.rank, now.size) != (self.rank, self.size):
            raise RuntimeError(
                f"this loader was made for rank {self.rank} of {self.size}, but {now.found or 'the process'} says "
                f"rank {now.rank} of {now.size} now; make a new DataLoader and give it the state_dict() of this one"
            )


def _ranks_in_environment() -> tuple[str, str]:
    return os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")


def warn_of_whole_reads() -> None:
    """Warns, once per process, if this is a job of several ranks: the loader yields all samples on each of them."""
    global _warned
    now = World.found_out()
    if _warned or now.size == 1:
        return
    _warned = True
    messages.warn(
        f"each of the {now.size} ranks of {now.found} reads all samples of a loader without a sampler, as with torch's "
        "DataLoader; pass distributed=True to split them among the ranks, or world_size=1 to read all of them silently"
    )
