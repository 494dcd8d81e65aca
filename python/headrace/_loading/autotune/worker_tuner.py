"""Chooses the number of torch's worker processes between two epochs: within one it cannot change."""

from __future__ import annotations

from typing import Protocol

from torch.utils.data import IterableDataset

from headrace._engine.counters.epoch_timing import EpochTiming
from headrace._loading.autotune.tuner import Tuner
from headrace._loading.bottleneck.batch_cost import Load, Setting, mean_load_between
from headrace._loading.bottleneck.model import free_cores, predict_period, with_threads
from headrace._loading.bottleneck.verdict import BATCHES

_GAIN = 1.05
_ENOUGH = 1.03  # a smaller number is taken if it comes this close to the best
_MOST_A_CORE = 4  # processes need memory, which threads do not


class Tuned(Protocol):
    """The part of a loader, or of its settings, by which the number may change."""

    @property
    def seed(self) -> int | None: ...

    @property
    def dataset(self) -> object: ...

    @property
    def persistent_workers(self) -> bool: ...


class Choosing(Tuned, Protocol):
    """The part of a loader that has the number."""

    @property
    def _active_tuner(self) -> Tuner | None: ...


def why_fixed(loader: Tuned) -> str:
    """Returns why the number of a loader stays what it was at first, as a clause; "" if it may change."""
    if loader.seed is None:
        return "without seed= torch's random numbers depend on the number of workers"
    if isinstance(loader.dataset, IterableDataset) or hasattr(loader.dataset, "state_dict"):
        return "each worker keeps its own part or state of the dataset"
    if loader.persistent_workers:
        return "persistent_workers keeps the processes"
    return ""


def choose_workers(loader: Choosing, pace: EpochTiming | None, making: int = 0) -> None:
    """Sets the number for the epoch that is about to begin, if the loader chooses it.

    Args:
        pace: of the epoch before; None: there was none.
        making: threads that made images from records for a device then. Otherwise workers make them whose number the
            loader chooses.
    """
    tuner = loader._active_tuner
    if tuner is None or pace is None or why_fixed(loader):
        return
    now = tuner.choice.threads
    batches = pace.marks[-1].batches - pace.marks[0].batches if pace.marks else 0
    if batches < BATCHES:
        return
    setting = Setting(now, tuner.budget.cores, native=False, making=making, on_device=making > 0)
    load = mean_load_between(pace.marks[0], pace.marks[-1], setting)
    if tuner.revert_if_no_better(load.period):
        return
    number = predict_best_workers(load, min(tuner.budget.most, _MOST_A_CORE * tuner.budget.first))
    if number != now:
        tuner.expect(tuner.choice._replace(threads=number), load.period)


def predict_best_workers(load: Load, most: int) -> int:
    """Returns the number of workers that the model expects to be best; the present one if none is clearly better."""
    now, cores = load.setting.threads, free_cores(load)
    unexplained = max(0.0, load.period - predict_period(load))
    periods = {one: predict_period(with_threads(load, one, cores)) + unexplained for one in range(1, most + 1)}
    least = min(periods.values())
    if load.period < _GAIN * least:
        return now
    return next(one for one, seconds in periods.items() if seconds <= _ENOUGH * least)
