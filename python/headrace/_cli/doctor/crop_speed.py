"""Measures what the crops of a training take of a core, with the files of a dataset."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch.utils.data import RandomSampler, Subset

from headrace import transforms
from headrace._base.cores import usable_cores
from headrace._base.native import core
from headrace.datasets.sources import BlobDataset
from headrace.loader import DataLoader

_BATCH = 32
_IMAGES = 512  # at most; they are read twice, the first time into the page cache
_LONGEST_S = 1.0  # of each of the two
_CROPS = transforms.Compose(
    [
        transforms.RandomResizedCrop(224),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize([0.5], [0.25]),
    ]
)


@dataclass(frozen=True)
class CropSpeed:
    """Processor time, which other programs hardly change.

    Attributes:
        images: number of crops that were measured.
        core_s: seconds of a core for one crop, of all threads of the process.
        worker_s: of these, the seconds in the native threads and those that call Pillow.
        threads: number of native threads.
        cores: number of cores that the process may use.
    """

    images: int
    core_s: float
    worker_s: float
    threads: int
    cores: float

    @property
    def images_per_s(self) -> float:
        """What the threads deliver if nothing else uses the cores."""
        return 1 / max(self.worker_s / self.threads, self.core_s / self.cores, 1e-9)


class SameFiles(BlobDataset):
    """The images of another source with other transforms, without labels."""

    def __init__(self, source: BlobDataset, transform: Callable[..., object]) -> None:
        super().__init__(None, transform, None)
        self._source = source

    def __len__(self) -> int:
        return len(self._source)

    def read(self, index: int) -> bytes:
        return self._source.read(index)

    def blob_table(self) -> core.BlobTable:
        return self._source.blob_table()

    def location(self, index: int) -> str:
        return self._source.location(index)

    @property
    def mode(self) -> str:
        return self._source.mode

    @property
    def upright(self) -> bool:
        return self._source.upright


def measure_crops(source: BlobDataset, threads: int, seconds: float = _LONGEST_S) -> CropSpeed | None:
    """Returns the cost of a random crop to 224 x 224 with a flip and normalised values; None if no image can be read.

    Args:
        source: encoded images.
        threads: number of native threads.
        seconds: longest time of the warm-up, and of the measurement.
    """
    drawn = np.random.default_rng(0).permutation(len(source))[:_IMAGES]
    chosen: Subset[object] = Subset(SameFiles(source, _CROPS), drawn.tolist())
    sampler = RandomSampler(chosen, num_samples=100 * len(chosen))
    loader = DataLoader(chosen, _BATCH, sampler=sampler, num_workers=threads, seed=0, on_error="skip", max_errors=None)
    begin = time.perf_counter()
    processor = caller = 0.0
    images = seen = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's about single files
        for batch in loader:
            now = time.perf_counter()
            seen += _BATCH
            if processor:
                images += len(batch)
                if now - begin > seconds:
                    break
            elif seen >= 2 * len(chosen) or now - begin > seconds:
                begin, processor, caller = now, time.process_time(), time.thread_time()
        spent, own = time.process_time() - processor, time.thread_time() - caller
    loader.close()
    if not images:
        return None
    return CropSpeed(images, spent / images, (spent - own) / images, threads, usable_cores())
