"""A proxy between a loader and a helper that delays, damages, slows down and cuts what passes."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

_CHUNK = 1 << 14


@dataclass(frozen=True)
class Faults:
    """What happens to the bytes of both directions.

    Attributes:
        damaged, cut: probability that a chunk of 16 KB has a changed byte, or is the last of its connection.
        reset: probability that a chunk is not passed on, and its sender gets a reset of the connection.
        delay_s: before each chunk that begins a message.
        rate: bytes a second; 0: no limit.
    """

    damaged: float = 0.0
    cut: float = 0.0
    reset: float = 0.0
    delay_s: float = 0.0
    rate: float = 0.0


class Proxy:
    """Listens at a port of its own, in threads."""

    def __init__(self, port: int, faults: Faults) -> None:
        self._to, self._faults = port, faults
        self._chance, self.injected = random.Random(0), 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                try:
                    far = socket.create_connection(("127.0.0.1", self._to))
                except OSError:
                    near.close()
                    continue
                self._open += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        faults, last = self._faults, 0.0
        with suppress(OSError):
            while chunk := bytearray(source.recv(_CHUNK)):
                if faults.delay_s and time.monotonic() - last > faults.delay_s:
                    time.sleep(faults.delay_s)
                last = time.monotonic()
                if faults.rate:
                    time.sleep(len(chunk) / faults.rate)
                if self._chance.random() < faults.damaged:
                    chunk[self._chance.randrange(len(chunk))] ^= 1 << self._chance.randrange(8)
                    self.injected += 1
                if self._chance.random() < faults.reset:
                    self.injected += 1
                    source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    source.close()
                    break
                target.sendall(chunk)
                if self._chance.random() < faults.cut:
                    self.injected += 1
                    break
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()
        for one in self._open:
            one.close()


@contextmanager
def proxy(port: int, faults: Faults) -> Iterator[Proxy]:
    """A proxy to a port of this machine."""
    made = Proxy(port, faults)
    try:
        yield made
    finally:
        made.close()
