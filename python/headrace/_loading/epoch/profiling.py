"""Whether torch's profiler would see that an iterator is asked for a batch.

torch's iterators record each call of `next()` by `torch.autograd.profiler.record_function`, which takes longer than
anything else in a batch of a few numbers, also where nothing looks. What this page knows of torch's `__next__` is
checked: another version of torch, or a program, may have another one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.utils.data import dataloader

#: The names in torch's `__next__`, which does nothing else for a map-style dataset than record, count, and get a batch.
_KNOWN = frozenset(
    (
        *("torch", "autograd", "profiler", "record_function", "_profile_name", "_sampler_iter", "_reset", "_next_data"),
        *("_num_yielded", "_dataset_kind", "_DatasetKind", "Iterable", "_IterableDataset_len_called", "_dataset"),
        *("_num_workers", "warnings", "warn"),
    )
)
_base: Any = dataloader._BaseDataLoaderIter
_next: Any = _base.__next__
_record: Any = torch.autograd.profiler.record_function
_profiler: Any = torch.autograd.profiler
#: Calls what observes torch's functions, as `record_function` does, but not the profiler.
QUICK_RECORDER: Callable[[str], AbstractContextManager[object]] = getattr(
    getattr(torch._C, "_profiler", None), "_RecordFunctionFast", _record
)
_is_enabled: Callable[[], bool] = getattr(torch.autograd, "_profiler_enabled", lambda: True)
_find_monitor: Callable[[], object] = getattr(_profiler, "_maybe_cupti_monitor", lambda: None)
_is_known = frozenset(getattr(getattr(_next, "__code__", None), "co_names", ())) == _KNOWN


def unprofiled() -> bool:
    """Returns whether no profiler looks, and torch's `__next__` is as this module knows it."""
    return (
        _is_known
        and not _is_enabled()
        and _base.__next__ is _next
        and _profiler.record_function is _record
        and getattr(_find_monitor(), "_monitor_singleton", None) is None
    )
