"""Settings of a loader: headrace's own arguments, checked once and fixed; torch's, read when an epoch begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import Dataset, IterableDataset, Sampler

from headrace._base.checks import checked_size
from headrace._base.ranks import World
from headrace._base.types import Function
from headrace._engine import destination as destinations
from headrace._engine.destination import Destination
from headrace._helpers.argument import checked_helpers
from headrace._loading.epoch.sampler_setup import Samplers
from headrace._loading.native import arguments, cpu_affinity
from headrace._loading.native.loader_attributes import OwnArguments
from headrace._recipe.images.memory_format import Layout, torch_value
from headrace._storage.entry_points.entry_points import checked_entry_points
from headrace._storage.video_indexes.shared_indexes import SharedIndexes, checked_video_index, shared_by_process

if TYPE_CHECKING:
    from headrace._loading.autotune.tuner import Tuner

_OF_DEVICES = ("device", "decoder", "deterministic")
_OF_IMAGES = (*_OF_DEVICES, "dtype", "memory_format", "entry_points", "video_index", "helpers")
READ_AHEAD = 64  #: batches, with num_workers="auto"; above any number in flight
_NATIVE_ONLY = (*_OF_IMAGES, "on_error", "cpu_affinity", "prefetch_bytes")


@dataclass(kw_only=True)
class OwnSettings(OwnArguments):
    """headrace's own arguments, checked and resolved. Nothing changes them later.

    Attributes:
        destination: `device`, `decoder` and `deterministic`, resolved.
        cores: `cpu_affinity`, resolved; none if it was not given.
        world: the ranks that the order is sharded over.
        reads_whole: whether every rank of a job reads all samples, because no argument shards the order.
        indexes: what `video_index` names, which lives as long as a loader that uses it.
        native_arguments: names of the arguments that need the native path and are not at their defaults.
        is_stream: whether the dataset is iterable.
        intolerant: why, if torch delivers, no failed sample of it can be passed over; "": some can.
    """

    destination: Destination
    cores: tuple[int, ...]
    world: World
    reads_whole: bool
    indexes: SharedIndexes | None
    native_arguments: tuple[str, ...]
    is_stream: bool
    intolerant: str

    @classmethod
    def from_arguments(
        cls,
        dataset: object,
        given: Samplers,
        generator: torch.Generator | None,
        rank: int | None,
        world_size: int | None,
        defaults: Mapping[str, object],
        **own: Any,
    ) -> OwnSettings:
        """Checks the arguments of a loader.

        Args:
            dataset, given, generator, rank, world_size: the loader's arguments.
            defaults: defaults of all arguments, by name.
            own: the arguments that `OwnArguments` lists.

        Raises:
            TypeError, ValueError, RuntimeError: see DataLoader.
        """
        if own["prefetch_bytes"] is not None:
            own["prefetch_bytes"] = checked_size(own["prefetch_bytes"], "prefetch_bytes")
        own = {**own, "dtype": torch_value(own["dtype"]), "memory_format": torch_value(own["memory_format"])}
        arguments.check_own_arguments(own)
        native_arguments = tuple(one for one in _NATIVE_ONLY if not _is_default(one, own[one], defaults[one]))
        entry_points = checked_entry_points(own.pop("entry_points"))
        video_index = checked_video_index(own.pop("video_index"))
        helpers = checked_helpers(own.pop("helpers"))
        destination = destinations.find_destination(own["device"], own["decoder"], own["deterministic"])
        cores = cpu_affinity.resolve_cores(own["cpu_affinity"], destination.device)
        world = World.requested(rank, world_size, own["distributed"])
        seed = own.pop("seed")
        if seed is not None:
            seed = int(seed)
        elif generator is None and world.is_job:
            seed = 0  # as in torch's DistributedSampler: all ranks must agree on the order
        return cls(
            **own,
            seed=seed,
            entry_points=entry_points,
            video_index=video_index,
            indexes=shared_by_process(video_index),
            helpers=helpers,
            destination=destination,
            cores=cores,
            world=world,
            reads_whole=not (given.any or world.given or own["distributed"] or isinstance(dataset, IterableDataset)),
            native_arguments=native_arguments,
            is_stream=isinstance(dataset, IterableDataset),
            intolerant=_why_intolerant(dataset, own["on_error"]),
        )

    @property
    def tolerates_stream(self) -> bool:
        """Whether failed samples of a stream are to be passed over. If torch delivers, its images are then not
        deferred: an error that comes after the generators have moved on could not be that of the libraries."""
        return self.is_stream and self.on_error != "raise"

    @property
    def layout(self) -> Layout:
        """Memory layout of a batch."""
        return Layout.of(self.memory_format)

    def refuse_decoder_of_images(self) -> None:
        """Raises TypeError if `decoder` is one that decodes JPEGs alone."""
        if self.decoder == "cuda":
            self._refuse(
                ("decoder",), "decodes JPEGs, and this dataset has videos; give 'hardware' for NVDEC, or 'cpu'"
            )

    def refuse_native_only(self, reason: str, *, defers: bool) -> None:
        """Raises TypeError if an argument that needs the native path is not at its default. `entry_points`,
        `video_index`, helpers and a device need it only without deferred images, and None never; `on_error` only for
        streams that end with their first error.

        Args:
            reason: why torch's DataLoader delivers the batches.
            defers: whether images are opened deferred.
        """
        allowed = (*_OF_DEVICES, "helpers", "on_error") if defers else ("on_error",)
        if self.tolerates_stream:
            if self.intolerant:
                self._refuse(("on_error",), f"cannot pass over samples of this stream: {self.intolerant}")
            self.refuse_replacing(varies=False, streams=True)
        for name in ("entry_points", "video_index"):
            if self.deferred_images or getattr(self, name) is None:
                allowed = (*allowed, name)
        names = tuple(one for one in _NATIVE_ONLY if one not in allowed)
        self._refuse(names, f"needs headrace's native path, but torch's DataLoader would serve here: {reason}")

    def refuse_of_images(self, why: str = "", allowed: tuple[str, ...] = ()) -> None:
        """Raises TypeError if an argument that applies to images alone is not at its default.

        Args:
            why: what the dataset has instead; "": columns.
            allowed: arguments that apply to it all the same.
        """
        why = why or (
            "applies to images, but this dataset's columns are delivered as they are, in this machine's memory; leave "
            "it out"
        )
        self._refuse(tuple(one for one in _OF_IMAGES if one not in allowed), why)

    def refuse_of_videos(self) -> None:
        """Raises TypeError if an argument that applies to videos alone is not at its default; None has no effect."""
        if self.video_index is not None:
            self._refuse(("video_index",), "applies to videos, and this dataset has images; leave it out")

    def refuse_replacing(self, *, varies: bool, streams: bool = False) -> None:
        """Raises ValueError if ``on_error="replace"`` has no sample to take for a failed one.

        Args:
            varies: whether the next sample may have another output size.
            streams: whether the next sample has not been read yet.
        """
        if self.on_error != "replace":
            return
        if varies:
            raise ValueError(
                'on_error="replace" does not work with ByAspectRatio: the next sample may have another size; use "skip"'
            )
        if streams:
            raise ValueError(
                'on_error="replace" takes the next sample of the dataset, which a stream has not read yet; use "skip"'
            )

    def _refuse(self, names: tuple[str, ...], why: str) -> None:
        for name in names:
            if name in self.native_arguments:
                raise TypeError(f"{name}={getattr(self, name)!r} {why}")


def _why_intolerant(dataset: object, on_error: object) -> str:
    if on_error == "raise" or not isinstance(dataset, IterableDataset):
        return ""
    from headrace._loading.fallback.tolerance.tolerated_streams import why_intolerant

    return why_intolerant(dataset)


def _is_default(name: str, value: object, default: object) -> bool:
    if name == "device" and str(value).partition(":")[0] == "cpu":
        return True
    return value is default or (default is not None and bool(value == default))


@dataclass(kw_only=True)
class Settings(OwnSettings):
    """All arguments of a loader. torch's are read from the loader's attributes, because some may change after
    construction.

    Attributes:
        batched: whether samples are grouped into batches: False for ``batch_size=None``.
        tuner: chooses `num_workers`, and `prefetch_factor` if that is not given; None if both are.
    """

    dataset: Dataset[object]
    batch_size: int | None
    sampler: Sampler[object] | Iterable[object]
    batch_sampler: Sampler[list[object]] | Iterable[list[object]] | None
    num_workers: int
    collate_fn: Function | None
    pin_memory: bool
    timeout: float
    worker_init_fn: Callable[[int], None] | None
    prefetch_factor: int | None
    persistent_workers: bool
    in_order: bool
    batched: bool
    tuner: Tuner | None

    @classmethod
    def now(cls, own: OwnSettings, loader: object) -> Settings:
        """Returns the settings of a loader with the current values of its attributes."""
        names = {one.name: one.name for one in fields(cls) if one.name not in vars(own)}
        names |= {"batched": "_auto_collation", "tuner": "_active_tuner"}
        return cls(**vars(own), **{name: getattr(loader, attribute) for name, attribute in names.items()})

    @property
    def fixed_workers(self) -> int | None:
        """`num_workers`; None if it is chosen while the loader works."""
        return self.num_workers if self.tuner is None else None

    @property
    def persists(self) -> bool:
        """Whether torch's workers would live on after an epoch, with what they had copied in the first one."""
        return self.persistent_workers and self.num_workers > 0

    @property
    def depth(self) -> int:
        """Number of batches in flight beyond the one in use; 0: each is made when it is requested."""
        return max(1, self.prefetch_factor or 1) if self.num_workers > 0 else 0

    @property
    def most_depth(self) -> int:
        """The largest `depth` of an epoch that begins now."""
        return self.depth if self.tuner is None else max(self.depth, self.tuner.most_depth)

    @property
    def overtakes(self) -> bool:
        """Whether a batch that is complete is handed out before an earlier one that is not: as in torch with two
        workers or more. One makes a batch after the other."""
        return not self.in_order and (self.num_workers > 1 or (self.tuner is not None and self.depth > 0))

    @property
    def most_in_flight(self) -> int:
        """Most batches in flight: with ``in_order=False`` those that others have overtaken come on top of `depth`, up
        to the number of torch's loader. A device's staging memory is made for `depth` batches."""
        most = self.most_depth + 1
        return max(most, self.read_ahead) if self.overtakes and self.destination.way != "fused" else most

    @property
    def read_ahead(self) -> int:
        """Number of batches that the sampler is read ahead: as torch's loader does with these arguments. Where
        `num_workers` is chosen, a constant, since the generators' states must not depend on what is chosen."""
        if self.tuner is not None:
            return max(READ_AHEAD, 2 * (self.prefetch_factor or 0))
        return self.num_workers * max(1, self.prefetch_factor or 1)

    @property
    def ranks(self) -> int:
        """Number of ranks that step together."""
        return max(self.world.size, getattr(self.sampler, "num_replicas", 1))

    def default_device(self) -> AbstractContextManager[object]:
        """Returns a context in which torch's default device is what it is where torch would collate: that of the
        program in its own thread, and the CPU in workers."""
        elsewhere = self.depth > 0 and torch.get_default_device().type != "cpu"
        return torch.device("cpu") if elsewhere else nullcontext()
