"""Tar shards, here or in other machines, as an iterable dataset that keeps nothing."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from headrace._base.checks import explained, whole_number
from headrace._storage.remote.network import Network
from headrace._storage.remote.remote_files import Access
from headrace._storage.remote.urls import is_url
from headrace.datasets.tar_shards.member_values import asked_names, checked_decoder
from headrace.datasets.tar_shards.remote_index import remote_shards
from headrace.datasets.tar_shards.shard_urls import Urls, shard_paths
from headrace.datasets.tar_shards.tar_dataset import IMAGES
from headrace.datasets.tar_shards.wids import FarLists
from headrace.datasets.tar_stream.sample_number import MOST_SHARDS
from headrace.datasets.tar_stream.shard_plan import Plan
from headrace.datasets.tar_stream.stream_sampler import StreamSampler
from headrace.datasets.tar_stream.stream_source import KEY, StreamSource
from headrace.datasets.tar_stream.tar_parser import Wanted


class TarStream(IterableDataset[Any]):
    """Images in tar shards of WebDataset's layout that are read from front to back, usually over a network.

    No index is made or read: a sample is known when its bytes arrive, by the rules of ``TarShards``. With headrace's
    ``DataLoader`` the order is a function of its `seed`, the epoch and the rank; the number of workers does not matter,
    and a state continues at the exact sample. Give the loader no `shuffle` and no `sampler`, as for every iterable
    dataset; ``distributed=True``, or `rank` and `world_size`, share the shards among ranks.

    Args:
        urls: shards, as for ``TarShards``: URLs, also of servers that read no ranges, or files.
        image, label, transform, target_transform, missing, allow_pickle, mode, upright: as for ``TarShards``.
        shuffle: whether shards are read in an order that is drawn for each epoch, and samples leave a buffer in one.
        buffer: samples in that buffer, as encoded bytes. The first sample leaves it when 100 are in it.
        length: number of samples of an epoch, of all ranks together; an epoch that is longer than what a rank's shards
            hold begins with them again, in another order. Or a sequence with the number of samples of each shard. None:
            the epoch ends with the shards, ``len()`` raises TypeError, and there can be one rank only. Ranks have
            equal numbers of samples: with a number, rank r of n reads every n-th shard of the epoch's order; with a
            sequence, the samples of all shards are cut in n equal parts, so that each is delivered once (and up to
            n - 1 of them twice), and two ranks read a shard that has a cut within it.
        storage_options, network: as for ``TarShards``. ``Network.ahead`` bounds the bytes that are read ahead.

    Raises:
        FileNotFoundError: the first or the last shard is a file that does not exist.
        ValueError: an argument is invalid. While it is iterated: a shard is damaged, compressed
            or no tar archive, or a sample is incomplete. The message names the shard and the byte.
        OSError: while it is iterated: a shard cannot be read.
    """

    @explained()
    def __init__(
        self,
        urls: Urls,
        image: str | Sequence[str] = IMAGES,
        label: str | Sequence[str] | None = "cls",
        transform: Callable[[Any], object] | None = None,
        target_transform: Callable[[Any], object] | None = None,
        *,
        shuffle: bool = False,
        buffer: int = 1000,
        length: int | Sequence[int] | None = None,
        missing: str = "raise",
        allow_pickle: bool = False,
        mode: str = "RGB",
        upright: bool = False,
        storage_options: Mapping[str, object] | None = None,
        network: Network | None = None,
    ) -> None:
        images, names = asked_names(image, label, target_transform, missing)
        access = Access(None, storage_options, network)
        shards = shard_paths(urls, FarLists(access))
        if not is_url(shards[0]):
            if storage_options is not None:
                raise ValueError("storage_options are for URLs, and these shards are files: leave them out")
            _check_ends_exist(shards)
        if len(shards) > MOST_SHARDS:
            raise ValueError(f"a stream has {MOST_SHARDS} shards at most, not {len(shards)}")
        decoders = {name: None if name == KEY else checked_decoder(name, allow_pickle) for name in names}
        self.source: StreamSource = StreamSource(
            remote_shards(shards, access),
            Wanted(images, tuple(name for name in names if name != KEY), missing == "skip"),
            decoders,
            isinstance(label, str),
            transform,
            target_transform,
            mode,
            upright,
        )
        self._buffer = whole_number("buffer", buffer, smallest=1)
        total, each = _lengths_of_shards(length, len(shards))
        self._shards, self._total, self._each, self._shuffle = len(shards), total, each, bool(shuffle)

    @property
    def transform(self) -> Callable[[Any], object] | None:
        return self.source.transform

    @transform.setter
    def transform(self, transform: Callable[[Any], object] | None) -> None:
        self.source.transform = transform

    @property
    def target_transform(self) -> Callable[[Any], object] | None:
        return self.source.target_transform

    @target_transform.setter
    def target_transform(self, target_transform: Callable[[Any], object] | None) -> None:
        self.source.target_transform = target_transform

    def __len__(self) -> int:
        if self._total is None and self._each is None:
            raise TypeError("the number of samples of a TarStream is not known; give length=")
        return self._total or sum(self._each or ())

    def sampler(self, rank: int, ranks: int, seed: int | None, generator: torch.Generator | None) -> StreamSampler:
        """Returns the order of a rank, for headrace's ``DataLoader``.

        Raises:
            ValueError: the ranks would have different numbers of samples.
        """
        plan = Plan.of_rank(self._shards, (rank, ranks), self._total, self._each, self._shuffle)
        return self._sampler(plan, seed, generator)

    def _sampler(self, plan: Plan, seed: int | None, generator: torch.Generator | None) -> StreamSampler:
        return StreamSampler(self.source, plan, self._buffer if plan.shuffle else 1, seed, generator)

    def __iter__(self) -> Iterator[Any]:
        """Yields samples in plain Python. In the workers of torch's DataLoader each worker reads every n-th shard."""
        worker = get_worker_info()
        if worker is None:
            numbers = iter(self.sampler(0, 1, None, None))
        else:
            numbers = self._numbers_of_worker(worker.id, min(worker.num_workers, self._shards), worker.seed - worker.id)
        for number in numbers:
            yield self.source[number]

    def _numbers_of_worker(self, worker: int, workers: int, seed: int) -> Iterator[int]:
        if worker >= workers:
            return iter(())
        share = None if self._total is None else self._total // workers + (worker < self._total % workers)
        return iter(self._sampler(Plan(self._shards, (worker, workers), share, None, self._shuffle), seed, None))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shards} shards)"


def _check_ends_exist(shards: Sequence[str]) -> None:
    """Raises FileNotFoundError for a misspelt path, or a range of numbers that is too long, before the first epoch."""
    for path in {shards[0], shards[-1]}:
        if not os.path.exists(path):  # noqa: PTH110 - a string
            raise FileNotFoundError(errno.ENOENT, "there is no such shard", path)


def _lengths_of_shards(length: int | Sequence[int] | None, shards: int) -> tuple[int | None, tuple[int, ...] | None]:
    """Returns the number of samples of an epoch, and of each shard, as far as `length` says them."""
    if length is None:
        return None, None
    if not isinstance(length, Sequence):
        return whole_number("length", length, smallest=1), None
    each = tuple(whole_number("length", one, smallest=0) for one in length)
    if len(each) != shards:
        raise ValueError(f"length has the numbers of samples of {len(each)} shards, but there are {shards}")
    if not any(each):
        raise ValueError("length says that no shard has a sample")
    return None, each
