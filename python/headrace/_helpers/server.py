"""``headrace serve``: makes samples for loaders on other machines."""

from __future__ import annotations

import hmac
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from headrace._base import loggers
from headrace._base.native import core
from headrace._engine.engine import Flight
from headrace._engine.image_engine import ImageEngine, SampleOptions
from headrace._engine.lanes.decoding_lane import Decoding, DecodingLane
from headrace._helpers import messages
from headrace._helpers.messages import Array, MessageError, Order, Terms
from headrace._recipe.images.memory_format import Layout
from headrace._recipe.steps.recipe_text import read_recipe

_MOST_ORDERS = 8  # that are kept, each with threads
_PATIENCE_S = 60.0  # for the samples of one request


class _LeavingLane(DecodingLane):
    """Leaves the files that the core does not decode to the loader, whose Pillow may warn of them or refuse them."""

    name = "leaving"

    def _run_job(self, job: core.PythonJob) -> None:
        self._pipeline.fail(job, "left to the loader")


class _HelperEngine(ImageEngine):
    """Makes the samples of one order."""

    def __init__(self, order: Order, threads: int) -> None:
        self._order = order
        layout = Layout(order.layout) if order.finished else Layout.CHANNELS_LAST
        decoding = Decoding("pillow", _LeavingLane)
        super().__init__(read_recipe(order.recipe), layout, threads=threads, slots_kept=0, decoding=decoding)
        self.max_pixels = order.max_pixels

    def _make_pipeline(self, samples: SampleOptions, **more: Any) -> core.Pipeline:
        samples = {**samples, "max_pixels": self._order.max_pixels, "pass_order": self._order.pass_order}
        return super()._make_pipeline(samples, **more)

    def make(self, draws: npt.NDArray[np.float64], sizes: npt.NDArray[np.int64], files: Array) -> list[Array]:
        """Returns the arrays of an answer.

        Raises:
            MessageError: the arrays do not fit each other or the recipe.
        """
        count, ends = len(sizes), np.cumsum(sizes)
        wrong = draws.shape != (count, len(self.recipe.columns)) or sizes.ndim != 1 or files.ndim != 1
        if wrong or not count or sizes.min() < 0 or ends[-1] != len(files):
            raise MessageError("draws, sizes and files do not fit each other")
        if count * self._pipeline.sample_bytes > messages.MOST_BYTES:
            raise MessageError(f"{count} samples are too many for one answer")
        table = core.BlobTable.of_spans([files], np.zeros(count, np.int64), ends - sizes, sizes)
        memory = self._allocate_batch(count)
        rows = np.arange(count, dtype=np.int64)
        flight = Flight(self._pipeline.submit(table, rows, draws, memory, keep_table=False))
        try:
            if not self.wait(flight, _PATIENCE_S):
                raise MessageError("the samples are not made in time")
            made = np.ones(count, np.uint8)
            for failure in self.failures(flight):
                made[failure.sample] = 0
            sizes_found = flight.batch.sizes
            flight.batch.release()
        except BaseException:
            self.cancel(flight)
            raise
        stored = torch.empty(0, dtype=torch.uint8, device="cpu").set_(memory.untyped_storage())
        return [stored.numpy(), made, sizes_found]


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
        self._engines: OrderedDict[str, _HelperEngine] = OrderedDict()
        super().__init__(address, _Handler)

    def add_order(self, text: bytes) -> None:
        """Makes an engine for an order. Raises ValueError."""
        name, order = messages.name_of(text), Order.from_json(text)
        with self._lock:
            if name in self._engines:
                return
            self._engines[name] = _HelperEngine(order, self.threads)
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
        except ValueError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))

    def _terms(self, size: int) -> None:
        self._send([memoryview(Terms.of_this_machine(self.server.threads).to_json())])

    def _order(self, size: int) -> None:
        if size > messages.MOST_RECIPE_BYTES:
            raise MessageError(f"a recipe of {size} bytes is too large")
        self.server.add_order(self.rfile.read(size))
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
