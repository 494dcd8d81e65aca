"""The DataLoader: torch's arguments and behaviour, headrace's threads."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, Sampler

from headrace.base.errors import SampleError
from headrace.base.whole_number import whole_number
from headrace.base.world import warn_of_whole_reads
from headrace.delivery import arguments, routing
from headrace.delivery.out_transform import OutTransform, TransformedBatches
from headrace.delivery.routing import Handed, Native
from headrace.delivery.runner import Runner
from headrace.delivery.settings import OnError, OwnAttributes, OwnSettings, Settings
from headrace.engine.engine import Engine
from headrace.epochs import state
from headrace.epochs.epochs import Epochs
from headrace.epochs.order import OrderedBatch
from headrace.epochs.samplers import Samplers, deal
from headrace.handed.epochs import TorchEpochs
from headrace.insight import report, stats, verification
from headrace.recipe.recipe import Recipe
from headrace.sources import BlobDataset

_T_co = TypeVar("_T_co", covariant=True)


class DataLoader(OwnAttributes, TorchDataLoader[_T_co]):
    """Delivers the batches of ``torch.utils.data.DataLoader``, bit for bit; over images from native threads.

    What the native path does not know (another dataset, transform, ``collate_fn``, or a ``worker_init_fn``) is handed
    to torch's DataLoader, with the same arguments: all is then as there. `native` says which it is, `explain` why.

    Natively it yields ``[images, targets]``, or ``images`` for a dataset without labels: images (n, C, H, W) in the
    dtype that the transforms give, targets as torch's default_collate makes them (int64 for ints). The tensors belong
    to the caller: they are never written again while anything refers to them.

    Args:
        dataset: natively ``headrace.ImageFolder``, ``ImageFiles``, ``Blobs``, ``Arrays``, torchvision's folders, CIFAR
            and MNIST and their kin, and ``Subset`` and ``ConcatDataset`` of these, with a transform of the classes in
            ``headrace.transforms`` or torchvision's own of the same names.
        batch_size, shuffle, sampler, batch_sampler, drop_last, timeout, generator, persistent_workers: as in torch.
        num_workers: native threads; 0: samples are made in the caller's thread when a batch is asked for.
        prefetch_factor: batches in flight beyond the one in use (default 2). The threads work on one batch together, so
            memory is bounded by ``prefetch_factor + 1`` batches and what the caller keeps.
        pin_memory: batches are made in pinned memory where there is an accelerator.
        in_order: batches always come in order, which ``False`` allows too.
        collate_fn, worker_init_fn: as in torch, whose DataLoader then delivers. multiprocessing_context,
            pin_memory_device: natively they have no effect, and are warned of.
        seed: decides order and augmentation together with the epoch. None: drawn from `generator` (or torch's default
            generator) at the start of each epoch, as torch draws its base seed; the order is then torch's own. Where
            torch delivers, order and worker seeds follow from it.
        device: where batches are to be: None or ``"cpu"``; ``"cuda"``, ``"cuda:1"``: CPU threads and the GPU share the
            work, batches are ordered with the stream that is current when they are handed out, and nothing waits for
            the GPU; ``"emulated"``: the GPU path on this machine's threads (slow; to check it).
        decoder: who decodes for a GPU. ``"cpu"``: libjpeg-turbo, exact. ``"hardware"``, ``"cuda"``: nvJPEG on the JPEG
            engines or on the GPU's cores (its pixels may differ by a few grey levels), for the files that it takes:
            the CPU decodes the others, and where that is all of them a RuntimeWarning says why. ``"auto"``: the best
            of these, together with the CPU.
        deterministic: with ``decoder="auto"``, the same decoder for the same file in every run.
        dtype: of the images; None: what the transforms give.
        memory_format: ``torch.contiguous_format`` or ``torch.channels_last``.
        on_error: ``"raise"``; ``"skip"``: a batch shrinks by the samples that could not be made; ``"replace"``: the
            next sample of the dataset takes the place.
        max_errors: most samples of an epoch that may fail to be made before RuntimeError; None: any number.
        rank, world_size: of this process in a distributed job: it is given every `world_size`-th sample of the order,
            of a sampler that is given, too, and `seed` is 0 by default. None: it is given all samples, as in torch.
        distributed: True: `rank` and `world_size` are those of torch.distributed, or of torchrun.
        snapshot_every_n_steps: where torch delivers: how often worker processes send the state of a stream, or of a
            dataset with a state; what lies between is made once more on resuming. 0 or None: never.
        out_transform: called on each batch as it is handed out, on its device and in the caller's thread: MixUp,
            CutMix, a kornia module. Natively what it draws follows from seed, epoch and batch.

    Raises:
        TypeError: an argument of headrace's own, where torch's DataLoader would have to serve it; the message says why
            it would. ValueError: arguments that do not go together, as in torch. RuntimeError: no such device.
    """

    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        seed: int | None = None,
        device: Any = None,
        decoder: str = "auto",
        deterministic: bool = False,
        dtype: torch.dtype | None = None,
        memory_format: torch.memory_format = torch.contiguous_format,
        on_error: OnError = "raise",
        max_errors: int | None = 100,
        rank: int | None = None,
        world_size: int | None = None,
        distributed: bool = False,
        out_transform: OutTransform | None = None,
        snapshot_every_n_steps: int | None = 1,
    ) -> None:
        given = Samplers(shuffle, sampler, batch_sampler)
        own: dict[str, Any] = {"seed": seed, "device": device, "decoder": decoder, "deterministic": deterministic}
        own |= {"dtype": dtype, "memory_format": memory_format, "on_error": on_error, "max_errors": max_errors}
        own |= {"out_transform": out_transform, "distributed": distributed}
        own |= {"snapshot_every_n_steps": snapshot_every_n_steps}
        self._own = OwnSettings.of(dataset, given, generator, rank, world_size, own)
        batched = batch_size is not None or batch_sampler is not None
        self._route = routing.decide(dataset, batched, collate_fn, worker_init_fn, dtype)
        if isinstance(self._route, Handed):
            self._own.refuse_native_only(self._route.reason, _DEFAULTS)
        else:
            arguments.warn_of_no_effect(multiprocessing_context, pin_memory_device)
            arguments.check_types(sampler, batch_sampler, num_workers, timeout, generator, prefetch_factor)
            arguments.check_pinning(pin_memory, self._own.target.device, self._own.target.way)
            arguments.check_replaceable(self._route.recipe, on_error)
        dealt = deal(dataset, self._own.world, given, drop_last, self._own.seed, generator)
        super().__init__(
            dataset,
            batch_size,
            dealt.shuffle,
            dealt.sampler,
            dealt.batch_sampler,
            num_workers,
            collate_fn,
            pin_memory,
            drop_last,
            timeout,
            worker_init_fn,
            multiprocessing_context,
            generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            pin_memory_device=pin_memory_device,
            in_order=in_order,
        )
        # Attributes with the arguments' names, as torch has them: Lightning makes a loader anew from these.
        vars(self).update(vars(self._own))
        self._torch_epochs = TorchEpochs(self.seed, self.world.rank)
        if not isinstance(self._route, Handed):
            samples = len(self._route.source)
            arguments.warn_of_empty_epoch(samples, self.batch_size, drop_last, self.world)
            self._epochs = Epochs(self, samples, self.seed, keeps_base_seed=persistent_workers)
        self._runner = Runner()

    @property
    def native(self) -> bool:
        """Whether headrace's threads deliver; False: torch's DataLoader does, and ``explain()`` says why."""
        return not isinstance(self._route, Handed)

    def _settings(self) -> Settings:
        """All arguments, as they are now."""
        return Settings.now(self._own, self)

    def _renewed_route(self) -> Native | Handed:
        """Looks again at the dataset and at what may be set anew. torch delivers from now on where that asks for it."""
        if isinstance(self._route, Native):
            route = routing.renewed(self._route, self._settings())
            if isinstance(route, Handed):
                self._own.refuse_native_only(route.reason, _DEFAULTS)
                if self._epochs.resumes:
                    raise RuntimeError(
                        "the state that was loaded is of headrace's native path, but torch's DataLoader would serve "
                        f"now: {route.reason}"
                    )
                self._torch_epochs.go_on(self._epochs.upcoming)
            else:
                self._epochs.follow(self)
            self._route = route
        return self._route

    def _native_route(self, what: str) -> Native:
        """Raises RuntimeError where torch delivers, which has no `what`."""
        route = self._renewed_route()
        if isinstance(route, Handed):
            route.refuse(what)
        return route

    # ---- what to do and in which order -------------------------------------------------------------------------------

    @property
    def source(self) -> BlobDataset:
        """Where the samples lie."""
        return self._native_route("source").source

    def recipe(self) -> Recipe:
        """The dataset's transform, lowered; again only when the transform is another one."""
        return self._native_route("recipe()").recipe

    @property
    def batched(self) -> bool:
        """Whether samples come in batches: False for ``batch_size=None``."""
        batched: bool = self._auto_collation
        return batched

    def peek_epoch(self, batches: int | None = None) -> tuple[state.Progress, list[OrderedBatch]]:
        """Seed and order (its first `batches`, or all) of the epoch that the next ``iter(loader)`` will deliver.

        Leaves all generators of torch as they were.
        """
        self._native_route("peek_epoch()")
        return self._epochs.peek(batches)

    def set_epoch(self, epoch: int) -> None:
        """The next ``iter(loader)`` is this epoch (without it, each is the one after the last). The samplers are told.

        After ``load_state_dict`` the epoch of the state may be set again: the loader still resumes in its middle.
        """
        number = whole_number("epoch", epoch, smallest=0)
        if self.native:
            self._epochs.set(number)
        else:
            self._torch_epochs.set(self, number)

    @property
    def upcoming_epoch(self) -> int:
        """The number of the epoch that the next ``iter(loader)`` will deliver, from its start or from its middle."""
        return self._epochs.upcoming if self.native else self._torch_epochs.upcoming(self)

    @property
    def deals_itself_out(self) -> bool:
        """Whether this process is given its part of the loader's own order, by the ranks that the loader has found."""
        return bool(self.world.found) and self.world.size > 1

    @property
    def resumes(self) -> bool:
        """Whether the next ``iter(loader)`` goes on where a state that was loaded was taken."""
        return self._epochs.resumes if self.native else self._torch_epochs.resumes(self)

    @property
    def _is_accelerate_prepared(self) -> bool:
        """Accelerate asks for this at the moment when it would make a torch DataLoader out of our dataset."""
        if "accelerate.accelerator" in sys.modules:
            from headrace.integrations import accelerate

            accelerate.take_over(DataLoader)
        return False

    # ---- iteration ---------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        self.world.check(self.distributed)
        if self.reads_whole:
            warn_of_whole_reads()
        route = self._renewed_route()
        if isinstance(route, Handed):
            routing.warn_of_torch(route.reason)
            batches = self._torch_epochs.begin(self, super().__iter__)
            return batches if self.out_transform is None else TransformedBatches(batches, self.out_transform)
        arguments.check_iterable(self.num_workers, self.timeout, self.prefetch_factor)
        pin = self.target.way == "memory" and arguments.can_pin(self.pin_memory)
        return self._runner.begin(self._settings(), route, self._epochs, pin=pin)

    def _get_iterator(self) -> Any:
        """torch's ``__iter__`` asks for it where torch delivers."""
        return self._torch_epochs.iterator(super()._get_iterator)

    @property
    def _engine(self) -> Engine | None:
        """Of the newest iterator."""
        return self._runner.engine

    def close(self) -> None:
        """Ends the threads of all iterators and gives up their batches in flight. ``iter(loader)`` starts new ones."""
        self._runner.close()
        self._iterator = None  # torch's, with its persistent workers
        self._torch_epochs.close()

    def check_worker_number_rationality(self) -> None:
        """torch warns of more processes than cores here; more threads cost next to nothing, and hide slow disks."""
        if not self.native:
            super().check_worker_number_rationality()

    # ---- state -------------------------------------------------------------------------------------------------------

    def _identity(self, route: Native) -> state.Identity:
        samples, order = len(route.source), self._epochs.order()
        return state.Identity.of(self.seed, samples, route.fingerprint, order, route.recipe, self._epochs.generators)

    def state_dict(self) -> dict[str, Any]:
        """Epoch and batches yielded so far: loading it continues with exactly the batches that were still to come.

        It holds what the order follows from: the seed, and the states of torch's default generator and of those that
        the loader and torch's samplers were given. A sampler of your own must draw from these or from ``set_epoch``.
        """
        # What changed since an epoch began is for the next one to see.
        begun = isinstance(self._route, Native) and self._epochs.under_way
        route = self._route if begun else self._renewed_route()
        if isinstance(route, Handed):
            return self._torch_epochs.state_dict(self)
        return state.save(self._identity(route), self._epochs.position())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The next ``iter(loader)`` continues where the state was taken, with any number of workers and of ranks.

        Its ``len()`` is still that of the whole epoch, as in torchdata's StatefulDataLoader.

        Raises:
            ValueError: the state belongs to another dataset, batch size, recipe, seed, way of sampling or Pillow rule.
        """
        route = self._renewed_route()
        if isinstance(route, Handed):
            return self._torch_epochs.load_state_dict(self, state_dict)
        self._epochs.resume(state.load(state_dict, self._identity(route)))

    # ---- proof and insight -------------------------------------------------------------------------------------------

    def reference(self) -> TorchDataLoader[Any]:
        """The oracle: a torch DataLoader over Pillow that delivers what the next ``iter(loader)`` will."""
        route = self._native_route("reference()")
        return verification.reference_loader(self._settings(), route, self._epochs.peek())

    def verify(self, n: int = 4) -> verification.Report:
        """Compares the first `n` batches of the next epoch with the oracle's, bit for bit; changes nothing.

        Raises:
            VerificationError: they differ; names the first sample that does.
        """
        route, settings = self._native_route("verify()"), self._settings()
        verification.check_count(n)
        engine = self._runner.new_engine(settings, route, slots_kept=2)
        return verification.verify(settings, route, self._epochs.peek(n), engine)

    def explain(self) -> report.Explanation:
        """What runs natively, what in Python, and why; print it."""
        route = self._renewed_route()
        if isinstance(route, Handed):
            return report.explain_torch(self._settings(), routing.reasons(self._settings()))
        return report.explain(self._settings(), route)

    def stats(self) -> stats.Stats:
        """Where the time of the newest epoch goes, and its one bottleneck; print it."""
        if not self.native:
            return stats.of_torch(self.num_workers)
        return stats.collect(self._engine, self._runner.progress, self.num_workers)

    @property
    def errors(self) -> list[SampleError]:
        """The samples of the newest epoch that were skipped or replaced."""
        progress = self._runner.progress
        return [] if progress is None else progress.errors

    def __getstate__(self) -> dict[str, Any]:
        # Its epochs and threads are a copy's own, even in a shallow one.
        own = ("_epochs", "_torch_epochs", "_runner")
        kept = {**self.__dict__, **{name: copy.copy(self.__dict__[name]) for name in own if name in self.__dict__}}
        # Protocols of pickle before 4, which torch.save uses, take no torch.memory_format.
        kept["_own"] = replace(self._own, memory_format=str(self.memory_format))  # type: ignore[arg-type]
        return {name: value for name, value in kept.items() if name not in vars(self._own)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        memory_format = getattr(torch, kept["_own"].memory_format.removeprefix("torch."))
        own = replace(kept["_own"], memory_format=memory_format)
        vars(self).update(kept, _own=own)
        vars(self).update(vars(own))


#: Of the arguments, by name.
_DEFAULTS = {one.name: one.default for one in inspect.signature(DataLoader.__init__).parameters.values()}
