"""The objects of a dataset, as its sources see them: a table for the native core, bytes for Python, announcements."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._base.types import State
from headrace._storage.remote.cache import Cache, checked_cache
from headrace._storage.remote.clients.client_choice import check_installed
from headrace._storage.remote.clients.responses import UNKNOWN_SIZE, NoRangesError, Stamp, is_strong
from headrace._storage.remote.fetcher import Fetcher, given_up
from headrace._storage.remote.fetcher_registry import fetcher_of
from headrace._storage.remote.network import Network
from headrace._storage.remote.remote_object import Range, RemoteObject
from headrace._storage.remote.urls import is_url, protocol_of_url, redact_url

Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]
UInt64s = npt.NDArray[np.uint64]

_STEP_S = 0.002
_PIECE = 8 << 20  # bytes of a request
_GUESS = 128 << 10  # bytes of an object whose size is not known


@dataclass(frozen=True)
class Access:
    """The arguments of a dataset about other machines, as they were given: `cache`, `storage_options` and `network` of
    `ImageFiles`."""

    cache: Cache | str | os.PathLike[str] | None = None
    options: Mapping[str, object] | None = None
    network: Network | None = None

    def choose_access(self, path: object) -> Access | None:
        """Returns the access to a URL; None: `path` is a file or a folder of this machine. Raises ValueError if an
        argument of URLs is given for that."""
        if is_url(path):
            return self
        self.check_local("this is a local path")
        return None

    def check_local(self, what: str) -> None:
        """Raises ValueError if an argument of URLs is given. `what`: says which paths are of this machine."""
        if self.options is not None or self.network is not None:
            raise ValueError(f"storage_options and network are for URLs, and {what}")

    def files(self, urls: Sequence[str]) -> RemoteFiles:
        """Opens the URLs and fetches size and ETag; a later change raises OSError. Raises OSError."""
        files = RemoteFiles(urls, self)
        files.take_stamps()
        return files


class RemoteFiles:
    """Objects in other machines. Can be pickled; a copy in another process has connections of its own.

    Args:
        urls: of the objects.
        access: what the user says about them.
        lead, check, tar: see RemoteObject.

    Attributes:
        options: what fsspec's file system takes, credentials among them.
        cache: where bytes stay.
        network: limits.
        owner: distinguishes these objects from the same ones of other datasets; see Fetcher.known.

    Raises:
        ImportError: fsspec, or the package of a protocol, is missing.
        TypeError, ValueError: the access has no such cache.
    """

    def __init__(
        self,
        urls: Sequence[str],
        access: Access,
        *,
        lead: int = 0,
        check: Callable[[bytes, int], str] | None = None,
        tar: bool = False,
    ) -> None:
        self.urls = urls
        self.access = access
        self.cache: Cache | None = checked_cache(access.cache)
        self.network: Network = access.network or Network()
        for url in {protocol_of_url(url): url for url in urls}.values():
            check_installed(url)
        self.options: dict[str, object] = dict(access.options or {})
        self.lead = lead
        self.check = check
        self.tar = tar
        self.stamps: list[Stamp] | None = None
        self._single: dict[int, Stamp] = {}  # stamps of objects that were requested one by one
        self._ranged: set[int] = set()
        self._looked: dict[int, Stamp] = {}  # stamps that came with an answer, for the next request of them
        self.owner: object = object()
        self._numbers: tuple[Fetcher, UInt64s, list[bytes]] | None = None

    @property
    def fetcher(self) -> Fetcher:
        return fetcher_of(self.network, self.cache)

    @property
    def shown(self) -> list[str]:
        """The URLs without what may hold credentials."""
        return [redact_url(url) for url in self.urls]

    def shown_of(self, number: int) -> str:
        """The URL of an object, as in `shown`."""
        return redact_url(self.urls[number])

    def reads_ranges(self, number: int) -> bool:
        """Whether ranges of an object are known to be read."""
        return number in self._ranged or protocol_of_url(self.urls[number]) not in ("http", "https")

    def check_ranges(self, length: int) -> None:
        """Asks for the first bytes of the first object, to see whether ranges of it are read.

        Raises:
            OSError: they are not, or it cannot be read.
        """
        if not self.urls or self.reads_ranges(0):
            return
        first = self.fetcher.wait(self.fetcher.first(self.urls[0], self.options, length))
        if first.body is not None:
            self.fetcher.later(first.body.close)
            if first.stamp.size > length:  # the answer about a small object may be all of it
                raise NoRangesError(where=self.shown_of(0))
        else:
            self._looked[0] = first.stamp

    def note_ranges(self, number: int) -> None:
        """Notes that ranges of an object are read."""
        self._ranged.add(number)

    def take_stamps(self, known: Mapping[int, Stamp] | None = None) -> list[Stamp]:
        """Requests the stamp of each object; from now on other content is an error. Raises OSError.

        Args:
            known: stamps of objects, by their numbers, that are not requested.
        """
        self._numbers, known = None, known or {}
        found = {**known, **self.ask_stamps([number for number in range(len(self.urls)) if number not in known])}
        self.stamps = [found[number] for number in range(len(self.urls))]
        return self.stamps

    def ask_stamps(self, numbers: Sequence[int]) -> dict[int, Stamp]:
        """Returns the stamps of objects, by their numbers. Raises OSError."""
        looked, self._looked = self._looked, {}
        unknown = [number for number in numbers if number not in looked]
        asked = self.fetcher.wait(self.fetcher.stamps([self.urls[one] for one in unknown], self.options))
        found = {**looked, **dict(zip(unknown, asked, strict=True))}
        return {number: found[number] for number in numbers}

    def stamp_of(self, number: int, is_over: Callable[[], bool] = bool) -> Stamp:
        """Returns the stamp of an object, which is requested once; from then on other content is an error.

        Args:
            is_over: see Fetcher.wait.

        Raises:
            OSError: it cannot be had, or the server does not say the object's size.
        """
        if self.stamps is not None:
            found = self.stamps[number]
        else:
            if number not in self._single:
                work = self.fetcher.stamp(self.urls[number], self.options)
                self._single[number] = self.fetcher.wait(work, is_over)
            found = self._single[number]
        if found.size == UNKNOWN_SIZE:
            raise OSError(
                errno.EIO,
                f"{self.shown_of(number)}: the server does not say the object's size, which reading parts of it needs: "
                "copy it to a disk, or to a server that says it",
            )
        return found

    def owner_of(self, stamp: Stamp) -> object:
        """Returns what tells an object from one of another dataset with the same URL and stamp; None: nothing does."""
        return None if is_strong(stamp) else self.owner

    def take(self, number: int, spans: Sequence[tuple[int, int]], is_over: Callable[[], bool] = bool) -> list[bytes]:
        """Returns spans (offset, length) of an object, from the caches, or fetched at the same time.

        Args:
            is_over: see Fetcher.wait.

        Raises:
            OSError: they cannot be had, or `is_over`.
        """
        each = max(1, min(_PIECE, self.network.ahead_bytes))
        most = max(1, self.network.ahead_bytes // (4 * each))  # what other threads fetch must have room in the store
        pieces = [
            (at, min(each, begin + count - at)) for begin, count in spans for at in range(begin, begin + count, each)
        ]
        groups = [pieces[first : first + most] for first in range(0, len(pieces), most)]
        made = iter([data for group in groups for data in self._take_pieces(number, group, is_over)])
        return [b"".join(next(made) for _ in range(0, count, each)) for _, count in spans]

    def _take_pieces(self, number: int, pieces: Sequence[tuple[int, int]], is_over: Callable[[], bool]) -> list[bytes]:
        fetcher = self.fetcher
        known = fetcher.find_object(self.urls[number], self.options, self.stamp_of(number), self.owner)
        offsets, lengths = (np.array(column, np.uint64) for column in zip(*pieces, strict=True))
        numbers, cached = np.array([known.number], np.uint64), [os.fsencode(known.cached)]
        ranges = core.RemoteRanges(fetcher.store, numbers, cached, np.zeros(len(pieces), np.uint32), offsets, lengths)
        waiting, held = np.arange(len(pieces), dtype=np.int64), [b""] * len(pieces)
        while len(waiting):
            wanted = ranges.want(waiting)  # again, where the store has dropped one for others
            if len(wanted):
                places = np.full(len(wanted), known.number, np.uint64), offsets[wanted], lengths[wanted]
                fetcher.announce(*places, np.zeros(len(wanted), np.uint64))
            if not all(map(ranges.has, waiting.tolist())):
                time.sleep(_STEP_S)  # here: the look after it sees a failure, which `want` would end
            here = [row for row in waiting.tolist() if ranges.has(row)]
            for row in here:  # at once: a read of what the store dropped meanwhile would wait whatever `is_over` says
                held[row] = ranges.take(row)
            waiting = np.setdiff1d(waiting, here)
            if is_over():
                raise given_up(self.shown_of(number))
        return held

    def check_place(
        self, number: int, offset: int, length: int, mark: int = 0, is_over: Callable[[], bool] = bool
    ) -> None:
        """Raises OSError if a range is not what its index says, by the bytes before it. `is_over`: see Fetcher.wait."""
        if self.check is not None:
            begin, stamp = max(0, offset - self.lead), self.stamp_of(number)
            work = self.fetcher.read(self.urls[number], self.options, begin, offset, stamp)
            data = self.fetcher.wait(work, is_over)
            self._raise_wrong(number, offset, self.check(data, length))
            if self.tar and mark:
                one = RemoteObject(0, self.urls[number], self.options, stamp)
                named = self.fetcher.not_named(one, Range(0, offset, length, mark), data)
                self._raise_wrong(number, offset, self.fetcher.wait(named, is_over))

    def _raise_wrong(self, number: int, offset: int, wrong: str) -> None:
        if wrong:
            raise OSError(errno.EIO, f"{self.shown_of(number)}: {wrong} (offset {offset})")

    def object_numbers(self) -> tuple[UInt64s, list[bytes]]:
        """Returns the number of each object in this process's fetcher, and the beginning of its entries on disk."""
        fetcher = self.fetcher
        if self._numbers is None or self._numbers[0] is not fetcher:
            if self.stamps is None:
                first = fetcher.reserve(len(self.urls), self._make_unknown_object)
                self._first = first
                made = np.arange(first, first + len(self.urls), dtype=np.uint64), [b""] * len(self.urls)
            else:
                more = {"lead": self.lead, "check": self.check, "tar": self.tar}
                pairs = zip(self.urls, self.stamps, strict=True)
                known = [fetcher.find_object(url, self.options, stamp, self.owner, **more) for url, stamp in pairs]
                made = np.array([one.number for one in known], np.uint64), [os.fsencode(one.cached) for one in known]
            self._numbers = fetcher, *made
        return self._numbers[1:]

    def _make_unknown_object(self, number: int) -> RemoteObject:
        return RemoteObject(number, self.urls[number - self._first], self.options)

    def read(self, number: int, offset: int, length: int | None, mark: int = 0) -> bytes:
        """Returns a range of an object, or all of it, without any cache. `mark`: see Range. Raises OSError."""
        return self.fetcher.wait(self._range(number, offset, length, mark))

    def read_all(self, places: Sequence[tuple[int, int, int]]) -> list[bytes]:
        """Returns ranges (object, offset, length), read at the same time. Raises OSError."""

        async def ranges() -> list[bytes]:
            return list(await asyncio.gather(*(self._range(*place) for place in places)))

        return self.fetcher.wait(ranges())

    async def _range(self, number: int, offset: int, length: int | None, mark: int = 0) -> bytes:
        end = None if length is None else offset + length
        if end == offset:
            return b""
        stamp = None if self.stamps is None else self.stamps[number]
        if length is None or self.check is None or stamp is None:
            return await self.fetcher.read(self.urls[number], self.options, offset, end, stamp)
        begin = max(0, offset - self.lead)
        data = await self.fetcher.read(self.urls[number], self.options, begin, end, stamp)
        lead = data[: offset - begin]
        wrong = self.check(lead, length)
        if not wrong and self.tar and mark:
            one = RemoteObject(0, self.urls[number], self.options, stamp)
            wrong = await self.fetcher.not_named(one, Range(0, offset, length, mark), lead)
        self._raise_wrong(number, offset, wrong)
        return data[offset - begin :]

    def table(
        self, object_of: UInt32s, offsets: UInt64s, lengths: UInt64s, marks: UInt64s | None = None
    ) -> RemoteTable:
        """Returns the table of samples that are ranges of the objects. `marks`: see RemoteTable."""
        return RemoteTable(self, object_of, offsets, lengths, marks)

    def __getstate__(self) -> State:
        return {**vars(self), "_numbers": None, "owner": None}

    def __setstate__(self, state: State) -> None:
        self.__dict__.update(state, owner=object())


