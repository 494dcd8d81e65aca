"""A connection to one helper, over HTTP/1.1."""

from __future__ import annotations

import http.client
import os
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from headrace._helpers import messages
from headrace._helpers.messages import Array, MessageError, Terms

#: The variable that holds the secret of helpers and loaders.
TOKEN = "HEADRACE_TOKEN"
_CONNECT_S = 2.0


@dataclass(frozen=True)
class Address:
    """Where a helper listens.

    Attributes:
        token: the secret that it shares with its loaders; "": none.
    """

    host: str
    port: int
    token: str = field(default="", repr=False)

    @classmethod
    def of(cls, text: object, token: str = "") -> Address:
        """Returns the address of ``"host:port"``; an IPv6 address is in brackets.

        Raises:
            TypeError, ValueError: it is none.
        """
        if not isinstance(text, str):
            raise TypeError(f'helpers are strings such as "10.0.0.2:9917", not {text!r}')
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not colon or not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise ValueError(f'helpers are addresses such as "10.0.0.2:9917", not {text!r}')
        return cls(host, int(port), token)

    def __reduce__(self) -> tuple[Any, ...]:
        return _address_here, (self.host, self.port)  # a pickle does not hold the token

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def token_here() -> str:
    """Returns the token of this process, of the variable HEADRACE_TOKEN.

    Raises:
        ValueError: a header cannot hold it.
    """
    token = os.environ.get(TOKEN, "").strip()
    if not (token.isascii() and (token.isprintable() or not token)):
        raise ValueError(f"{TOKEN} has characters that a header cannot hold; use those of ASCII")
    return token


def _address_here(host: str, port: int) -> Address:
    return Address(host, port, token_here())


class RefusedError(Exception):
    """A helper and this loader do not fit together, with the reason."""


class UnknownOrderError(http.client.HTTPException):
    """A helper has forgotten an order."""


class Connection:
    """One connection, for one thread; `abort` may be called by any.

    All methods raise OSError or `http.client.HTTPException` where the helper does not answer as one, RefusedError
    where it refuses, and MessageError where its answer is damaged. The connection is closed then.

    Args:
        seconds: how long a request may take, and a helper send nothing.
    """

    def __init__(self, address: Address, seconds: float) -> None:
        self._address, self._seconds = address, seconds
        self._http = http.client.HTTPConnection(address.host, address.port, timeout=_CONNECT_S)
        self._known = ""  # the order that the helper has
        self._begun = 0.0  # when the request under way was sent; 0: there is none
        self._memory = messages.Memory()

    def terms(self) -> Terms:
        """Returns what the helper says of itself."""
        with self._answer("GET", messages.TERMS_PATH) as answer:
            return Terms.from_json(answer.read(messages.MOST_RECIPE_BYTES))

    def send_order(self, order: bytes) -> None:
        """Tells the helper how to make samples."""
        name = messages.name_of(order)
        with self._answer("PUT", messages.RECIPE_PATH, [memoryview(order)], {messages.RECIPE_HEADER: name}) as answer:
            answer.read(1000)
        self._known = name

    def make(self, path: str, order: bytes, arrays: Sequence[Array], dataset: str = "") -> list[Array]:
        """Has samples made, or files compared.

        Args:
            path: of the request; see `messages.REQUEST_KINDS` for its arrays, and `messages.ANSWER_KINDS`.
            order: see `messages.Order`.
            arrays: what is sent.
            dataset: fingerprint of the dataset whose rows are meant.

        Returns:
            The arrays of the answer; the next call overwrites the largest one.
        """
        name = messages.name_of(order)
        if self._known != name:
            self.send_order(order)
        headers = {messages.RECIPE_HEADER: name, messages.CHECKSUM_HEADER: messages.checksum_of(arrays)}
        if dataset:
            headers[messages.DATASET_HEADER] = dataset
        try:
            return self._make(path, arrays, headers)
        except UnknownOrderError:  # it keeps some
            self.send_order(order)
            return self._make(path, arrays, headers)

    def _make(self, path: str, arrays: Sequence[Array], headers: Mapping[str, str]) -> list[Array]:
        with self._answer("POST", path, messages.body_of(arrays), headers) as answer:
            checksum = answer.getheader(messages.CHECKSUM_HEADER, "")
            size = int(answer.getheader("Content-Length", "-1"))
            return messages.read_arrays(answer, size, messages.ANSWER_KINDS[path], checksum, self._memory)

    def close(self) -> None:
        """Closes the connection; the next request opens another."""
        self._http.close()
        self._known = ""

    def abort(self) -> None:
        """Ends a request that another thread waits for."""
        if (open_ := self._http.sock) is not None:
            with suppress(OSError):
                open_.shutdown(socket.SHUT_RDWR)

    def abort_if_overdue(self) -> None:
        """Ends a request that takes longer than a helper may be silent: it may send a byte now and then."""
        begun = self._begun
        if begun and time.monotonic() - begun > self._seconds:
            self.abort()

    def _answer(
        self, method: str, path: str, body: Sequence[memoryview] = (), headers: Mapping[str, str] | None = None
    ) -> _Answer:
        return _Answer(self, method, path, body, headers or {})

    def _request(
        self, method: str, path: str, body: Sequence[memoryview], headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        if self._http.sock is None:
            self._http.connect()
            found: Any = self._http.sock
            found.settimeout(self._seconds)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sent = {**headers, "Content-Length": str(sum(len(one) for one in body))}
        if self._address.token:
            sent["Authorization"] = f"Bearer {self._address.token}"
        self._http.request(method, path, body=iter(body) if body else None, headers=sent)
        answer = self._http.getresponse()
        if answer.status < 300:
            return answer
        reason = answer.read(1000).decode(errors="replace").strip() or answer.reason
        if answer.status in (401, 409):
            raise RefusedError(reason)
        if answer.status == 412:
            raise UnknownOrderError(reason)
        raise http.client.HTTPException(f"helper {self._address} answers {answer.status}: {reason}")


class _Answer:
    """An answer whose connection is closed where it is not read to its end."""

    def __init__(self, connection: Connection, *request: Any) -> None:
        self._connection, self._request = connection, request

    def __enter__(self) -> http.client.HTTPResponse:
        self._connection._begun = time.monotonic()
        try:
            return self._connection._request(*self._request)
        except BaseException:
            self._connection._begun = 0.0
            self._connection.close()
            raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._connection._begun = 0.0
        if kind is not None:
            self._connection.close()


#: What a helper that is away, stopped, or damaged raises.
FAILURES = (OSError, http.client.HTTPException, MessageError)
