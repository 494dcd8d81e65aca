"""A zip archive of class folders as a dataset: stored members are read in place."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from headrace._storage.local_cache.local_caches import checked_local
from headrace._storage.remote.cache import Cache
from headrace._storage.remote.network import Network
from headrace._storage.remote.remote_files import Access
from headrace.datasets.sources.image_folder import EXTENSIONS
from headrace.datasets.tables.access.remote_reads import RangeFile
from headrace.datasets.tables.access.zip_members import far_members
from headrace.datasets.tables.access.zip_paths import check_stored, places_of_members
from headrace.datasets.tables.file_spans import FileSpans, Stamp
from headrace.datasets.tables.table_source import TableSource

_AHEAD = 1 << 16  # bytes of an archive's directory that are read at a time, at least
_OF_MACOS = "__MACOSX"  # a folder of metadata, whose files end like the images they belong to


class Zip(TableSource):
    """Images in a zip archive, arranged as ``root/class_x/anything.jpg``.

    The classes, the files and their order are those of `ImageFolder` of the unpacked folder. Members have to be stored,
    not compressed: images do not become smaller. An archive that changes after the dataset was made is an error of the
    samples that are read then.

    Args:
        path: the archive, or its URL, which fsspec reads: its directory and its members by ranges.
        root: the folder inside that holds one folder per class. "": the archive itself.
        transform, target_transform, mode: as in `ImageFolder`.
        cache: as in `ImageFiles`.
        storage_options, network: of a URL, as in `ImageFiles`.

    Attributes:
        classes: names of the class folders, sorted.
        class_to_idx: dict of class name to label.
        names: the members, in the order of the samples.

    Raises:
        OSError: the archive cannot be read.
        ValueError: it is no zip archive or damaged, an image in it is compressed, encrypted or there twice, or there is
            no class folder, or one without an image.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        root: str = "",
        transform: Callable[[Any], object] | None = None,
        target_transform: Callable[[Any], object] | None = None,
        *,
        mode: str = "RGB",
        cache: Cache | str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, object] | None = None,
        network: Network | None = None,
    ) -> None:
        access = Access(cache, storage_options, network).choose_access(path)
        self._cache = checked_local(cache) if access is None else None
        far = None if access is None else access.files([os.fspath(path)])
        self.path: str = str(Path(path).absolute()) if far is None else far.shown[0]
        self._stamp = Stamp.of(self.path) if far is None else None
        file = self.path if far is None else BufferedReader(RangeFile(far), _AHEAD)
        self.classes: list[str]
        self.classes, members = _list_images(file, self.path, root.strip("/"))
        self.class_to_idx: dict[str, int] = {name: label for label, name in enumerate(self.classes)}
        self.names: list[str] = [member.filename for _, member in members]
        labels = np.array([self.class_to_idx[name] for name, _ in members], np.int64)
        super().__init__(labels, transform, target_transform, mode)
        check_stored(self.path, [member for _, member in members])
        if far is not None:
            self._images = far_members(far, [member for _, member in members])
            return
        self._begins, self._sizes = places_of_members(self.path, [member for _, member in members])
        self._images = self._locate()

    def _locate(self) -> FileSpans:
        if self._stamp is None or Stamp.of(self.path) != self._stamp:
            raise ValueError(f"{self.path} has changed since the dataset was made; make a new one")
        which = np.zeros(len(self._begins), np.int64)
        return FileSpans([self._stamp], which, self._begins, self._sizes, self._cache)

    def identity(self, index: int) -> str:
        return "/".join(self.names[index].split("/")[-2:])

    def location(self, index: int) -> str:
        return f"{self.names[index]} in {self.path}"

    def __repr__(self) -> str:
        return f"Zip({self.path!r}, {len(self)} images in {len(self.classes)} classes)"


def _list_images(
    file: str | BufferedReader[RangeFile], path: str, root: str
) -> tuple[list[str], list[tuple[str, ZipInfo]]]:
    """Returns the classes, and the images of each class with its name, in ImageFolder's order."""
    try:
        with ZipFile(file) as archive:
            members = archive.infolist()
    except (BadZipFile, NotImplementedError) as error:
        raise ValueError(f"{path} is no zip archive, or it is damaged: {error}") from error
    below = f"{root}/" if root else ""
    classes: set[str] = set()
    images: dict[str, tuple[str, ZipInfo]] = {}
    for member in members:
        name = member.filename
        folder, inside, _ = name.removeprefix(below).partition("/")
        if not name.startswith(below) or not inside or not folder or folder == _OF_MACOS:
            continue
        classes.add(folder)
        if name.lower().endswith(EXTENSIONS):
            if name in images:
                raise ValueError(f"{path} has two members {name!r}; which one is meant is not known")
            images[name] = folder, member
    found = sorted(images.values(), key=lambda one: (one[0], one[1].filename.rpartition("/")[::2]))
    if not classes:
        raise ValueError(f"{path} has no class folder below {root or 'its root'!r}; give the folder of these as root")
    if empty := sorted(classes - {folder for folder, _ in found}):
        raise ValueError(f"{path} has no image for the classes {', '.join(empty)}")
    return sorted(classes), found
