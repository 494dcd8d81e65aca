"""``headrace serve``: makes samples for loaders on other machines."""

from __future__ import annotations

import hmac
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from headrace._base import loggers
from headrace._helpers import messages
from headrace._helpers.messages import Array, MessageError, Order, Terms
from headrace._helpers.order_engine import OrderEngine

_MOST_ORDERS = 8  # that are kept, each with threads


class HelperServer(ThreadingHTTPServer):
    """Makes samples for loaders; what it makes depends on nothing but the requests.

    Args:
        address: host and port; port 0 is a free one.
        threads: number of threads that make samples.
        token: the secret that requests must have; "": none is asked for.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], threads: int, token: str = "") -> None:
        self.threads, self.token = threads, token
        self.samples = 0
        self._lock = threading.Lock()
        self._engines: OrderedDict[str, OrderEngine] = OrderedDict()
        super().__init__(address, _Handler)

    def add_order(self, text: bytes) -> None:
        """Makes an engine for an order. Raises ValueError."""
        name, order = messages.name_of(text), Order.from_json(text)
        with self._lock:
            if name in self._engines:
                return
            self._engines[name] = OrderEngine(order, self.threads)
            dropped = self._engines.popitem(last=False)[1] if len(self._engines) > _MOST_ORDERS else None
        if dropped is not None:
            dropped.close()

    def make(self, name: str, arrays: Sequence[Array]) -> list[Array]:
        """Makes the samples of a request.

        Raises:
            KeyError: there is no such order.
        """
        with self._lock:
            engine = self._engines[name]
            self._engines.move_to_end(name)
        made = engine.make(*arrays)
        with self._lock:
            self.samples += int(made[1].sum())
        return made

    def handle_error(self, request: object, client_address: object) -> None:
        """Notes a connection that ended in the middle of a request; nothing is lost, since its loader goes on."""
        loggers.loading.debug("a loader's connection ended: %s", client_address, exc_info=True)

    def server_close(self) -> None:
        super().server_close()
        with self._lock:
            engines, self._engines = list(self._engines.values()), OrderedDict()
        for one in engines:
            one.close()


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "headrace", ""
    timeout = 600.0  # of a connection without requests
    disable_nagle_algorithm = True
    wbufsize = 0
    server: HelperServer

    def do_GET(self) -> None:
        self._serve({messages.TERMS_PATH: self._terms})

    def do_PUT(self) -> None:
        self._serve({messages.RECIPE_PATH: self._order})

    def do_POST(self) -> None:
        self._serve({messages.SAMPLES_PATH: self._samples})

    def _serve(self, paths: dict[str, Callable[[int], None]]) -> None:
        expected, given = f"Bearer {self.server.token}", self.headers.get("Authorization", "")
        if self.server.token and not hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace")):
            return self._refuse(HTTPStatus.UNAUTHORIZED, "the token is another one: both sides need the same")
        size = self.headers.get("Content-Length", "0")
        if self.path not in paths or not size.isdecimal():
            return self._refuse(HTTPStatus.NOT_FOUND, f"there is no {self.command} {self.path[:80]}")
        try:
            paths[self.path](int(size))
        except KeyError:
            self._refuse(HTTPStatus.PRECONDITION_FAILED, "the recipe is not known here: send it first")
        except MessageError as error:  # damaged on the way, perhaps
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except ValueError as error:
            self._refuse(HTTPStatus.CONFLICT, str(error))

    def _terms(self, size: int) -> None:
        self._send([memoryview(Terms.of_this_machine(self.server.threads).to_json())])

    def _order(self, size: int) -> None:
        if size > messages.MOST_RECIPE_BYTES:
            raise MessageError(f"a recipe of {size} bytes is too large")
        text = self.rfile.read(size)
        if messages.name_of(text) != self.headers.get(messages.RECIPE_HEADER, ""):
            raise MessageError("the recipe was damaged on the way")
        self.server.add_order(text)
        self._send([])

    def _samples(self, size: int) -> None:
        checksum = self.headers.get(messages.CHECKSUM_HEADER, "")
        arrays = messages.read_arrays(self.rfile, size, messages.REQUEST_KINDS, checksum)
        made = self.server.make(self.headers.get(messages.RECIPE_HEADER, ""), arrays)
        self._send(messages.body_of(made), {messages.CHECKSUM_HEADER: messages.checksum_of(made)})

    def _send(self, body: Sequence[memoryview], headers: dict[str, str] | None = None) -> None:
        self.send_response(HTTPStatus.OK)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(sum(len(one) for one in body)))
        self.end_headers()
        for one in body:
            self.connection.sendall(one)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        """Answers with one sentence, and closes the connection: the request may not have been read to its end."""
        self.close_connection = True
        content = why.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        loggers.loading.debug(format, *args)
