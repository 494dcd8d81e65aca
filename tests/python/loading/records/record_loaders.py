"""What headrace's loader delivers on a device, beside torch's DataLoader."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_flatten
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import DataLoader
from headrace.pillow.recording.image_counts import ImageCounts
from support import same

EDGE = 48
MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]
ON_DEVICE = functools.partial(DataLoader, device="emulated")


def strides(value: Any) -> list[tuple[int, ...]]:
    """Those of all tensors, in order."""
    return [one.stride() for one in tree_flatten(value)[0] if isinstance(one, torch.Tensor)]


def alike(ours: Any, theirs: Any) -> bool:
    """Equal in structure, types, values and order in memory."""
    return same(ours, theirs) and strides(ours) == strides(theirs)


def delivered(kind: Any, *arguments: Any, epochs: int = 1, **options: Any) -> tuple[list[Any], Any]:
    """The batches, and the loader that made them."""
    torch.manual_seed(2)
    random.seed(3)
    loader = kind(*arguments, **{"batch_size": 4, "shuffle": True, "num_workers": 2, **options})
    batches = [batch for _ in range(epochs) for batch in loader]
    return [*batches, torch.rand(())], loader


def assert_alike(make: Callable[[], Any], kind: Any = ON_DEVICE, **options: Any) -> ImageCounts:
    """Asserts that torch's loader of a dataset and ours deliver the same; returns the counts of ours."""
    if "num_workers" in options and not options["num_workers"]:
        options.pop("persistent_workers", None)
    if hasattr(make(), "__iter__"):
        options["shuffle"] = False
    theirs, _ = delivered(TorchDataLoader, make(), **options)
    ours, loader = delivered(kind, make(), **options)
    assert alike(ours, theirs)
    assert loader.route == "deferred"
    return loader._torch_epochs.images
