"""The samplers of a loader: dealt out to ranks, unwrapped to the order of all ranks, and told the epoch."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import BatchSampler, IterableDataset, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler as TorchDistributedSampler

from headrace.base.world import World
from headrace.epochs.order import Cut, is_ours, names_each_once
from headrace.sampler.aspect import AspectRatioBatchSampler
from headrace.sampler.distributed import DealingSampler, DistributedSampler, ShardedSampler, Share
from headrace.sampler.plain import SeededRandomSampler, SeededSequentialSampler
from headrace.sampler.seeded import Seeded, chain_of, tell
from headrace.sources import BlobDataset, image_sizes

# Attributes of samplers, headrace's and torch's, that do not decide the order of all ranks together.
_DO_NOT_DECIDE = {"epoch", "rank", "num_replicas", "total_size", "dataset", "data_source", "sampler", "generator"}
_LOOKED_AT = 1000  # values of an array, to tell it from others


class Samplers(NamedTuple):
    """Arguments of torch's DataLoader."""

    shuffle: bool | None
    sampler: Any
    batch_sampler: Any

    @property
    def any(self) -> bool:
        """Whether one is given."""
        return self.sampler is not None or self.batch_sampler is not None


def deal(
    dataset: Any,
    world: World,
    given: Samplers,
    drop_last: bool,
    seed: int | None,
    generator: torch.Generator | None,
) -> Samplers:
    """What is given, dealt out to the ranks of a world; with a seed, in an order that follows from it.

    Raises:
        ValueError: the sampler deals out by itself, or there is no order to deal out.
    """
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
        raise ValueError(f"an IterableDataset has no order that could be dealt out to ranks: leave out {how}")
    if sampler is None and batch_sampler is None:
        if shuffle and generator is not None:
            return Samplers(None, _sharded(RandomSampler(dataset, generator=generator), world, drop_last), None)
        own = DistributedSampler(dataset, world.size, world.rank, bool(shuffle), seed or 0, drop_last)
        return Samplers(None, own, None)
    for one in (sampler, batch_sampler, getattr(batch_sampler, "sampler", None)):
        if isinstance(one, TorchDistributedSampler):
            raise ValueError(f"{type(one).__qualname__} deals out to ranks by itself: leave out {how}")
    if sampler is not None:
        sampler = _sharded(sampler, world, drop_last)
    if batch_sampler is not None:
        batch_sampler = _sharded(batch_sampler, world, drop_last)
    return Samplers(shuffle, sampler, batch_sampler)


def _sharded(sampler: Any, world: World, drop_last: bool) -> ShardedSampler:
    for one in chain_of(sampler):
        if type(one).__module__.startswith("torch.") and getattr(one, "generator", one) is None:
            warnings.warn(
                f"{type(one).__qualname__} draws from torch's default generator, which must then be in the same state "
                "on all ranks; give it generator=torch.Generator().manual_seed(...)",
                UserWarning,
                stacklevel=4,
            )
    return ShardedSampler(sampler, world.size, world.rank, drop_last)


class Order(NamedTuple):
    """The order of all ranks together.

    Attributes:
        sampler: yields indices, or batches of them, or deals out what does.
        unique: whether it is known that no sample is named twice.
        cut: how items become the batches of this rank.
        name: what it follows from, for `state_dict()`.
    """

    sampler: Any
    unique: bool
    cut: Cut
    name: str

    @property
    def items(self) -> Iterable[Any]:
        """What is dealt out, in the epoch that the sampler was told."""
        whole: Iterable[Any] = self.sampler.whole if _deals_out(self.sampler) else self.sampler
        return whole


def order_of(sampler: Any, batch_sampler: Any, length: int, seed: int | None) -> Order:
    """The order of a loader's samplers.

    Args:
        length: of the dataset.
        seed: of the loader.
    """
    outer = sampler if batch_sampler is None else batch_sampler
    batch_size, drop_last = None, False
    # A batch sampler of the user's is an order of batches; but where its samples are dealt out, it cuts a rank's own.
    if type(outer) is BatchSampler and (outer.sampler is sampler or _deals_out(outer.sampler)):
        batch_size, drop_last, outer = outer.batch_size, outer.drop_last, outer.sampler
    cut = Cut(batch_size, drop_last, outer.share if _deals_out(outer) else Share())
    return Order(outer, names_each_once(outer, length), cut, _name(outer, seed))


def _deals_out(sampler: Any) -> bool:
    return isinstance(sampler, DealingSampler) and is_ours(sampler)


