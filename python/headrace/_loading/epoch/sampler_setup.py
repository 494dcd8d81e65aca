"""The samplers of a loader: splits them among ranks, unwraps the order of all ranks, and sets their epoch."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import BatchSampler, IterableDataset, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler as TorchDistributedSampler

from headrace._base import messages
from headrace._base.ranks import World
from headrace._loading.epoch.order import Cut
from headrace._loading.epoch.sampler_kinds import is_headrace_sampler, is_torchs, names_each_once
from headrace._recipe.draws.seeded_sampler import Seeded, sampler_chain, set_epoch_of_samplers
from headrace.datasets.mixture.mixture_dataset import Mixture
from headrace.datasets.sources import BlobDataset, image_sizes
from headrace.sampler.aspect import AspectRatioBatchSampler
from headrace.sampler.distributed import DistributedSampler, RankSampler, ShardedSampler, Share
from headrace.sampler.mixture import MixtureSampler
from headrace.sampler.random_sequential import SeededRandomSampler, SeededSequentialSampler

# Attributes of headrace's and torch's samplers that do not affect the order of all ranks together.
_DO_NOT_DECIDE = {"epoch", "rank", "num_replicas", "total_size", "dataset", "data_source", "sampler", "generator"}
_LOOKED_AT = 1000  # approximate number of values of an array that its checksum covers


class Samplers(NamedTuple):
    """The DataLoader arguments that decide the order."""

    shuffle: bool | None
    sampler: Iterable[Any] | None
    batch_sampler: Iterable[list[Any]] | None

    @property
    def any(self) -> bool:
        """Whether a sampler or batch sampler is given."""
        return self.sampler is not None or self.batch_sampler is not None


def shard_samplers(
    dataset: Any,
    world: World,
    given: Samplers,
    drop_last: bool,
    seed: int | None,
    generator: torch.Generator | None,
) -> Samplers:
    """Returns samplers that yield this rank's share of the given order.

    If no sampler is given, makes one; with a seed, its order follows from the seed, and that of a mixture always does.

    Raises:
        ValueError: a given sampler already splits its order among ranks, or the dataset is iterable.
    """
    if isinstance(dataset, Mixture) and not given.any:
        given = Samplers(None, MixtureSampler(dataset, seed or 0, shuffle=bool(given.shuffle)), None)
    shuffle, sampler, batch_sampler = given
    if world.size == 1:
        if sampler is batch_sampler is None and seed is not None and not isinstance(dataset, IterableDataset):
            if not shuffle:
                return Samplers(None, SeededSequentialSampler(dataset), None)
            if generator is None:
                return Samplers(None, SeededRandomSampler(dataset, seed), None)
        return given
    how = "distributed" if world.found else "rank and world_size"
    if isinstance(dataset, IterableDataset):
        raise ValueError(f"an IterableDataset has no order to split among ranks: leave out {how}")
    if sampler is None and batch_sampler is None:
        if shuffle and generator is not None:
            return Samplers(None, _shard_sampler(RandomSampler(dataset, generator=generator), world, drop_last), None)
        own = DistributedSampler(dataset, world.size, world.rank, bool(shuffle), seed or 0, drop_last)
        return Samplers(None, own, None)
    for one in (sampler, batch_sampler, getattr(batch_sampler, "sampler", None)):
        if isinstance(one, TorchDistributedSampler):
            raise ValueError(f"{type(one).__qualname__} already splits its order among ranks: leave out {how}")
    if sampler is not None:
        sampler = _shard_sampler(sampler, world, drop_last)
    if batch_sampler is not None:
        batch_sampler = _shard_sampler(batch_sampler, world, drop_last)
    return Samplers(shuffle, sampler, batch_sampler)


def _shard_sampler(sampler: Iterable[object], world: World, drop_last: bool) -> ShardedSampler:
    for one in sampler_chain(sampler):
        if type(one).__module__.startswith("torch.") and getattr(one, "generator", one) is None:
            messages.warn(
                f"{type(one).__qualname__} draws from torch's default generator, which must then be in the same state "
                "on all ranks; give it generator=torch.Generator().manual_seed(...)"
            )
    return ShardedSampler(sampler, world.size, world.rank, drop_last)


class GlobalOrder(NamedTuple):
    """The order of all ranks together.

    Attributes:
        sampler: yields indices or batches of indices, of all ranks or of this rank's share.
        unique: whether the order is known to contain no sample twice.
        cut: how items become the batches of this rank.
        name: a string that identifies the order, for `state_dict()`.
    """

    sampler: Iterable[object]
    unique: bool
    cut: Cut
    name: str

    @property
    def items(self) -> Iterable[object]:
        """The items of all ranks, in the sampler's current epoch."""
        return self.sampler.whole if _is_sharded(self.sampler) else self.sampler


def order_of(
    sampler: Iterable[object], batch_sampler: Iterable[object] | None, length: int, seed: int | None
) -> GlobalOrder:
    """Returns the order of a loader's samplers.

    Args:
        sampler, batch_sampler: the loader's.
        length: number of samples in the dataset.
        seed: the loader's.
    """
    outer = sampler if batch_sampler is None else batch_sampler
    batch_size, drop_last, by = None, False, None
    # A batch sampler passed by the caller is an order of batches. Exception: a BatchSampler over a sampler that yields
    # one rank's share cuts that share into batches.
    if is_torchs(outer, BatchSampler) and (outer.sampler is sampler or _is_sharded(outer.sampler)):
        batch_size, drop_last, by, outer = outer.batch_size, outer.drop_last, outer, outer.sampler
    of_rank = outer.of_rank if is_headrace_sampler(outer) else (0, 1)
    cut = Cut(batch_size, drop_last, outer.share if _is_sharded(outer) else Share(), of_rank, by)
    return GlobalOrder(outer, names_each_once(outer, length), cut, _describe_order(outer, seed))


