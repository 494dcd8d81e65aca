"""Measures what the crops of a training take of a core, with the files of a dataset.

The same crops are made several times. Other programs can only make them dearer, through the caches and the cores'
second threads that they share: the cheapest pass is nearest to what a core of its own would take.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch.utils.data import Subset

from headrace import transforms
from headrace._base.cores import usable_cores
from headrace._base.native import core
from headrace.datasets.sources import BlobDataset
from headrace.loader import DataLoader

_BATCH = 32
_LEAST, _MOST = 192, 1024  # crops of a pass: the boxes are random, a crop's cost varies by half
_PASS_S = 1.0  # of a core, about, between the two
_PASSES = range(3, 8)  # the first one reads the files into the page cache
_LONGEST_S = 4.0  # of the passes after the least number of them
_CROPS = transforms.Compose(
    [
        transforms.RandomResizedCrop(224),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize([0.5], [0.25]),
    ]
)


@dataclass(frozen=True)
class Cost:
    """Processor time of one pass over the crops.

    Attributes:
        core_s: seconds of a core for one crop, of all threads of the process.
        worker_s: of these, the seconds in the native threads and those that call Pillow.
    """

    core_s: float
    worker_s: float


@dataclass(frozen=True)
class CropSpeed:
    """Processor time of the crops.

    Attributes:
        images: number of crops of a pass.
        passes: what each pass took, over the same crops.
        threads: number of native threads.
        cores: number of cores that the process may use.
    """

    images: int
    passes: tuple[Cost, ...]
    threads: int
    cores: float

    @property
    def core_s(self) -> float:
        """Seconds of a core for one crop, of all threads of the process, in the cheapest pass."""
        return min(one.core_s for one in self.passes)

    @property
    def images_per_s(self) -> float:
        """What the threads deliver if nothing else uses the cores."""
        return max(self._rate(one) for one in self.passes)

    @property
    def least_images_per_s(self) -> float:
        """The same, as the median pass has it; lower where other programs made the crops dearer."""
        return statistics.median(self._rate(one) for one in self.passes)

    def _rate(self, one: Cost) -> float:
        return 1 / max(one.worker_s / self.threads, one.core_s / self.cores, 1e-9)


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


def measure_crops(source: BlobDataset, threads: int, files: Sequence[int], costs: Sequence[float]) -> CropSpeed | None:
    """Returns the cost of a random crop to 224 x 224 with a flip and normalised values; None if no image can be read.

    Args:
        source: encoded images.
        threads: number of native threads.
        files: numbers of the samples to choose from.
        costs: an estimate of what decoding each of them takes, such as its size in bytes. Files of all costs are chosen
            in the same proportions as they have in `files`.
    """
    spent: list[Cost] = []
    images = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's about single files
        tried, _ = _measure_pass(source, threads, choose_evenly(files, costs, _LEAST // 4))
        crops = _LEAST if tried is None else int(min(_MOST, max(_LEAST, _PASS_S / max(tried.core_s, 1e-9))))
        chosen = choose_evenly(files, costs, crops)
        begin = time.perf_counter()
        while len(spent) < _PASSES.start or (len(spent) < _PASSES.stop and time.perf_counter() - begin < _LONGEST_S):
            one, images = _measure_pass(source, threads, chosen)
            if one is None:
                return None
            spent.append(one)
    return CropSpeed(images, tuple(spent), threads, usable_cores())


def choose_evenly(files: Sequence[int], costs: Sequence[float], number: int) -> list[int]:
    """Returns `number` of the files: from every part of their order by cost the same number. Files occur several times
    where there are fewer of them."""
    order: npt.NDArray[np.int64] = np.argsort(np.asarray(costs, np.float64), kind="stable")
    places = ((np.arange(number) + 0.5) * len(order) / number).astype(np.int64)
    chosen = np.asarray(files, np.int64)[order[places]]
    return [int(one) for one in np.random.default_rng(0).permutation(chosen)]


def _measure_pass(source: BlobDataset, threads: int, files: list[int]) -> tuple[Cost | None, int]:
    """Makes one crop of each file, from the first to the last, so that no thread works on any other crop meanwhile.
    Returns what one took, and their number; the boxes are the same each time."""
    chosen: Subset[object] = Subset(SameFiles(source, _CROPS), files)
    loader = DataLoader(chosen, _BATCH, num_workers=threads, seed=0, on_error="skip", max_errors=None)
    processor, caller = time.process_time(), time.thread_time()
    images = sum(len(batch) for batch in loader)
    spent, own = time.process_time() - processor, time.thread_time() - caller
    loader.close()
    return (Cost(spent / images, (spent - own) / images) if images else None), images
