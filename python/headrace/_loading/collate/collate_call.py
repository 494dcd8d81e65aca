"""Calls the user's collate_fn on the samples of finished batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import default_collate, default_convert

from headrace._engine.ragged_engine import Ragged
from headrace._loading.collate import collate_registry
from headrace._loading.collate.sample_views import StackedViews
from headrace._loading.epoch.advice import advise_on_collate_fn
from headrace._loading.epoch.checkpoint import Progress
from headrace._loading.mixup import mixes_without_forward, recognition
from headrace._lowering.python_steps.bytecode_analysis import Reach
from headrace._lowering.python_steps.step_copies import copy_function
from headrace._recipe.draws.draws import BatchUse, batch_uniform
from headrace._recipe.draws.python_randomness import sample_randomness, seed_from_draw

CollateFunction = Callable[[Any], object]
Int64s = npt.NDArray[np.int64]


class Source(Protocol):
    """The part of a source that a collate_fn's samples need."""

    @property
    def has_targets(self) -> bool: ...

    def numbers(self, indices: Int64s) -> Int64s | None: ...

    def sample_of(self, made: object, index: int) -> object: ...

    def batch_of(self, images: Any, targets: Any) -> Any: ...

    def targets_of(self, indices: Int64s) -> object: ...


def is_default(collate_fn: CollateFunction | None, batched: bool) -> bool:
    """Whether a loader's collate_fn is what torch uses without one."""
    return collate_fn is None or collate_fn is (default_collate if batched else default_convert)


def why_not_native(collate_fn: CollateFunction) -> str | None:
    """Returns why a collate_fn has to run in torch's worker processes; None if it may run in threads."""
    if recognition.mixing_of_samples(collate_fn) is not None:
        return None
    reach = Reach(collate_fn)
    why = None
    if reach.draws:
        why = "draws random numbers that belong to the whole process (random, numpy.random, or code that is not known)"
    elif reach.shares:
        why = "may change an object that other code sees; make it an attribute of a class with __call__"
    elif reach.asks_for_worker:
        why = "asks for the worker process that it runs in"
    return why and f"collate_fn {why}"


def may_change_itself(collate_fn: CollateFunction) -> bool:
    """Whether a collate_fn may change itself: then copies of it in several threads would depend on their timing."""
    return not isinstance(collate_fn, FunctionType) and Reach(collate_fn).mutates


def seeded_collate(function: CollateFunction, progress: Progress) -> Callable[[object, int], object]:
    """Returns a function of a batch's samples and its position in the epoch: it calls `function`, and random numbers of
    torch, and of numpy for timm's Mixup, follow from seed, epoch and batch."""
    process_wide = recognition.draws_from_numpy(function)

    def collate(samples: object, position: int) -> object:
        with sample_randomness(_draw_for_batch(progress, position), process_wide=process_wide):
            return function(samples)

    return collate


def _draw_for_batch(progress: Progress, position: int) -> float:
    return batch_uniform(progress.seed, progress.epoch, progress.number(position), BatchUse.COLLATE)


class Collation:
    """The collate_fn of one epoch.

    Its samples are views of the finished batch; a `torch.stack` of all of them, as in `default_collate`, returns the
    batch. Random numbers of torch follow from seed, epoch and batch; no generator of the process is used.

    Args:
        function: the collate_fn.
        kinds: the classes of a sample's tensors: one for all, or a list, tuple or dict of them where a sample is one;
            int for numbers, of which a batch is a tensor.
        progress: of the epoch; its seed and epoch number seed the random numbers.
    """

    def __init__(
        self, function: CollateFunction, source: Source, kinds: Any, batched: bool, progress: Progress
    ) -> None:
        self._function = function
        self._source, self._kinds = source, kinds
        self._batched, self._progress = batched, progress
        self._copies = threading.local()

    def __call__(self, images: object, indices: Int64s, position: int, *, ahead: bool = False) -> object:
        """Returns what the collate_fn returns.

        Args:
            images: the finished batch: a tensor (n, ...), or lists and dicts of tensors.
            indices: of its samples.
            position: of the batch in the epoch.
            ahead: whether the caller is one of the threads that collate ahead: each has a copy of the function, as each
                of torch's workers.
        """
        function = self._function_of_thread() if ahead else self._function
        mix = recognition.find_mix_in_collate(function)
        if mix is not None and self._is_stack_enough(images, indices):  # nothing sees the samples, so none are made
            batch = self._source.batch_of(images, self._source.targets_of(indices))
            uniform = _draw_for_batch(self._progress, position)
            mixed = mixes_without_forward.mix_without_forward(mix, batch, seed_from_draw(uniform))
            if mixed is not None:
                return mixed
            mixing = recognition.mixing_of_stacked(function)
            if mixing is not None:
                with sample_randomness(uniform):
                    return mixing(batch, seed_from_draw(uniform))
        views = StackedViews()
        with views:
            made = self._make_batch(function, self._make_samples(views, images, indices), position, views)
        views.finish()
        return made

    def _is_stack_enough(self, images: object, indices: Int64s) -> bool:
        """Whether `default_collate` of the samples is the finished batch with a tensor of plain ints."""
        source = self._source
        one = (
            self._batched
            and collate_registry.is_usual()
            and isinstance(images, torch.Tensor)
            and isinstance(self._kinds, type)
        )
        return one and source.has_targets and source.numbers(indices) is not None

    def _make_batch(self, function: CollateFunction, samples: object, position: int, views: StackedViews) -> object:
        uniform = _draw_for_batch(self._progress, position)
        mixing = recognition.mixing_of_samples(function)
        with sample_randomness(uniform):
            try:
                return function(samples) if mixing is None else mixing(samples, seed_from_draw(uniform), views.stop)
            except TypeError as error:
                advise_on_collate_fn(error, function)
                raise

    def _function_of_thread(self) -> CollateFunction:
        mine = self._copies.__dict__
        if "function" not in mine:
            try:
                mine["function"] = copy_function(self._function, (self._function,))
            except Exception:  # what cannot be copied is shared
                mine["function"] = self._function
        function: CollateFunction = mine["function"]
        return function

    def _make_samples(self, views: StackedViews, images: object, indices: Int64s) -> object:
        """Returns what the dataset would return for each index, as a list; without batches the only one."""
        made = _split_into_samples(images, len(indices), views, self._kinds)
        samples = [self._source.sample_of(one, index) for one, index in zip(made, indices.tolist(), strict=True)]
        return samples if self._batched else samples[0]


def _split_into_samples(batch: Any, count: int, views: StackedViews, kinds: Any) -> Sequence[object]:
    """Returns the samples of a collated batch."""
    if isinstance(batch, torch.Tensor):
        return batch.tolist() if kinds is int else views.views_of(batch, kinds)
    if isinstance(batch, Ragged):
        return [image.as_subclass(kinds) for image in batch]
    keys = list(batch) if isinstance(batch, Mapping) else range(len(batch))
    parts = [
        _split_into_samples(batch[key], count, views, kinds if isinstance(kinds, type) else kinds[key]) for key in keys
    ]
    samples = zip(*parts, strict=True)
    if isinstance(batch, Mapping):
        return [dict(zip(keys, one, strict=True)) for one in samples]
    return [tuple(one) if isinstance(kinds, tuple) else list(one) for one in samples]
