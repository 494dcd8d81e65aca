"""Sets what ``torch.utils.data.get_worker_info()`` returns in the threads that run a loader's Python steps."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from types import FunctionType

from torch.utils.data import Dataset
from torch.utils.data._utils import worker as torchs

_HOOK = "_headrace_info_of_this_thread"


@dataclass(frozen=True)
class WorkerValues:
    """The loader's values for torch's WorkerInfo."""

    count: int
    seed: int  # seed of worker 0
    dataset: Dataset[object]


class _Here(threading.local):
    info: torchs.WorkerInfo | None = None


_here = _Here()


class as_worker:
    """Inside ``with``, ``get_worker_info()`` describes this thread as a worker; as none if `workers` is None.

    Args:
        number: number of the worker, from 0.
    """

    def __init__(self, workers: WorkerValues | None, number: int) -> None:
        self._info = None if workers is None else _make_worker_info(workers, number)

    def __enter__(self) -> None:
        self._before, _here.info = _here.info, self._info

    def __exit__(self, *error: object) -> None:
        _here.info = self._before


def _make_worker_info(workers: WorkerValues, number: int) -> torchs.WorkerInfo:
    _patch_get_worker_info()
    number %= workers.count
    return torchs.WorkerInfo(id=number, num_workers=workers.count, seed=workers.seed + number, dataset=workers.dataset)


def _worker_info_of_this_thread() -> torchs.WorkerInfo | None:
    return _here.info


def _worker_info_of_thread_first() -> object:
    return _headrace_info_of_this_thread() or _worker_info  # type: ignore[name-defined]  # noqa: F821 - of torch's module


def _patch_get_worker_info() -> None:
    """Patches torch's function to look up a thread-local value first.

    torch keeps its answer in a global of the process, which other threads would see. Programs may have imported the
    function by name before this module was loaded, so its code object is replaced rather than the name.
    """
    function: object = torchs.get_worker_info
    if isinstance(function, FunctionType) and not function.__code__.co_freevars and _HOOK not in vars(torchs):
        setattr(torchs, _HOOK, _worker_info_of_this_thread)
        function.__code__ = _worker_info_of_thread_first.__code__


def _forget_the_parents_thread() -> None:
    _here.info = None


os.register_at_fork(after_in_child=_forget_the_parents_thread)
