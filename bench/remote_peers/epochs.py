"""The job of all contenders: epochs of one folder, of which the first is hashed and the others are timed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

BATCH, SIZE, SEED = 64, 224, 0
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
#: Images as float32 of any layout, and the numbers of their files: `Job.paths`.
Batches = Iterable[tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]


class Missing(Exception):
    """What a contender needs is not installed."""


@dataclass(frozen=True)
class Job:
    """What is loaded.

    Attributes:
        root: a folder of folders of JPEG files.
        epochs: that are timed, after one that is not.
    """

    root: Path
    epochs: int

    @property
    def paths(self) -> list[str]:
        return sorted(str(path) for path in self.root.rglob("*") if not path.is_dir())


def run(job: Job, epoch: Callable[[int], Batches]) -> dict[str, Any]:
    """Runs epochs, and returns what they show: whether each file comes once, the hashes of the first epoch's order and
    of its pixels, images and seconds of the others, and images a second after their first batches. An epoch ends with
    its last batch: some find out up to a second later that it was the last."""
    order, pixels, seen = hashlib.sha256(), hashlib.sha256(), []
    for images, numbers in epoch(0):
        assert images.dtype == np.float32 and sorted(images.shape[1:]) == [3, SIZE, SIZE], images.shape
        order.update(np.ascontiguousarray(numbers, np.int64).tobytes())
        pixels.update(np.ascontiguousarray(images).tobytes())
        seen += numbers.tolist()
    found: dict[str, Any] = {
        "each_once": sorted(seen) == list(range(len(job.paths))),
        "order": order.hexdigest()[:16],
        "pixels": pixels.hexdigest()[:16],
    }
    count, first, whole = 0, 0.0, 0.0
    for number in range(1, job.epochs + 1):
        start, taken = time.perf_counter(), list[float]()
        for images, _ in epoch(number):
            taken.append(time.perf_counter() - start)
            count += len(images)
        first, whole = first + taken[0], whole + taken[-1]
    after = (count - BATCH * job.epochs) / (whole - first)
    return found | {"images": count, "seconds": whole, "first_batch_s": first / job.epochs, "after_it": after}
