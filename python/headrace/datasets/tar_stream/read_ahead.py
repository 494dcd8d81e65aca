"""The bytes of shards, one shard after the other, read ahead by large requests."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from typing import NamedTuple, TypeVar

from headrace._base.lifetimes.finalizers import Ending, call_in_finalizer_thread
from headrace._base.native import core
from headrace._storage.remote.clients.responses import (
    UNKNOWN_SIZE,
    Beginning,
    ChangedError,
    Stamp,
    check_stamp,
)
from headrace._storage.remote.fetcher import Fetcher
from headrace._storage.remote.no_range_reader import NoRangeReader
from headrace._storage.remote.remote_files import RemoteFiles
from headrace._storage.remote.remote_object import Range

_LARGEST, _SMALLEST = 8 << 20, 1 << 20  # bytes of a request
_SHARE = 8  # requests in the bytes that are read ahead
_UNKNOWN = _SMALLEST + 1  # size assumed until the first shard's size is known: no request ahead of its turn
_CLOSED = "the connections of this process are closed"
_COMING = 64  # shards whose first bytes are requested ahead of their turn
_POLL_INTERVAL_S = 0.001  # between two checks whether a range has arrived
_FIRST = 8 << 20  # bytes that are read ahead at first: the first batch waits for nothing after it

T = TypeVar("T")
_Request = asyncio.Task[Beginning] | Range | bytes


class Piece(NamedTuple):
    """Bytes of a shard.

    Attributes:
        segment: number of the segment that they are read for.
        size: of the whole shard; UNKNOWN_SIZE up to its last piece, where the server does not say it.
        begin: their offset.
    """

    segment: int
    size: int
    begin: int
    data: bytes | core.SharedBytes


class Pieces(Ending):
    """Iterator over the pieces of segments, in order. What is read ahead grows with what was taken, up to
    ``Network.ahead``.

    Args:
        files: the shards.
        stamps: of the shards that are known; others are added.
        segments: number of the segment, number of the shard, offset to begin at.
    """

    def __init__(self, files: RemoteFiles, stamps: dict[int, Stamp], segments: Iterator[tuple[int, int, int]]) -> None:
        self._fetcher = files.fetcher
        self._feed = _Feed(self._fetcher, files, stamps, segments)
        self.at_end: Callable[[], object] = call_in_finalizer_thread(self._feed.close)
        self._ended = False

    def __iter__(self) -> Pieces:
        return self

    def __next__(self) -> Piece:
        item = None if self._ended else self._fetcher.wait(self._feed.next())
        if item is None:
            self._ended = True  # asked again for each sample that leaves the buffer then
            raise StopIteration
        segment, size, begin, data = item
        return Piece(segment, size, begin, self._wait_for_range(data) if isinstance(data, Range) else data)

    def _wait_for_range(self, one: Range) -> core.SharedBytes:
        """Waits for a range, and can be interrupted. Raises OSError."""
        self._feed.awaited = one
        while (data := self._fetcher.store.take_out(*one)) is None:
            self._fetcher.ask(one)  # again, where the store had no room for it
            time.sleep(_POLL_INTERVAL_S)
        self._feed.awaited = None
        return data

    def leave(self, segment: int) -> None:
        """Drops what is left of a segment."""
        feed = self._feed
        self._fetcher.later(lambda: feed.leave(segment))

    def close(self) -> None:
        """Ends the requests. Idempotent."""
        self._feed.close()


class _Coming(NamedTuple):
    """A segment that is read soon.

    Attributes:
        segment, shard, begin: see Pieces.
        head: the request for the shard's first bytes and its stamp; None: its stamp is known, or requested in turn.
        expected: bytes that are counted for that request until it is answered.
    """

    segment: int
    shard: int
    begin: int
    head: asyncio.Task[Beginning] | None
    expected: int


class _Feed:
    """The side of Pieces that runs in the fetcher's loop."""

    def __init__(
        self,
        fetcher: Fetcher,
        files: RemoteFiles,
        stamps: dict[int, Stamp],
        segments: Iterator[tuple[int, int, int]],
    ) -> None:
        self._fetcher, self._files, self._stamps, self._segments = fetcher, files, stamps, segments
        self._most = files.network.ahead_bytes
        self._queue: asyncio.Queue[tuple[int, int, int, int, _Request] | BaseException | None] | None = None
        self._held = self._taken = 0  # bytes that are requested and not taken; taken
        self._queued = 0  # requests in the queue
        self._refused: ValueError | None = None  # why there are no more segments
        self._left = -1  # the last segment that is left
        self._usual = _UNKNOWN  # bytes of the shard before, which the next one is expected to have
        self._feeder: asyncio.Task[None] | None = None
        self._requests: set[asyncio.Task[object]] = set()
        self._asked: set[Range] = set()  # ranges in the queue
        self._ended = False
        self.awaited: Range | None = None  # by the thread that waits for the next piece

    def close(self) -> None:
        """Ends the requests soon. Any thread may call it."""
        if self.awaited is not None:
            self._fetcher.store.forget(*self.awaited)
        self._fetcher.later(self.end)

    async def next(self) -> tuple[int, int, int, bytes | Range] | None:
        """Returns (segment, size, begin, bytes) of the next piece, or the range of the store where they arrive."""
        if self._queue is None:
            self._queue, self._room = asyncio.Queue(), asyncio.Event()
            self._feeder = self._fetcher.spawn(self._run())
        while True:
            item = await self._queue.get()
            if item is None or isinstance(item, BaseException):
                self._queue.put_nowait(item)  # the next call gets it again
                if item is None:
                    return None
                raise item
            segment, size, begin, length, request = item
            self._held -= length
            self._queued -= 1
            self._taken += length
            self._room.set()
            if segment <= self._left:
                self._drop_request(request)
                continue
            if isinstance(request, Range):
                self._asked.discard(request)
                return segment, size, begin, request
            if isinstance(request, bytes):
                return segment, size, begin, request
            try:
                return segment, size, begin, (await request).data
            except asyncio.CancelledError:
                if self._ended:
                    raise OSError(_CLOSED) from None
                raise

    async def _run(self) -> None:
        assert self._queue is not None
        coming: deque[_Coming] = deque()
        try:
            while (one := self._next_coming(coming)) is not None:
                await self._feed_shard(one)
            self._queue.put_nowait(None)
        except asyncio.CancelledError:
            self._ended = True
            self._queue.put_nowait(OSError(_CLOSED))
            raise
        except BaseException as error:  # raised in the thread that takes the next piece
            self._queue.put_nowait(error)
        finally:
            for one in coming:
                if one.head is not None:
                    one.head.add_done_callback(_close_body)

    @property
    def _bytes_ahead(self) -> int:
        return min(self._most, max(_FIRST, 2 * self._taken))

    def _next_coming(self, coming: deque[_Coming]) -> _Coming | None:
        """Returns the next segment. Where shards are small, begins to read those after it: otherwise each would wait
        for the answer about the one before."""
        while self._refused is None and (not coming or self._has_room(len(coming))):
            try:
                found = next(self._segments)
            except StopIteration:
                break
            except ValueError as error:  # raised once the segments before it are read
                self._refused = error
                break
            coming.append(self._expect_shard(*found))
        if not coming and self._refused is not None:
            raise self._refused
        return coming.popleft() if coming else None

    def _has_room(self, coming: int) -> bool:
        """Whether the first bytes of one more shard after `coming` others may be requested."""
        return coming < _COMING and self._usual <= _SMALLEST and self._held + self._usual <= self._bytes_ahead

    def _expect_shard(self, segment: int, shard: int, begin: int) -> _Coming:
        if begin or (shard in self._stamps and self._files.reads_ranges(shard)):
            return _Coming(segment, shard, begin, None, 0)
        expected = min(self._usual, _SMALLEST)
        self._held += expected
        head = self._spawn(self._fetcher.first(self._files.urls[shard], self._files.options, _SMALLEST))
        return _Coming(segment, shard, begin, head, expected)

    async def _feed_shard(self, one: _Coming) -> None:
        assert self._queue is not None
        segment, shard, begin, head, expected = one
        url, first = self._files.urls[shard], None
        if head is not None:
            first = await head
            self._held += len(first.data) - expected
        elif not self._is_known(shard, begin):
            first = await self._fetcher.first(url, self._files.options, 1)
        if first is not None:
            self._check(shard, first)
            if first.body is not None:
                reader = self._fetcher.no_range_reader(url, self._files.options, first.stamp, first.body)
                await self._feed_from_front(segment, begin, first.stamp.size, reader)
                return
            self._files.note_ranges(shard)
        stamp = self._stamps[shard]
        self._usual = stamp.size
        if head is not None and first is not None:
            self._queue_piece(segment, stamp.size, 0, len(first.data), head)
            begin = len(first.data)
        number = self._fetcher.find_object(url, self._files.options, stamp, self._files.owner).number
        if head is None and begin >= stamp.size:
            self._queue_piece(segment, stamp.size, begin, 0, b"")
        while begin < stamp.size and segment > self._left:
            length = await self._room_for(stamp.size - begin)
            if segment <= self._left:
                break
            asked = Range(number, begin, length)
            self._asked.add(asked)
            self._fetcher.ask(asked)
            self._held += length
            self._queue_piece(segment, stamp.size, begin, length, asked)
            begin += length

    async def _room_for(self, left: int) -> int:
        """Waits until the next request of a shard has room, and returns its length."""
        while True:
            ahead = self._bytes_ahead
            length = min(max(_SMALLEST, min(_LARGEST, ahead // _SHARE)), left)
            # With nothing to take, nothing would make room: the bytes that are held belong to later shards.
            if not self._queued or self._held + length <= ahead:
                return length
            self._room.clear()
            await self._room.wait()

    def _is_known(self, shard: int, begin: int) -> bool:
        """Whether a shard can be read on from `begin` without a look at it."""
        stamp = self._stamps.get(shard)
        if stamp is None or stamp.size == UNKNOWN_SIZE:
            return False
        return begin >= stamp.size or self._files.reads_ranges(shard)

    def _check(self, shard: int, first: Beginning) -> None:
        """Compares a shard with its stamp, or notes that. Raises ChangedError."""
        known = self._stamps.get(shard)
        try:
            check_stamp(first.stamp, known)
        except ChangedError as error:
            if first.body is not None:
                first.body.close()
            raise ChangedError(error.what, self._files.shown_of(shard)) from None
        if known is None or known.size == UNKNOWN_SIZE:
            self._stamps[shard] = first.stamp

    async def _feed_from_front(self, segment: int, begin: int, size: int, reader: NoRangeReader) -> None:
        """Reads a shard in one request, piece by piece, as far as there is room. The last piece says how large it is,
        if that is not known."""
        ended, self._usual = False, size
        try:
            while not ended and segment > self._left:
                length = await self._room_for(size - begin)
                data = await reader.read(begin, begin + length)
                begin += len(data)
                ended = begin >= reader.size
                self._held += len(data)
                self._queue_piece(segment, begin if ended else size, begin - len(data), len(data), data)
        finally:
            reader.close()

    def _queue_piece(self, segment: int, size: int, begin: int, length: int, request: _Request) -> None:
        assert self._queue is not None
        self._queued += 1
        self._queue.put_nowait((segment, size, begin, length, request))

    def _spawn(self, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        request = self._fetcher.spawn(work)
        self._requests.add(request)
        request.add_done_callback(self._on_done)
        return request

    def _on_done(self, request: asyncio.Task[object]) -> None:
        self._requests.discard(request)
        if not request.cancelled():
            request.exception()  # read, so that asyncio does not report what is raised again, or dropped

    def _drop_request(self, request: _Request) -> None:
        if isinstance(request, Range):
            self._asked.discard(request)
            self._fetcher.store.forget(*request)
        elif not isinstance(request, bytes):
            request.cancel()

    def leave(self, segment: int) -> None:
        self._left = max(self._left, segment)

    def end(self) -> None:
        for one in self._asked:
            self._fetcher.store.forget(*one)
        for request in self._requests:
            request.cancel()
        if self._feeder is not None:
            self._feeder.cancel()


def _close_body(head: asyncio.Task[Beginning]) -> None:
    """Closes an answer whose rest will not be read."""
    if not head.cancelled() and head.exception() is None and (body := head.result().body) is not None:
        body.close()
