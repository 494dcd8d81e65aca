"""Messages between loaders and helpers: read as they were written, and refused with one sentence otherwise."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from helper_servers import helper
from hypothesis import given
from hypothesis import strategies as st

from headrace import DataLoader
from headrace import transforms as T
from headrace._helpers import messages
from headrace._helpers.messages import MessageError, Order, Terms
from headrace._helpers.order_engine import OrderEngine, probe_of
from headrace._helpers.server import HelperServer
from headrace._recipe.arithmetic import pillow_rule
from headrace._recipe.steps.recipe_text import NotText, read_recipe, write_recipe
from support import TENSOR, blobs, recipe_of, train

ARRAYS = [np.arange(12.0).reshape(3, 4), np.array([5, 0, 7]), np.frombuffer(b"hello, files", np.uint8)]
KINDS = messages.REQUEST_KINDS[messages.SAMPLES_PATH]
BODY = b"".join(messages.body_of(ARRAYS))
CHECKSUM = messages.checksum_of(ARRAYS)


def read(body: bytes, checksum: str = CHECKSUM) -> list[Any]:
    return messages.read_arrays(BytesIO(body), len(body), KINDS, checksum)


def test_arrays_are_numpys_own_format() -> None:
    source = BytesIO(BODY)
    for array, made in zip(ARRAYS, read(BODY), strict=True):
        assert np.array_equal(array, made) and array.dtype == made.dtype
        assert np.array_equal(np.load(source), array)


@given(st.integers(0, len(BODY) - 1), st.integers(1, 255))
def test_a_changed_byte_is_noticed(at: int, change: int) -> None:
    damaged = bytearray(BODY)
    damaged[at] ^= change
    try:
        made = read(bytes(damaged))
    except MessageError:
        return
    assert all(map(np.array_equal, made, ARRAYS))  # a space or the like in a header


@given(st.integers(0, len(BODY) - 1))
def test_a_message_that_ends_early_is_refused(length: int) -> None:
    with pytest.raises(MessageError):
        messages.read_arrays(BytesIO(BODY[:length]), len(BODY), KINDS, CHECKSUM)
    with pytest.raises(MessageError):
        read(BODY[:length])


@given(st.binary(max_size=300))
def test_other_bytes_are_refused(content: bytes) -> None:
    magic = b"\x93NUMPY\x01\x00"
    for start in (b"", magic, magic + b"v\x00{'descr': '<f8', 'fortran_order': False, 'shape': ("):
        with pytest.raises(MessageError):
            read(start + content)


@pytest.mark.parametrize("kind", ["O", "<f4", ">i8", "<U4", "<M8[s]"])
def test_arrays_of_other_kinds_are_refused(kind: str) -> None:
    head = BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": kind, "fortran_order": False, "shape": (1 << 40,)})
    with pytest.raises(MessageError, match="is not what was agreed"):
        read(head.getvalue() + BODY)


RECIPE = recipe_of(DataLoader(blobs(2, train(16))))
ORDER = Order(write_recipe(RECIPE).text, "planar", False, 1 << 30, pillow_rule.pass_order())
CONTENT = ORDER.to_json()


def test_recipes_are_read_as_they_were_written() -> None:
    text = ORDER.recipe
    made = read_recipe(text)
    assert (made.steps, made.height, made.width, made.channels) == (RECIPE.steps, 16, 16, 3)
    assert write_recipe(made).text == text
    with pytest.raises(NotText, match="it has Python steps"):
        write_recipe(recipe_of(DataLoader(blobs(2, T.Compose([lambda image: image.resize((16, 16)), *TENSOR])))))


CHANGES: dict[str, Any] = {
    "no JSON": lambda text: text[:-5],
    "a list": lambda text: "[1, 2]",
    "nested": lambda text: "[" * 100_000,
    "another step": lambda text: text.replace("HorizontalFlip", "system"),
    "a field more": lambda text: text.replace('"p": 0.5', '"p": 0.5, "q": 1'),
    "a huge image": lambda text: text.replace('"width": 16', '"width": 1600000'),
    "text for a number": lambda text: text.replace('"p": 0.5', '"p": "half"'),
    "a draw that is not there": lambda text: text.replace('"draw": 22', '"draw": 2200000'),
    "a draw before the first": lambda text: text.replace('"draw": 22', '"draw": -5'),
}


@pytest.mark.parametrize("name", CHANGES)
def test_damaged_recipes_are_refused_or_make_nothing(name: str) -> None:
    text = CHANGES[name](ORDER.recipe)
    assert text != ORDER.recipe
    request = probe_of(CONTENT, RECIPE.columns)[0]
    try:
        engine = OrderEngine(replace(ORDER, recipe=text), 0)
    except ValueError as error:
        assert str(error).startswith("this is no recipe: ")
        return
    try:
        assert not engine.make(*request)[1].any()
    finally:
        engine.close()


def test_what_is_not_made_shows_no_memory() -> None:
    request = probe_of(CONTENT, RECIPE.columns)[0]
    engine = OrderEngine(ORDER, 0)
    try:
        for _ in range(3):
            assert engine.make(*request)[0].any()
            samples, made, _ = engine.make(request[0], request[1], np.zeros_like(request[2]))
            assert not made.any() and not samples.any()
    finally:
        engine.close()


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.1, 7.0, -1e300])
def test_numbers_outside_their_limits_are_refused(value: float) -> None:
    request, truth = probe_of(CONTENT, RECIPE.columns)
    engine = OrderEngine(ORDER, 0)
    try:
        assert all(map(np.array_equal, engine.make(*request), truth))
        draws = request[0].copy()
        draws[1, 20] = value
        with pytest.raises(MessageError, match="a random number is outside the limits of its step"):
            engine.make(draws, *request[1:])
        for sizes in (request[1] + 1, -request[1], request[1][:2], np.array([1 << 62] * 3)):
            with pytest.raises(MessageError, match="do not fit"):
                engine.make(request[0], sizes, request[2])
    finally:
        engine.close()


@pytest.fixture(scope="module")
def server() -> Iterator[HelperServer]:
    with helper(token="secret") as made:
        yield made


def answer(server: HelperServer, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    sent = {"Authorization": "Bearer secret", **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request(method, path, body, sent)
    got = connection.getresponse()
    with closing(connection):
        return got.status, got.read()


def test_requests(server: HelperServer) -> None:
    status, text = answer(server, "GET", messages.TERMS_PATH)
    assert (status, Terms.from_json(text)) == (200, Terms.of_this_machine(1))
    name = messages.name_of(CONTENT)
    known = {"Headrace_Recipe": name}
    request, truth = probe_of(CONTENT, RECIPE.columns)
    body, checksum = b"".join(messages.body_of(request)), messages.checksum_of(request)
    assert answer(server, "POST", messages.SAMPLES_PATH, body, **known, Headrace_Crc32=checksum)[0] == 412
    assert answer(server, "PUT", messages.RECIPE_PATH, CONTENT, Headrace_Recipe="0" * 32)[0] == 400
    bad = json.dumps({**json.loads(CONTENT), "recipe": "{}"}).encode()
    assert answer(server, "PUT", messages.RECIPE_PATH, bad, Headrace_Recipe=messages.name_of(bad))[0] == 409
    assert answer(server, "PUT", messages.RECIPE_PATH, CONTENT, **known) == (200, b"")
    assert answer(server, "POST", messages.SAMPLES_PATH, body, **known, Headrace_Crc32="1,2,3")[0] == 400
    assert answer(server, "POST", messages.SAMPLES_PATH, body[:-1], **known, Headrace_Crc32=checksum)[0] == 400
    status, made = answer(server, "POST", messages.SAMPLES_PATH, body, **known, Headrace_Crc32=checksum)
    assert (status, made) == (200, b"".join(messages.body_of(truth)))
    assert answer(server, "GET", "/v1/../etc/passwd")[0] == 404
    assert answer(server, "POST", messages.TERMS_PATH)[0] == 404
    for token in ("", "Bearer", "Bearer secre", "Bearer secret ", "Basic secret", "Bearer \xfc"):
        assert answer(server, "GET", messages.TERMS_PATH, Authorization=token)[0] == 401
    assert answer(server, "PUT", messages.RECIPE_PATH, Content_Length=str(1 << 38))[0] == 400


@given(st.binary(max_size=200))
def test_a_server_outlives_any_bytes(server: HelperServer, content: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.server_address[1])) as connection:
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass
    assert answer(server, "GET", messages.TERMS_PATH)[0] == 200
