"""The bound on requests under way counts requests: what a dead server does not answer stops nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headrace._storage.remote.clients.responses import TemporaryError
from headrace._storage.remote.network import Network
from headrace._storage.remote.retries import Attempts


def run(work: Callable[[Attempts, asyncio.Semaphore], Awaitable[Any]], **network: Any) -> Any:
    async def begun() -> Any:
        attempts = Attempts(Network(**network), lambda where, seconds: None)
        return await asyncio.wait_for(work(attempts, asyncio.Semaphore(1)), 20)

    return asyncio.run(begun())


async def dead() -> bytes:
    raise TemporaryError("connection refused")


async def paused() -> bytes:
    raise TemporaryError("slow down", wait_s=3600.0)


async def alive() -> bytes:
    return b"bytes"


@pytest.mark.parametrize("refused", [dead, paused])
def test_a_server_that_does_not_answer_holds_no_place_between_two_requests(refused: Any) -> None:
    async def work(attempts: Attempts, gate: asyncio.Semaphore) -> int:
        waiting = [asyncio.ensure_future(attempts.run(f"http://dead/{i}", refused, gate)) for i in range(50)]
        await asyncio.sleep(0)
        for i in range(20):
            assert await attempts.run(f"http://alive/{i}", alive, gate) == b"bytes"
        still = sum(not one.done() for one in waiting)
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert not gate.locked()
        return still

    assert run(work, patience=7200.0) == 50


def test_no_more_requests_than_the_gate_lets_through() -> None:
    most, now, asked = 0, 0, 0

    def twice() -> Callable[[], Awaitable[bytes]]:
        tried = 0

        async def counted() -> bytes:
            nonlocal most, now, asked, tried
            now, asked, tried = now + 1, asked + 1, tried + 1
            most = max(most, now)
            await asyncio.sleep(0.001)
            now -= 1
            if tried == 1:
                raise TemporaryError("again")
            return b""

        return counted

    async def work(attempts: Attempts, gate: asyncio.Semaphore) -> None:
        await asyncio.gather(*(attempts.run(f"http://one/{i}", twice(), gate) for i in range(30)))

    run(work, hedge=0.0)
    assert most == 1
    assert asked == 60


def test_the_queue_at_the_gate_does_not_count_as_patience() -> None:
    async def slow() -> bytes:
        await asyncio.sleep(0.02)
        return b"bytes"

    async def work(attempts: Attempts, gate: asyncio.Semaphore) -> list[bytes]:
        return await asyncio.gather(*(attempts.run(f"http://one/{i}", slow, gate) for i in range(40)))

    assert run(work, patience=0.1, hedge=0.0) == [b"bytes"] * 40


def test_patience_ends() -> None:
    async def work(attempts: Attempts, gate: asyncio.Semaphore) -> None:
        for refused in (dead, paused):
            with pytest.raises(OSError, match=r"given up after \d+ requests? in"):
                await attempts.run("http://dead/1", refused, gate)
        assert not gate.locked()

    run(work, patience=0.3)


def test_of_two_equal_requests_the_slower_one_has_ended_when_the_faster_one_returns() -> None:
    begun, ended = 0, 0

    async def straggles_once() -> bytes:
        nonlocal begun, ended
        begun += 1
        try:
            if begun == 101:
                await asyncio.sleep(10)
            return b"bytes"
        finally:
            await asyncio.sleep(0.001)  # as long as a connection takes to close
            ended += 1

    async def work(attempts: Attempts, gate: asyncio.Semaphore) -> None:
        for i in range(101):
            assert await attempts.run(f"http://one/{i}", straggles_once, gate) == b"bytes"
        assert attempts.counts["hedged"] >= 1
        assert begun == ended == 101 + attempts.counts["hedged"]

    run(work, hedge=0.05)
