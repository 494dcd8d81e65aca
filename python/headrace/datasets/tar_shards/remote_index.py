"""The indexes of tar shards in other machines: kept here, found beside the shard, or made in one read of it."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tqdm import tqdm  # type: ignore[import-untyped]

from headrace._base import loggers, messages
from headrace._base.native import core
from headrace._base.private_files import read_own
from headrace._base.system import path_of_open_file
from headrace._storage.remote.clients.responses import Stamp, is_strong
from headrace._storage.remote.disk_cache import DiskCache
from headrace._storage.remote.remote_files import Access, RemoteFiles
from headrace._storage.remote.urls import is_url, name_object, redact_url
from headrace.datasets.tar_shards.all_samples import JoinedSamples
from headrace.datasets.tar_shards.external_remote import ForeignIndexes, copy_object
from headrace.datasets.tar_shards.joined_index import NAME, Known, unpack_indexes
from headrace.datasets.tar_shards.tar_header import BLOCK, is_header
from headrace.datasets.tar_shards.tar_index import TarIndex, parse_sidecar, read_index, store

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)  # the folder for temporary files may be elsewhere
_MANY = 16  # shards for which a joined index is looked for
_TRIED = 16  # shards of a joined index that are compared with it
_MOST_EXTENSIONS = 256  # of a shard whose members are kept while it is indexed
_NUMBERS = 16  # whole numbers in indexes of others that are compared with the shards
_SHARDS = 4  # shards that are read at the same time


@dataclass
class Taken:
    """The indexes that may not fit their shards.

    Attributes:
        shards: numbers of those whose index was found beside them or in a joined one, or belongs to an object that may
            be another one.
        kept: copies of such indexes that are kept here.
    """

    shards: list[int] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)

    def forget(self) -> None:
        """Removes the copies."""
        for path in self.kept:
            path.unlink(missing_ok=True)


def remote_shards(urls: Sequence[str], access: Access) -> RemoteFiles:
    """Returns the shards; each member is read with the header before it, which must say the member's length."""
    return RemoteFiles(urls, access, lead=BLOCK, check=_check_member_header, tar=True)


def _check_member_header(lead: bytes, length: int) -> str:
    try:
        if is_header(lead, length):
            return ""
    except ValueError:
        pass
    return "the index does not fit the shard: no member of this length begins there; remove the index beside the shard"


def remote_indexes(
    files: RemoteFiles, folder: str | None, *, adopt: bool = True, taken: Taken | None = None
) -> list[TarIndex]:
    """Returns the index of each shard.

    Args:
        folder: where indexes are kept here. None: in the cache's folder, if there is one. "": nowhere; then indexes
            beside the shards are not read either. Or a joined index, a path or a URL.
        adopt: whether an index of another program is taken, if it fits. Its whole numbers are UNREAD.
        taken: is filled.

    Raises:
        OSError: a shard cannot be read.
        ValueError: it cannot be indexed.
    """
    fetcher = files.fetcher
    known: dict[int, Known] = {}
    if folder is None or is_joined_index(folder):
        known = _read_joined(files, folder)
        folder = None
    maker = _Maker(files, folder != "", adopt)
    if not known and folder is None and len(files.urls) >= _MANY and fetcher.disk is None:
        known = fetcher.wait(maker.all_beside())
        known = known if _find_changed(files, known) is None else {}
    tagged = {number: one.stamp for number, one in known.items() if one.stamp.tag or fetcher.disk is None}
    stamps = files.take_stamps(tagged)
    maker.kept = (
        Path(folder) if folder else fetcher.disk.folder / "indexes" if folder is None and fetcher.disk else None
    )
    bar = tqdm(total=len(files.urls), desc="indexing", unit="shard", leave=False, disable=not sys.stderr.isatty())
    with bar:

        async def all_of_them() -> list[TarIndex]:
            async def one(number: int, url: str, stamp: Stamp) -> TarIndex:
                found = known.get(number)
                fits = found is not None and found.stamp.size == stamp.size
                if fits:
                    maker.taken.shards.append(number)
                made = found.index if found is not None and fits else await maker.index_of(number, stamp)
                bar.update()
                return made

            pairs = zip(files.urls, stamps, strict=True)
            async with maker.foreign:
                tasks = [asyncio.ensure_future(one(number, *pair)) for number, pair in enumerate(pairs)]
                try:
                    return list(await asyncio.gather(*tasks))
                finally:
                    for task in tasks:
                        task.cancel()

        made: list[TarIndex] = fetcher.wait(all_of_them())
    if taken is not None:
        taken.shards, taken.kept = maker.taken.shards, maker.taken.kept
    if unfit := maker.foreign.unfit:
        messages.warn(
            f"{len(unfit)} indexes beside the shards do not fit them, first {redact_url(unfit[0])}: these shards were "
            "read whole instead; write the indexes again, or remove them"
        )
    return made


