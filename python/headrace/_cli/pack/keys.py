"""Keys of samples: names that every reader of tar shards splits at the same place."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headrace._base.native import core
from headrace.datasets.sources.dataset import BlobDataset
from headrace.datasets.sources.image_files import ImageFiles
from headrace.datasets.sources.image_folder import EXTENSIONS
from headrace.datasets.tables.zip_archive import Zip
from headrace.datasets.videos.videos_dataset import ENDINGS

_SHORT = {"jpeg": "jpg", "tiff": "tif"}
_ENDINGS = (*EXTENSIONS, *ENDINGS)
_LONGEST = 200  # bytes of a key
_PASSED_OVER = re.compile(r"__.*__")  # parts of names that WebDataset takes for its own


class Keys:
    """The keys of a source's samples, made on access.

    They are the names of its files below their common folder, without the extension and with ``_`` for dots, or its
    own keys. If there are none, or if one of them cannot be a key, or if two are equal, all keys are numbers: one rule
    for all samples, so that no key of one kind is equal to one of the other.

    Attributes:
        why_numbers: why the names are not used, for people; None if they are, or if there are none.
    """

    def __init__(self, source: BlobDataset) -> None:
        self._count = len(source)
        self._names, self._root = _names_of(source)
        self._files = None if self._root is None else self._names
        self.why_numbers: str | None = None
        if self._names is not None and (why := self._why_not_names()) is not None:
            self._names, self.why_numbers = None, why

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> str:
        if self._names is None:
            return f"{index:0{max(6, len(str(self._count - 1)))}}"
        return self._key(self._names[index])

    def extension(self, index: int) -> str | None:
        """Returns the extension of an image's file, in lower case, and short where there are two; None if unknown."""
        name = "" if self._files is None else self._files[index].lower()
        if not name.endswith(_ENDINGS):
            return None
        own = name.rpartition(".")[2]
        return _SHORT.get(own, own)

    @property
    def are_numbers(self) -> bool:
        return self._names is None

    def _key(self, name: str) -> str:
        if self._root is None:  # keys of shards
            return name.removeprefix("./")  # of an archive that was made of "."
        folder, slash, own = name.removeprefix(self._root).rpartition("/")
        if own.lower().endswith(_ENDINGS):
            own = own.rpartition(".")[0]
        return folder + slash + own.replace(".", "_")

    def _why_not_names(self) -> str | None:
        """Returns why the names cannot be the keys; None if they can."""
        assert self._names is not None
        hashes = np.empty(self._count, np.int64)
        for index, name in enumerate(self._names):
            key = self._key(name)
            if not _is_usable_key(key):
                return f"{key!r} cannot be a key"
            hashes[index] = hash(key)
        hashes.sort()
        if (hashes[1:] == hashes[:-1]).any():
            return "two samples would have the same key"
        return None


def _names_of(source: BlobDataset) -> tuple[Sequence[str] | None, str | None]:
    """Returns the names, and the folder to remove from them; (keys, None) for keys of shards."""
    own: Any = source
    if isinstance(own, Zip):
        return own.names, ""
    if hasattr(own, "keys") and len(own) and isinstance(own.keys, Sequence):
        return own.keys, None
    if not isinstance(own, ImageFiles) or not len(own):
        return None, None
    if hasattr(own, "root"):
        return own.paths, f"{os.fspath(own.root)}/"
    first, last = min(own.paths), max(own.paths)  # whatever these have in common, all between them have
    common = Path(os.path.commonpath([first, last]))
    return own.paths, f"{common.parent if first == last else common}/"


def _is_usable_key(key: str) -> bool:
    """Whether readers find the key again in the name of a member, and write no file outside their folder."""
    parts = key.split("/")
    if any(part in ("", ".", "..") or _PASSED_OVER.match(part) for part in parts):
        return False
    try:
        data = key.encode()
    except UnicodeEncodeError:  # bytes that are not UTF-8
        return False
    # A folder may have dots; WebDataset and headrace split at a dot after it.
    return len(data) <= _LONGEST and key.isprintable() and core.split_tar_name(data + b".jpg") == (data, b"jpg")
