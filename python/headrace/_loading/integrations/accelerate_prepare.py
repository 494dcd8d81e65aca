"""Makes ``accelerator.prepare(loader)`` keep headrace's threads; imported when Accelerate prepares such a loader.

Accelerate makes a new torch DataLoader from the dataset and the batch sampler of each loader that it prepares, so
everything else of headrace's loader would be lost. See decision 0010.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from accelerate.data_loader import DataLoaderShard
from accelerate.data_loader import prepare_data_loader as stock_prepare
from accelerate.state import GradientState
from torch.utils.data import BatchSampler, IterableDataset
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import DistributedSampler as TorchDistributedSampler

from headrace._base.types import Function, State
from headrace._loading.integrations import accelerate_fallback
from headrace._loading.integrations.loader_handoff import LoopPosition, OwnLoader, Redeemed, Tickets, remake_loader
from headrace._recipe.draws.seeded_sampler import sampler_chain
from headrace.sampler.distributed import DistributedSampler, ShardedSampler
from headrace.sampler.random_sequential import SeededRandomSampler


def prepare_for_accelerate(
    stock: Function, ours: type[OwnLoader], dataloader: OwnLoader, *args: object, **options: object
) -> object:
    """Returns a loader of headrace prepared for Accelerate.

    A loader that torch delivers is prepared as torch's own and stays inside what Accelerate makes of it, unless it has
    arguments that Accelerate would lose.

    Args:
        stock: Accelerate's ``prepare_data_loader``.
        ours: headrace's DataLoader.
        args, options: the other arguments of `stock`.
    """
    accelerate_fallback.hook_loader_adapters(ours)
    if not dataloader.native and (_is_stream(dataloader) or not _has_more_than_torchs(dataloader)):
        with accelerate_fallback.preparing(dataloader):
            return stock(as_torchs(dataloader), *args, **options)
    asked = inspect.signature(stock_prepare).bind(dataloader, *args, **options)
    asked.apply_defaults()
    return prepare_loader(**asked.arguments)


def _is_stream(loader: OwnLoader) -> bool:
    return isinstance(loader.dataset, IterableDataset)


def _has_more_than_torchs(loader: OwnLoader) -> bool:
    """Returns whether a loader has arguments that Accelerate would lose. A loader that shards itself has seed 0 by
    default, which does not count."""
    return loader.out_transform is not None or loader.seed not in ((None, 0) if loader._shards_itself else (None,))


def as_torchs(loader: Any) -> TorchDataLoader[Any]:
    """Returns a loader that torch delivers as torch's own; if it shards itself, with the unsharded order.

    Raises:
        ValueError: the loader has an `out_transform`, which Accelerate would lose.
        RuntimeError: a state was loaded, which would be lost.
    """
    if loader.out_transform is not None:
        raise ValueError(
            "Accelerate replaces a loader over an IterableDataset and drops out_transform: call it on the batches"
        )
    if loader._resumes:
        raise RuntimeError("Accelerate replaces this loader: load the state after accelerator.prepare")
    if _is_stream(loader) or not loader._shards_itself:
        return loader  # type: ignore[no-any-return]
    names = inspect.signature(TorchDataLoader.__init__).parameters
    given = {name: getattr(loader, name) for name in names if hasattr(loader, name)}
    for replaced in ("batch_size", "sampler", "shuffle", "drop_last"):
        given.pop(replaced, None)
    return TorchDataLoader(**{**given, "batch_sampler": whole_order(loader)})


def prepare_loader(dataloader: OwnLoader, **asked: Any) -> PreparedLoader:
    """Returns `dataloader` prepared for Accelerate; `asked` are the arguments of Accelerate's ``prepare_data_loader``.

    Accelerate itself decides the sharding and the handling of batches: it prepares a stand-in, a torch DataLoader with
    the loader's batch sampler, which headrace's loader then replaces. A user's sampler that shards already is kept, and
    a custom batch sampler is sharded by whole batches.

    Raises:
        ValueError: ``dispatch_batches`` is set, by which one process makes the batches of all; the loader yields single
            samples; or ``split_batches`` is set with a custom batch sampler.
        RuntimeError: a state was loaded, but the loader has to be recreated for sharding.
    """
    if asked.pop("dispatch_batches"):
        raise ValueError(
            "headrace makes the batches of each process in that process; leave dispatch_batches out of the Accelerator"
        )
    if not dataloader._auto_collation:
        raise ValueError("Accelerate shards batches, not samples: give the DataLoader a batch_size other than None")
    stateful = asked.pop("use_stateful_dataloader")  # headrace's loader has states without torchdata's
    given = sharded_by_the_user(dataloader)
    if given:
        asked.update(num_processes=1, process_index=0, torch_device_mesh=None, split_batches=False)
    whole = whole_order(dataloader)
    before = getattr(whole, "sampler", None)
    stand_in = TorchDataLoader(dataloader.dataset, batch_sampler=whole, generator=dataloader.generator)
    shard = stock_prepare(stand_in, dispatch_batches=False, **asked)
    share, kept_whole = shard.batch_sampler, type(whole) is not BatchSampler
    if share is not whole:
        if not kept_whole:
            share.sampler = whole.sampler  # the loader searches it for generators and samplers that need the epoch
        elif asked["split_batches"]:
            raise ValueError(f"split_batches cannot split the batches of {type(whole).__qualname__}: leave it out")
        else:  # Accelerate's own sharding drops batches that are not full
            share = ShardedSampler(whole, share.num_processes, share.process_index)
    if share is not whole or dataloader._shards_itself or getattr(whole, "sampler", None) is not before:
        dataloader = remake_loader(dataloader, batch_sampler=share)
    padded = None if given or kept_whole else whole
    return PreparedLoader(shard, dataloader, padded, use_stateful_dataloader=stateful)


def sharded_by_the_user(loader: OwnLoader) -> bool:
    """Returns whether the user gave the loader a sampler that shards already, which must not be sharded again."""
    if loader._shards_itself:
        return False
    return any(isinstance(layer, TorchDistributedSampler) for layer in sampler_chain(loader.batch_sampler))


def whole_order(loader: Any) -> Any:
    """Returns a batch sampler of all processes' batches, in the order of a single process."""
    sampler: Any = loader.sampler
    if type(sampler) is SeededRandomSampler and loader.batch_size is not None:
        # The same order without a `generator` attribute: Accelerate would set one that the order does not depend on.
        sampler = DistributedSampler(loader.dataset, 1, 0, seed=sampler.seed)
    elif not loader._shards_itself:
        return loader.batch_sampler
    elif isinstance(sampler, ShardedSampler):
        sampler = sampler.sampler
    else:
        sampler = DistributedSampler(loader.dataset, 1, 0, sampler.shuffle, sampler.seed)
    return BatchSampler(sampler, loader.batch_size, loader.drop_last)


