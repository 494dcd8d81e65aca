"""The public DataLoader: torch's arguments and behaviour, batches made by headrace's threads.

Methods import what they use: a program that imports the class waits for none of it before it has a loader.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, Sampler

from headrace._base.checks import Unasked, explained, whole_number
from headrace._loading.autotune.tuned_attributes import TunedAttributes, initial_workers, tuner_of
from headrace._loading.integrations import accelerate_hook
from headrace._loading.native.loader_attributes import OnError, OutTransform, OwnAttributes
from headrace._reports.html.report_method import Reports
from headrace._reports.routes.report_methods import Insight
from headrace.datasets.tar_stream.loader_hooks import Streamed, sampled_world

if not hasattr(torch, "accelerator"):  # torch 2.6 brought it, and the arguments that the loader hands on
    raise ImportError(f"headrace needs torch 2.6 or newer, not {torch.__version__}: pip install --upgrade torch")

if TYPE_CHECKING:
    from headrace._base.errors import SampleError
    from headrace._base.types import AnyPath, State
    from headrace._engine.engine import Engine
    from headrace._helpers.argument import RayHelpers
    from headrace._loading.autotune.budget import AutoWorkers
    from headrace._loading.epoch import checkpoint
    from headrace._loading.epoch.epochs import Epochs
    from headrace._loading.epoch.order import OrderedBatch
    from headrace._loading.fallback.torch_epochs import TorchEpochs
    from headrace._loading.native.settings import OwnSettings, Settings
    from headrace._loading.routes.epoch_runner import Runner
    from headrace._loading.routes.route import AnySource, NativeRoute, Route
    from headrace._recipe.steps.recipe import Recipe, Recipes
    from headrace._storage.entry_points.entry_points import EntryPoints
    from headrace._storage.remote.cache import Cache

_T_co = TypeVar("_T_co", covariant=True)


def _advise(error: Exception, given: dict[str, Any]) -> None:
    from headrace._loading.epoch.advice import advise_on_arguments

    advise_on_arguments(error, given)


class DataLoader(TunedAttributes, OwnAttributes, Insight, Reports, Streamed, TorchDataLoader[_T_co]):
    """Drop-in replacement for ``torch.utils.data.DataLoader`` that makes image batches in native threads, bit for bit.

    If the native path does not support the dataset, its transform, the ``collate_fn`` or a ``worker_init_fn``, torch's
    DataLoader delivers the batches with the same arguments, and images that its workers open with ``PIL.Image.open``
    get their pixels natively, when they are needed. `route` says which path delivers, `explain` says why.

    The native path yields ``[images, targets]``, ``images`` without labels, or dicts of columns: images (n, C, H, W),
    a list of them for ``transforms.Views``, in the transforms' dtype; targets as torch's default_collate makes them
    (int64 for ints). The tensors belong to the caller: their memory is not reused while anything refers to them.

    Args:
        dataset: natively supported are ``headrace.ImageFolder``, ``ImageFiles`` and the other datasets of
            ``headrace.datasets``, torchvision's image folders, CIFAR and MNIST datasets, their ``Subset``,
            ``ConcatDataset`` and ``StackDataset``, with transforms of ``headrace.transforms`` or torchvision.
        batch_size, shuffle, sampler, batch_sampler, drop_last, timeout, generator, persistent_workers: as in torch.
        num_workers: number of native threads. 0: the caller's thread makes each batch when it is requested. ``"auto"``:
            found while the loader works, within this rank's cores and memory, or those of a ``headrace.AutoWorkers``.
        prefetch_factor: batches in flight beyond the one in use (default 2, or as ``"auto"`` finds). All threads work
            on one batch, so memory is bounded by ``prefetch_factor + 1`` batches and those that the caller keeps.
        prefetch_bytes: most bytes of these batches, such as ``"2 GB"``; if one is larger, each is made when requested.
        pin_memory: makes batches in pinned memory if there is an accelerator.
        in_order: as in torch. False: with threads, a complete batch is handed out before an earlier one that is not.
        collate_fn: as in torch; its samples are views of a finished batch, and torch's random numbers in it are seeded.
        worker_init_fn: as in torch, which then delivers; native threads need none that only seeds generators.
        multiprocessing_context, pin_memory_device: have no effect on the native path, which warns of them.
        seed: determines order and augmentation together with the epoch. None: drawn from `generator` (or torch's
            default generator) at the start of each epoch, as torch draws its base seed; the order is then torch's own.
            If torch delivers, it also seeds `random`, `numpy.random` and torch's CPU generator before each sample of a
            map-style dataset, and determines the worker seeds.
        device: device of the batches. None or ``"cpu"``; ``"cuda"``, ``"cuda:1"``: CPU threads and the GPU share the
            work, batches are ordered with the stream that is current when they are handed out, and the host never
            waits for the GPU; ``"emulated"``: the GPU path on this machine's threads (slow, for checks). If torch
            delivers, images that nothing in its workers has looked at are made so, too; all else is copied.
        decoder: for a GPU. ``"cpu"``: exact. ``"hardware"``, ``"cuda"``: nvJPEG on JPEG engines or on the GPU's cores
            (pixels may differ by a few grey levels, by more where the data is damaged); the CPU decodes what it does
            not take, and a RuntimeWarning says why if that is all. ``"auto"``: the best of these, with the CPU. Videos:
            ``"hardware"`` is NVDEC by torchcodec (pixels differ by roundings), ``"auto"`` and ``"cpu"`` are exact.
        deterministic: with ``decoder="auto"``, uses the same decoder for the same file in every run.
        dtype: dtype of the images, or its name, ``"float16"``. None: the dtype that the transforms produce.
        memory_format: ``torch.contiguous_format`` or ``torch.channels_last``, or their names.
        on_error: ``"raise"``; ``"skip"``: leaves failed samples out of the batch; ``"replace"``: uses the next instead.
        max_errors: number of failed samples per epoch above which RuntimeError is raised. None: no limit.
        rank, world_size: of a distributed job: this process gets every `world_size`-th sample of the order, also of a
            given sampler, and `seed` defaults to 0. None: it gets all samples, as in torch.
        distributed: takes both from torch.distributed, torchrun, or the variables RANK and WORLD_SIZE.
        snapshot_every_n_steps: if torch delivers: number of batches between two states that worker processes send, of
            an iterable dataset or one with ``state_dict``. Resuming repeats the batches after the last state. 0 or
            None: never. Not given: 1, but never a state above 16 KB, which costs more than torch's loader.
        deferred_images: if torch delivers: open images as ``headrace.pillow.open`` does, in the workers or here;
            threads here make their pixels where workers leave cores idle. False: as Pillow.
        out_transform: called on each batch as it is handed out, on the batch's device and in the caller's thread:
            MixUp, CutMix, a kornia module. Its random numbers follow from seed, epoch and batch on the native path.
            torchvision's MixUp and CutMix, and ``lambda batch: mix(*batch)`` with timm's Mixup, overwrite a CPU batch.
        cpu_affinity: cores that the loader's threads run on, or ``"gpu"``: those of the GPU's NUMA node.
        entry_points: where the rows of JPEGs begin is learned in the first epoch, and later ones read fewer codes.
            ``"auto"``: within 1/32 of this rank's memory, if a tenth of the samples may fit; shared by the process's
            loaders and by torch's workers. Bytes, such as ``"1 GB"``, or a `headrace.EntryPoints`. None: never.
        video_index: a folder, or a `headrace.Cache`, for where frames of videos are, which later runs and other ranks
            then need not learn. ``"auto"``: torch's workers share it, in 256 MB at most. None: each learns it.
        helpers: addresses of ``headrace serve``, such as ``["10.0.0.2:9917"]``; ``"ray"``, or a `headrace.RayHelpers`:
            other machines make samples that the threads here would make last. Batches do not depend on them.

    Raises:
        TypeError: an argument of headrace's own needs the native path, but torch delivers; the message says why.
        ValueError: the arguments contradict each other, as in torch.
        RuntimeError: there is no such device.
    """

    # torch's attributes, whose types it gives in part.
    sampler: Sampler[Any] | Iterable[Any]
    batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None
    collate_fn: Callable[[list[Any]], Any]
    generator: torch.Generator | None

    _own: OwnSettings
    _route: Route
    _epochs: Epochs
    _runner: Runner

    @explained(_advise)
    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int | str | AutoWorkers = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: object = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        seed: int | None = None,
        device: torch.device | str | None = None,
        decoder: str = "auto",
        deterministic: bool = False,
        dtype: torch.dtype | str | None = None,
        memory_format: torch.memory_format | str = torch.contiguous_format,
        on_error: OnError = "raise",
        max_errors: int | None = 100,
        rank: int | None = None,
        world_size: int | None = None,
        distributed: bool = False,
        out_transform: OutTransform | None = None,
        snapshot_every_n_steps: int | None = Unasked(1),
        deferred_images: bool = True,
        cpu_affinity: Sequence[int] | Literal["gpu"] | None = None,
        entry_points: EntryPoints | int | str | None = "auto",
        video_index: Cache | AnyPath | None = "auto",
        helpers: Sequence[str] | Literal["ray"] | RayHelpers | None = None,
        prefetch_bytes: int | str | None = None,
    ) -> None:
        from headrace._loading.epoch.sampler_setup import Samplers, shard_samplers
        from headrace._loading.native import arguments
        from headrace._loading.native.settings import OwnSettings
        from headrace._loading.routes import choice
        from headrace._loading.routes.epoch_runner import Runner
        from headrace._loading.routes.route import Batches, NativeRoute

        given = Samplers(shuffle, sampler, batch_sampler)
        self._own = own = OwnSettings.from_arguments(
            dataset,
            given,
            generator,
            rank,
            world_size,
            _DEFAULTS,
            seed=seed,
            device=device,
            decoder=decoder,
            deterministic=deterministic,
            dtype=dtype,
            memory_format=memory_format,
            on_error=on_error,
            max_errors=max_errors,
            out_transform=out_transform,
            distributed=distributed,
            snapshot_every_n_steps=snapshot_every_n_steps,
            deferred_images=deferred_images,
            cpu_affinity=cpu_affinity,
            entry_points=entry_points,
            video_index=video_index,
            helpers=helpers,
            prefetch_bytes=prefetch_bytes,
        )
        self._tuner = tuner_of(num_workers, prefetch_factor, own.cores, own.destination.way)
        batches = Batches.of(batch_size, batch_sampler)
        self._route = choice.decide_route(
            choice.Request(dataset, batches, collate_fn, worker_init_fn, num_workers, own)
        )
        self._route.check(own)
        if self._route.native:
            arguments.warn_of_no_effect(multiprocessing_context, pin_memory_device)
            arguments.check_types(sampler, batch_sampler, num_workers, timeout, generator, prefetch_factor)
        arguments.check_pinning(pin_memory, own.destination.device, own.destination.way)
        sharded = shard_samplers(dataset, sampled_world(dataset, own.world), given, drop_last, own.seed, generator)
        super().__init__(
            dataset,
            batch_size,
            sharded.shuffle,
            sharded.sampler,
            sharded.batch_sampler,
            initial_workers(num_workers, self._tuner),
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
        self._set_own(own)
        self._remember(num_workers, prefetch_factor)
        if isinstance(self._route, NativeRoute):
            arguments.warn_of_empty_epoch(self._route.samples, self.batch_size, drop_last, own.world)
            self._epochs = self._route.new_epochs(self, keeps_base_seed=persistent_workers)
        self._runner = Runner()

    @property
    def native(self) -> bool:
        """Whether headrace's threads deliver the batches. If not, torch's DataLoader does; ``explain()`` says why."""
        return self._route.native

    @property
    def route(self) -> Literal["native", "deferred", "torch"]:
        """``"native"``: headrace's threads deliver; ``"deferred"``: torch's DataLoader delivers, and the images that it
        opens get native pixels; ``"torch"``: torch's DataLoader delivers with Pillow's pixels."""
        if self.native:
            return "native"
        from headrace._loading.epoch.torch_loader import missing_hook

        return "deferred" if self._defers and missing_hook() is None else "torch"

    @property  # not cached_property, which pyright does not take for a property of the protocol `Loader`
    def _torch_epochs(self) -> TorchEpochs:
        """The epochs that torch delivers; a loader that stays native has none."""
        from headrace._loading.fallback.torch_epochs import TorchEpochs

        held: TorchEpochs | None = vars(self).get("_held_torch_epochs")
        if held is None:
            made = TorchEpochs(self.seed, self._own.world.rank, self._own.destination)
            held = vars(self).setdefault("_held_torch_epochs", made)
        return held

    def _settings(self) -> Settings:
        """Returns all arguments with their current values."""
        from headrace._loading.native.settings import Settings

        return Settings.now(self._own, self)

    def _renewed_route(self) -> Route:
        """Returns the route after checking the dataset and mutable arguments for changes; may switch to torch."""
        from headrace._loading.routes.choice import renew_route

        self._route = renew_route(self)
        return self._route

    def _native_route(self, what: str) -> NativeRoute:
        """Returns the native route. Raises RuntimeError if torch delivers; the message names `what`."""
        return self._renewed_route().needed_for(what)

    # ---- recipe and order --------------------------------------------------------------------------------------------

    @property
    def _source(self) -> AnySource:
        """The dataset that locates each sample's bytes."""
        return self._native_route("source").source

    def recipe(self) -> Recipe | Recipes:
        """Returns the lowered transform, or those of all image fields by name; lowered again only after a change.

        Raises:
            RuntimeError: torch delivers this loader's batches, or they are rows of columns or audio.
        """
        recipe = self._native_route("recipe()").recipes
        if recipe is None:
            raise RuntimeError("rows of columns, and audio, have no transforms, and so no recipe")
        return recipe

    def _peek_epoch(self, batches: int | None = None) -> tuple[checkpoint.Progress, list[OrderedBatch]]:
        """Returns seed and order (of `batches`, or all) of the next ``iter(loader)``; keeps torch's generators."""
        self._native_route("peek_epoch()")
        return self._epochs.peek(batches, self._settings().read_ahead)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next ``iter(loader)`` and passes it to the samplers. By default epochs count up by one.

        After ``load_state_dict``, setting the epoch of the state again still resumes in the middle of that epoch.

        Raises:
            TypeError: `epoch` is not a whole number.
            ValueError: `epoch` is negative.
        """
        self._route.set_epoch(self, whole_number("epoch", epoch, smallest=0))

    @property
    def upcoming_epoch(self) -> int:
        """Number of the epoch that the next ``iter(loader)`` starts or resumes."""
        return self._route.upcoming_epoch(self)

    @property
    def _shards_itself(self) -> bool:
        """Whether the loader itself shards its order, over the ranks that it found with ``distributed=True``."""
        return bool(self._own.world.found) and self._own.world.size > 1

    @property
    def _resumes(self) -> bool:
        """Whether the next ``iter(loader)`` resumes from a loaded state."""
        return self._route.resumes(self)

    # ---- iteration ---------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        self._own.world.check(self.distributed)
        published = self._publish_epoch()
        if self._own.reads_whole:
            from headrace._base.ranks import warn_of_whole_reads

            warn_of_whole_reads()
        return self._renewed_route().begin(self, super().__iter__, published)

    def _get_iterator(self) -> Any:
        """Called by torch's ``__iter__`` if torch delivers."""
        return self._torch_epochs.get_iterator(super()._get_iterator)

    @property
    def _engine(self) -> Engine | None:
        """The engine of the newest iterator."""
        return self._runner.engine

    def close(self) -> None:
        """Ends the threads of all iterators and discards their batches in flight. ``iter(loader)`` starts new ones."""
        self._runner.close()
        self._iterator = None  # torch's, with its persistent workers
        if "_held_torch_epochs" in vars(self):
            self._torch_epochs.close()

    def check_worker_number_rationality(self) -> None:
        """Warns only if torch delivers: unlike processes, threads beyond the cores are cheap and hide slow disks."""
        if not self.native:
            super().check_worker_number_rationality()

    # ---- state -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """Returns the epoch and position of the loader; loading it continues with exactly the remaining batches.

        The state holds everything that determines the order: the seed, and the states of torch's default generator and
        of the generators of the loader and of torch's samplers. A custom sampler must draw from these, or derive its
        order from ``set_epoch``, or have ``state_dict`` and ``load_state_dict``.
        """
        # Changes since the epoch began apply to the next epoch.
        route = self._route if self.native and self._epochs.under_way else self._renewed_route()
        return route.state_dict(self)

    def load_state_dict(self, state_dict: State) -> None:
        """Makes the next ``iter(loader)`` resume from `state_dict`, with any number of workers and ranks.

        The iterator's ``len()`` is still that of the whole epoch, as in torchdata's StatefulDataLoader.

        Raises:
            ValueError: the state belongs to another dataset, batch size, recipe, seed, sampling or Pillow rule.
        """
        self._renewed_route().load_state_dict(self, state_dict)

    @property
    def errors(self) -> list[SampleError]:
        """Errors of the samples that the newest epoch skipped or replaced."""
        return self._route.errors(self)


#: Default of each argument of DataLoader by name.
_DEFAULTS = {one.name: one.default for one in inspect.signature(DataLoader.__init__).parameters.values()}

accelerate_hook.install_hook(DataLoader)
