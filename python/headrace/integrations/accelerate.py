"""Keeps headrace's threads behind ``accelerator.prepare(loader)``; imported when Accelerate prepares such a loader.

Accelerate makes a new torch DataLoader of the dataset and the batch sampler of each loader that it prepares, and so
would leave everything else of ours behind. See decision 0010.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import accelerate.accelerator
import torch
from accelerate.data_loader import DataLoaderShard
from accelerate.data_loader import prepare_data_loader as stock_prepare
from torch.utils.data import BatchSampler, IterableDataset, RandomSampler
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import DistributedSampler as TorchDistributedSampler

from headrace.integrations.remake import remade
from headrace.sampler.distributed import DistributedSampler, ShardedSampler


def take_over(ours: type[Any]) -> None:
    """From now on accelerators leave preparing loaders of the class `ours`, and only these, to `prepared`."""
    before = accelerate.accelerator.prepare_data_loader
    if hasattr(before, "_headrace"):
        return

    @functools.wraps(before)
    def prepare_data_loader(dataloader: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(dataloader, ours) or isinstance(dataloader.dataset, IterableDataset):
            return before(dataloader, *args, **kwargs)
        asked = inspect.signature(stock_prepare).bind(dataloader, *args, **kwargs)
        asked.apply_defaults()
        return prepared(**asked.arguments)

    prepare_data_loader._headrace = True  # type: ignore[attr-defined]
    accelerate.accelerator.prepare_data_loader = prepare_data_loader


def prepared(dataloader: Any, **asked: Any) -> PreparedLoader:
    """`dataloader` as Accelerate's loops want it; `asked` are the arguments of Accelerate's ``prepare_data_loader``.

    Accelerate itself says what each process gets and what becomes of the batches: it prepares a stand-in with the
    loader's batch sampler, and headrace's loader then takes the stand-in's place.

    Raises:
        ValueError: with ``dispatch_batches``, where one process would make the batches of all.
    """
    if asked.pop("dispatch_batches"):
        raise ValueError(
            "headrace makes the batches of each process in that process; leave dispatch_batches out of the Accelerator"
        )
    stateful = asked.pop("use_stateful_dataloader")  # torchdata's loader is not needed for that
    if dataloader.seed is not None:
        asked["use_seedable_sampler"] = False  # the loader's own seed decides the order
    if dealt_by_the_user(dataloader):
        asked.update(num_processes=1, process_index=0)
    whole = whole_order(dataloader)
    before = getattr(whole, "sampler", None)
    stand_in: Any = TorchDataLoader(dataloader.dataset, batch_sampler=whole, generator=dataloader.generator)
    shard = stock_prepare(stand_in, dispatch_batches=False, **asked)
    if shard.batch_sampler is not whole or getattr(whole, "sampler", None) is not before:
        dataloader = remade(dataloader, batch_sampler=shard.batch_sampler)
    return PreparedLoader(shard, dataloader, use_stateful_dataloader=stateful)


def dealt_by_the_user(loader: Any) -> bool:
    """Whether the loader was given a sampler that yields one process's part, which is not to be dealt out again."""
    sampler = getattr(loader.batch_sampler, "sampler", loader.sampler)
    ours = isinstance(sampler, DistributedSampler | ShardedSampler)
    return isinstance(sampler, TorchDistributedSampler) and not ours


def whole_order(loader: Any) -> Any:
    """A batch sampler of all processes' batches, in the order that the loader has in one process."""
    if isinstance(loader.batch_sampler, ShardedSampler):
        return loader.batch_sampler.sampler
    if loader.batch_size is None:
        return loader.batch_sampler
    sampler: Any = loader.sampler
    if isinstance(sampler, ShardedSampler):
        sampler = sampler.sampler
    elif isinstance(sampler, DistributedSampler):
        sampler = DistributedSampler(loader.dataset, 1, 0, sampler.shuffle, sampler.seed)
    elif isinstance(sampler, RandomSampler) and loader.seed is not None and loader.generator is None:
        sampler = DistributedSampler(loader.dataset, 1, 0, seed=loader.seed)
    else:
        return loader.batch_sampler
    return BatchSampler(sampler, loader.batch_size, loader.drop_last)


