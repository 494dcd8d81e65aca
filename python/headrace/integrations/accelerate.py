"""Keeps headrace's threads behind ``accelerator.prepare(loader)``; imported when Accelerate prepares such a loader.

Accelerate makes a new torch DataLoader of the dataset and the batch sampler of each loader that it prepares, and so
would leave everything else of ours behind. See decision 0010.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import accelerate.accelerator
import torch
from accelerate.data_loader import DataLoaderShard
from accelerate.data_loader import prepare_data_loader as stock_prepare
from accelerate.state import GradientState
from torch.utils.data import BatchSampler, IterableDataset
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import DistributedSampler as TorchDistributedSampler

from headrace.integrations.remake import remade
from headrace.integrations.tickets import Place, Redeemed, Tickets
from headrace.sampler.distributed import DistributedSampler, ShardedSampler
from headrace.sampler.plain import SeededRandomSampler
from headrace.sampler.seeded import chain_of


def take_over(ours: type[Any]) -> None:
    """From now on accelerators leave preparing loaders of the class `ours`, and only these, to us.

    A loader that torch delivers is prepared as torch's own, unless it has something that Accelerate would not keep.
    """
    before = accelerate.accelerator.prepare_data_loader
    if hasattr(before, "_headrace"):
        return

    @functools.wraps(before)
    def prepare_data_loader(dataloader: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(dataloader, ours):
            return before(dataloader, *args, **kwargs)
        if not dataloader.native and (_is_stream(dataloader) or not _has_more_than_torchs(dataloader)):
            return before(as_torchs(dataloader), *args, **kwargs)
        asked = inspect.signature(stock_prepare).bind(dataloader, *args, **kwargs)
        asked.apply_defaults()
        return prepared(**asked.arguments)

    prepare_data_loader._headrace = True  # type: ignore[attr-defined]
    accelerate.accelerator.prepare_data_loader = prepare_data_loader


def _is_stream(loader: Any) -> bool:
    return isinstance(loader.dataset, IterableDataset)


def _has_more_than_torchs(loader: Any) -> bool:
    """Whether it has what Accelerate would leave behind; a loader that deals itself out has a seed by itself."""
    return loader.out_transform is not None or loader.seed not in ((None, 0) if loader.deals_itself_out else (None,))


def as_torchs(loader: Any) -> TorchDataLoader[Any]:
    """A loader that torch delivers, as torch's: what it has dealt out to the ranks by itself is whole.

    Raises:
        ValueError: it has what Accelerate would leave behind. RuntimeError: a state was loaded, which would be lost.
    """
    if loader.out_transform is not None:
        raise ValueError(
            "Accelerate makes a loader of its own of an IterableDataset, without out_transform: call it on the batches"
        )
    if loader.resumes:
        raise RuntimeError("Accelerate makes a loader of its own of this one: load the state after accelerator.prepare")
    if _is_stream(loader) or not loader.deals_itself_out:
        return loader  # type: ignore[no-any-return]
    names = inspect.signature(TorchDataLoader.__init__).parameters
    kept = {name: getattr(loader, name) for name in names if hasattr(loader, name)}
    for replaced in ("batch_size", "sampler", "shuffle", "drop_last"):
        kept.pop(replaced, None)
    return TorchDataLoader(**{**kept, "batch_sampler": whole_order(loader)})


def prepared(dataloader: Any, **asked: Any) -> PreparedLoader:
    """`dataloader` as Accelerate's loops want it; `asked` are the arguments of Accelerate's ``prepare_data_loader``.

    Accelerate itself says what each process gets and what becomes of the batches: it prepares a stand-in with the
    loader's batch sampler, and headrace's loader then takes the stand-in's place. A sampler of the user's that deals
    out already is respected, and batches of the user's own making are dealt out whole.

    Raises:
        ValueError: with ``dispatch_batches``, where one process would make the batches of all; without batches; for
            ``split_batches`` of batches that nobody knows how to split.
        RuntimeError: a state was loaded, and the loader has to be made again to be dealt out.
    """
    if asked.pop("dispatch_batches"):
        raise ValueError(
            "headrace makes the batches of each process in that process; leave dispatch_batches out of the Accelerator"
        )
    if not dataloader.batched:
        raise ValueError("Accelerate deals out batches, not samples: give the DataLoader a batch_size other than None")
    stateful = asked.pop("use_stateful_dataloader")  # torchdata's loader is not needed for that
    given = dealt_by_the_user(dataloader)
    if given:
        asked.update(num_processes=1, process_index=0, torch_device_mesh=None, split_batches=False)
    whole = whole_order(dataloader)
    before = getattr(whole, "sampler", None)
    stand_in: Any = TorchDataLoader(dataloader.dataset, batch_sampler=whole, generator=dataloader.generator)
    shard = stock_prepare(stand_in, dispatch_batches=False, **asked)
    share, kept_whole = shard.batch_sampler, type(whole) is not BatchSampler
    if share is not whole:
        if not kept_whole:
            share.sampler = whole.sampler  # where the loader looks for generators, and for whom it tells the epoch
        elif asked["split_batches"]:
            raise ValueError(f"split_batches cannot split what {type(whole).__qualname__} puts together: leave it out")
        else:  # Accelerate's own way leaves out the batches that are not full
            share = ShardedSampler(whole, share.num_processes, share.process_index)
    if share is not whole or dataloader.deals_itself_out or getattr(whole, "sampler", None) is not before:
        dataloader = remade(dataloader, batch_sampler=share)
    padded = None if given or kept_whole else whole
    return PreparedLoader(shard, dataloader, padded, use_stateful_dataloader=stateful)


def dealt_by_the_user(loader: Any) -> bool:
    """Whether the loader was given a sampler that yields one process's part, which is not to be dealt out again."""
    if loader.deals_itself_out:
        return False
    return any(isinstance(layer, TorchDistributedSampler) for layer in chain_of(loader.batch_sampler))


