"""Checks the loader's arguments: what the native path does not serve is refused or warned of by name, never ignored."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import default_collate

from headrace import faults
from headrace.engine import DTYPES

_MEMORY_FORMATS = (torch.contiguous_format, torch.channels_last)


def check_torch_arguments(
    collate_fn: Callable[..., Any] | None,
    worker_init_fn: Callable[[int], None] | None,
    multiprocessing_context: Any,
    pin_memory_device: str,
) -> None:
    """torch's arguments that have no native meaning.

    Raises:
        TypeError: an argument that would change the batches.
    """
    if collate_fn is not None and collate_fn is not default_collate:
        raise TypeError(
            "collate_fn is not supported: the native threads write batches in place; apply it to the batches, or leave it out"
        )
    if worker_init_fn is not None:
        raise TypeError(
            "worker_init_fn is not supported: the workers are native threads that run no Python; "
            "randomness is set by seed= and generator="
        )
    if multiprocessing_context is not None:
        _warn("multiprocessing_context has no effect: the workers are threads of this process")
    if pin_memory_device:
        _warn("pin_memory_device has no effect: pin_memory=True pins for the current accelerator, as in torch")


def check_own_arguments(
    seed: Any, dtype: Any, memory_format: Any, on_error: Any, max_errors: Any
) -> None:
    """headrace's own arguments.

    Raises:
        TypeError: of the wrong type. ValueError: not among the values there are.
    """
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise TypeError(f"seed must be an int or None, not {seed!r}")
    if dtype is not None and dtype not in DTYPES:
        known = ", ".join(str(one) for one in DTYPES)
        raise ValueError(f"dtype must be one of {known}, or None for what the transforms give, not {dtype!r}")
    if memory_format not in _MEMORY_FORMATS:
        raise ValueError(f"memory_format must be torch.contiguous_format or torch.channels_last, not {memory_format!r}")
    if on_error not in faults.POLICIES:
        raise ValueError(f"on_error must be one of {', '.join(faults.POLICIES)}, not {on_error!r}")
    if max_errors is not None and (isinstance(max_errors, bool) or not isinstance(max_errors, int) or max_errors < 0):
        raise ValueError(f"max_errors must be a count or None for no limit, not {max_errors!r}")


def check_sizes(num_workers: Any, batch_size: Any, prefetch_factor: Any) -> None:
    """Types that torch's own checks would meet with an unclear error.

    Raises:
        TypeError: not a whole number.
    """
    for name, value in (("num_workers", num_workers), ("batch_size", batch_size), ("prefetch_factor", prefetch_factor)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise TypeError(f"{name} must be a whole number, not {value!r}")


def check_epoch_length(samples: int, batch_size: int | None, drop_last: bool) -> None:
    """Raises ValueError for an empty dataset; warns where an epoch would have no batch."""
    if samples == 0:
        raise ValueError("the dataset is empty: there is nothing to load")
    if drop_last and batch_size is not None and batch_size > samples:
        _warn(f"batch_size={batch_size} is larger than the dataset ({samples} samples) and drop_last=True: an epoch has no batch")


def can_pin(pin_memory: bool) -> bool:
    """Whether batches are made in pinned memory; warns, as torch does, where they cannot be though asked for."""
    if pin_memory and not torch.accelerator.is_available():
        _warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.")
        return False
    return pin_memory


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=4)