class PreparedLoader(DataLoaderShard):  # type: ignore[misc]
    """Accelerate's DataLoaderShard over headrace's loader; devices, gradient state and checkpoints are Accelerate's.

    A torch DataLoader made from its `dataset`, `batch_sampler` and `collate_fn`, as by ``skip_first_batches``, still
    delivers headrace's batches, and does not make the skipped ones.

    Args:
        shard: the stand-in as Accelerate prepared it.
        loader: headrace's loader, which delivers the batches.
        padded: the batch sampler of all processes if Accelerate pads its last step; None if it pads nothing.
    """

    _is_accelerate_prepared = True

    def __init__(
        self, shard: DataLoaderShard, loader: OwnLoader, padded: BatchSampler | None, *, use_stateful_dataloader: bool
    ) -> None:
        # Accelerate's own __init__ would make a torch DataLoader.
        self.__dict__.update({name: value for name, value in vars(shard).items() if name != "iteration"})
        self.base_dataloader, self.use_stateful_dataloader = loader, use_stateful_dataloader
        self._padded = padded
        self._position = LoopPosition(loader, keeps_states=use_stateful_dataloader)
        self.batch_sampler = Tickets(loader, self._position)
        self.dataset = Redeemed(loader)

    # A loader that Accelerate makes from our parts must not start processes or draw from the user's generator.
    num_workers, prefetch_factor, persistent_workers = 0, None, False
    pin_memory, timeout, worker_init_fn, multiprocessing_context = False, 0, None, None
    collate_fn = staticmethod(lambda batch: batch)

    @property
    def generator(self) -> torch.Generator:
        """A new generator for torch's base seed, which is unused here."""
        return torch.Generator("cpu")

    # ---- what Accelerate counts --------------------------------------------------------------------------------------

    @property
    def iteration(self) -> int:
        """Number of the next epoch. Accelerate counts complete passes; the loader's count includes states and skips."""
        return int(self.base_dataloader.upcoming_epoch)

    @iteration.setter
    def iteration(self, epoch: int) -> None:
        """Ignores Accelerate's count; `set_epoch` sets the epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next pass."""
        self._position.set_epoch(epoch)

    @property
    def total_batch_size(self) -> int:
        """Number of samples of all processes per step.

        Raises:
            AttributeError: the batch sampler has no batch_size.
        """
        if self._padded is not None:
            return int(super().total_batch_size)
        parts = list(sampler_chain(self.base_dataloader.batch_sampler))
        sizes = [size for part in parts if (size := getattr(part, "batch_size", None)) is not None]
        if not sizes:
            raise AttributeError("the batch sampler has no batch_size")
        ranks = [part.num_replicas for part in parts if isinstance(part, TorchDistributedSampler)]
        return int(sizes[0] * (ranks[0] if ranks else 1))

    def begin(self) -> None:
        """Does what Accelerate's method does, and makes ``gather_for_metrics`` drop exactly the padding."""
        super().begin()
        self.remainder = 0
        if self._padded is not None and not self._padded.drop_last:
            try:
                self.remainder = len(self._padded.sampler) % self.total_batch_size  # type: ignore[arg-type]
            except TypeError:  # a sampler without a length
                self.remainder = -1

    def end(self) -> None:
        """Called at the end of a pass."""
        super().end()
        self._position.leave()

    # ---- state -------------------------------------------------------------------------------------------------------

    def _update_state_dict(self) -> None:
        self._position.take()

    def state_dict(self) -> State:
        """Returns the state after the batches handed out so far; between passes, that of the next pass.

        Raises:
            RuntimeError: the accelerator is not configured to keep states.
        """
        if not self.use_stateful_dataloader:
            raise RuntimeError(
                "Accelerate keeps states of loaders with DataLoaderConfiguration(use_stateful_dataloader=True)"
            )
        return self._position.state()

    def load_state_dict(self, state_dict: State) -> None:
        """Makes the next pass resume from the state."""
        super().load_state_dict(state_dict)
        self._position.leave()

    def __reduce__(self) -> tuple[object, ...]:
        # Accelerate's own method calls __init__. The gradient state is shared by the process and is not copied.
        return (
            _make_empty_prepared_loader,
            (),
            {name: value for name, value in vars(self).items() if name != "gradient_state"},
        )

    def __setstate__(self, held: State) -> None:
        self.__dict__.update(held, gradient_state=GradientState())


def _make_empty_prepared_loader() -> PreparedLoader:
    """Returns an empty instance for copies; pickle refuses the class, since prepared loaders report another one."""
    return PreparedLoader.__new__(PreparedLoader)
