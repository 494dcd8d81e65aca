"""Servers made with Python's `http.server`: without ranges; some cut answers, do not say their length, or encode."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class PlainServer:
    """Serves a folder in threads. May be changed while it serves.

    Attributes:
        url: of the folder, without a slash at its end.
        kind: of the answers: "length" (as ``python -m http.server``), "chunked", "closed" (at the connection's end),
            "gzip", or "br" (which is said, and not done).
        cuts: number of answers of each path that end in the middle.
        counts: requests by method and path.
        sent: bytes of answers to GET.
    """

    def __init__(self, folder: Path, kind: str = "length", cuts: int = 0) -> None:
        self.folder, self.kind, self.cuts = folder, kind, cuts
        self.counts: Counter[str] = Counter()
        self.sent = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> PlainServer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def pieces(self, path: str) -> Iterator[bytes]:
        """Yields the bytes of an answer, as far as they are sent."""
        data = (self.folder / path.strip("/")).read_bytes()
        if self.kind == "gzip":
            data = gzip.compress(data)
        if self.counts[f"GET {path}"] <= self.cuts:
            data = data[: len(data) * 2 // 3]
        for at in range(0, len(data), 1 << 12):
            yield data[at : at + (1 << 12)]

    def _handler(self) -> type[SimpleHTTPRequestHandler]:
        server = self

        class Handler(SimpleHTTPRequestHandler):
            def __init__(self, *given: Any) -> None:
                self.protocol_version = "HTTP/1.1" if server.kind == "chunked" else "HTTP/1.0"
                super().__init__(*given, directory=str(server.folder))

            def log_message(self, format: str, *given: Any) -> None:
                pass

            def do_GET(self) -> None:
                server.counts[f"GET {self.path}"] += 1
                path = server.folder / self.path.strip("/")
                if not path.is_file():
                    self.send_error(404)
                    return
                self.send_response(200)
                if server.kind == "length":
                    self.send_header("Content-Length", str(path.stat().st_size))
                if server.kind == "chunked":
                    self.send_header("Transfer-Encoding", "chunked")
                if server.kind in ("gzip", "br"):
                    self.send_header("Content-Encoding", server.kind)
                self.send_header("Last-Modified", self.date_time_string(path.stat().st_mtime))
                self.end_headers()
                with contextlib.suppress(ConnectionError):
                    self._send(self.path)

            def _send(self, name: str) -> None:
                cut = server.counts[f"GET {name}"] <= server.cuts
                chunked = server.kind == "chunked"
                for piece in server.pieces(name):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
                    server.sent += len(piece)
                if chunked and not cut:
                    self.wfile.write(b"0\r\n\r\n")
                self.close_connection = cut or not chunked

        return Handler
