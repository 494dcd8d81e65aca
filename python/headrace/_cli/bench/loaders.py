"""The loaders that are compared: headrace's, torch's, and torchdata's where it is installed."""

from __future__ import annotations

from collections.abc import Callable

from torch.utils.data import DataLoader as TorchDataLoader

from headrace.loader import DataLoader

Make = Callable[..., TorchDataLoader[object]]

OURS, BASELINE = "headrace", "torch"


def list_contenders() -> dict[str, Make]:
    """Returns the installed loaders by name. All read the same dataset, and take torch's arguments."""
    found: dict[str, Make] = {BASELINE: TorchDataLoader}
    try:
        from torchdata.stateful_dataloader import StatefulDataLoader
    except ImportError:
        pass
    else:
        found["torchdata"] = StatefulDataLoader
    return {**found, OURS: DataLoader}


def make_loader(make: Make, dataset: object, batch_size: int, workers: int) -> TorchDataLoader[object]:
    """Returns a loader of shuffled batches, whose workers live as long as it does."""
    return make(dataset, batch_size=batch_size, shuffle=True, num_workers=workers, persistent_workers=True)
