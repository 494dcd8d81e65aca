"""What a loader may use when it chooses its threads and its prefetch itself: cores and memory, of this rank."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

from headrace._base import control_group
from headrace._base.cores import allowed_cpus

_ROOT = Path("/")
_PER_NODE = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")  # of torchrun, of Open MPI
_SHARE = 8  # an eighth of the memory that is free
_MOST_A_CORE, _LEAST, _MOST = 16, 32, 64  # threads that wait for storage need no core, so a quota hardly bounds them


@dataclass(frozen=True)
class AutoWorkers:
    """``num_workers=AutoWorkers(...)``: the loader chooses the number of threads, and the prefetch if it is not given.

    ``num_workers="auto"`` is ``AutoWorkers()``.

    Args:
        cores: CPU cores that the loader's threads may keep busy, above 0, in this process. None: those of the affinity
            and of the control groups' quota, divided by the ranks that share them.
        memory: bytes of the batches that are in the making or ready, in this process. None: an eighth of the memory
            that is free when an epoch begins, divided by the ranks on this machine.

    Raises:
        TypeError: a value is no number.
        ValueError: a value is not above 0.
    """

    cores: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        for name, value, kind in (("cores", self.cores, numbers.Real), ("memory", self.memory, numbers.Integral)):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, kind):
                raise TypeError(f"AutoWorkers: {name} must be a number or None, not {value!r}")
            if not 0 < value < math.inf:
                raise ValueError(f"AutoWorkers: {name} must be above 0, not {value!r}")

    @classmethod
    def of(cls, num_workers: object) -> AutoWorkers | None:
        """Returns what the argument ``num_workers`` asks for; None if it is no such thing.

        Raises:
            ValueError: it is another text than ``"auto"``.
        """
        if isinstance(num_workers, cls):
            return num_workers
        if isinstance(num_workers, str):
            if num_workers != "auto":
                raise ValueError(
                    f"num_workers must be a number, 'auto' or headrace.AutoWorkers(...), not {num_workers!r}"
                )
            return cls()
        return None


@dataclass(frozen=True)
class Budget:
    """Attributes:
    cores: that the threads may keep busy.
    memory: bytes of batches.
    why: where these come from, in words.
    """

    cores: float
    memory: int
    why: str = ""

    @property
    def first(self) -> int:
        """The number of threads to begin with: one a core."""
        return max(1, math.ceil(self.cores))

    @property
    def most(self) -> int:
        """The largest number of threads."""
        return max(self.first, min(_MOST, max(_LEAST, _MOST_A_CORE * self.first)))

    def depth(self, batch_bytes: int) -> int:
        """Returns the largest number of batches beyond the one in use."""
        return max(1, self.memory // max(1, batch_bytes) - 1)


def budget_of(auto: AutoWorkers, cpus: Collection[int] = (), root: Path = _ROOT) -> Budget:
    """Returns the budget of a loader in this process.

    Args:
        cpus: the cores that the loader's threads are bound to; none: those of the process.
        root: root of the file system, for the control groups' files.
    """
    cores, why = cores_of_rank(cpus, root)
    if auto.cores is not None:
        cores, why = float(auto.cores), f"cores={auto.cores:g}"
    memory = auto.memory if auto.memory is not None else _free_memory(root) // (_SHARE * local_ranks(os.environ))
    return Budget(cores, int(memory), why)


def cores_of_rank(cpus: Collection[int] = (), root: Path = _ROOT) -> tuple[float, str]:
    """Returns the number of cores that threads of this process may keep busy, and where it comes from, in words.

    Args:
        cpus, root: see `budget_of`.
    """
    ranks = local_ranks(os.environ)
    own = allowed_cpus()
    bound = own & set(cpus) if cpus else own
    shared = ranks_on_same_cores(ranks, own, _parents_cores())
    cores, why = len(bound) / shared, f"{len(bound)} cores"
    if shared > 1:
        why += f", shared by {shared} ranks"
    quota = control_group.cpu_quota(root)
    if quota is not None and quota / ranks < cores:
        cores, why = quota / ranks, f"a quota of {quota:g} cores" + (f" for {ranks} ranks" if ranks > 1 else "")
    return cores, why


def rank_memory(root: Path = _ROOT) -> int:
    """Returns the bytes of memory of this machine, or of its control groups, that each rank on it has."""
    total, limit = _read_memory_value(root, "MemTotal"), control_group.memory_limit(root)
    return (total if limit is None else min(total, limit)) // local_ranks(os.environ)


def local_ranks(environment: Mapping[str, str]) -> int:
    """Returns the number of ranks of this job on this machine: as the launcher says; otherwise one for each GPU, of no
    more ranks than torch.distributed has."""
    for name in _PER_NODE:
        text = environment.get(name, "")
        if text.isdecimal() and int(text) > 0:
            return int(text)
    if dist.is_available() and dist.is_initialized() and torch.cuda.is_available():
        return max(1, min(dist.get_world_size(), torch.cuda.device_count()))
    return 1


def ranks_on_same_cores(ranks: int, own: Collection[int], launchers: Collection[int]) -> int:
    """Returns the number of ranks that run on the cores `own` of this process.

    All ranks share the launcher's cores, unless each, or the group on one NUMA node, was bound to a part of them.
    """
    if len(own) >= len(launchers):
        return ranks
    return max(1, math.ceil(ranks * len(own) / len(launchers)))


def _parents_cores() -> set[int]:
    try:
        return allowed_cpus(os.getppid())
    except OSError:  # the parent is gone, or in another container
        return set()


def _free_memory(root: Path) -> int:
    """Returns the bytes that this process may still take: of the machine, and of its control groups."""
    free = _read_memory_value(root, "MemAvailable")
    limit = control_group.memory_limit(root)
    if limit is not None:
        free = min(free, max(0, limit - control_group.memory_used(root)))
    return free


def _read_memory_value(root: Path, name: str) -> int:
    """Returns bytes as the kernel's list of memory names them; 4 GiB if it does not."""
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
    except OSError:
        lines = []
    found = (1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
    return next(found, 2**32)


def size_of_batch(batch: object) -> int:
    """Returns the bytes of the tensors in a batch of nested lists, tuples and dicts."""
    if isinstance(batch, torch.Tensor):
        return batch.nbytes
    if isinstance(batch, Mapping):
        return sum(size_of_batch(one) for one in batch.values())
    if isinstance(batch, (list, tuple)):
        return sum(size_of_batch(one) for one in batch)
    return 0
