"""A dataset of image files, given as a list of paths."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from headrace.base.native import core
from headrace.sources.dataset import BlobDataset, checked_mode
from headrace.sources.packed_paths import PackedPaths


class ImageFiles(BlobDataset):
    """Image files and their labels.

    Args:
        paths: the files, in the order of the dataset.
        labels: one per file. None: samples are images without labels.
        transform, target_transform: as in torchvision's datasets.
        mode: mode of the images that `transform` gets. ``"RGB"``; ``"L"``: gray levels; ``"P"``: the indices of files
            with a palette, or the values of files of mode L, unchanged, as an image of mode L: masks of classes. A
            file of another mode has no indices, and its sample fails.

    Raises:
        TypeError: `paths` is a single path.
        ValueError: the numbers of paths and labels differ, a path contains a zero byte, or there is no such mode.
    """

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        labels: Sequence[Any] | np.ndarray[Any, Any] | None = None,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        *,
        mode: str = "RGB",
    ) -> None:
        if isinstance(paths, (str, bytes, os.PathLike)):
            raise TypeError(f"paths must be a list of paths, not one path: {paths!r}")
        super().__init__(labels, transform, target_transform)
        self._mode = checked_mode(mode)
        self.paths = paths if isinstance(paths, PackedPaths) else PackedPaths(paths)
        if labels is not None and len(labels) != len(self.paths):
            raise ValueError(f"there are {len(self.paths)} paths but {len(labels)} labels")

    @property
    def mode(self) -> str:
        return self._mode

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, index: int) -> bytes:
        return Path(self.paths[index]).read_bytes()

    def image_size(self, index: int) -> tuple[int, int]:
        with Image.open(self.paths[index]) as image:  # reads only the header
            return image.height, image.width

    def identity(self, index: int) -> str:
        return "/".join(self.paths[index].split("/")[-2:])

    def location(self, index: int) -> str:
        return self.paths[index]

    def blob_table(self) -> core.BlobTable:
        return core.BlobTable.of_files(self.paths.packed, self.paths.offsets)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} files)"
