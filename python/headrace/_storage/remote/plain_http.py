"""Ranges of http:// objects that a native thread reads; Python opens connections, and reads what it returns."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from headrace._base.native import core
from headrace._storage.remote.clients.responses import PlainUrl, Stamp, TemporaryError, error_of
from headrace._storage.remote.network import Network

if TYPE_CHECKING:
    from yarl import URL
from headrace._storage.remote.urls import host_of_url, protocol_of_url

UInt64s = npt.NDArray[np.uint64]
# Ranges (object, offset, length, mark) to read: whether a worker waits for them, and what came of a first request.
Again = Callable[[list[tuple[int, int, int, int]], bool, Exception | None], None]


class PlainHttp:
    """Owns the native reader, which exists once an object is known that it can read. Any thread may call it.

    Args:
        again: called in the loop with ranges that must be read through the object's client.
    """

    def __init__(self, store: core.ByteStore, network: Network, loop: asyncio.AbstractEventLoop, again: Again) -> None:
        self._store, self._network, self._loop, self._again = store, network, loop, again
        self._lock = threading.Lock()
        self._reader: core.HttpReader | None = None
        self._hosts: dict[str, int] = {}  # by host(url)
        self._addresses: list[tuple[str, int]] = []  # by the host's number
        self._signed: set[int] = set()  # objects whose URLs expire
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, number: int, way: PlainUrl, stamp: Stamp, *, lead: int = 0, tar: bool = False) -> None:
        """Lets the native thread read ranges of an object, if its URL is one of plain HTTP. Called in the loop.

        Args:
            lead, tar: see RemoteObject; a `lead` that is not a tar member's header is not checked natively.
        """
        # A tag from an index or a state may hold anything: it must not end its line of the request.
        odd = not (stamp.tag.isascii() and stamp.tag.isprintable())
        if protocol_of_url(way.url) != "http" or (lead and not tar) or odd:
            return
        from yarl import URL

        parts = URL(way.url, encoded=way.is_encoded)
        if parts.user is not None or parts.password is not None or not parts.raw_host or not parts.port:
            return
        fields = [f"GET {parts.raw_path_qs} HTTP/1.1", f"Host: {_host_and_port(parts)}", "User-Agent: headrace"]
        fields += ["Accept: */*", "Accept-Encoding: identity"]
        if stamp.tag.startswith('"'):  # a weak ETag never matches
            fields.append(f"If-Match: {stamp.tag}")
        head = "".join(f"{field}\r\n" for field in fields).encode("latin-1")
        with self._lock:
            reader, where = self._start_reader(), host_of_url(way.url)
            if where not in self._hosts:
                self._hosts[where] = reader.add_host()
                self._addresses.append((parts.raw_host, parts.port))
        expires_ns = 0
        if way.lasts_s is not None:
            expires_ns = time.perf_counter_ns() + int(way.lasts_s * 1e9)
            self._signed.add(number)
        reader.add_object(number, self._hosts[where], head, stamp.size, stamp.tag, lead, tar, expires_ns)

    def _start_reader(self) -> core.HttpReader:
        if self._reader is None:
            network = self._network
            self._reader = core.HttpReader(self._store, network.requests, network.timeout, network.hedge)
            self._loop.call_soon_threadsafe(
                self._loop.add_reader, self._reader.event_descriptor, self._take_returned_ranges
            )
        return self._reader

    def fetch(
        self, objects: UInt64s, offsets: UInt64s, lengths: UInt64s, marks: UInt64s, *, urgent: bool = False
    ) -> list[int]:
        """Begins to read ranges. Returns the positions of those that it does not read."""
        if self._reader is None:
            return list(range(len(objects)))
        return self._reader.fetch(objects, offsets, lengths, marks, urgent)

    def pause(self, where: str, seconds: float) -> None:
        """Makes no request of a host, as `host(url)` names it, for `seconds`."""
        if self._reader is not None and where in self._hosts:
            self._reader.pause(self._hosts[where], seconds)

    def counts(self) -> dict[str, int]:
        """Returns requests, late ones and bytes of the native thread."""
        return {} if self._reader is None else self._reader.counts()

    def _take_returned_ranges(self) -> None:
        assert self._reader is not None
        for ranges, why, urgent, status, retry_after, reason in self._reader.returned():
            error: Exception | None = None
            if why == "failed":
                error = TemporaryError(reason)
            elif why == "refused":
                error = self._meaning_of_refusal(ranges[0][0], error_of(status, retry_after.decode("latin-1"), ""))
            self._again(ranges, urgent, error)
        for number, count in self._reader.needed():
            task = self._loop.create_task(self._connect(number, count))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _meaning_of_refusal(self, number: int, error: Exception) -> Exception | None:
        """What a refusal means. None: nothing yet, a signed URL may have expired, or not be understood."""
        if isinstance(error, TemporaryError) or number not in self._signed:
            return error
        assert self._reader is not None
        self._reader.drop_object(number)
        return None

    async def _connect(self, number: int, count: int) -> None:
        """Opens connections to a host, all at the same time."""
        assert self._reader is not None
        name, port = self._addresses[number]
        try:
            found = await self._loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):  # the latter of a name that no host can have
            self._reader.lack_connections(number, count, "the host's name is not known")
            return
        await asyncio.gather(*(self._connect_one(number, found) for _ in range(count)))

    async def _connect_one(self, number: int, found: Sequence[tuple[int, int, int, str, tuple[object, ...]]]) -> None:
        assert self._reader is not None
        last: Exception | None = None
        for family, kind, protocol_number, _, address in found:
            try:
                with socket.socket(family, kind, protocol_number) as one:
                    one.setblocking(False)
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    await asyncio.wait_for(self._loop.sock_connect(one, address), self._network.timeout)
                    self._reader.add_connection(number, one.detach())
                    return
            except (OSError, asyncio.TimeoutError) as error:
                last = error
        self._reader.lack_connections(number, 1, f"the connection failed ({type(last).__name__})")

    async def end(self) -> None:
        """Ends the native thread. Called in the loop."""
        if self._reader is None:
            return
        self._loop.remove_reader(self._reader.event_descriptor)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._reader.close()


def _host_and_port(url: URL) -> str:
    """The host and the port, as the field Host has them."""
    assert url.raw_host is not None
    name = f"[{url.raw_host}]" if ":" in url.raw_host else url.raw_host
    return name if url.port == 80 else f"{name}:{url.port}"
