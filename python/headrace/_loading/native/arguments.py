"""Checks the loader's arguments: unsupported values raise or warn with the argument's name, and are never ignored."""

from __future__ import annotations

import numbers
from collections.abc import Mapping

import torch

from headrace._base import messages
from headrace._base.checks import whole_number
from headrace._base.ranks import World
from headrace._loading.autotune.budget import AutoWorkers
from headrace._loading.native import sample_errors
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.recipe import DTYPES


def warn_of_no_effect(multiprocessing_context: object, pin_memory_device: str) -> None:
    """Warns of torch's arguments that have no effect on the native path."""
    if multiprocessing_context is not None:
        messages.warn("multiprocessing_context has no effect: the workers are threads of this process")
    if pin_memory_device:
        messages.warn("pin_memory_device has no effect: pin_memory=True pins for the current accelerator, as in torch")


def check_own_arguments(own: Mapping[str, object]) -> None:
    """Checks headrace's own arguments, keyed by name.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an argument has none of the allowed values.
    """
    if own["seed"] is not None:
        whole_number("seed", own["seed"])
    dtype = own["dtype"]
    if dtype is not None and dtype not in DTYPES:
        known = ", ".join(str(one) for one in DTYPES)
        raise ValueError(f"dtype must be one of {known}, or None for what the transforms give, not {dtype!r}")
    Layout.of(own["memory_format"])
    if own["on_error"] not in sample_errors.ON_ERROR:
        raise ValueError(f"on_error must be one of {', '.join(sample_errors.ON_ERROR)}, not {own['on_error']!r}")
    if own["max_errors"] is not None:
        whole_number("max_errors", own["max_errors"], smallest=0)
    if own["snapshot_every_n_steps"] is not None:
        whole_number("snapshot_every_n_steps", own["snapshot_every_n_steps"], smallest=0)
    if not isinstance(own["deferred_images"], bool):
        raise TypeError(f"deferred_images must be a bool, not {own['deferred_images']!r}")
    out_transform = own["out_transform"]
    if out_transform is not None and not callable(out_transform):
        raise TypeError(f"out_transform must be a function of a batch or None, not {out_transform!r}")


def check_types(
    sampler: object,
    batch_sampler: object,
    num_workers: object,
    timeout: object,
    generator: object,
    prefetch_factor: object,
) -> None:
    """Checks types for which torch would raise an unclear error, or raise only in the middle of an epoch.

    Raises:
        TypeError: an argument has the wrong type.
    """
    number = None if AutoWorkers.of(num_workers) is not None else num_workers
    for name, value in (("num_workers", number), ("prefetch_factor", prefetch_factor)):
        if value is not None and not isinstance(value, bool):  # torch accepts bools as 0 and 1
            whole_number(name, value)
    for name, value in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None and not hasattr(type(value), "__iter__") and not hasattr(type(value), "__getitem__"):
            raise TypeError(f"{name} must be iterable, not {value!r}")
    if not isinstance(timeout, numbers.Real):
        raise TypeError(f"timeout must be a number of seconds, not {timeout!r}")
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(f"generator must be a torch.Generator or None, not {generator!r}")


def check_iterable(num_workers: int, timeout: float, prefetch_factor: int | None) -> None:
    """Checks what torch checks when an epoch begins.

    Raises:
        AssertionError: as torch's iterators raise it.
    """
    if timeout > 0 and num_workers == 0:
        raise AssertionError("timeout needs num_workers > 0: without threads, batches are made by the caller itself")
    if prefetch_factor is not None and prefetch_factor < 1:
        raise AssertionError(f"prefetch_factor must be 1 or more, not {prefetch_factor}")


def warn_of_empty_epoch(samples: int, batch_size: int | None, drop_last: bool, world: World) -> None:
    """Warns if an epoch of a non-empty dataset has no batch."""
    if not samples:
        return
    ranks = f" for {world.size} ranks" if world.size > 1 else ""
    if drop_last and batch_size is not None and batch_size > samples // world.size:
        messages.warn(
            f"batch_size={batch_size} is larger than the dataset ({samples} samples{ranks}) and drop_last=True: "
            "an epoch has no batch"
        )


def check_pinning(pin_memory: bool, where: torch.device, way: str) -> None:
    """Warns if batches are on a device, where pinning has no meaning."""
    if pin_memory and way != "memory":
        messages.warn(
            f"pin_memory has no effect: batches are on {where}, and the memory they are copied from is pinned"
        )


def can_pin(pin_memory: bool) -> bool:
    """Returns whether to make batches in pinned memory. Warns as torch does if it is requested but unavailable."""
    if pin_memory and not torch.accelerator.is_available():
        messages.warn(
            "'pin_memory' argument is set as true but no accelerator is found, "
            "then device pinned memory won't be used.",
        )
        return False
    return pin_memory
