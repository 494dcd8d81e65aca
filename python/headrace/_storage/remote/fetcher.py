"""The thread that reads objects: ranges that are announced, in order, and ranges that workers wait for, first."""

from __future__ import annotations

import asyncio
import bisect
import errno
import os
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as futures_wait
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from headrace._base.messages import printable
from headrace._base.native import core
from headrace._base.safe_exceptions import is_instance, message_of, named_message_of
from headrace._storage.remote.cache import Cache
from headrace._storage.remote.clients.client_choice import Client, open_client
from headrace._storage.remote.clients.responses import (
    Beginning,
    Body,
    NoRangesError,
    Stamp,
    TemporaryError,
    is_strong,
)
from headrace._storage.remote.disk_cache import DiskCache
from headrace._storage.remote.network import Network
from headrace._storage.remote.no_range_reader import NoRangeReader
from headrace._storage.remote.plain_http import PlainHttp
from headrace._storage.remote.remote_object import Range, RemoteObject, columns_of, join_ranges
from headrace._storage.remote.retries import Attempts
from headrace._storage.remote.urls import host_of_url, protocol_of_url, redact_url

T = TypeVar("T")

UInt64s = npt.NDArray[np.uint64]

_SMALL = 1 << 20  # bytes; requests up to this size take about the same time
_ASKED_S = 0.05  # after which one who waits is asked whether that is over
_CLOSING_S = 1.0  # patience at the end of the process
_CANCELLATIONS = 5  # of a task, in half of that time
_OFFERED_S = 1200.0  # after which a URL that expires is requested again
_HEADERS = 32 << 10  # bytes before a tar member in which its headers are looked for
_WRITERS = 2  # threads that write to the cache on disk


def given_up(name: str = "") -> OSError:
    """The error of a read that is no longer needed. `name`: of what was read."""
    why = "the read was given up, because its result is no longer needed"
    return OSError(errno.ECANCELED, f"{name}: {why}" if name else why)


