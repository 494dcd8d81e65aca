"""Loaders of each kind, to be recorded by a profile, and the totals of a recording."""

from __future__ import annotations

from collections import Counter
from typing import Any

import headrace
from headrace import DataLoader
from headrace import transforms as T
from support import TENSOR, blobs

SAMPLES, BATCH = 96, 16
BATCHES = SAMPLES // BATCH
BY_PILLOW = SAMPLES // 6  # an odd PNG and a CMYK file in each dozen


class Negative:
    """A Python step: it inverts the image."""

    def __call__(self, image: Any) -> Any:
        return image.point(lambda value: 255 - value)


def with_python_steps() -> headrace.EncodedImages:
    return blobs(SAMPLES, T.Compose([T.RandomResizedCrop(32), Negative(), T.RandomHorizontalFlip(), *TENSOR]))


LOADERS: dict[str, dict[str, Any]] = {
    "two threads": {"num_workers": 2},
    "in the caller's thread": {"num_workers": 0},
    "out_transform": {"num_workers": 2, "out_transform": lambda batch: batch},
    "python steps": {"num_workers": 2, "dataset": with_python_steps},
    "python steps in the caller's thread": {"num_workers": 0, "dataset": with_python_steps},
    "to a device": {"num_workers": 2, "device": "emulated", "decoder": "cpu"},
    "a device decodes": {"num_workers": 2, "device": "emulated", "decoder": "hardware", "deterministic": True},
    "a device and the CPU decode": {"num_workers": 2, "device": "emulated", "decoder": "hardware"},
}


def make(name: str) -> DataLoader:
    options = dict(LOADERS[name])
    dataset = options.pop("dataset", lambda: blobs(SAMPLES))()
    return DataLoader(dataset, BATCH, shuffle=True, seed=0, **options)


def totals(prof: headrace.profile, thread: str = "") -> dict[str, tuple[int, int, int]]:
    """(spans, items, nanoseconds) of each stage, summed over the threads whose names start with `thread`."""
    sums: Counter[tuple[str, str]] = Counter()
    for one in prof.threads:
        if one.thread.startswith(thread):
            for number, items, ns in zip(one.stage, one.items, one.end_ns - one.begin_ns, strict=True):
                stage = one.stages[number]
                sums.update({(stage, "spans"): 1, (stage, "items"): int(items), (stage, "ns"): int(ns)})
    stages = {stage for stage, _ in sums}
    return {stage: (sums[stage, "spans"], sums[stage, "items"], sums[stage, "ns"]) for stage in stages}
