"""Records the first batches of a loader's next epoch, and leaves the loader as it is."""

from __future__ import annotations

import copy
import random
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from headrace._base.errors import SampleError
from headrace._base.safe_exceptions import message_of, type_name_of
from headrace._loading.bottleneck.verdict import NOTHING_YET
from headrace._reports.html.report_data import Facts, Progress
from headrace._reports.loader.profiler import profile

Step = Callable[[Any], object]
_MOST_EPOCHS, _LONGEST_S = 32, 10.0  # that are begun for the sake of a verdict


def record_batches(loader: Any, facts: Facts, batches: int, step: Step | None) -> object:
    """Adds to `facts` what a copy of the loader does for a number of batches. Returns the first batch, or None.

    Epochs are repeated until there are enough batches for a verdict.

    Args:
        step: called with each batch, in place of the training step. None: batches are dropped.
    """
    twin = copy.copy(loader)
    twin._iterator = None  # torch's, with its persistent workers
    times: list[float] = []
    counts: list[int] = []
    first = None
    with _preserve_generators(loader), profile() as recording:
        begin = time.perf_counter()
        try:
            for batch in _repeat_epochs(twin, facts, batches):
                times.append(time.perf_counter() - begin)
                counts.append(count_samples(batch) if loader._auto_collation else 1)
                first = batch if first is None else first
                if step is not None:
                    step(batch)
        finally:
            newest = twin.stats()
            facts.failed += [(error.location, error.reason) for error in twin.errors]
            twin.close()
    facts.progress = Progress("samples", times, counts)
    facts.threads, facts.recorded_s, facts.stages = recording.threads, recording.recorded_s, recording.summary()
    if recording.dropped:
        facts.notes.append(f"{recording.dropped:,} spans are missing from the timeline: there were too many.")
    own = loader.stats()
    has_own = bool(own.stages) and own.bottleneck != NOTHING_YET
    verdict = (own if has_own else newest).verdict
    facts.verdict = str(verdict).splitlines()
    if not times and facts.failed:
        facts.notes.append(f"No batch could be made: {len(facts.failed)} failed, with the reasons below.")
    elif verdict.bottleneck == NOTHING_YET and times:
        made = f"{facts.progress.per_second:,.0f} {facts.progress.unit}/s"
        facts.verdict = [made, "An epoch of one batch shows no bottleneck: a smaller batch size gives a verdict."]
    if has_own:
        facts.notes.append("The verdict is about the newest epoch that this loader delivered.")
    elif step is None:
        facts.notes.append(
            "Nothing was done with the batches, so this is the speed of the loader alone: it waits for no training "
            "step."
        )
    return first


def count_samples(batch: object) -> int:
    """Returns the number of samples of a batch: the length of its first tensor, or 1."""
    if isinstance(batch, torch.Tensor):
        return len(batch) if batch.ndim else 1
    parts = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else ()
    return next((count_samples(part) for part in parts), 1)


def _repeat_epochs(twin: Any, facts: Facts, batches: int) -> Iterator[object]:
    """Yields up to `batches` batches of one epoch, and of more epochs where one is too short for a verdict."""
    left, begin = batches, time.perf_counter()
    epochs = 0
    while epochs < _MOST_EPOCHS:
        epochs, before = epochs + 1, left
        for batch in _batches(twin, facts, left):
            left -= 1
            yield batch
        failed = facts.failed or twin.errors
        more = left > 0 and before - left > 1 and not failed and time.perf_counter() - begin < _LONGEST_S
        if not more or not twin.stats().verdict.preliminary:
            break
    if epochs > 1:
        facts.notes.append(f"An epoch has few batches: {epochs} were made for the verdict.")


def _batches(twin: Any, facts: Facts, batches: int) -> Iterator[object]:
    """Yields batches of one epoch; a sample that fails is noted, and costs its batch."""
    delivered = iter(twin)
    for _ in range(batches):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of samples that are skipped: the page lists them
                batch = next(delivered)
        except StopIteration:
            return
        except SampleError as error:
            facts.failed.append((error.location, error.reason))
            continue
        except Exception as error:
            why = (message_of(error).strip().splitlines() or [""])[-1]
            facts.failed.append((f"batch {len(facts.failed)}", f"{type_name_of(error)}: {why}"))
            if not twin.native:
                return
            continue
        yield batch


@contextmanager
def _preserve_generators(loader: TorchDataLoader[object]) -> Iterator[None]:
    """Restores the process's random number generators, and those of the loader and its samplers."""
    owners = (loader, loader.sampler, loader.batch_sampler)
    own = [one for owner in owners if isinstance(one := getattr(owner, "generator", None), torch.Generator)]
    states = [one.get_state() for one in own]
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - the user's
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002
            for one, state in zip(own, states, strict=True):
                one.set_state(state)
