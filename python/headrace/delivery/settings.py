"""The arguments of a loader: headrace's own, checked once and fixed; torch's, as they are when an epoch begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import torch
from torch.utils.data import IterableDataset

from headrace.base.world import World
from headrace.delivery import arguments
from headrace.delivery.out_transform import OutTransform
from headrace.engine import target as targets
from headrace.engine.layout import Layout
from headrace.engine.target import Target
from headrace.epochs.samplers import Samplers

OnError = Literal["raise", "skip", "replace"]
_NATIVE_ONLY = ("device", "decoder", "deterministic", "dtype", "memory_format", "on_error")


@dataclass(frozen=True, kw_only=True)
class OwnSettings:
    """headrace's own arguments, as given; `seed` may be the one that a distributed job needs.

    Attributes:
        target: what `device`, `decoder` and `deterministic` come to.
        world: the ranks that the order is dealt out to.
        reads_whole: whether each rank of a job would read all samples in one order: nothing says which are its own.
    """

    seed: int | None
    device: Any
    decoder: str
    deterministic: bool
    dtype: torch.dtype | None
    memory_format: torch.memory_format
    on_error: OnError
    max_errors: int | None
    out_transform: OutTransform | None
    distributed: bool
    snapshot_every_n_steps: int | None
    target: Target
    world: World
    reads_whole: bool

    @classmethod
    def of(
        cls,
        dataset: Any,
        given: Samplers,
        generator: torch.Generator | None,
        rank: int | None,
        world_size: int | None,
        own: dict[str, Any],
    ) -> OwnSettings:
        """Checks what a loader was given.

        Args:
            dataset, given, generator, rank, world_size: as of the loader.
            own: the arguments with the names of the attributes.

        Raises:
            TypeError, ValueError, RuntimeError: see DataLoader.
        """
        arguments.check_own_arguments(own)
        target = targets.resolve(own["device"], own["decoder"], own["deterministic"])
        world = World.asked_for(rank, world_size, own["distributed"])
        reads_whole = not (given.any or world.given or own["distributed"] or isinstance(dataset, IterableDataset))
        if own["seed"] is not None:
            own["seed"] = int(own["seed"])
        elif generator is None and world.is_job:
            own["seed"] = 0  # as in torch's DistributedSampler: all ranks, however many, must agree on the order
        return cls(**own, target=target, world=world, reads_whole=reads_whole)

    @property
    def layout(self) -> Layout:
        """How the values of a batch lie in its memory."""
        return Layout.of(self.memory_format)

    def refuse_native_only(self, reason: str, defaults: Mapping[str, Any]) -> None:
        """Raises TypeError where an argument that torch's DataLoader cannot serve is not as it is by default.

        Args:
            reason: why torch's DataLoader delivers the batches.
            defaults: of all arguments.
        """
        for name in _NATIVE_ONLY:
            value = getattr(self, name)
            if value != defaults[name] and not (name == "device" and str(value).partition(":")[0] == "cpu"):
                raise TypeError(
                    f"{name}={value!r} needs headrace's native path, but torch's DataLoader would serve here: {reason}"
                )


@dataclass(frozen=True, kw_only=True)
class Settings(OwnSettings):
    """All that decides what a loader delivers. torch's arguments are those that the loader has now: some may be set
    after construction.

    Attributes:
        batched: whether samples come in batches: False for ``batch_size=None``.
    """

    dataset: Any
    batch_size: int | None
    sampler: Any
    batch_sampler: Any
    num_workers: int
    collate_fn: Callable[..., Any] | None
    pin_memory: bool
    timeout: float
    worker_init_fn: Callable[[int], None] | None
    prefetch_factor: int | None
    persistent_workers: bool
    batched: bool

    @classmethod
    def now(cls, own: OwnSettings, loader: Any) -> Settings:
        """Those of a loader, as its attributes are now."""
        torchs = {one.name: getattr(loader, one.name) for one in fields(cls) if one.name not in vars(own)}
        return cls(**vars(own), **torchs)

    @property
    def depth(self) -> int:
        """Batches in flight beyond the one in use; 0: each is made when it is asked for."""
        return max(1, self.prefetch_factor or 1) if self.num_workers > 0 else 0

    @property
    def ranks(self) -> int:
        """How many take their steps together."""
        return max(self.world.size, getattr(self.sampler, "num_replicas", 1))


class OwnAttributes:
    """The attributes of a loader that are its own settings: set once."""

    seed: int | None
    device: Any
    decoder: str
    deterministic: bool
    dtype: torch.dtype | None
    memory_format: torch.memory_format
    on_error: OnError
    max_errors: int | None
    out_transform: OutTransform | None
    distributed: bool
    snapshot_every_n_steps: int | None
    target: Target
    world: World
    reads_whole: bool

    def __setattr__(self, name: str, value: Any) -> None:
        if name in OwnSettings.__dataclass_fields__ and name in vars(self):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)
