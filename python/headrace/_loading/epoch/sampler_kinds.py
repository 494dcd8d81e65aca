"""What is known of a sampler by its class: whether it repeats samples, and when it draws."""

from __future__ import annotations

import sys
from typing import TypeGuard, TypeVar

from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler as TorchDistributedSampler

from headrace._base.originals.originality import is_own
from headrace._recipe.draws.seeded_sampler import Seeded, sampler_chain
from headrace.sampler.distributed import ShardedSampler

Kind = TypeVar("Kind")


def is_torchs(sampler: object, *kinds: type[Kind]) -> TypeGuard[Kind]:
    """Whether the sampler is of one of these classes of torch itself, with the iteration that torch gave it."""
    kind = type(sampler)
    return kind in kinds and is_own(
        vars(kind).get("__iter__"), sys.modules[kind.__module__], f"{kind.__name__}.__iter__"
    )


def names_each_once(sampler: object, length: int) -> bool:
    """Whether an epoch of this sampler or batch sampler is known to yield no sample twice."""
    if is_torchs(sampler, BatchSampler) or isinstance(sampler, ShardedSampler):
        return names_each_once(sampler.sampler, length)
    if is_torchs(sampler, SequentialSampler):
        return True
    if is_torchs(sampler, RandomSampler):
        return not sampler.replacement and sampler.num_samples <= length
    return is_headrace_sampler(sampler) and sampler.unique


def is_headrace_sampler(sampler: object) -> TypeGuard[Seeded]:
    """Whether the sampler's class is headrace's own, not a subclass defined elsewhere."""
    return isinstance(sampler, Seeded) and type(sampler).__module__.startswith("headrace.")


def plans_occurrences(sampler: object) -> bool:
    """Whether a sampler is headrace's own, and knows from a position how often its epoch yields a sample before."""
    return is_headrace_sampler(sampler) and hasattr(sampler, "occurrences")


def draws_at_once(sampler: object) -> bool:
    """Whether a sampler makes all its draws with its first item: when the others are taken is not to be noticed."""
    if is_torchs(sampler, SequentialSampler, WeightedRandomSampler, TorchDistributedSampler):
        return True
    if is_torchs(sampler, RandomSampler):
        return sampler.generator is None  # it draws a seed, and then from a generator of its own
    return follows_from_its_epoch(sampler)


def follows_from_its_epoch(sampler: object) -> bool:
    """Whether a sampler is headrace's own, and draws from no other one that is not."""
    return all(map(is_headrace_sampler, sampler_chain(sampler)))
