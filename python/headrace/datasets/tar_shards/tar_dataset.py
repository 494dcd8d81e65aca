"""Tar shards in WebDataset's layout as a map-style dataset."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm  # type: ignore[import-untyped]

from headrace._base import messages
from headrace._base.checks import explained
from headrace._base.cores import usable_cores
from headrace._storage.local_cache.local_caches import checked_local
from headrace._storage.remote.cache import Cache
from headrace._storage.remote.network import Network
from headrace._storage.remote.remote_files import Access, RemoteFiles
from headrace._storage.remote.urls import is_url
from headrace.datasets.sources.byte_ranges import Ranges
from headrace.datasets.tar_shards.all_samples import JoinedSamples, join_indexes
from headrace.datasets.tar_shards.mapped_samples import KeptSamples
from headrace.datasets.tar_shards.member_values import INTEGERS, MemberValues, Together, asked_names, checked_decoder
from headrace.datasets.tar_shards.remote_index import (
    Taken,
    check_far_numbers,
    is_joined_index,
    remote_indexes,
    remote_shards,
)
from headrace.datasets.tar_shards.shard_urls import Urls, shard_paths
from headrace.datasets.tar_shards.tar_header import BLOCK, MemberCheck
from headrace.datasets.tar_shards.tar_index import TarIndex, index_of
from headrace.datasets.tar_shards.wids import FarLists

IMAGES = ("jpg", "jpeg", "png", "webp", "ppm", "pgm", "pbm", "pnm", "bmp", "tif", "tiff", "gif")
KEY = "__key__"


class TarShards(Ranges):
    """Images in tar shards of WebDataset's layout, with random access: any order, sampler, rank and number of workers.

    A sample is what WebDataset makes of consecutive members with one key: the folder and the name up to the first dot.
    The rest of the name, in lower case, is the member's extension. ``dataset[i]`` is (image, label), or the image if
    `label` is None. The shards are indexed once, in threads; they are not unpacked.

    Args:
        urls: shards: a path or a URL, or a list of them. A string may hold ``{000..146}``, ``{a,b}``, a pattern
            (``train-*.tar``), and several of these joined by ``::``. A ``.json`` file or URL is a list of shards of
            wids; the list's URL must be in the folder of its shards.
        image: extensions of the images; of several in a sample, the first one in this order is taken. A string may
            hold several: ``"jpg;png"``.
        label: an extension, a list of them (the label is a dict), ``"__key__"`` (the sample's key), or None.
            ``cls``, ``cls2``, ``class``, ``count``, ``index``, ``inx``, ``id``: int; ``txt``, ``text``,
            ``transcript``: str; ``json``, ``jsn``: what the JSON holds; others: bytes.
        transform, target_transform: as in torchvision's datasets.
        index: folder for the index of each shard. None: beside the shard (``train-000.tar.index.npz``), or nowhere if
            its folder cannot be written to; for URLs, read from beside the shard, and kept in the cache's folder.
            False: nowhere. A path or a URL that ends in ``.npz``: a joined index of shards that are URLs, which
            ``headrace index SHARDS --out FILE`` writes; beside 16 shards or more, ``headrace.index.npz`` is looked for.
            Unless it is False, indexes of DALI's ``wds2idx`` and of Energon that fit a shard are read in place of the
            shard's headers; one beside a URL that does not fit is a warning, and the shard is read once, whole.
        missing: what to do with samples that lack the image or a label: ``"raise"``, or ``"skip"``.
        allow_pickle: whether labels may be unpickled (``pkl``, ``pickle``, ``pyd``), which runs code from the shard.
        mode: as in ``ImageFiles``.
        upright: whether to rotate or mirror images as their EXIF orientation says, as Hugging Face's datasets do.
        cache: as in ``ImageFiles``; a shard that changes is an error, with or without it.
        storage_options, network: of URLs, as in ``ImageFiles``.

    Attributes:
        keys: the key of each sample.

    Raises:
        OSError: a shard cannot be read.
        ValueError: a shard is damaged, compressed or not a tar archive, a sample is incomplete, or an argument is
            invalid. The message names the shard and the byte.
    """

    @explained()
    def __init__(
        self,
        urls: Urls,
        image: str | Sequence[str] = IMAGES,
        label: str | Sequence[str] | None = "cls",
        transform: Callable[[Any], object] | None = None,
        target_transform: Callable[[Any], object] | None = None,
        *,
        index: str | os.PathLike[str] | bool | None = None,
        missing: str = "raise",
        allow_pickle: bool = False,
        mode: str = "RGB",
        upright: bool = False,
        cache: Cache | str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, object] | None = None,
        network: Network | None = None,
    ) -> None:
        images, labels = asked_names(image, label, target_transform, missing)
        decoders = {name: checked_decoder(name, allow_pickle) for name in labels if name != KEY}
        access = Access(cache, storage_options, network)
        lists = FarLists(access)
        shards = shard_paths(urls, lists)
        wanted = {"image": images, **{name: (name,) for name in decoders}}
        files: list[str] | RemoteFiles = shards
        taken = Taken()
        if is_url(shards[0]):
            files = remote_shards(shards, access)
            shards = files.shown
            files.check_ranges(BLOCK)  # before the shards are read for their indexes
            indexes = remote_indexes(files, _folder(index), taken=taken)
            lists.check(files)
            found = join_indexes(shards, _check_ends(shards, indexes), wanted, missing == "skip")
        else:
            access.check_local("these shards are files")
            if isinstance(index, (str, os.PathLike)) and is_joined_index(os.fspath(index)):
                raise ValueError(
                    f"{os.fspath(index)} is a joined index, which is for URLs; these shards are files: leave it out"
                )
            found = _find_samples(shards, _folder(index), wanted, missing == "skip")
        keys: Any = found.keys  # of two classes, both packed
        spelt = [name for name, decode in decoders.items() if decode is int and name in INTEGERS]
        numbered = [name for name in spelt if found.fields[name].number is not None]
        if isinstance(files, RemoteFiles):
            try:
                check_far_numbers(files, found, numbered, taken.shards)
            except (OSError, ValueError):
                taken.forget()
                raise
        super().__init__(
            files,
            *found.byte_ranges("image"),
            None,
            transform,
            names=found.names("image"),
            stamps=found.stamps,
            mode=mode,
            cache=checked_local(cache) if files is shards else None,
            check=MemberCheck(keys, found.fields["image"], [found.fields[name] for name in numbered]),
        )
        self.keys: Sequence[str] = found.keys
        self._upright, self._unread = upright, False
        parts: dict[str, Sequence[object] | npt.NDArray[np.int64]] = {}
        for name in labels:
            if name == KEY:
                parts[name] = self.keys
                continue
            if name in numbered and (number := found.fields[name].number) is not None:
                parts[name] = number
                continue
            check = MemberCheck(keys, found.fields[name])
            where = Ranges(files, *found.byte_ranges(name), names=found.names(name), stamps=found.stamps, check=check)
            parts[name] = MemberValues(where, decoders[name])
        if label is not None:
            self._values = [part for part in parts.values() if isinstance(part, MemberValues)]
            self._labels = parts[label] if isinstance(label, str) else Together(parts)
            self._plain = isinstance(self._labels, np.ndarray)
            self._unread = isinstance(label, str) and label != KEY and found.fields[label].unread
            self.target_transform = target_transform

    def expect(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int:
        return super().expect(indices, wait) + self.expect_targets(indices, wait)

    def expect_targets(self, indices: npt.NDArray[np.int64], wait: bool = False) -> int:
        values = self._values if self.has_targets else []
        return sum(one.expect(indices, wait) for one in values)

    def numbers_to_hash(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
        # Fingerprints are those of an index that holds the numbers: which one was there must not matter to a state.
        if not self._unread or self.target_transform is not None:
            return super().numbers_to_hash(indices)
        values = self._values[0]
        values.expect(indices)
        with suppress(ValueError):  # no numbers
            return np.array([values[int(index)] for index in indices], np.int64)
        return None

    @property
    def upright(self) -> bool:
        return self._upright


def _folder(index: str | os.PathLike[str] | bool | None) -> str | None:
    """Returns the folder of indexes; None: beside the shards, "": nowhere."""
    return None if index is None or index is True else "" if index is False else os.fspath(index)


def _find_samples(
    shards: list[str], folder: str | None, wanted: dict[str, tuple[str, ...]], skip: bool
) -> JoinedSamples:
    """Returns the samples: as they were kept, if there are many, otherwise from the index of each shard."""
    kept = KeptSamples(shards, folder, wanted, skip)
    if (known := kept.load()) is not None:
        return known
    indexes = _check_ends(shards, _index_shards(shards, folder))
    made = join_indexes(shards, indexes, wanted, skip)
    if all(one.has_end for one in indexes):  # otherwise, the warning comes each time
        kept.store(made)
    return made


def _check_ends(shards: Sequence[str], indexes: list[TarIndex]) -> list[TarIndex]:
    """Returns the indexes. Warns of shards that may have been cut."""
    cut = [path for path, one in zip(shards, indexes, strict=True) if not one.has_end]
    if cut:
        messages.warn(
            f"{len(cut)} of {len(shards)} shards have no end-of-archive marker, first {cut[0]}: they may have been cut "
            "between two members"
        )
    return indexes


def _index_shards(shards: Sequence[str], folder: str | None) -> list[TarIndex]:
    """Returns the index of each shard. Headers are read without the GIL."""
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
