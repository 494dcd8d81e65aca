"""headrace's own arguments: their list, and the loader's attributes of the same names, which are set once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import torch

if TYPE_CHECKING:
    from headrace._base.types import State
    from headrace._helpers.argument import Helpers
    from headrace._storage.entry_points.entry_points import EntryPoints
    from headrace._storage.video_indexes.shared_indexes import SharedIndexes, VideoIndex

OnError = Literal["raise", "skip", "replace"]
OutTransform = Callable[[Any], Any]


@dataclass(init=False, repr=False, eq=False)
class OwnArguments:
    """Arguments that torch's DataLoader does not have, as given; in a distributed job `seed` defaults to 0, bytes for
    `entry_points` are an object, a text for `prefetch_bytes` is a number, a folder for `video_index` is a Cache, and
    `helpers` are addresses, or nodes of a Ray cluster."""

    seed: int | None
    device: torch.device | str | None
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
    cpu_affinity: Sequence[int] | Literal["gpu"] | None
    entry_points: EntryPoints | Literal["auto"] | None
    video_index: VideoIndex
    helpers: Helpers
    prefetch_bytes: int | None


class OwnAttributes(OwnArguments):
    """Mixed into the loader: `OwnArguments` as attributes, which a copy of the loader keeps.

    Lightning and others recreate a loader from attributes that are named like its arguments, as torch's are.
    """

    _own: Any  # OwnSettings

    def _set_own(self, own: OwnArguments) -> None:
        self._own = own
        vars(self).update({name: getattr(own, name) for name in _SET_ONCE})

    @property
    def _indexes(self) -> SharedIndexes | None:
        """What `video_index` names: indexes of videos that are shared with other processes; None: nothing."""
        found: SharedIndexes | None = self._own.indexes
        return found

    @property
    def _defers(self) -> bool:
        """Whether an epoch that torch delivers opens images deferred.

        Not if a function of a library was replaced, which may be one that native pixels do not call, and not those of a
        stream whose failed samples are passed over.
        """
        return (
            self.deferred_images
            and not self._own.tolerates_stream
            and not getattr(vars(self).get("_route"), "replaced", False)
        )

    def __setattr__(self, name: str, value: object) -> None:
        if name in _SET_ONCE and name in vars(self):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __getstate__(self) -> State:
        # Even a shallow copy gets epochs and threads of its own.
        own = ("_epochs", "_held_torch_epochs", "_runner", "_tuner")
        kept = {**self.__dict__, **{name: copy.copy(self.__dict__[name]) for name in own if name in self.__dict__}}
        # torch.save uses a pickle protocol below 4, which does not support torch.memory_format.
        kept["_own"] = copy.copy(self._own)
        vars(kept["_own"]).update(memory_format=str(self.memory_format), indexes=None)
        return {name: value for name, value in kept.items() if name not in _SET_ONCE}

    def __setstate__(self, kept: State) -> None:
        from headrace._storage.video_indexes.shared_indexes import shared_by_process

        memory_format = getattr(torch, kept["_own"].memory_format.removeprefix("torch."))
        vars(self).update(kept)
        indexes = shared_by_process(kept["_own"].video_index)
        self._set_own(replace(kept["_own"], memory_format=memory_format, indexes=indexes))


_SET_ONCE = frozenset(one.name for one in fields(OwnArguments))
