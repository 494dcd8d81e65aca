"""Tar shards in WebDataset's layout as a map-style dataset."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm  # type: ignore[import-untyped]

from headrace.base.cores import usable_cores
from headrace.base.native import core
from headrace.remote.cache import Cache, checked_cache
from headrace.remote.files import RemoteFiles
from headrace.remote.network import Network
from headrace.remote.urls import is_url
from headrace.shards.remote_index import remote_indexes, remote_shards
from headrace.shards.tar_index import TarIndex, index_of
from headrace.shards.urls import Urls, shard_paths
from headrace.shards.values import INTEGERS, Names, Together, Values, checked_decoder
from headrace.sources.packed_paths import PackedPaths
from headrace.sources.ranges import Ranges

IMAGES = ("jpg", "jpeg", "png", "webp", "ppm", "pgm", "pbm", "pnm", "bmp", "tif", "tiff", "gif")
KEY = "__key__"


class TarShards(Ranges):
    """Images in tar shards of WebDataset's layout, with random access: any order, sampler, rank and number of workers.

    A sample is what WebDataset makes of consecutive members with one key: the folder and the name up to the first dot.
    The rest of the name, in lower case, is the member's extension. ``dataset[i]`` is (image, label), or the image if
    `label` is None. The shards are indexed once, in threads; they are not unpacked.

    Args:
        urls: shards: a path or a URL, or a list of them. A string may hold ``{000..146}``, ``{a,b}``, a pattern
            (``train-*.tar``), and several of these joined by ``::``.
        image: extensions of the images; of several in a sample, the first one in this order is taken. A string may
            hold several: ``"jpg;png"``.
        label: an extension, a list of them (the label is a dict), ``"__key__"`` (the sample's key), or None.
            ``cls``, ``cls2``, ``class``, ``count``, ``index``, ``inx``, ``id``: int; ``txt``, ``text``,
            ``transcript``: str; ``json``, ``jsn``: what the JSON holds; others: bytes.
        transform, target_transform: as in torchvision's datasets.
        index: folder for the index of each shard. None: beside the shard (``train-000.tar.index.npz``), or nowhere if
            its folder cannot be written to; for URLs, read from beside the shard, and kept in the cache's folder.
            False: nowhere.
        missing: what to do with samples that lack the image or a label: ``"raise"``, or ``"skip"``.
        allow_pickle: whether labels may be unpickled (``pkl``, ``pickle``, ``pyd``), which runs code from the shard.
        mode: as in ``ImageFiles``.
        cache, storage_options, network: of URLs, as in ``ImageFiles``.

    Attributes:
        keys: the key of each sample.

    Raises:
        OSError: a shard cannot be read.
        ValueError: a shard is damaged, compressed or not a tar archive, a sample is incomplete, or an argument is
            invalid. The message names the shard and the byte.
    """

    def __init__(
        self,
        urls: Urls,
        image: str | Sequence[str] = IMAGES,
        label: str | Sequence[str] | None = "cls",
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        *,
        index: str | os.PathLike[str] | bool | None = None,
        missing: str = "raise",
        allow_pickle: bool = False,
        mode: str = "RGB",
        cache: Cache | str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        network: Network | None = None,
    ) -> None:
        if missing not in ("raise", "skip"):
            raise ValueError(f"missing must be 'raise' or 'skip', not {missing!r}")
        if target_transform is not None and label is None:
            raise ValueError("target_transform is given, but label is None")
        images = tuple(name.lower() for name in (image.split(";") if isinstance(image, str) else image))
        labels = () if label is None else (label,) if isinstance(label, str) else tuple(label)
        decoders = {name: checked_decoder(name, allow_pickle) for name in labels if name != KEY}
        shards = shard_paths(urls)
        files: list[str] | RemoteFiles = shards
        if is_url(shards[0]):
            files = remote_shards(shards, storage_options, checked_cache(cache), network)
            shards = files.shown
        elif cache is not None or storage_options is not None or network is not None:
            raise ValueError("cache, storage_options and network are for URLs, and these shards are files")
        found = _Found(shards, _indexed(files, index), {"image": images, **{name: (name,) for name in decoders}})
        found.check(missing == "skip")
        super().__init__(
            files, *found.places("image"), None, transform, names=found.names("image"), stamps=found.stamps, mode=mode
        )
        self.keys: Sequence[str] = found.keys
        parts: dict[str, Any] = {}
        for name in labels:
            if name == KEY:
                parts[name] = self.keys
                continue
            numbers = found.numbers(name) if decoders[name] is int and name in INTEGERS else None
            if numbers is None:
                where = Ranges(files, *found.places(name), names=found.names(name), stamps=found.stamps)
                parts[name] = Values(where, decoders[name])
            else:
                parts[name] = numbers
        if label is not None:
            self._values = [part for part in parts.values() if isinstance(part, Values)]
            self._labels = parts[label] if isinstance(label, str) else Together(parts)
            self._plain = isinstance(self._labels, np.ndarray)
            self.target_transform = target_transform

    def expect(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int:
        values = self._values if self.has_targets else []
        return super().expect(indices, wait) + sum(one.expect(indices, wait) for one in values)


def _indexed(shards: list[str] | RemoteFiles, index: Any) -> list[TarIndex]:
    """Returns the index of each shard. Headers are read without the GIL."""
    folder = None if index is None or index is True else "" if index is False else os.fspath(index)
    if isinstance(shards, RemoteFiles):
        made, names = remote_indexes(shards, folder), shards.shown
    else:
        made, names = _local(shards, folder), shards
    cut = [path for path, one in zip(names, made, strict=True) if not one.has_end]
    if cut:
        warnings.warn(
            f"{len(cut)} of {len(names)} shards have no end-of-archive marker, first {cut[0]}: they may have been cut "
            "between two members",
            stacklevel=4,
        )
    return made


def _local(shards: list[str], folder: str | None) -> list[TarIndex]:
    bar = tqdm(total=len(shards), desc="indexing", unit="shard", leave=False, disable=not sys.stderr.isatty())
    with bar, ThreadPoolExecutor(max(4, usable_cores())) as pool:
        jobs = [pool.submit(index_of, path, folder) for path in shards]
        try:
            made = []
            for job in jobs:
                made.append(job.result())
                bar.update()
        finally:
            for job in jobs:
                job.cancel()
    return made


class _Found:
    """The members of all shards, and for each wanted field the member of each sample.

    Args:
        wanted: name of a field -> extensions, the preferred one first.
    """

    def __init__(self, shards: list[str], indexes: list[TarIndex], wanted: dict[str, tuple[str, ...]]) -> None:
        self._shards = shards
        self._wanted = wanted
        self.stamps = np.stack([index.stamp for index in indexes])
        counts = [len(index.key_offsets) for index in indexes]
        self._shard_of = np.repeat(np.arange(len(indexes), dtype=np.uint32), counts)
        firsts = np.cumsum([0, *(len(index.sample) for index in indexes)])
        self._offset = np.concatenate([index.offset for index in indexes])
        self._length = np.concatenate([index.length for index in indexes])
        self._number = np.concatenate([index.number for index in indexes])
        self._member = {name: np.full(sum(counts), -1, np.int64) for name in wanted}
        self._choice = {name: np.zeros(sum(counts), np.uint32) for name in wanted}
        first_samples = np.cumsum([0, *counts])
        for number, index in enumerate(indexes):
            numbers = index.extension_numbers()
            for name, extensions in wanted.items():
                for choice in reversed(range(len(extensions))):  # the preferred one last
                    places = np.flatnonzero(index.extension == numbers.get(extensions[choice], -1))
                    samples = index.sample[places] + first_samples[number]
                    self._member[name][samples] = places + firsts[number]
                    self._choice[name][samples] = choice
        bases = np.cumsum([0, *(len(index.keys) for index in indexes)]).astype(np.uint64)
        keys = b"".join(index.keys.tobytes() for index in indexes)
        offsets = [index.key_offsets + base for index, base in zip(indexes, bases[:-1], strict=True)]
        self.keys = PackedPaths.of_packed(keys, np.concatenate(offsets))

    def check(self, skip: bool) -> None:
        """Leaves out the samples that lack a field. Raises ValueError if there are such and `skip` is False, or if no
        sample is left."""
        complete = np.ones(len(self.keys), bool)
        for name, member in self._member.items():
            lacking = np.flatnonzero(member < 0)
            complete[lacking] = False
            if len(lacking) and not skip:
                first = int(lacking[0])
                raise ValueError(
                    f"{self._shards[int(self._shard_of[first])]}: {len(lacking)} of {len(complete)} samples have no "
                    f"{' or '.join(self._wanted[name][:4])}, first {self.keys[first]!r}; give another `image` or "
                    '`label`, or missing="skip"'
                )
        if not complete.any():
            raise ValueError(f"there is no complete sample in {len(self._shards)} shards, first {self._shards[0]}")
        if complete.all():
            return
        self._shard_of = self._shard_of[complete]
        self._member = {name: member[complete] for name, member in self._member.items()}
        self._choice = {name: choice[complete] for name, choice in self._choice.items()}
        self.keys = PackedPaths.of_packed(self.keys.packed, self.keys.offsets[complete])

    def places(self, name: str) -> tuple[Any, Any, Any]:
        """Returns the shard, the offset and the length of a field's bytes in each sample."""
        member = self._member[name]
        return self._shard_of, self._offset[member], self._length[member]

    def names(self, name: str) -> Names:
        return Names(self.keys, self._choice[name], list(self._wanted[name]))

    def numbers(self, name: str) -> npt.NDArray[np.int64] | None:
        """Returns a field's values if all are whole numbers."""
        numbers = self._number[self._member[name]]
        return None if (numbers == core.NO_NUMBER).any() else numbers
