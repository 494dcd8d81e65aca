"""The loader's attributes that mirror its own settings: each is set once, and a copy of the loader keeps it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import torch

if TYPE_CHECKING:
    from headrace._base.ranks import World
    from headrace._engine.destination import Destination
    from headrace._storage.entry_points.entry_points import EntryPoints

OnError = Literal["raise", "skip", "replace"]
OutTransform = Callable[[Any], Any]


class Unasked(int):
    """A default of an argument that acts in another way than the same number given."""


class OwnAttributes:
    """Mixed into the loader: the fields of its OwnSettings as attributes of the same names."""

    _own: Any  # the loader's OwnSettings

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
    deferred_images: bool
    cpu_affinity: Any
    entry_points: EntryPoints | Literal["auto"] | None
    destination: Destination
    cores: tuple[int, ...]
    world: World
    reads_whole: bool
    native_arguments: tuple[str, ...]

    @property
    def defers(self) -> bool:
        """Whether an epoch that torch delivers opens images deferred.

        Not if a function of a library was replaced, which may be one that native pixels do not call.
        """
        return self.deferred_images and not getattr(vars(self).get("_route"), "replaced", False)

    def __setattr__(self, name: str, value: object) -> None:
        if name in _SET_ONCE and name in vars(self):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        # Even a shallow copy gets epochs and threads of its own.
        own = ("_epochs", "_torch_epochs", "_runner", "_tuner")
        kept = {**self.__dict__, **{name: copy.copy(self.__dict__[name]) for name in own if name in self.__dict__}}
        # torch.save uses a pickle protocol below 4, which does not support torch.memory_format.
        kept["_own"] = replace(self._own, memory_format=str(self.memory_format))
        return {name: value for name, value in kept.items() if name not in vars(self._own)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        memory_format = getattr(torch, kept["_own"].memory_format.removeprefix("torch."))
        own = replace(kept["_own"], memory_format=memory_format)
        vars(self).update(kept, _own=own)
        vars(self).update(vars(own))


_SET_ONCE = frozenset(OwnAttributes.__annotations__) - {"_own"}
