"""Helpers for tests: in threads of this process, or as processes that a test may stop and kill."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from headrace._helpers.server import HelperServer
from headrace.datasets.sources import BlobDataset


@contextmanager
def helper(threads: int = 1, token: str = "", dataset: BlobDataset | None = None) -> Iterator[HelperServer]:
    """A helper in a thread of this process."""
    server = HelperServer(("127.0.0.1", 0), threads, token, dataset)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def address_of(server: HelperServer) -> str:
    """Its address, as a loader takes it."""
    return f"127.0.0.1:{server.server_address[1]}"


def started_process(port: int = 0, threads: int = 1) -> tuple[subprocess.Popen[str], int]:
    """``headrace serve`` as a process, and its port."""
    options = ["serve", "--port", str(port), "--threads", str(threads)]
    process = subprocess.Popen([sys.executable, "-m", "headrace", *options], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert " at 127.0.0.1:" in line, line
    return process, int(line.rpartition(":")[2])


def ended(process: subprocess.Popen[str]) -> None:
    """Kills a process of `started_process`."""
    process.kill()
    with process:
        pass
