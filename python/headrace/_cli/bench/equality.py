"""Compares headrace's batches with torch's before anything is timed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace._base.errors import HeadraceError, VerificationError
from headrace._cli.bench.loaders import Make
from headrace.loader import DataLoader


class DifferentError(HeadraceError):
    """The batches differ; the message is one sentence that says where."""


def check_equal_batches(dataset: Any, batch_size: int, workers: int, batches: int) -> str:
    """Compares the first batches of an epoch, and returns what was compared.

    Native batches are compared with the oracle, whose random numbers are the same, and with torch's own loader: in all
    values if the transform draws no random numbers, otherwise in labels, shapes and dtypes. Where torch delivers, both
    loaders run with the same seeds and without worker processes, and all values are compared.

    Raises:
        DifferentError: a batch differs.
    """
    loader = DataLoader(dataset, batch_size, shuffle=True, num_workers=workers, seed=0)
    if not loader.native:
        compared = _compare_batches(
            _seed_batches(TorchDataLoader, dataset, batch_size), _seed_batches(DataLoader, dataset, batch_size), batches
        )
        return f"{compared} batches of headrace (delivered by torch) equal torch's under the same seeds"
    try:
        report = loader.verify(batches)
    except VerificationError as error:
        raise DifferentError(f"headrace's batches differ from those of Pillow and torch: {error}") from error
    finally:
        loader.close()
    first, second = (_first_samples(dataset, batch_size, seed) for seed in (1, 2))
    drawn = any(describe_difference(a, b, "") is not None for a, b in zip(first, second, strict=True))
    ordered = DataLoader(dataset, batch_size, num_workers=workers, seed=0)
    compared = _compare_batches(TorchDataLoader(dataset, batch_size), ordered, batches, values=not drawn)
    ordered.close()
    what = "labels, shapes and dtypes of" if drawn else "all values of"
    return f"{report}; {what} {compared} batches of torch's loader are equal"


def _seed_batches(make: Make, dataset: object, batch_size: int) -> Iterator[object]:
    def batches() -> Iterator[object]:
        _seed_generators(0)
        yield from make(dataset, batch_size, shuffle=True)

    return batches()


def _seed_generators(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the generator that users' transforms draw from
    torch.manual_seed(seed)


def _first_samples(dataset: Any, batch_size: int, seed: int) -> list[object]:
    """Returns the first few samples, made by Python after this seed."""
    _seed_generators(seed)
    return [dataset[index] for index in range(min(len(dataset), batch_size, 8))]


def _compare_batches(theirs: Iterable[object], ours: Iterable[object], batches: int, *, values: bool = True) -> int:
    """Returns the number of batches compared. Raises DifferentError at the first that differs."""
    compared = 0
    # Not zip(): one iterator must be closed before the other draws, where both use the process's generators.
    expected = list(itertools.islice(theirs, batches))
    for number, (a, b) in enumerate(zip(expected, itertools.islice(ours, batches), strict=True)):
        if (why := describe_difference(a, b, f"batch {number}", values=values)) is not None:
            raise DifferentError(f"headrace's batches differ from torch's: {why}")
        compared += 1
    return compared


def describe_difference(expected: object, given: object, where: str, *, values: bool = True) -> str | None:
    """Returns how two batches differ; None if they are equal to the bit.

    Args:
        where: name of the batch, for the answer.
        values: False: of tensors with two dimensions or more and of floats, only types, shapes and dtypes are compared.
    """
    if isinstance(expected, torch.Tensor) and isinstance(given, torch.Tensor):
        if (expected.dtype, expected.shape) != (given.dtype, given.shape):
            shapes = f"{given.dtype} {tuple(given.shape)} against {expected.dtype} {tuple(expected.shape)}"
            return f"{where}: {shapes}"
        if (values or expected.ndim < 2) and not torch.equal(expected, given):
            return f"{where}: {int((expected != given).sum())} of {expected.numel()} values differ"
        return None
    if isinstance(expected, dict) and isinstance(given, dict):
        if list(expected) != list(given):
            return f"{where}: keys {list(given)} against {list(expected)}"
        pairs = [(f"{where}, {key!r}", expected[key], given[key]) for key in expected]
    elif isinstance(expected, (list, tuple)) and isinstance(given, (list, tuple)):
        if len(expected) != len(given):
            return f"{where}: {len(given)} parts against {len(expected)}"
        pairs = [(f"{where}, part {i}", a, b) for i, (a, b) in enumerate(zip(expected, given, strict=True))]
    else:
        drawn = not values and isinstance(expected, float)
        same = type(expected) is type(given) and (drawn or expected == given)
        return None if same else f"{where}: {given!r} against {expected!r}"
    return next(
        (why for name, a, b in pairs if (why := describe_difference(a, b, name, values=values)) is not None), None
    )