def _is_sharded(sampler: object) -> TypeGuard[RankSampler[object]]:
    return isinstance(sampler, RankSampler) and is_headrace_sampler(sampler)


def _describe_order(sampler: Any, seed: int | None) -> str:
    """Returns a string that identifies a sampler's order: its class and public attributes, arrays as a checksum."""
    if isinstance(sampler, ShardedSampler):
        return _describe_order(sampler.sampler, seed)
    if type(sampler) is BatchSampler:
        inner = _describe_order(sampler.sampler, seed)
        return f"batches of {sampler.batch_size} of {inner}, drop_last={sampler.drop_last}"
    # The same order has the same name, whether it is split among ranks or not.
    in_order = type(sampler) in (SequentialSampler, SeededSequentialSampler)
    if in_order or (type(sampler) is DistributedSampler and not sampler.shuffle):
        return SequentialSampler.__qualname__
    if type(sampler) in (DistributedSampler, SeededRandomSampler) and sampler.seed == seed:
        return SeededRandomSampler.__qualname__
    kind = type(sampler).__qualname__
    if isinstance(sampler, (list, tuple, np.ndarray, torch.Tensor)):
        return f"{kind}({_describe_value(sampler)})"
    if not is_headrace_sampler(sampler) and not type(sampler).__module__.startswith("torch."):
        return kind
    decides = {name: _describe_value(value) for name, value in vars(sampler).items() if not name.startswith("_")}
    if is_headrace_sampler(sampler):
        decides["order"] = sampler.describe()
    if isinstance(sampler, RandomSampler):
        decides["num_samples"] = repr(sampler.num_samples)
    elif isinstance(sampler, TorchDistributedSampler):
        decides["num_samples"] = ""  # left out: it is the number of one rank
    parts = [f"{name}={decides[name]}" for name in sorted(decides) if name not in _DO_NOT_DECIDE and decides[name]]
    sharded = isinstance(sampler, TorchDistributedSampler) and not is_headrace_sampler(sampler)
    return f"{kind}({', '.join(parts)})" + (f" of {sampler.num_replicas} ranks" if sharded else "")


def _describe_value(value: object) -> str:
    """Returns the repr of a plain value, the length and a checksum of a sequence; "" for anything else."""
    if isinstance(value, (bool, int, float, str)):
        return repr(value)
    if not isinstance(value, (list, tuple, np.ndarray, torch.Tensor)) or not len(value):
        return ""
    some = value[:: max(1, len(value) // _LOOKED_AT)]
    values = list(some) if isinstance(some, (list, tuple)) else some.tolist()
    return f"{len(value)} values {zlib.crc32(repr(values).encode()):08x}"


def samplers_of(sampler: object, batch_sampler: object) -> list[object]:
    """Returns the samplers of a loader and those that they draw from, each once, outermost first."""
    found: list[object] = []
    for one in (*sampler_chain(sampler), *sampler_chain(batch_sampler)):
        if all(one is not known for known in found):
            found.append(one)
    return found


def rank_of(samplers: Iterable[object]) -> int:
    """Returns the rank whose share samplers yield; where they yield the order of all ranks, that of this process."""
    for one in samplers:
        ranks, rank = getattr(one, "num_replicas", 1), getattr(one, "rank", 0)
        if type(ranks) is type(rank) is int and ranks > 1:
            return rank
        if is_headrace_sampler(one) and one.of_rank[1] > 1:
            return int(one.of_rank[0])
    return World.found_out().rank


def sizes_known_to(sampler: object, batch_sampler: object, source: BlobDataset) -> npt.NDArray[np.int32]:
    """Returns (height, width) of every image, int32 (n, 2): from a sampler that knows them, or from the headers."""
    for one in samplers_of(sampler, batch_sampler):
        if isinstance(one, AspectRatioBatchSampler) and len(one.image_sizes) == len(source):
            return one.image_sizes
    return image_sizes(source)


def set_begun_epoch(samplers: Iterable[object], epoch: int) -> None:
    """Sets the epoch of all samplers that have ``set_epoch``, and leaves no request of their own."""
    samplers = list(samplers)
    set_epoch_of_samplers(samplers, epoch)
    for one in headrace_samplers(samplers):
        one.adopt(epoch)


def foreign_epoch(samplers: Iterable[object]) -> int | None:
    """Returns the epoch of the first foreign sampler that has both ``set_epoch`` and `epoch`; None if there is none."""
    for sampler in samplers:
        epoch = getattr(sampler, "epoch", None)
        if hasattr(sampler, "set_epoch") and isinstance(epoch, int) and not isinstance(sampler, Seeded):
            return epoch
    return None


def headrace_samplers(samplers: Iterable[object]) -> list[Seeded]:
    """Returns headrace's samplers: the loader sets their epoch itself."""
    return [sampler for sampler in samplers if isinstance(sampler, Seeded)]


def requested_epoch(samplers: Iterable[Seeded]) -> int | None:
    """Returns the epoch that the caller requested by ``set_epoch`` since the last epoch began; None if none was."""
    return next((one.requested for one in samplers if one.requested is not None), None)


def late_epoch(samplers: Iterable[Seeded], epoch: int) -> int | None:
    """Returns another epoch that the caller requested since `epoch` began, or None; discards requests for `epoch`."""
    samplers = list(samplers)
    asked = requested_epoch(samplers)
    if asked == epoch:
        for one in samplers:
            one.adopt(epoch)
        return None
    return asked
