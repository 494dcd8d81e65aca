"""The route on which torch's DataLoader delivers, with the same arguments."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from headrace._base import loggers
from headrace._base.errors import SampleError
from headrace._base.originals.relied_functions import Replaced
from headrace._base.types import State
from headrace._loading.native.out_transform import TransformedBatches
from headrace._loading.native.settings import OwnSettings
from headrace._loading.routes.route import Loader, Route
from headrace.datasets.sources.override_checks import Overridden


@dataclass(frozen=True)
class TorchRoute(Route):
    """Route on which torch's DataLoader delivers.

    Attributes:
        reason: why, and what would make the loader native; one sentence per reason.
        replaced: whether the reason is that a function of a library has been replaced.
        passing: whether the reason may pass before the next epoch without a change of the loader.
    """

    reason: str
    replaced: bool = False
    passing: bool = False
    native = False

    @classmethod
    def after(cls, error: Exception) -> TorchRoute:
        """Returns the route after a refusal of the native one."""
        replaced = isinstance(error, Replaced)
        return cls(str(error), replaced, replaced or isinstance(error, Overridden))

    def check(self, own: OwnSettings) -> None:
        from headrace._loading.epoch.torch_loader import missing_hook

        own.destination.require_decoder()
        defers = own.deferred_images and missing_hook() is None and not own.tolerates_stream
        own.refuse_native_only(self.reason, defers=defers)

    def needed_for(self, what: str) -> NoReturn:
        raise RuntimeError(f"{what} needs headrace's native path, but torch's DataLoader serves here: {self.reason}")

    def begin(self, loader: Loader, torchs: Callable[[], Iterator[object]], published: bool) -> Iterator[object]:
        from headrace._loading.autotune import worker_tuner  # not before torch delivers
        from headrace._loading.fallback import opened_images

        epochs, function = loader._torch_epochs, loader._own.out_transform
        level = logging.INFO if epochs.is_news(self.reason) else logging.DEBUG
        loggers.loading.log(level, "torch's DataLoader delivers this epoch: %s", self.reason)
        deferred = loader.route == "deferred"
        if not deferred:
            opened_images.warn_of_torch(self.reason)
        worker_tuner.choose_workers(loader, epochs.pace, epochs.making)
        batches = epochs.begin(loader, torchs)
        if deferred:
            epochs.judge_images(loader)
        if loader._own.on_error != "raise":
            from headrace._loading.routes.tolerated_batches import ToleratedBatches

            batches = ToleratedBatches(batches, loader, epochs.begin_faults())
        return batches if function is None else TransformedBatches(batches, function)

    def errors(self, loader: Loader) -> list[SampleError]:
        return loader._torch_epochs.faults.errors

    def set_epoch(self, loader: Loader, epoch: int) -> None:
        loader._torch_epochs.set(loader, epoch)

    def upcoming_epoch(self, loader: Loader) -> int:
        return loader._torch_epochs.upcoming(loader)

    def resumes(self, loader: Loader) -> bool:
        return loader._torch_epochs.resumes(loader)

    def state_dict(self, loader: Loader) -> State:
        return loader._torch_epochs.state_dict(loader)

    def load_state_dict(self, loader: Loader, state: State) -> None:
        loader._torch_epochs.load_state_dict(loader, state)
