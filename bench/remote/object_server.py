"""An HTTP server of the files below a folder, for tests and benchmarks: ranges, ETags, If-Match, latency and faults.

    python -m bench.remote.object_server FOLDER [--latency SECONDS]

prints the port and serves until it is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import threading
from collections import Counter
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from types import TracebackType
from typing import TypeVar
from urllib.parse import unquote, urlsplit

_Server = TypeVar("_Server", bound="ObjectServer")


@dataclass
class Faults:
    """What goes wrong, as shares of the requests; and for how many seconds."""

    latency_s: float = 0.0
    error: float = 0.0  # HTTP 500
    throttle: float = 0.0  # HTTP 503 with Retry-After
    retry_after: int = 0
    reset: float = 0.0  # the connection is closed in the middle of the answer
    short: float = 0.0  # the answer is whole, but of fewer bytes than asked for
    stall: float = 0.0  # no answer for `stall_s`
    stall_s: float = 5.0
    slow_first: int = 0  # requests from the beginning on that take `stall_s`
    ignore_ranges: bool = False
    ignore_if_match: bool = False
    no_tags: bool = False
    chunked: bool = False  # answers have no length
    forbid: str = ""  # paths that end so: HTTP 403


class ObjectServer:
    """Serves in a thread.

    Args:
        root: the folder.
        faults: may be changed while it serves.

    Attributes:
        url: of the root, without a slash at its end.
        counts: requests by method and path, and faults by name.
        bytes_of: bytes of the answers to GET, by path.
        most_under_way: requests that were answered at the same time.
    """

    def __init__(self, root: Path, faults: Faults | None = None, seed: int = 0) -> None:
        self.root, self.faults = root, faults or Faults()
        self.counts: Counter[str] = Counter()
        self.bytes_of: Counter[str] = Counter()
        self.most_under_way = self._under_way = 0
        self._random = random.Random(seed)
        self._connections: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()  # asyncio itself refers to tasks weakly
        self._loop = asyncio.new_event_loop()
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run, name="object server", daemon=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]
        self._begun.set()
        self._loop.run_forever()
        for one in self._server.sockets:
            self._loop.remove_reader(one.fileno())  # nothing more is accepted
        for _ in range(20):  # what was accepted begins, so that it can be closed; a closed server would drop it
            self._loop.run_until_complete(asyncio.sleep(0))
        self._server.close()
        for writer in self._connections:
            writer.transport.abort()  # a peer that does not read must not keep the socket open
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(asyncio.sleep(0.01))  # aborted connections close their sockets
        self._loop.close()

    def __enter__(self: _Server) -> _Server:
        self._thread.start()
        self._begun.wait()
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def requests(self, method: str = "GET") -> int:
        return sum(count for name, count in self.counts.items() if name.startswith(method + " "))

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        self._tasks.add(self._loop.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                method, target, _ = line.decode("latin-1").split(" ", 2)
                headers = {}
                while (line := await reader.readline()) not in (b"\r\n", b""):
                    name, _, value = line.decode("latin-1").partition(":")
                    headers[name.strip().lower()] = value.strip()
                self._under_way += 1
                self.most_under_way = max(self.most_under_way, self._under_way)
                try:
                    if not await self._answer(method, unquote(urlsplit(target).path), headers, writer):
                        return
                finally:
                    self._under_way -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()

    def _happens(self, name: str) -> bool:
        share = getattr(self.faults, name)
        happens = share > 0 and self._random.random() < share
        self.counts[name] += happens
        return happens

    async def _answer(self, method: str, path: str, headers: dict[str, str], writer: asyncio.StreamWriter) -> bool:
        """Returns whether the connection stays open."""
        faults = self.faults
        self.counts[f"{method} {path}"] += 1
        if faults.latency_s:
            await asyncio.sleep(faults.latency_s)
        if faults.slow_first > 0:
            faults.slow_first -= 1
            await asyncio.sleep(faults.stall_s)
        if self._happens("stall"):
            await asyncio.sleep(faults.stall_s)
        if self._happens("throttle"):
            return await self._said(writer, "503 Slow Down", [f"Retry-After: {faults.retry_after}"])
        if self._happens("error"):
            return await self._said(writer, "500 Internal Server Error", [])
        if faults.forbid and path.endswith(faults.forbid):
            return await self._said(writer, "403 Forbidden", [])
        file = self.root / path.lstrip("/")
        if not file.is_file():
            return await self._said(writer, "404 Not Found", [])
        info = file.stat()
        tag = f'"{info.st_size:x}-{info.st_mtime_ns:x}"'
        if not faults.ignore_if_match and headers.get("if-match", tag) != tag:
            return await self._said(writer, "412 Precondition Failed", [])
        fields = [] if faults.no_tags else [f"ETag: {tag}", f"Last-Modified: {formatdate(info.st_mtime, usegmt=True)}"]
        begin, end, status = 0, info.st_size, "200 OK"
        if (asked := headers.get("range")) and not faults.ignore_ranges:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            begin, end, status = int(first), min(info.st_size, int(last) + 1), "206 Partial Content"
            if begin >= info.st_size:
                return await self._said(writer, "416 Range Not Satisfiable", [f"Content-Range: bytes */{info.st_size}"])
            fields.append(f"Content-Range: bytes {begin}-{end - 1}/{info.st_size}")
        if method == "HEAD":
            return await self._said(writer, status, fields, length=info.st_size)
        with file.open("rb") as opened:
            opened.seek(begin)
            body = opened.read(end - begin)
        self.bytes_of[path] += len(body)
        if self._happens("short"):
            body = body[: len(body) // 2]
        if self._happens("reset"):
            await self._said(writer, status, fields, body[: len(body) // 2], length=len(body))
            return False
        if faults.chunked:
            return await self._in_chunks(writer, status, fields, body)
        return await self._said(writer, status, fields, body)

    @staticmethod
    async def _in_chunks(writer: asyncio.StreamWriter, status: str, fields: list[str], body: bytes) -> bool:
        head = "\r\n".join([f"HTTP/1.1 {status}", "Transfer-Encoding: chunked", *fields, "", ""])
        writer.write(head.encode("latin-1") + f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n")
        await writer.drain()
        return True

    @staticmethod
    async def _said(
        writer: asyncio.StreamWriter, status: str, fields: list[str], body: bytes = b"", length: int | None = None
    ) -> bool:
        size = len(body) if length is None else length
        head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {size}", *fields, "", ""])
        writer.write(head.encode("latin-1") + body)
        await writer.drain()
        return True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--latency", type=float, default=0.0)
    options = parser.parse_args()
    with ObjectServer(options.folder, Faults(latency_s=options.latency)) as server:
        print(server.port, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