def _name(sampler: Any, seed: int | None) -> str:
    """What the order of a sampler follows from: its kind, and its public attributes, long ones as a checksum."""
    if isinstance(sampler, ShardedSampler):
        return _name(sampler.sampler, seed)
    if type(sampler) is BatchSampler:
        return f"batches of {sampler.batch_size} of {_name(sampler.sampler, seed)}, drop_last={sampler.drop_last}"
    # Orders that are the same, dealt out or not.
    in_order = type(sampler) in (SequentialSampler, SeededSequentialSampler)
    if in_order or (type(sampler) is DistributedSampler and not sampler.shuffle):
        return SequentialSampler.__qualname__
    if type(sampler) in (DistributedSampler, SeededRandomSampler) and sampler.seed == seed:
        return SeededRandomSampler.__qualname__
    kind = type(sampler).__qualname__
    if isinstance(sampler, (list, tuple, np.ndarray, torch.Tensor)):
        return f"{kind}({_shown(sampler)})"
    if not is_ours(sampler) and not type(sampler).__module__.startswith("torch."):
        return kind
    decides = {name: _shown(value) for name, value in vars(sampler).items() if not name.startswith("_")}
    if isinstance(sampler, RandomSampler):
        decides["num_samples"] = repr(sampler.num_samples)
    elif isinstance(sampler, TorchDistributedSampler):
        decides["num_samples"] = ""  # of one rank
    parts = [f"{name}={decides[name]}" for name in sorted(decides) if name not in _DO_NOT_DECIDE and decides[name]]
    dealt = isinstance(sampler, TorchDistributedSampler) and not is_ours(sampler)
    return f"{kind}({', '.join(parts)})" + (f" of {sampler.num_replicas} ranks" if dealt else "")


def _shown(value: Any) -> str:
    """A plain value; length and checksum of numbers, of a thousand of them; "" for anything else."""
    if isinstance(value, (bool, int, float, str)):
        return repr(value)
    if not isinstance(value, (list, tuple, np.ndarray, torch.Tensor)) or not len(value):
        return ""
    some = value[:: max(1, len(value) // _LOOKED_AT)]
    values = list(some) if isinstance(some, (list, tuple)) else some.tolist()
    return f"{len(value)} values {zlib.crc32(repr(values).encode()):08x}"


def samplers_of(sampler: Any, batch_sampler: Any) -> list[Any]:
    """The samplers of a loader, and those that they draw from, each once: the outer ones first."""
    found: list[Any] = []
    for one in (*chain_of(sampler), *chain_of(batch_sampler)):
        if all(one is not known for known in found):
            found.append(one)
    return found


def sizes_known_to(sampler: Any, batch_sampler: Any, source: BlobDataset) -> npt.NDArray[np.int32]:
    """(height, width) of every image, int32 (n, 2): from a sampler that knows them, or from the headers."""
    for one in samplers_of(sampler, batch_sampler):
        if isinstance(one, AspectRatioBatchSampler) and len(one.image_sizes) == len(source):
            return one.image_sizes
    return image_sizes(source)


def begin_with(samplers: Iterable[Any], epoch: int) -> None:
    """The loader is to begin with this epoch: those with ``set_epoch`` are told, and have not asked for it."""
    samplers = list(samplers)
    tell(samplers, epoch)
    for one in followers(samplers):
        one.told(epoch)


def told_epoch(samplers: Iterable[Any]) -> int | None:
    """The epoch that the user has told a sampler which is none of headrace's, and which says it; None: there is no such
    sampler."""
    for sampler in samplers:
        epoch = getattr(sampler, "epoch", None)
        if hasattr(sampler, "set_epoch") and isinstance(epoch, int) and not isinstance(sampler, Seeded):
            return epoch
    return None


def followers(samplers: Iterable[Any]) -> list[Seeded]:
    """Those that a loader tells of each epoch by itself."""
    return [sampler for sampler in samplers if isinstance(sampler, Seeded)]


def asked_of(samplers: Iterable[Seeded]) -> int | None:
    """The epoch that the user has asked one of them for since an epoch began."""
    return next((one.asked for one in samplers if one.asked is not None), None)


def late_epoch(samplers: Iterable[Seeded], epoch: int) -> int | None:
    """The epoch that the user has asked for since this one began, if it is another: to ask for this one is met."""
    samplers = list(samplers)
    asked = asked_of(samplers)
    if asked == epoch:
        for one in samplers:
            one.told(epoch)
        return None
    return asked
