"""Scans a dataset: native threads decode every file completely, this thread reads the headers."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from torch.utils.data import Subset

from headrace import transforms
from headrace._cli.console.progress import Progress
from headrace._cli.doctor.crop_speed import CropSpeed, SameFiles, measure_crops
from headrace._recipe.images.file_header import FileHeader, file_header
from headrace._reports.loader import machine
from headrace.datasets.sources import BlobDataset
from headrace.loader import DataLoader

_BATCH = 32
# Every row of the image is decoded for a resize, and 64 bytes remain of it.
_WHOLE = transforms.Compose([transforms.Resize((8, 8)), transforms.PILToTensor()])


@dataclass
class Scan:
    """What the files are.

    Attributes:
        samples: number of samples of the dataset.
        headers: of the files that were scanned and whose bytes could be read.
        broken: (location, reason) of the files that cannot be decoded.
        seconds: time that the scan took, with `threads` threads.
        upright: whether the dataset turns images as their EXIF orientation says.
        interrupted: whether the user ended the scan early.
        crops: what the crops of a training cost; None: not measured.
        busy: a sentence if other programs used the cores when the scan began.
    """

    samples: int
    threads: int
    upright: bool
    headers: list[FileHeader] = field(default_factory=list)
    broken: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0
    interrupted: bool = False
    crops: CropSpeed | None = None
    busy: str | None = None

    @property
    def scanned(self) -> int:
        return len(self.headers)

    @property
    def formats(self) -> Counter[str]:
        return Counter(one.format for one in self.headers)

    @property
    def progressive(self) -> int:
        return sum(one.progressive for one in self.headers)

    @property
    def native(self) -> int:
        return sum(one.native for one in self.headers)

    @property
    def turned(self) -> int:
        """Number of files whose EXIF orientation is not the usual one."""
        return sum(one.orientation != 1 for one in self.headers)

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Bytes of each file, int64 (n,)."""
        return np.array([one.bytes for one in self.headers], np.int64)

    @property
    def edges(self) -> npt.NDArray[np.int64]:
        """(width, height) of the files whose header states them, int64 (n, 2)."""
        known = [(one.width, one.height) for one in self.headers if one.width and one.height]
        return np.array(known, np.int64).reshape(-1, 2)


def scan(source: BlobDataset, threads: int, limit: int | None = None) -> Scan:
    """Scans the files of a source; on Ctrl-C, returns what was scanned.

    Args:
        source: encoded images.
        threads: number of native threads.
        limit: largest number of files, drawn at random. None: all.
    """
    indices = np.arange(len(source))
    if limit is not None and limit < len(indices):
        indices = np.sort(np.random.default_rng(0).permutation(len(source))[:limit])
    found = Scan(len(source), threads, source.upright, busy=machine.warning_if_busy())
    decoded: Subset[object] = Subset(SameFiles(source, _WHOLE), indices.tolist())
    loader = DataLoader(decoded, _BATCH, num_workers=threads, seed=0, on_error="skip", max_errors=None)
    begin = time.perf_counter()
    with Progress("doctor", len(indices), "file", label="scan") as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's about single files
        try:
            _headers(source, indices, found, loader, bar.update)
            found.seconds = time.perf_counter() - begin
            if len(loader.errors) < found.scanned:
                seen = indices[: found.scanned].tolist()
                found.crops = measure_crops(source, threads, seen, [one.bytes for one in found.headers])
        except KeyboardInterrupt:
            found.interrupted = True
        found.broken = [(error.location, error.reason) for error in loader.errors]
        found.seconds = found.seconds or time.perf_counter() - begin
        loader.close()
    return found


def _headers(
    source: BlobDataset,
    indices: npt.NDArray[np.int64],
    found: Scan,
    loader: DataLoader[object],
    progress: Callable[[int], object],
) -> None:
    """Reads the headers of the files while the native threads decode the next ones."""
    batches = iter(loader)
    for first in range(0, len(indices), _BATCH):
        chunk = indices[first : first + _BATCH].tolist()
        for index in chunk:
            try:
                data = source.read(index)
            except Exception:  # the loader reports it
                data = b""
            found.headers.append(file_header(data))
        next(batches, None)  # a batch of broken files alone is left out: the last ones have ended then
        progress(len(chunk))
    for _ in batches:
        pass
