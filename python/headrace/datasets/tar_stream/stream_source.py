"""The samples of a TarStream by their numbers: those that were read a moment ago, or are found again."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._base.safe_exceptions import message_of
from headrace._base.types import State
from headrace._storage.remote.clients.responses import NoRangesError, Stamp
from headrace._storage.remote.fetcher import Fetcher
from headrace._storage.remote.remote_files import RemoteFiles
from headrace._storage.remote.remote_object import RemoteObject
from headrace.datasets.sources.dataset import BlobDataset, checked_mode
from headrace.datasets.tar_stream.sample_number import decode_sample_number
from headrace.datasets.tar_stream.tar_parser import ShardSamples, StreamSample, Wanted

_REMEMBERED = 1 << 16  # samples; those before them are looked up in their shard again
_LOOKED_AT = 1 << 20  # bytes that are read to find a sample by its number; then four times as many
_LOOK = 512  # bytes that are asked for to learn a stamp
KEY = "__key__"

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StoredSample:
    """The name of a sample's image, where it is stored, and the bytes of the labels."""

    key: str
    extension: str
    offset: int
    length: int
    labels: Mapping[str, bytes]


class StreamSource(BlobDataset):
    """The samples of a stream by their numbers. Their order belongs to StreamSampler, which reads them.

    Args:
        files: the shards.
        wanted: what of each sample.
        labels: extension -> what makes a value of its bytes; None: the sample's key.
        alone: whether the label is the one value, not a dict.
        transform, target_transform, mode, upright: as in TarStream.
    """

    def __init__(
        self,
        files: RemoteFiles,
        wanted: Wanted,
        labels: Mapping[str, Callable[[bytes], object] | None],
        alone: bool,
        transform: Callable[[Any], object] | None,
        target_transform: Callable[[Any], object] | None,
        mode: str,
        upright: bool,
    ) -> None:
        super().__init__(None, transform, target_transform if labels else None)
        self.files = files
        self.wanted = wanted
        self.stamps: dict[int, Stamp] = {}
        self._mode, self._upright = checked_mode(mode), upright
        self._decoders, self._alone = labels, alone
        self._found: OrderedDict[int, StoredSample] = OrderedDict()
        self._last: tuple[int, core.SharedBytes] | None = None  # the image that was handed over last
        self._objects: tuple[Fetcher, dict[int, RemoteObject]] | None = None
        if labels:
            self._labels = _Labels(self)
            self.target_transform = target_transform

    def __len__(self) -> int:
        return sys.maxsize  # above every number; how many there are is not known

    @property
    def mode(self) -> str:
        return self._mode

    @property
    def upright(self) -> bool:
        return self._upright

    @property
    def ahead_bytes(self) -> int:
        return 1  # the sampler reads ahead: what it names is here

    def expect(self, indices: Int64s, wait: bool = False) -> int:
        return len(indices)

    def remember(self, sample: StreamSample) -> None:
        """Keeps what a sampler has read until it is delivered."""
        fetcher = self._fetcher
        one = self._object_of_shard(fetcher, decode_sample_number(sample.number).shard)
        fetcher.store.put(one.number, sample.offset, len(sample.data), 0, sample.data)
        self._last = sample.number, sample.data
        self._remember_location(sample)

    def _remember_location(self, sample: StreamSample) -> StoredSample:
        found = StoredSample(sample.key, sample.extension, sample.offset, len(sample.data), sample.labels)
        self._found[sample.number] = found
        if len(self._found) > _REMEMBERED:
            self._found.popitem(last=False)
        return found

    def find_sample(self, number: int) -> StoredSample:
        """Returns where a sample's image is, from its shard if it was read long ago. Raises OSError, ValueError."""
        known = self._found.get(number)
        return self._remember_location(self.looked_up(number)) if known is None else known

    def looked_up(self, number: int) -> StreamSample:
        """Reads a sample from its shard. Raises OSError, and IndexError if there is none of this number."""
        position = decode_sample_number(number)
        if not 0 <= position.shard < len(self.files.urls):
            raise IndexError(f"no sample of the stream has the number {number}")
        stamp, length = self.stamp(position.shard), _LOOKED_AT
        shown = self.files.shown_of(position.shard)
        shard = ShardSamples(self.wanted, shown, position.turn, position.shard, position.begin, stamp.size)
        at, sample = position.begin, None
        while sample is None and not shard.ended and at < stamp.size:
            end = min(at + length, stamp.size)
            shard.append(self._read(position.shard, at, end), stamp.size)
            at, length, sample = end, 4 * length, shard.next()
        if sample is None or sample.number != number:
            raise IndexError(f"{shown}: no sample begins at byte {position.begin}")
        return sample

    def stamp(self, shard: int) -> Stamp:
        """Returns the stamp of a shard, which is requested once."""
        if shard not in self.stamps:
            fetcher, files = self._fetcher, self.files
            first = fetcher.wait(fetcher.first(files.urls[shard], files.options, _LOOK))
            if first.body is not None:
                fetcher.later(first.body.close)
            self.stamps[shard] = first.stamp
        return self.stamps[shard]

    def _read(self, shard: int, begin: int, end: int) -> bytes:
        if begin == end:
            return b""
        return self._fetcher.wait(self.read_ranges(shard, [(begin, end)]))[0]

    async def read_ranges(self, shard: int, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Returns ranges (begin, end) of a shard whose stamp is known; in one request from its front, where the server
        reads no ranges. Raises OSError."""
        fetcher, files, stamp = self._fetcher, self.files, self.stamps[shard]
        url = files.urls[shard]

        async def read(span: tuple[int, int]) -> bytes:
            return await fetcher.read(url, files.options, *span, stamp)

        try:
            first = await read(ranges[0])  # alone: a server without ranges would send the others in vain
        except NoRangesError:
            order = sorted(range(len(ranges)), key=lambda i: ranges[i])
            found = await fetcher.no_range_reader(url, files.options, stamp).read_ranges([ranges[i] for i in order])
            by_position = dict(zip(order, found, strict=True))
            return [by_position[i] for i in range(len(ranges))]
        files.note_ranges(shard)
        return [first, *await asyncio.gather(*map(read, ranges[1:]))]

    @property
    def _fetcher(self) -> Fetcher:
        return self.files.fetcher

    def _object_of_shard(self, fetcher: Fetcher, shard: int) -> RemoteObject:
        """Returns a shard as this process's fetcher knows it."""
        files = self.files
        if self._objects is None or self._objects[0] is not fetcher:
            self._objects = fetcher, {}
        known = self._objects[1]
        if shard not in known:
            more = {"lead": files.lead, "check": files.check, "tar": files.tar, "from_front": True}
            known[shard] = fetcher.find_object(files.urls[shard], files.options, self.stamp(shard), files.owner, **more)
        return known[shard]

    def read(self, index: int) -> bytes:
        found, last = self.find_sample(index), self._last
        if last is not None and last[0] == index:
            return bytes(last[1])
        return self._read(decode_sample_number(index).shard, found.offset, found.offset + found.length)

    def table(self, indices: Int64s) -> core.BlobTable:
        """Returns the native table of a batch, whose rows are the samples' numbers."""
        numbers = indices.tolist()
        found = [self.find_sample(number) for number in numbers]
        fetcher = self._fetcher
        objects = [self._object_of_shard(fetcher, decode_sample_number(number).shard).number for number in numbers]
        columns = (objects, [one.offset for one in found], [one.length for one in found])
        return core.chosen_ranges(
            fetcher.store,
            np.ascontiguousarray(indices, np.int64),
            *(np.array(column, np.uint64) for column in columns),
        )

    def blob_table(self) -> StreamTable:  # type: ignore[override]
        return StreamTable(self)

    def label(self, number: int) -> object:
        """Returns a sample's label, decoded. Raises ValueError; the message names the member."""
        found = self.find_sample(number)
        values: dict[str, object] = {}
        for name, decode in self._decoders.items():
            if decode is None:
                values[name] = found.key
                continue
            try:
                values[name] = decode(found.labels[name])
            except Exception as error:
                where = f"{self.files.shown_of(decode_sample_number(number).shard)}:{found.key}.{name}"
                raise ValueError(f"{where} cannot be decoded: {message_of(error)}") from error
        return next(iter(values.values())) if self._alone else values

    def location(self, index: int) -> str:
        position = decode_sample_number(index)
        known = self._found.get(index)
        name = f"the sample at byte {position.begin}" if known is None else f"{known.key}.{known.extension}"
        return f"{self.files.shown_of(position.shard)}:{name}"

    def fingerprint(self) -> str:
        shards = [PurePosixPath(shown).name for shown in self.files.shown]
        what = (shards, self.wanted, list(self._decoders), self._alone, self._mode, self._upright)
        return hashlib.sha256(repr(what).encode(errors="surrogateescape")).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.files.urls)} shards)"

    def __getstate__(self) -> State:
        return {**vars(self), "_found": OrderedDict(), "_objects": None, "_last": None}


class StreamTable:
    """Makes the native table of each batch of a stream: there is none of all samples.

    Args:
        points: what is known of the rows of JPEGs; None: nothing, and nothing is learned.
    """

    def __init__(self, source: StreamSource, points: core.EntryPoints | None = None) -> None:
        self._source, self._points = source, points

    def __len__(self) -> int:
        return len(self._source)

    def table_of(self, indices: Int64s) -> core.BlobTable:
        """Returns the table of a batch."""
        table = self._source.table(indices)
        return table if self._points is None else table.entered_by(self._points)

    def entered_by(self, points: core.EntryPoints) -> StreamTable:
        """Returns the same with what is known of the rows of JPEGs."""
        return StreamTable(self._source, points)


class _Labels(Sequence[object]):
    def __init__(self, source: StreamSource) -> None:
        self._source = source

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: Any) -> Any:
        return self._source.label(index)