def whole_order(loader: Any) -> Any:
    """A batch sampler of all processes' batches, in the order that the loader has in one process."""
    sampler: Any = loader.sampler
    if type(sampler) is SeededRandomSampler and loader.batch_size is not None:
        # Equal, but without a generator, in which Accelerate would put one that the order does not follow from.
        sampler = DistributedSampler(loader.dataset, 1, 0, seed=sampler.seed)
    elif not loader.deals_itself_out:
        return loader.batch_sampler
    elif isinstance(sampler, ShardedSampler):
        sampler = sampler.sampler
    else:
        sampler = DistributedSampler(loader.dataset, 1, 0, sampler.shuffle, sampler.seed)
    return BatchSampler(sampler, loader.batch_size, loader.drop_last)


class PreparedLoader(DataLoaderShard):  # type: ignore[misc]
    """Accelerate's DataLoaderShard over headrace's loader: devices, gradient state and checkpoints are as there.

    `dataset`, `batch_sampler` and `collate_fn` are such that a torch DataLoader made of them, as by
    ``skip_first_batches``, still delivers headrace's batches, and makes none of those that are skipped.

    Args:
        shard: as Accelerate prepared the stand-in.
        loader: headrace's, which delivers.
        padded: the batch sampler of all processes, whose last round Accelerate fills up; None: it fills up nothing.
    """

    _is_accelerate_prepared = True

    def __init__(
        self, shard: DataLoaderShard, loader: Any, padded: BatchSampler | None, *, use_stateful_dataloader: bool
    ) -> None:
        # Accelerate's own __init__ would make a torch DataLoader.
        self.__dict__.update({name: value for name, value in vars(shard).items() if name != "iteration"})
        self.base_dataloader, self.use_stateful_dataloader = loader, use_stateful_dataloader
        self._padded = padded
        self._place = Place(loader, keeps_states=use_stateful_dataloader)
        self.batch_sampler = Tickets(loader, self._place)
        self.dataset = Redeemed(loader)

    # A loader made of our parts by Accelerate must not start processes, nor draw from a generator of the user's.
    num_workers, prefetch_factor, persistent_workers = 0, None, False
    pin_memory, timeout, worker_init_fn, multiprocessing_context = False, 0, None, None
    collate_fn = staticmethod(lambda batch: batch)

    @property
    def generator(self) -> torch.Generator:
        """For torch's base seed, which nobody uses here."""
        return torch.Generator("cpu")

    # ---- what Accelerate counts --------------------------------------------------------------------------------------

    @property
    def iteration(self) -> int:
        """The epoch to come. Accelerate counts whole passes; the loader's own count knows states and skips, too."""
        return int(self.base_dataloader.upcoming_epoch)

    @iteration.setter
    def iteration(self, epoch: int) -> None:
        """Accelerate's counting; `set_epoch` is what sets it."""

    def set_epoch(self, epoch: int) -> None:
        """The next pass is this epoch."""
        self._place.set_epoch(epoch)

    @property
    def total_batch_size(self) -> int:
        """The samples of a step of all processes.

        Raises:
            AttributeError: the batch sampler has no batch_size.
        """
        if self._padded is not None:
            return int(super().total_batch_size)
        parts = list(chain_of(self.base_dataloader.batch_sampler))
        sizes = [size for part in parts if (size := getattr(part, "batch_size", None)) is not None]
        if not sizes:
            raise AttributeError("the batch sampler has no batch_size")
        ranks = [part.num_replicas for part in parts if isinstance(part, TorchDistributedSampler)]
        return int(sizes[0] * (ranks[0] if ranks else 1))

    def begin(self) -> None:
        """Accelerate's, but ``gather_for_metrics`` cuts off what was filled up, and nothing else."""
        super().begin()
        self.remainder = 0
        if self._padded is not None and not self._padded.drop_last:
            try:
                self.remainder = len(self._padded.sampler) % self.total_batch_size  # type: ignore[arg-type]
            except TypeError:  # a sampler without a length
                self.remainder = -1

    def end(self) -> None:
        """The pass is over."""
        super().end()
        self._place.leave()

    # ---- state -------------------------------------------------------------------------------------------------------

    def _update_state_dict(self) -> None:
        self._place.take()

    def state_dict(self) -> dict[str, Any]:
        """Of the batches handed out so far; where no pass is under way, of the one to come.

        Raises:
            RuntimeError: the accelerator was not told to keep states.
        """
        if not self.use_stateful_dataloader:
            raise RuntimeError(
                "Accelerate keeps states of loaders with DataLoaderConfiguration(use_stateful_dataloader=True)"
            )
        return self._place.state()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The next pass goes on where the state was taken."""
        super().load_state_dict(state_dict)
        self._place.leave()

    def __reduce__(self) -> tuple[Any, ...]:
        # Accelerate's own makes a loader by calling __init__; the gradient state is one for the whole process.
        return _unfilled, (), {name: value for name, value in vars(self).items() if name != "gradient_state"}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept, gradient_state=GradientState())


def _unfilled() -> PreparedLoader:
    """For copies: pickle does not take the class itself, since a prepared loader says that it is of the loader's."""
    return PreparedLoader.__new__(PreparedLoader)
