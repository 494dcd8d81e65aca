"""`on_error` where torch delivers: samples that a dataset of a program's own cannot make are left out or replaced.

torch's fetcher gets the samples from `TolerantDataset`, which catches the exceptions of ``dataset[i]``, and has the
pixels of deferred images made there, so that their errors are the sample's. `TolerantCollation` passes on what is left,
and its batch carries the errors to the main process, where `tolerated_batches` counts them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from torch.utils.data import Dataset, get_worker_info

from headrace._base.errors import SampleError, sample_error
from headrace._base.native import core
from headrace._base.safe_exceptions import format_error
from headrace._base.types import Function
from headrace._loading.epoch.torch_loader import LoaderView, TorchLoader
from headrace._loading.fallback.deferred_workers import make_values
from headrace._recipe.draws.python_randomness import process_generator_states, restore_process_generators
from headrace.pillow.recording.image_counts import in_force


@dataclass
class _Attempted:
    """A sample, and the errors before it could be made; `is_made`: whether it could."""

    sample: object
    errors: list[SampleError]
    is_made: bool


@dataclass(frozen=True)
class ToleratedBatch:
    """A batch of which samples have failed.

    Attributes:
        batch: what collate_fn made of the others; None if there are none.
        errors: why.
        is_empty: whether there are none.
    """

    batch: object
    errors: list[SampleError]
    is_empty: bool

    def pin_memory(self) -> ToleratedBatch:
        """Pins the batch as torch does; called by torch."""
        from torch.utils.data._utils.pin_memory import pin_memory

        return replace(self, batch=pin_memory(self.batch))  # type: ignore[no-untyped-call]


class TolerantDataset(Dataset[Any]):
    """Stands for a map-style dataset; makes single samples only, since of several it is not known which one fails.

    Args:
        replaces: whether the next sample takes the place of one that failed.
    """

    def __init__(self, dataset: Any, *, replaces: bool) -> None:
        self.dataset, self._replaces = dataset, replaces

    def __len__(self) -> int:
        return len(self.dataset)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "dataset" not in vars(self):
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __getitem__(self, index: Any) -> object:
        """Returns the sample, or `_Attempted` if one has failed."""
        errors: list[SampleError] = []
        for _ in range(len(self.dataset) if self._replaces else 1):
            try:
                made = self._make(index)
            except Exception as error:
                errors.append(self._describe(error, index))
                if self._replaces:
                    index = (index + 1) % len(self.dataset)
            else:
                return _Attempted(made, errors, True) if errors else made
        return _Attempted(None, errors, False)

    def _make(self, index: Any) -> object:
        """Returns the sample. One that fails with deferred images, whose errors come late, is made again without: its
        error and its random numbers are then the libraries'."""
        if in_force.here() is None:
            return self.dataset[index]
        before, asked = process_generator_states(), in_force.asked
        try:
            made = self.dataset[index]
            make_values(made)
        except Exception:
            if in_force.asked == asked:  # no image was opened
                raise
        else:
            return made
        restore_process_generators(before)
        return in_force.call_as_usual(lambda: self.dataset[index])

    def _describe(self, error: Exception, index: Any) -> SampleError:
        number = index if isinstance(index, int) else -1
        location = type(self.dataset).__name__ if number == index else f"{type(self.dataset).__name__}, {index!r}"
        made = sample_error("dataset", number, location, format_error(error), error)
        return pickle.loads(pickle.dumps(made))  # type: ignore[no-any-return]  # as other processes get it: without frames


class TolerantCollation:
    """Calls collate_fn with the samples that could be made.

    Args:
        batched: whether it gets lists of samples.
    """

    def __init__(self, collate_fn: Function, *, batched: bool) -> None:
        self._collate_fn, self._batched = collate_fn, batched

    def __call__(self, data: Any) -> object:
        """Returns the batch, or a `ToleratedBatch` if a sample has failed."""
        samples = data if self._batched else [data]
        if not any(isinstance(one, _Attempted) for one in samples):
            return self._collate_fn(data)
        errors = [error for one in samples if isinstance(one, _Attempted) for error in one.errors]
        left = [
            one.sample if isinstance(one, _Attempted) else one
            for one in samples
            if not isinstance(one, _Attempted) or one.is_made
        ]
        if not left:
            return ToleratedBatch(None, errors, True)
        return ToleratedBatch(self._collate_fn(left if self._batched else left[0]), errors, False)


def _reveal(worker: int) -> int:
    """Shows the program's dataset to its functions in a worker process."""
    info: Any = get_worker_info()
    if isinstance(info.dataset, TolerantDataset):
        object.__setattr__(info, "dataset", info.dataset.dataset)  # torch's WorkerInfo refuses changes
    return worker


def tolerating(loader: Any) -> TorchLoader:
    """Returns a loader's view whose samples may fail; the loader itself with ``on_error="raise"``."""
    if loader.on_error == "raise":
        return loader  # type: ignore[no-any-return]
    init_fn: Callable[[int], object] | None = loader.worker_init_fn
    others = {
        "dataset": TolerantDataset(loader.dataset, replaces=loader.on_error == "replace"),
        "collate_fn": TolerantCollation(loader.collate_fn, batched=loader._auto_collation),
        "worker_init_fn": _reveal if init_fn is None else core.Composed(_reveal, init_fn),
    }
    view: Any = LoaderView(loader, others)
    return view  # type: ignore[no-any-return]


@dataclass
class EpochFaults:
    """The errors of the samples of an epoch that were left out or replaced."""

    epoch: int
    errors: list[SampleError] = field(default_factory=list)