class PreparedLoader(DataLoaderShard):  # type: ignore[misc]
    """Accelerate's DataLoaderShard over headrace's loader: devices, gradient state and checkpoints are as there.

    `dataset`, `batch_sampler` and `collate_fn` are such that a torch DataLoader made of them, as by
    ``skip_first_batches``, still delivers headrace's batches, and makes none of those that are skipped.
    """

    _is_accelerate_prepared = True

    def __init__(self, shard: DataLoaderShard, loader: Any, *, use_stateful_dataloader: bool) -> None:
        # Accelerate's own __init__ would make a torch DataLoader.
        self.__dict__.update({name: value for name, value in vars(shard).items() if name != "iteration"})
        self.base_dataloader, self.use_stateful_dataloader = loader, use_stateful_dataloader
        self.batch_sampler = Tickets(self)
        self.dataset = Redeemed(loader)
        if use_stateful_dataloader:
            self.dl_state_dict = loader.state_dict()

    # A loader made of our parts by Accelerate must not start processes, nor draw from a generator of the user's.
    num_workers, prefetch_factor, persistent_workers = 0, None, False
    pin_memory, timeout, worker_init_fn, multiprocessing_context = False, 0, None, None
    collate_fn = staticmethod(lambda batch: batch)

    @property
    def generator(self) -> torch.Generator:
        """For torch's base seed, which nobody uses here."""
        return torch.Generator()

    @property
    def iteration(self) -> int:
        """The epoch to come. Accelerate counts whole passes; the loader's own count knows states and skips, too."""
        return int(self.base_dataloader.upcoming_epoch)

    @iteration.setter
    def iteration(self, epoch: int) -> None:
        """Accelerate's counting; `set_epoch` is what sets it."""

    def set_epoch(self, epoch: int) -> None:
        """The next pass is this epoch."""
        self.base_dataloader.set_epoch(epoch)
        part = self.base_dataloader.batch_sampler
        while part is not None:  # samplers within batch samplers within batch samplers
            if hasattr(part, "set_epoch"):
                part.set_epoch(epoch)
            part = getattr(part, "batch_sampler", None) or getattr(part, "sampler", None)

    def _update_state_dict(self) -> None:
        if self.use_stateful_dataloader:  # else nobody asks for it
            super()._update_state_dict()

    def state_dict(self) -> dict[str, Any]:
        """Of the batches handed out so far.

        Raises:
            RuntimeError: the accelerator was not told to keep states.
        """
        if not self.use_stateful_dataloader:
            raise RuntimeError(
                "Accelerate keeps states of loaders with DataLoaderConfiguration(use_stateful_dataloader=True)"
            )
        return dict(self.dl_state_dict)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The next pass goes on where the state was taken."""
        super().load_state_dict(state_dict)
        self.dl_state_dict = state_dict


class Redeemed:
    """The dataset of a loader, whose ``__getitems__`` also takes a ticket and gives the batch that is due for it."""

    def __init__(self, loader: Any) -> None:
        self._dataset = loader.dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        return self._dataset[index]

    def __getitems__(self, ticket: Ticket) -> Any:
        return ticket.redeem()

    def __getattr__(self, name: str) -> Any:
        if name == "_dataset":  # while it is unpickled
            raise AttributeError(name)
        return getattr(self._dataset, name)


class Tickets:
    """The batch sampler of a prepared loader: yields tickets for the batches of an epoch, one after the other."""

    def __init__(self, loader: PreparedLoader) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Ticket]:
        delivery = Delivery(self._loader.base_dataloader)
        return (Ticket(delivery, number) for number in range(len(self)))

    def __len__(self) -> int:
        return len(self._loader.base_dataloader)

    @property
    def sampler(self) -> Tickets:
        """What is told the epoch: Accelerate tells a sampler inside of a loader that skips, and not that loader."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """As of the loader."""
        self._loader.set_epoch(epoch)

    @property
    def even_batches(self) -> bool:
        """As of Accelerate's own batch sampler; ``join_uneven_inputs`` sets it for a while."""
        return bool(self._loader.base_dataloader.batch_sampler.even_batches)

    @even_batches.setter
    def even_batches(self, even: bool) -> None:
        self._loader.base_dataloader.batch_sampler.even_batches = even

    def __getattr__(self, name: str) -> Any:
        if name in ("_loader", "batch_sampler"):  # nothing that yields indices is to be found here
            raise AttributeError(name)
        return getattr(self._loader.base_dataloader.batch_sampler, name)


class Delivery:
    """One pass over a loader, which begins with the first batch that is asked for."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._batches: Iterator[Any] | None = None
        self._next = 0

    def batch(self, number: int) -> Any:
        """A batch of the pass; numbers ascend."""
        if self._batches is None:
            if self._loader.native:
                state = self._loader.state_dict()
                self._loader.load_state_dict({**state, "position": state["position"] + number})
                self._next = number
            self._batches = iter(self._loader)
        skipped, self._next = number - self._next, number + 1
        return next(itertools.islice(self._batches, skipped, None))


class Ticket:
    """Says which batch is due; whoever skips it throws it away."""

    def __init__(self, delivery: Delivery, number: int) -> None:
        self._delivery, self._number = delivery, number

    def redeem(self) -> Any:
        """The batch."""
        return self._delivery.batch(self._number)
