"""Views of loaders whose samples may fail: a stand-in for the dataset, and a collate_fn that passes on what is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils.data import IterableDataset, get_worker_info

from headrace._base.native import core
from headrace._loading.epoch.torch_loader import LoaderView, TorchLoader
from headrace._loading.fallback.tolerance.attempts import StandIn
from headrace._loading.fallback.tolerance.tolerated_samples import TolerantCollation, TolerantDataset
from headrace._loading.fallback.tolerance.tolerated_streams import TolerantStream


def _reveal(worker: int) -> int:
    """Shows the program's dataset to its functions in a worker process."""
    info: Any = get_worker_info()
    if isinstance(info.dataset, StandIn):
        object.__setattr__(info, "dataset", info.dataset.dataset)  # torch's WorkerInfo refuses changes
    return worker


def tolerating(loader: Any) -> TorchLoader:
    """Returns a loader's view whose samples may fail; the loader itself with ``on_error="raise"``."""
    if loader.on_error == "raise":
        return loader  # type: ignore[no-any-return]
    init_fn: Callable[[int], object] | None = loader.worker_init_fn
    dataset: StandIn
    if isinstance(loader.dataset, IterableDataset):
        dataset = TolerantStream(loader.dataset, loader.max_errors)
    else:
        dataset = TolerantDataset(loader.dataset, replaces=loader.on_error == "replace")
    others: dict[str, object] = {
        "dataset": dataset,
        "collate_fn": TolerantCollation(loader.collate_fn, batched=loader._auto_collation),
        "worker_init_fn": _reveal if init_fn is None else core.Composed(_reveal, init_fn),
    }
    view: Any = LoaderView(loader, others)
    return view  # type: ignore[no-any-return]
