"""``headrace serve`` as a command."""

from __future__ import annotations

import signal
import socket

import pytest
from helper_servers import address_of, helper, started_process

from headrace._cli.main import main
from headrace._helpers import server
from headrace._helpers.connection import FAILURES, Address, Connection
from support import eventually


@pytest.mark.processes
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_ended(by: signal.Signals) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        process, port = started_process(threads=2)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        with socket.create_connection(("127.0.0.1", port)):
            process.send_signal(by)
            assert process.wait() == 0
        assert process.stdout is not None
        assert process.stdout.read() == "0 samples were made\n"


def test_other_machines_need_a_token(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("HEADRACE_TOKEN", raising=False)
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org"):
        assert main(["serve", "--host", host, "--port", "0"]) == 2
        refusal = f"--host {host} is reached from other machines: set the variable HEADRACE_TOKEN"
        assert refusal in capsys.readouterr().err


def test_a_port_that_is_taken_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == 2
    assert capsys.readouterr().err == f"headrace serve: cannot listen at 127.0.0.1:{port}: Address already in use\n"


def test_connections_beyond_the_most_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 2)
    with helper() as serving:
        here = Address.of(address_of(serving))
        first, second, third = (Connection(here, 5.0) for _ in range(3))
        assert first.terms() == second.terms()
        with pytest.raises(FAILURES):
            third.terms()
        first.close()
        assert eventually(lambda: answers(third))
        for one in (second, third):
            one.close()


def answers(connection: Connection) -> bool:
    try:
        connection.terms()
    except FAILURES:
        return False
    return True