class RemoteTable:
    """Ranges of objects, in the order of the samples.

    Args:
        files: the objects.
        object_of: number of each sample's object, uint32 (n,).
        offsets, lengths: uint64 (n,); a length of ANY_LENGTH: the whole object.
        marks: of the names of tar members, uint64 (n,), which are compared when they are fetched; None: nothing is.
    """

    def __init__(
        self, files: RemoteFiles, object_of: UInt32s, offsets: UInt64s, lengths: UInt64s, marks: UInt64s | None = None
    ) -> None:
        self._files = files
        self._object_of, self._offsets, self._lengths = object_of, offsets, lengths
        self._marks = marks
        self._made: tuple[Fetcher, core.RemoteRanges] | None = None

    def _ranges(self) -> core.RemoteRanges:
        """Returns the native table, made for the fetcher of this process."""
        fetcher = self._files.fetcher
        if self._made is None or self._made[0] is not fetcher:
            numbers, cached = self._files.object_numbers()
            places = self._object_of, self._offsets, self._lengths
            table = core.RemoteRanges(fetcher.store, numbers, cached, *places, self._marks)
            self._made = fetcher, table
        return self._made[1]

    def blobs(self) -> core.BlobTable:
        return self._ranges().table()

    def expect(self, rows: Int64s, wait: bool = False) -> int:
        """Begins to fetch samples; returns their bytes, those that are here already included.

        Args:
            wait: whether to return only once a read of them does not wait. Can be interrupted, unlike native reads.
        """
        ranges = self._ranges()
        wanted = ranges.want(np.ascontiguousarray(rows, np.int64))
        if len(wanted):
            numbers = self._files.object_numbers()[0][self._object_of[wanted]]
            marks = np.zeros(len(wanted), np.uint64) if self._marks is None else self._marks[wanted]
            self._files.fetcher.announce(numbers, self._offsets[wanted], self._lengths[wanted], marks)
        if wait:
            for row in rows.tolist():
                while not ranges.has(row):
                    time.sleep(_STEP_S)
        lengths = self._lengths[rows]
        known = lengths != np.uint64(core.ANY_LENGTH)
        return int(lengths[known].sum()) + _GUESS * int((~known).sum())

    def take(self, row: int) -> bytes:
        """Returns a sample's bytes, from the caches or fetched. Raises OSError."""
        return self._ranges().take(row)

    def __getstate__(self) -> State:
        return {**vars(self), "_made": None}
