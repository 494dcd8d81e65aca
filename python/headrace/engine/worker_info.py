"""What ``torch.utils.data.get_worker_info()`` says in the threads that do a loader's Python steps."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from torch.utils.data._utils import worker as torchs

_HOOK = "_headrace_info_of_this_thread"


@dataclass(frozen=True)
class Workers:
    """A loader with workers, as torch's info names it."""

    count: int
    seed: int  # of the first
    dataset: Any


class _Here(threading.local):
    info: torchs.WorkerInfo | None = None


_here = _Here()


class as_worker:
    """Inside ``with``, this thread is a worker as far as ``get_worker_info()`` knows; None: it is none.

    Args:
        number: of the worker, from 0.
    """

    def __init__(self, workers: Workers | None, number: int) -> None:
        self._info = None if workers is None else _info(workers, number)

    def __enter__(self) -> None:
        self._before, _here.info = _here.info, self._info

    def __exit__(self, *error: object) -> None:
        _here.info = self._before


def _info(workers: Workers, number: int) -> torchs.WorkerInfo:
    _install()
    number %= workers.count
    return torchs.WorkerInfo(id=number, num_workers=workers.count, seed=workers.seed + number, dataset=workers.dataset)


def _of_this_thread() -> torchs.WorkerInfo | None:
    return _here.info


def _threads_first() -> Any:
    return _headrace_info_of_this_thread() or _worker_info  # type: ignore[name-defined]  # noqa: F821 - of torch's module


def _install() -> None:
    """Has torch's function look at the thread first.

    Its own answer lies in a global of the process, where other threads would see it too. Programs hold the function
    itself, imported by name before this module was; so it is its code that is another.
    """
    function: Any = torchs.get_worker_info
    if isinstance(function, FunctionType) and not function.__code__.co_freevars and _HOOK not in vars(torchs):
        setattr(torchs, _HOOK, _of_this_thread)
        function.__code__ = _threads_first.__code__


def _forget_the_parents_thread() -> None:
    _here.info = None


os.register_at_fork(after_in_child=_forget_the_parents_thread)