def is_joined_index(text: str) -> bool:
    """Whether an argument `index` names a joined index, not a folder."""
    return text.endswith(".npz")


def _read_joined(files: RemoteFiles, given: str | None) -> dict[int, Known]:
    """Returns the shards that a joined index knows, by their numbers: of the file that is given, or else of the one
    beside the first shard, if there are many shards.

    Raises:
        OSError: the file that is given cannot be read.
        ValueError: it is no joined index.
    """
    where = given
    if where is None:
        if len(files.urls) < _MANY:
            return {}
        head, mark, query = files.urls[0].partition("?")
        where = f"{head.rpartition('/')[0]}/{NAME}{mark}{query}"
    try:
        fetch = files.fetcher.read(where, files.options, 0, None, None) if is_url(where) else None
        data = Path(where).read_bytes() if fetch is None else files.fetcher.wait(fetch)
    except OSError:
        if given is None:
            return {}
        raise
    by_name = unpack_indexes(data)
    if by_name is None:
        if given is None:
            return {}
        raise ValueError(f"{redact_url(where)} is no joined index: write it with headrace index SHARDS --out FILE")
    names = [_name_in_url(url) for url in files.urls]
    counts = Counter(names)  # a name that two folders have says nothing
    known = {number: by_name[name] for number, name in enumerate(names) if name in by_name and counts[name] == 1}
    changed = _find_changed(files, known)
    if changed is None:
        return known
    messages.warn(
        f"{redact_url(where)} does not fit {files.shown_of(changed)}, which was changed since, so each shard's own "
        "index is read: write the joined index again"
    )
    return {}


def _find_changed(files: RemoteFiles, known: dict[int, Known]) -> int | None:
    """Looks at some of the shards, and returns the number of one that is not what was indexed; None: all are. That the
    others have the size that the index says, and that members begin where it says, is checked with each read."""
    if not known:
        return None
    numbers = list(known)
    some = [numbers[i] for i in sorted({round(k * (len(numbers) - 1) / (_TRIED - 1)) for k in range(_TRIED)})]
    found = files.ask_stamps(some)
    for number in some:
        stamp = found[number]
        then = known[number].stamp
        if stamp.size != then.size or (then.tag and stamp.tag and stamp.tag != then.tag):
            return number
    return None


