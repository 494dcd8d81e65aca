"""``headrace serve``: makes samples for loaders on other machines."""

from __future__ import annotations

import hmac
import os
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from headrace._base import control_group, loggers
from headrace._helpers import messages
from headrace._helpers.messages import Array, MessageError, Order, Terms
from headrace._helpers.order_engine import OrderEngine, checksums_of, fingerprint_of
from headrace._storage.entry_points.entry_points import EntryPoints
from headrace.datasets.sources import BlobDataset, checked_table

_MOST_ORDERS = 8  # that are kept, each with threads
_MOST_CONNECTIONS = 512  # each has a thread
_IDLE_S = 600.0  # of a connection without requests
_LEARNED = 10**9  # bytes at most of where the rows of JPEGs begin, and the share of the memory
_LEARNED_SHARE = 32


class _OrderError(ValueError):
    """An order that cannot be made here."""


class HelperServer(ThreadingHTTPServer):
    """Makes samples for loaders; what it makes depends on nothing but the requests.

    Args:
        address: host and port; port 0 is a free one.
        threads: number of threads that make samples.
        token: the secret that requests must have; "": none is asked for.
        dataset: whose samples are read here where a loader has the same dataset; None: loaders send the files.

    Attributes:
        samples: number of samples that were made.
        points: where the rows of JPEGs begin that were decoded here, of the dataset and of files that were sent.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self, address: tuple[str, int], threads: int, token: str = "", dataset: BlobDataset | None = None
    ) -> None:
        self.threads, self.token = threads, token
        self._dataset = dataset
        self.terms = Terms.of_this_machine(threads, "" if dataset is None else fingerprint_of(dataset))
        self.points = EntryPoints(_learned_bytes())
        self._table = None if dataset is None else checked_table(dataset).entered_by(self.points.native)
        self.samples = 0
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._engines: OrderedDict[str, OrderEngine] = OrderedDict()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def add_order(self, text: bytes) -> None:
        """Makes an engine for an order. Raises ValueError."""
        name, order = messages.name_of(text), Order.from_json(text)
        with self._lock:
            if name in self._engines:
                return
            self._engines[name] = OrderEngine(order, self.threads, self.points.native)
            if len(self._engines) > _MOST_ORDERS:
                self._engines.popitem(last=False)  # it ends with the last request that uses it

    def make(self, path: str, name: str, dataset: str, arrays: Sequence[Array]) -> list[Array]:
        """Makes the samples of a request, or the checksums of its rows.

        Raises:
            KeyError: there is no such order.
            MessageError: the dataset is another one.
        """
        with self._lock:
            engine = self._engines[name]
            self._engines.move_to_end(name)
        if path == messages.SAMPLES_PATH:
            made = engine.make(*arrays)
        elif path == messages.PLANS_PATH:
            made = engine.make_planned(*arrays)
        else:
            if self._dataset is None or self._table is None or dataset != self.terms.dataset:
                raise MessageError("this helper has no such dataset")
            if path == messages.FILES_PATH:
                return [checksums_of(self._dataset, arrays[0])]
            made = engine.make_rows(self._table, *arrays)
        with self._lock:
            self.samples += int(made[1].sum())
        return made

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serves a connection in a thread of its own; closes it where there are too many."""
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # the system allows no more threads
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Notes a connection that ended in the middle of a request; nothing is lost, since its loader goes on."""
        loggers.loading.debug("a loader's connection ended: %s", client_address, exc_info=True)

    def server_close(self) -> None:
        super().server_close()
        with self._lock:
            engines, self._engines = list(self._engines.values()), OrderedDict()
        for one in engines:
            one.close()


def _learned_bytes() -> int:
    memory, limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), control_group.memory_limit()
    return min(_LEARNED, (memory if limit is None else min(memory, limit)) // _LEARNED_SHARE)


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "headrace", ""
    timeout = 10.0  # of a connection before its first request
    disable_nagle_algorithm = True
    wbufsize = 0
    server: HelperServer

    def do_GET(self) -> None:
        self._serve({messages.TERMS_PATH: self._terms})

    def do_PUT(self) -> None:
        self._serve({messages.RECIPE_PATH: self._order})

    def do_POST(self) -> None:
        self._serve(dict.fromkeys(messages.REQUEST_KINDS, self._samples))

    def _serve(self, paths: dict[str, Callable[[int], None]]) -> None:
        expected, given = f"Bearer {self.server.token}", self.headers.get("Authorization", "")
        self.connection.settimeout(_IDLE_S)
        if self.server.token and not hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace")):
            return self._refuse(HTTPStatus.UNAUTHORIZED, "the token is another one: both sides need the same")
        size = self.headers.get("Content-Length", "0")
        if self.path not in paths or not size.isdecimal() or len(size) > 12:
            return self._refuse(HTTPStatus.NOT_FOUND, f"there is no {self.command} {self.path[:80]}")
        try:
            paths[self.path](int(size))
        except KeyError:
            self._refuse(HTTPStatus.PRECONDITION_FAILED, "the recipe is not known here: send it first", ends=False)
        except _OrderError as error:
            self._refuse(HTTPStatus.CONFLICT, str(error))
        except ValueError as error:  # damaged on the way, perhaps
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))

    def _terms(self, size: int) -> None:
        self._send([memoryview(self.server.terms.to_json())])

    def _order(self, size: int) -> None:
        if size > messages.MOST_RECIPE_BYTES:
            raise MessageError(f"a recipe of {size} bytes is too large")
        text = self.rfile.read(size)
        if messages.name_of(text) != self.headers.get(messages.RECIPE_HEADER, ""):
            raise MessageError("the recipe was damaged on the way")
        try:
            self.server.add_order(text)
        except ValueError as error:
            raise _OrderError(str(error)) from None
        self._send([])

    def _samples(self, size: int) -> None:
        checksum = self.headers.get(messages.CHECKSUM_HEADER, "")
        arrays = messages.read_arrays(self.rfile, size, messages.REQUEST_KINDS[self.path], checksum)
        order, dataset = (self.headers.get(name, "") for name in (messages.RECIPE_HEADER, messages.DATASET_HEADER))
        made = self.server.make(self.path, order, dataset, arrays)
        self._send(messages.body_of(made), {messages.CHECKSUM_HEADER: messages.checksum_of(made)})

    def _send(self, body: Sequence[memoryview], headers: dict[str, str] | None = None) -> None:
        self.send_response(HTTPStatus.OK)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(sum(len(one) for one in body)))
        self.end_headers()
        for one in body:
            self.connection.sendall(one)

    def _refuse(self, status: HTTPStatus, why: str, *, ends: bool = True) -> None:
        """Answers with one sentence, and closes the connection if the request may not have been read to its end."""
        self.close_connection = self.close_connection or ends
        content = why.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if ends:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        loggers.loading.debug(format, *args)
