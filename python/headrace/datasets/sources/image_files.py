"""A dataset of image files, given as a list of paths."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from headrace._base.checks import explained
from headrace._base.native import core
from headrace._base.types import Array
from headrace._storage.local_cache.local_caches import LocalBytes, checked_local, tended_bytes
from headrace._storage.parts.remote_bytes import RemoteBytes
from headrace._storage.parts.sample_bytes import SampleBytes
from headrace._storage.remote.cache import Cache
from headrace._storage.remote.network import Network
from headrace._storage.remote.remote_files import Access, RemoteFiles, RemoteTable
from headrace._storage.remote.urls import all_urls, redact_url
from headrace.datasets.sources.dataset import BlobDataset, checked_mode
from headrace.datasets.sources.packed_paths import PackedPaths


class ImageFiles(BlobDataset):
    """Image files and their labels.

    Args:
        paths: the files, in the order of the dataset; or URLs of objects in other machines, which fsspec reads.
        labels: one per file. None: samples are images without labels.
        transform, target_transform: as in torchvision's datasets.
        mode: mode of the images that `transform` gets. ``"RGB"``; ``"L"``: gray levels; ``"P"``: the indices of files
            with a palette, or the values of files of mode L, unchanged, as an image of mode L: masks of classes. A
            file of another mode has no indices, and its sample fails.
        cache: where the encoded bytes stay after native threads have read them: ``"memory:8 GB"``, a folder of a disk
            that is faster than that of the files, or a `Cache`. A file that changes is read again. Of URLs with a
            folder, the ETag of each object is requested once a process. None: nothing is kept.
        storage_options: of URLs: arguments of fsspec's file system, such as credentials.
        network: of URLs: limits of requests.

    Raises:
        ImportError: fsspec, or the package for a protocol, is not installed.
        TypeError: `paths` is a single path.
        ValueError: `paths` holds URLs and files, an argument of URLs is given for files, the numbers of paths and
            labels differ, a path contains a zero byte, or there is no such mode.
    """

    @explained()
    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        labels: Sequence[object] | Array | None = None,
        transform: Callable[[Any], object] | None = None,
        target_transform: Callable[[Any], object] | None = None,
        *,
        mode: str = "RGB",
        cache: Cache | str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, object] | None = None,
        network: Network | None = None,
    ) -> None:
        if isinstance(paths, (str, bytes, os.PathLike)):
            raise TypeError(f"paths must be a list of paths, not one path: {paths!r}")
        super().__init__(labels, transform, target_transform)
        self._mode = checked_mode(mode)
        self.paths: PackedPaths = paths if isinstance(paths, PackedPaths) else PackedPaths(paths)
        if labels is not None and len(labels) != len(self.paths):
            raise ValueError(f"there are {len(self.paths)} paths but {len(labels)} labels: give one for each path")
        self._remote: RemoteFiles | None = None
        self._far: RemoteTable | None = None
        self._cache: LocalBytes | None = None
        access = Access(cache, storage_options, network)
        if all_urls(self.paths):
            self._remote = RemoteFiles(self.paths, access)
            places = np.arange(len(self.paths), dtype=np.uint32), np.zeros(len(self.paths), np.uint64)
            self._far = self._remote.table(*places, np.full(len(self.paths), core.ANY_LENGTH, np.uint64))
        else:
            access.check_local("these paths are files")
            self._cache = checked_local(cache)

    @property
    def mode(self) -> str:
        return self._mode

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def ahead_bytes(self) -> int:
        return tended_bytes(self._cache) if self._remote is None else self._remote.network.ahead_bytes

    def expect(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int:
        if self._cache is not None:
            self._cache.maintain_folder()
        return 0 if self._far is None else self._far.expect(indices, wait)

    def read(self, index: int) -> bytes:
        if self._remote is not None:
            return self._remote.read(index, 0, None)
        return Path(self.paths[index]).read_bytes()

    def file(self, index: int) -> str | SampleBytes:
        return self.paths[index] if self._remote is None else RemoteBytes(self._remote, index)

    def image_size(self, index: int) -> tuple[int, int]:
        if self._remote is not None:
            return super().image_size(index)
        with Image.open(self.paths[index]) as image:  # reads only the header
            return image.height, image.width

    def identity(self, index: int) -> str:
        return "/".join(self.location(index).split("/")[-2:])

    def location(self, index: int) -> str:
        return self.paths[index] if self._remote is None else redact_url(self.paths[index])

    @property
    def storage_identity(self) -> object:
        return self if self._far is not None else self.paths

    def blob_table(self) -> core.BlobTable:
        if self._far is not None:
            return self._far.blobs()
        if self._cache is not None:
            return self._cache.files(self.paths.packed, self.paths.offsets)
        return core.BlobTable.of_files(self.paths.packed, self.paths.offsets)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} files)"