def _name_in_url(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[2]


class _Maker:
    """Finds or makes indexes, in the fetcher's loop."""

    def __init__(self, files: RemoteFiles, beside: bool, adopt: bool) -> None:
        self._urls, self._options, self._fetcher, self._beside = files.urls, files.options, files.fetcher, beside
        self.foreign = ForeignIndexes(files.fetcher, files.options)
        self._adopt = beside and adopt
        self.kept: Path | None = None  # the folder of indexes that are kept here
        self._seen: dict[str, TarIndex | None] = {}  # by URL of the shard: the index beside it, or None
        self._turns = asyncio.Semaphore(_SHARDS)
        self.taken = Taken()

    async def all_beside(self) -> dict[int, Known]:
        """Returns the shards, by their numbers, that have an index beside them. The stamps of the shards are not
        requested: that would be a second request for each."""
        found = await asyncio.gather(*(self._parsed_beside(url) for url in self._urls))
        self._seen = dict(zip(self._urls, found, strict=True))
        return {number: Known(Stamp(int(one.stamp[0]), ""), one) for number, one in enumerate(found) if one is not None}

    async def index_of(self, number: int, stamp: Stamp) -> TarIndex:
        url = self._urls[number]
        path = None if self.kept is None else self.kept / f"{_name_kept_index(url, self._options, stamp)}.npz"
        if path is not None:
            index = await asyncio.to_thread(_read_kept_index, path)
            if index is not None and int(index.stamp[0]) == stamp.size:
                if not is_strong(stamp):  # the object may be another one
                    self.taken.shards.append(number)
                return index
        index = await self._found_beside(url, stamp) if self._beside else None
        if index is not None:
            self.taken.shards.append(number)
            self.taken.kept += [] if path is None else [path]
        if index is None and self._adopt and (index := await self.foreign.index_of(url, stamp)) is not None:
            return index  # not kept: it lacks the whole numbers
        if index is None:
            async with self._turns:
                index = await self._make_index(url, stamp)
        if path is not None:
            try:
                await asyncio.to_thread(store, path, index)
            except OSError as error:
                loggers.storage.info("the index of %s is not kept, and will be made again: %s", redact_url(url), error)
        return index

    async def _found_beside(self, url: str, stamp: Stamp) -> TarIndex | None:
        index = self._seen[url] if url in self._seen else await self._parsed_beside(url)
        # Its time of modification is that of a copy elsewhere. That the members begin where it says is checked with
        # each of them.
        return index if index is not None and int(index.stamp[0]) == stamp.size else None

    async def _parsed_beside(self, url: str) -> TarIndex | None:
        head, mark, query = url.partition("?")
        try:
            data = await self._fetcher.read(f"{head}.index.npz{mark}{query}", self._options, 0, None, None)
        except OSError:
            return None
        return await asyncio.to_thread(parse_sidecar, data)

    async def _make_index(self, url: str, stamp: Stamp) -> TarIndex:
        """Reads the whole shard into a file without a name, and keeps its members in the cache on disk."""
        disk = self._fetcher.disk
        if disk is not None and not disk.broken:
            try:
                return await self._made_in(disk.folder, url, stamp)
            except OSError as error:
                if error.errno not in _FULL:
                    raise
        return await self._made_in(None, url, stamp)

    async def _made_in(self, folder: Path | None, url: str, stamp: Stamp) -> TarIndex:
        disk = self._fetcher.disk
        with tempfile.TemporaryFile(dir=folder) as file:
            await copy_object(self._fetcher, url, self._options, stamp, file.fileno())
            index = await asyncio.to_thread(read_index, str(path_of_open_file(file.fileno())), redact_url(url))
            if disk is not None and (beginning := disk.beginning(url, self._options, stamp)):
                await asyncio.to_thread(_cache_headers, disk, beginning, index, file.fileno())
        return TarIndex(**{**vars(index), "stamp": np.array([stamp.size, 0], np.int64)})


def _cache_headers(disk: DiskCache, beginning: str, index: TarIndex, file: int) -> None:
    extensions: list[bytes] = index.extensions.tolist()
    if len(extensions) > _MOST_EXTENSIONS:
        return
    key_of = np.ascontiguousarray(index.key_offsets[index.sample])
    marks = core.name_marks(index.keys, key_of, extensions, index.extension.astype(np.uint8))
    for offset, length, mark in zip(index.offset.tolist(), index.length.tolist(), marks.tolist(), strict=True):
        if disk.broken:
            return
        disk.write(DiskCache.entry(beginning, offset, length, mark), os.pread(file, length, offset))


def _read_kept_index(path: Path) -> TarIndex | None:
    try:
        return parse_sidecar(read_own(path))
    except OSError:
        return None


def _name_kept_index(url: str, options: Mapping[str, object], stamp: Stamp) -> str:
    return hashlib.sha256(repr((name_object(url, options), *stamp)).encode()).hexdigest()[:32]


def check_far_numbers(files: RemoteFiles, samples: JoinedSamples, names: Sequence[str], shards: Sequence[int]) -> None:
    """Compares some whole numbers, drawn at random, with shards in other machines.

    Args:
        names: the fields that have them.
        shards: those whose index somebody else has written.

    Raises:
        OSError: a shard cannot be read.
        ValueError: a number is another one in the shard.
    """
    rows = np.flatnonzero(np.isin(samples.shard_of, np.array(shards, np.uint32)))
    for name in names if len(rows) else ():
        field = samples.fields[name]
        assert field.number is not None
        some = np.unique(np.random.default_rng().choice(rows, _NUMBERS))
        places = [(int(samples.shard_of[row]), int(field.offset[row]), int(field.length[row])) for row in some]
        for row, held in zip(some.tolist(), files.read_all(places), strict=True):
            if _int_or_none(held) != int(field.number[row]):
                where = f"{files.shown_of(int(samples.shard_of[row]))}:{samples.names(name)[row]}"
                raise ValueError(
                    f"{where} does not hold the number {field.number[row]} that its index says: remove the index "
                    "beside the shard, or write it again"
                )


def _int_or_none(held: bytes) -> int | None:
    try:
        return int(held)
    except ValueError:
        return None
