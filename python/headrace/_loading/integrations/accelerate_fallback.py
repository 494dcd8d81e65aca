"""Keeps headrace's loader in what Accelerate makes of a loader that torch delivers, so that its images stay deferred.

Accelerate makes torch's DataLoader from the arguments of a loader: when it prepares it, and again in
``skip_first_batches``. Everything that Accelerate decides, such as shards, generators and who dispatches, is in the
arguments of that DataLoader. So one of headrace with the same arguments takes its place. See decision 0010.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from accelerate.data_loader import DataLoaderAdapter, skip_first_batches
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import IterableDataset

from headrace._loading.fallback.deferred_workers import AloneInWorkers
from headrace._loading.integrations.loader_handoff import OwnLoader

_NAMES = tuple(inspect.signature(TorchDataLoader.__init__).parameters)[1:]
_ORDER = ("batch_size", "shuffle", "sampler", "batch_sampler", "drop_last")
_CALLS = 4  # between skip_first_batches and the constructor of Accelerate's base class, and some more

_preparing = threading.local()  # its `loader`: that of headrace which Accelerate prepares in this thread


@contextmanager
def preparing(loader: object) -> Iterator[None]:
    """While active, the loaders that Accelerate makes in this thread are made of `loader`; None: not of headrace's."""
    before = getattr(_preparing, "loader", None)
    _preparing.loader = loader
    try:
        yield
    finally:
        _preparing.loader = before


@functools.cache
def hook_loader_adapters(ours: type[OwnLoader]) -> None:
    """Makes each loader of Accelerate that is made of one of the class `ours` keep it, also one that skips batches."""
    stock = DataLoaderAdapter.__init__

    @functools.wraps(stock)
    def begin(self: Any, *args: object, **options: Any) -> None:
        loader = getattr(_preparing, "loader", None)
        if loader is None:
            loader = _find_skipped_loader(sys._getframe(1), ours)
        deferred = loader is not None and loader.route == "deferred"
        if deferred and loader is not None and options.get("use_stateful_dataloader"):
            _defer_in_workers(options, loader)
        stock(self, *args, **options)
        if deferred and loader is not None and type(self.base_dataloader) is TorchDataLoader:
            _replace_base_loader(self, self.base_dataloader, ours, loader)

    DataLoaderAdapter.__init__ = begin


def _defer_in_workers(options: dict[str, Any], loader: OwnLoader) -> None:
    """Changes the arguments of torchdata's loader, which has iterators of its own: its workers open images deferred."""
    number, collate_fn = options.get("num_workers", 0), options.get("collate_fn")
    if number > 0 and collate_fn is not None:
        points = loader._torch_epochs.find_entry_points(loader)
        native = None if points is None else points.native
        alone = AloneInWorkers(
            collate_fn, options.get("worker_init_fn"), workers=number, entry_points=native, indexes=loader._indexes
        )
        options |= {"collate_fn": alone.collate, "worker_init_fn": alone.start}


def _find_skipped_loader(frame: FrameType | None, ours: type[OwnLoader]) -> OwnLoader | None:
    """Returns the loader of headrace in the one that ``skip_first_batches``, if that is what runs, is called with.

    It is imported by name into several modules, so it cannot be replaced.
    """
    for _ in range(_CALLS):
        if frame is None or frame.f_code is skip_first_batches.__code__:
            break
        frame = frame.f_back
    else:
        return None
    kept = None if frame is None else getattr(frame.f_locals.get("dataloader"), "base_dataloader", None)
    return kept if isinstance(kept, ours) and not kept.native else None


def _replace_base_loader(
    adapter: Any, given: TorchDataLoader[Any], ours: Callable[..., OwnLoader], loader: OwnLoader
) -> None:
    """Puts a loader of headrace with the same arguments in the place of the one that Accelerate has made."""
    options = {name: getattr(given, name) for name in _NAMES if name not in _ORDER}
    if given.batch_size is None and given.batch_sampler is not None:
        options["batch_sampler"] = given.batch_sampler
    else:
        options |= {"batch_size": given.batch_size, "drop_last": given.drop_last}
        if not isinstance(given.dataset, IterableDataset):
            options["sampler"] = given.sampler
    own = {name: getattr(loader, name) for name in ("cpu_affinity", "entry_points", "video_index")}
    made = ours(**options, **own, snapshot_every_n_steps=0)
    if made.native:  # its order would not be the one that torch draws
        return
    adapter.base_dataloader = made
    # Not by assignment: Accelerate's classes have a property `__class__`, the class of their loader.
    vars(object)["__class__"].__set__(adapter, _class_with_mixin(type(adapter)))


class _Keeping:
    """Mixin of Accelerate's classes: without torchdata's loader they have no states."""

    def _update_state_dict(self) -> None:
        """Does nothing. Accelerate asks for the state before each batch of a loader that can give one."""

    def __reduce__(self) -> tuple[object, ...]:
        return _make_empty_adapter, (_KINDS[type(self)],), vars(self).copy()


_KINDS: dict[type, type] = {}  # the classes with the mixin, and those without


def _class_with_mixin(kind: type) -> type:
    """Returns the class with the mixin; one class for each of Accelerate's."""
    for made, below in _KINDS.items():
        if kind in (made, below):
            return made
    made = type(kind.__name__, (_Keeping, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})
    _KINDS[made] = kind
    return made


def _make_empty_adapter(kind: type) -> object:
    """Returns an object for a copy to fill."""
    return object.__new__(_class_with_mixin(kind))