class Fetcher:
    """Owns an event loop in a thread, the connections, and the bytes that arrived. Any thread may call it.

    Args:
        network: limits.
        cache: where bytes stay after they were read.
    """

    def __init__(self, network: Network, cache: Cache | None) -> None:
        self.network = network
        keep = int(cache.memory) if cache is not None else 0
        self.store: core.ByteStore = core.ByteStore(4 * network.ahead_bytes, keep)
        size = None if cache is None else cache.size
        on_disk = cache is not None and cache.path is not None
        assert size is None or isinstance(size, int)
        self.disk: DiskCache | None = DiskCache(str(cache.path), size) if on_disk and cache is not None else None
        self._bytes_read = 0
        self._lock = threading.Lock()
        self._next = 1
        self._reserved: list[tuple[int, Callable[[int], RemoteObject]]] = []
        self._known: dict[tuple[object, ...], RemoteObject] = {}
        self._objects: dict[int, RemoteObject] = {}
        self._clients: dict[tuple[str, str], Client] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        self._writers = ThreadPoolExecutor(_WRITERS, "headrace cache")
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._plain = PlainHttp(self.store, network, self._loop, self._fetch_again)
        self.attempts: Attempts = Attempts(network, self._plain.pause)
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run_loop, name="headrace fetcher", daemon=True)
        self._thread.start()
        self._begun.wait()
        if self.disk is not None:
            self._writers.submit(self.disk.tidy)

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._ahead = asyncio.Semaphore(self.network.requests)
        self._urgent = asyncio.Semaphore(self.network.requests)
        self._loop.add_reader(self.store.demand_descriptor, self._fetch_demands)
        self._loop.call_soon(self._begun.set)
        while not self._loop.is_closed():
            with suppress(SystemExit, KeyboardInterrupt):  # of a file system's code, whose caller has got it, too
                self._loop.run_forever()
                self._loop.close()

    def reserve(self, count: int, make: Callable[[int], RemoteObject]) -> int:
        """Returns the first number of `count` new objects, which `make` makes of their numbers when they are needed."""
        with self._lock:
            first = self._next
            self._next += count
            self._reserved.append((first, make))
        return first

    def find_object(
        self, url: str, options: Mapping[str, object], stamp: Stamp, owner: object, **more: Any
    ) -> RemoteObject:
        """Returns the object of a stamp.

        Args:
            owner: who requests it. All owners share an object with a strong stamp; of others each has its own.
            more: the other attributes of RemoteObject.
        """
        of_one_kind = None if is_strong(stamp) else owner
        key = (url, repr(sorted(options.items())), stamp, more.get("lead"), more.get("from_front"), of_one_kind)
        with self._lock:
            if key not in self._known:
                made = RemoteObject(self._next, url, options, stamp, **more)
                self._next += 1
                if self.disk is not None:
                    made.cached = self.disk.beginning(url, options, stamp)
                self._known[key] = self._objects[made.number] = made
            return self._known[key]

    def _object_of(self, number: int) -> RemoteObject:
        """Returns an object by its number. Called in the loop."""
        if number not in self._objects:
            with self._lock:
                at = bisect.bisect_right(self._reserved, number, key=lambda one: one[0]) - 1
                make = self._reserved[at][1]
            self._objects[number] = make(number)
        return self._objects[number]

    def counts(self) -> Counter[str]:
        """Returns requests, retries, hedged, failed, and bytes, of both ways."""
        plain = self._plain.counts()
        made = Counter(self.attempts.counts)
        made.update({"requests": plain.get("requests", 0), "hedged": plain.get("late", 0)})
        made["bytes"] += self._bytes_read + plain.get("bytes", 0)
        return made

    def announce(self, objects: UInt64s, offsets: UInt64s, lengths: UInt64s, marks: UInt64s) -> None:
        """Begins to fetch ranges, which must be wanted in the store, in this order. Does not wait."""
        others = self._plain.fetch(objects, offsets, lengths, marks)
        if others:
            columns = (column[others].tolist() for column in (objects, offsets, lengths, marks))
            ranges = [Range(*one) for one in zip(*columns, strict=True)]
            self._loop.call_soon_threadsafe(self._spawn_fetches, ranges, False)

    def ask(self, one: Range) -> None:
        """Begins to fetch a range that is to be taken out of the store, unless it is here or on its way."""
        if self.store.want(*one):
            self.announce(*columns_of([one]))

    def wait(self, work: Coroutine[object, object, T], is_over: Callable[[], bool] | None = None) -> T:
        """Runs a coroutine in the loop and returns its result.

        Args:
            is_over: whether the result is no longer needed. It is called now and then; once it is true, the coroutine
                is cancelled, and OSError raised.
        """
        if self._closed:
            work.close()
            raise OSError("the connections of this process are closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            while is_over is not None and not future.done():
                futures_wait([future], _ASKED_S)
                if is_over():
                    raise given_up()
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def spawn(self, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        """Runs a coroutine until its end, or that of the fetcher. Called in the loop."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def later(self, call: Callable[[], object]) -> None:
        """Calls a function in the loop, if that still runs. Does not wait."""
        if not self._closed:
            self._loop.call_soon_threadsafe(call)

    async def stamps(self, urls: Iterable[str], options: Mapping[str, object]) -> list[Stamp]:
        """Returns the stamp of each object."""
        return list(await asyncio.gather(*(self.stamp(url, options) for url in urls)))

    async def stamp(self, url: str, options: Mapping[str, object]) -> Stamp:
        """Returns the stamp of an object."""
        return await self.attempts.run(url, lambda: self.client(url, options).stamp(url), self._urgent)

    async def first(self, url: str, options: Mapping[str, object], length: int) -> Beginning:
        """Returns the first bytes of an object, and its stamp, with one request where the protocol has both in one."""
        made = await self.attempts.run(url, lambda: self.client(url, options).read_beginning(url, length), self._urgent)
        self._bytes_read += len(made.data)
        return made

    def no_range_reader(
        self, url: str, options: Mapping[str, object], stamp: Stamp | None, begun: Body | None = None
    ) -> NoRangeReader:
        """Returns a reader of an object whose server reads no ranges. `begun`: the object, as it arrives already."""
        return NoRangeReader(self.attempts, self._urgent, self.client(url, options).whole, url, stamp, begun)

    async def read(
        self, url: str, options: Mapping[str, object], begin: int, end: int | None, stamp: Stamp | None
    ) -> bytes:
        """Returns bytes of an object, without any cache."""
        small = end is not None and end - begin <= _SMALL
        call = lambda: self.client(url, options).read(url, begin, end, stamp)  # noqa: E731
        data, _ = await self.attempts.run(url, call, self._urgent, small=small)
        self._bytes_read += len(data)
        return data

    def client(self, url: str, options: Mapping[str, object]) -> Client:
        """Returns the way to a URL. Called in the loop."""
        key = (
            host_of_url(url) if protocol_of_url(url) in ("http", "https") else protocol_of_url(url),
            repr(sorted(options.items())),
        )
        if key not in self._clients:
            self._clients[key] = open_client(url, options, 2 * self.network.requests)
        return self._clients[key]

    def _fetch_demands(self) -> None:
        demands = self.store.take_demands()
        others = self._plain.fetch(*columns_of(demands), urgent=True)
        self._spawn_fetches([Range(*demands[one]) for one in others], True)

    def _fetch_again(self, ranges: list[tuple[int, int, int, int]], urgent: bool, failed: Exception | None) -> None:
        self._spawn_fetches([Range(*one) for one in ranges], urgent, failed, returned=True)

    def _spawn_fetches(
        self, ranges: list[Range], urgent: bool, failed: Exception | None = None, *, returned: bool = False
    ) -> None:
        for group in join_ranges(ranges):
            self.spawn(self._fetch(group, self._urgent if urgent else self._ahead, failed, returned=returned))

    async def _fetch(
        self, group: list[Range], gate: asyncio.Semaphore, failed: Exception | None, *, returned: bool
    ) -> None:
        """Fetches ranges of one object with one request. Each is put, or fails: a worker may wait for it.

        Args:
            failed: what came of a first request.
            returned: whether the native reader had them.
        """
        where = f"object {group[0].object}"
        try:
            one = self._object_of(group[0].object)
            where = redact_url(one.url)
            if not returned:
                group = await self._fetch_natively_if_possible(one, group, gate is self._urgent)
            if not group:
                return
            if group[0].length == core.ANY_LENGTH:
                await self._fetch_whole(one, group[0], gate)
            else:
                await self._fetch_ranges(one, group, gate, failed)
        except OSError as error:
            number = error.errno if type(error.errno) is int else 0
            said = error.strerror if number and type(error.strerror) is str else message_of(error)
            self._fail(group, printable(said), number)
        except BaseException as error:  # a defect, or the end of the loop
            self._fail(group, printable(f"{where}: {named_message_of(error)}"), 0)
            if is_instance(error, asyncio.CancelledError):
                raise

    async def _fetch_natively_if_possible(self, one: RemoteObject, group: list[Range], urgent: bool) -> list[Range]:
        """Hands ranges to the native reader, which may not have known their object before, and returns the others."""
        if one.stamp is None or one.cached:
            return group
        if one.asked is None or self._loop.time() >= one.asked[1]:
            one.asked = self._loop.create_task(self._offer_to_native(one, one.stamp)), self._loop.time() + _OFFERED_S
        await asyncio.shield(one.asked[0])
        others = self._plain.fetch(*columns_of(group), urgent=urgent)
        return [group[i] for i in others]

    async def _offer_to_native(self, one: RemoteObject, stamp: Stamp) -> None:
        """Registers an object with the native reader, if there is a URL for it."""
        with suppress(OSError, TemporaryError):  # the client says it again when it reads
            way = await self.client(one.url, one.options).plain_url(one.url)
            if way is not None:
                self._plain.add(one.number, way, stamp, lead=one.lead, tar=one.tar)

    def _fail(self, group: list[Range], reason: str, code: int) -> None:
        for key in group:
            self.store.fail(*key, reason, code)

    async def _fetch_ranges(
        self, one: RemoteObject, group: list[Range], gate: asyncio.Semaphore, failed: Exception | None
    ) -> None:
        begin = max(0, group[0].offset - one.lead)
        end = max(key.offset + key.length for key in group)
        if begin == end:
            data: bytes = b""
        else:
            call = lambda: self.client(one.url, one.options).read(one.url, begin, end, one.stamp)  # noqa: E731
            try:
                data, found = await self.attempts.run(one.url, call, gate, small=end - begin <= _SMALL, failed=failed)
                one.stamp = one.stamp if one.stamp is not None and one.stamp.tag else found
            except NoRangesError:
                if not one.from_front:
                    raise
                reader = self.no_range_reader(one.url, one.options, one.stamp)
                (data,) = await reader.read_ranges([(begin, end)])
        self._bytes_read += len(data)
        view = memoryview(data)
        for key in group:
            at = key.offset - begin
            lead = data[max(0, at - one.lead) : at]
            if wrong := one.check(lead, key.length) if one.check is not None else "":
                self.store.fail(*key, f"{redact_url(one.url)}: {wrong} (offset {key.offset})", 0)
                continue
            if one.tar and key.mark and (wrong := await self.not_named(one, key, lead)):
                self.store.fail(*key, f"{redact_url(one.url)}: {wrong} (offset {key.offset})", 0)
                continue
            self._store_data(one, key, view[at : at + key.length])

    async def not_named(self, one: RemoteObject, key: Range, lead: bytes) -> str:
        """Returns what is wrong with the name of a tar member, of whose headers `lead` is the last; "": nothing."""
        assert one.stamp is not None
        size = one.stamp.size
        if core.is_marked_member(lead, key.offset - len(lead), size, *key[1:]):
            return ""
        begin = max(0, key.offset - _HEADERS)  # headers that lengthen a name, although its own has room for it
        data = await self.read(one.url, one.options, begin, key.offset, one.stamp)
        if core.is_marked_member(data, begin, size, *key[1:]):
            return ""
        return "the index does not fit the shard: a member of another name is there; remove the index beside the shard"

    async def _fetch_whole(self, one: RemoteObject, key: Range, gate: asyncio.Semaphore) -> None:
        client = self.client(one.url, one.options)
        if self.disk is not None and not one.cached:
            one.stamp = await self.attempts.run(one.url, lambda: client.stamp(one.url), gate)
            one.cached = self.disk.beginning(one.url, one.options, one.stamp)
        if one.cached and one.stamp is not None:
            path = DiskCache.entry(one.cached, key.offset, key.length)
            found = await asyncio.to_thread(core.read_cache_file, os.fsencode(path), one.stamp.size)
            if found is not None:
                self.store.put(*key, found, from_disk=True)
                return
        call = lambda: client.read(one.url, 0, None, one.stamp)  # noqa: E731
        data, stamp = await self.attempts.run(one.url, call, gate, small=False)
        one.stamp = one.stamp or stamp
        self._bytes_read += len(data)
        self._store_data(one, key, data)

    def _store_data(self, one: RemoteObject, key: Range, data: bytes | memoryview) -> None:
        self.store.put(*key, data)
        if one.cached and self.disk is not None:
            self._writers.submit(self.disk.write, DiskCache.entry(one.cached, *key[1:]), data)

    def close(self) -> None:
        """Ends the thread; those who wait for bytes get an error."""
        if self._closed:
            return
        self._closed = True
        self.store.close()
        with suppress(Exception):  # a file system that does not answer
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(_CLOSING_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSING_S)
        self._writers.shutdown(wait=False, cancel_futures=True)

    async def _end(self) -> None:
        # Cancelling once is not enough: asyncio.wait_for loses it where an answer arrives at the same moment (Python
        # below 3.12), and the next request waits for a server that says nothing.
        for _ in range(_CANCELLATIONS):
            if not self._tasks:
                break
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks, timeout=_CLOSING_S / (2 * _CANCELLATIONS))
        await self._plain.end()
        for client in self._clients.values():
            await client.close()
