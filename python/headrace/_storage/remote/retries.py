"""Requests until one succeeds: retries with backoff and jitter, pauses that a server requests, second requests for
stragglers."""

from __future__ import annotations

import asyncio
import errno
import random
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from headrace._base import loggers
from headrace._base.safe_exceptions import find_builtin_type, message_of
from headrace._storage.remote.clients.responses import (
    ChangedError,
    NoRangesError,
    TemporaryError,
    UnreachableError,
)
from headrace._storage.remote.network import Network
from headrace._storage.remote.urls import host_of_url, redact_url

T = TypeVar("T")

_FIRST_S, _LONGEST_S = 0.1, 20.0  # bounds of the backoff: a random time below 0.1, 0.2, 0.4, ... seconds
_TELLING = 3  # requests in vain to a host that never answered, before the log warns
_RECENT = 256  # requests whose times are remembered
_ENOUGH = 32  # of them before a request counts as a straggler
_LEAST_S = 0.02  # a request that lasts no longer is no straggler
_SLOWEST = 0.95  # a straggler takes longer than this share of the recent requests


class Attempts:
    """Used in one event loop.

    Args:
        paused: called with a host that requests a pause, as `host(url)` names it, and the pause's seconds.

    Attributes:
        timeout: seconds, of `Network`.
        counts: requests, retries, hedged (made twice), failed (given up).
    """

    def __init__(self, network: Network, paused: Callable[[str, float], None]) -> None:
        self._network, self._paused = network, paused
        self.timeout: float = network.timeout
        self._reached: set[str] = set()  # hosts that a connection could be made to
        self._not_before: dict[str, float] = {}  # of each host that requested a pause
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._limit_s, self._looked_at = float("inf"), 0
        self.counts: Counter[str] = Counter()

    async def run(
        self,
        url: str,
        call: Callable[[], Awaitable[T]],
        gate: asyncio.Semaphore,
        *,
        small: bool = True,
        timed: bool = True,
        failed: Exception | None = None,
    ) -> T:
        """Returns what `call` returns; calls it again after a TemporaryError.

        Args:
            gate: bounds the requests under way. It is not held between two requests: objects of a server that does not
                answer must not stop those of others.
            small: whether all such calls take about the same time, so that a straggler can be recognised.
            timed: whether `Network.timeout` is for all of the call; otherwise the call watches it.
            failed: what came of a first request, which another reader made.

        Raises:
            OSError: `call` raised it, or it did not succeed in time. The message begins with the URL, as it is shown.
        """
        patience, tried = self._network.patience, 0  # what is left of it: the queue at the gate does not count
        where = host_of_url(url)
        while True:
            tried += 1
            try:
                if failed is not None:
                    first, failed = failed, None
                    raise first
                patience -= await self._await_turn(where, gate, patience)
                begin = time.monotonic()
                try:
                    made = await (
                        self._hedge_call(call) if small else self._call_with_timeout(call) if timed else call()
                    )
                    self._reached.add(where)
                    return made
                finally:
                    gate.release()
                    patience -= time.monotonic() - begin
            except TemporaryError as error:
                last = error
            except ChangedError as error:
                raise ChangedError(error.what, redact_url(url)) from None
            except NoRangesError as error:
                raise NoRangesError(error.why, redact_url(url)) from None
            except OSError as error:
                self.counts["failed"] += 1
                said = error.strerror or message_of(error)
                raise find_builtin_type(error)(error.errno or errno.EIO, f"{redact_url(url)}: {said}") from None
            if isinstance(last, UnreachableError):
                self._check_reach(url, where, last, tried, self._network.patience - patience)
            else:
                self._reached.add(where)
            wait = random.uniform(0, min(_LONGEST_S, _FIRST_S * 2 ** min(tried - 1, 16)))
            if where not in self._reached:  # the last request is made when the time to reach it ends, or just before
                wait = min(wait, self._reach - _FIRST_S / 2 + patience - self._network.patience)
            if last.wait_s > 0:
                self._not_before[where] = time.monotonic() + last.wait_s
                self._paused(where, last.wait_s)
                wait += last.wait_s  # the jitter spreads the requests that waited
            if wait >= patience:
                self.counts["failed"] += 1
                spent = self._network.patience - patience
                raise OSError(
                    errno.EIO,
                    f"{redact_url(url)}: given up after {tried} requests in {spent:.1f} s (Network.patience is "
                    f"{self._network.patience:g} s); the last one: {last}",
                )
            self.counts["retries"] += 1
            loggers.storage.info(
                "%s: request %d failed (%s); the next one in %.1f s", redact_url(url), tried, last, wait
            )
            await asyncio.sleep(wait)
            patience -= wait

    @property
    def _reach(self) -> float:
        return min(self._network.reach, self._network.patience)

    def _check_reach(self, url: str, where: str, last: UnreachableError, tried: int, spent: float) -> None:
        """Raises OSError if no connection could be made to a host for as long as it may take to reach it."""
        if where in self._reached:
            return
        if tried == _TELLING:
            loggers.storage.warning("%s: %s; headrace tries again for %g s", redact_url(url), last, self._reach)
        if spent > self._reach - _FIRST_S:
            self.counts["failed"] += 1
            raise OSError(
                errno.EIO,
                f"{redact_url(url)}: no connection could be made to this host in {spent:.1f} s, tried {tried} times "
                f"({last.why}): check the address and the port, and that the server runs. Network(reach=...) sets the "
                "seconds",
            )

    async def _await_turn(self, where: str, gate: asyncio.Semaphore, patience: float) -> float:
        """Acquires the gate at a time at which the host accepts requests, or when the patience is over. Returns the
        seconds for which it waited for the host."""
        waited = 0.0
        while True:
            await gate.acquire()
            pause = min(self._not_before.get(where, 0.0) - time.monotonic(), patience - waited)
            if pause <= 0:
                return waited
            gate.release()
            await asyncio.sleep(pause)
            waited += pause

    async def _call_with_timeout(self, call: Callable[[], Awaitable[T]]) -> T:
        self.counts["requests"] += 1
        try:
            return await asyncio.wait_for(call(), self._network.timeout)
        except asyncio.TimeoutError:
            raise TemporaryError(f"no complete answer in {self._network.timeout:g} s") from None

    async def _time_call(self, call: Callable[[], Awaitable[T]]) -> T:
        begin = time.monotonic()
        made = await self._call_with_timeout(call)
        self._recent.append(time.monotonic() - begin)
        return made

    async def _hedge_call(self, call: Callable[[], Awaitable[T]]) -> T:
        limit = self._straggles_after()
        if limit is None:
            return await self._time_call(call)
        tasks = {self._begin_call(call)}
        try:
            done, _ = await asyncio.wait(tasks, timeout=limit)
            if not done and self._may_hedge():
                self.counts["hedged"] += 1
                loggers.storage.debug("a request is made twice: the first one takes longer than %.3f s", limit)
                tasks.add(self._begin_call(call))
            waiting = set(tasks)
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for one in done:
                    if one.exception() is None or not waiting:
                        return one.result()
            raise AssertionError("unreachable")
        finally:
            slower = {one for one in tasks if one.cancel()}
            if slower:
                await asyncio.wait(slower)  # they close their connections before the loop ends

    def _begin_call(self, call: Callable[[], Awaitable[T]]) -> asyncio.Future[T]:
        task = asyncio.ensure_future(self._time_call(call))
        # Of two that fail, one error is raised; without this, asyncio would report the other as forgotten.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    def _may_hedge(self) -> bool:
        return self.counts["hedged"] < self._network.hedge * self.counts["requests"]

    def _straggles_after(self) -> float | None:
        """Returns the seconds after which a request is a straggler; None: unknown, or none may be made twice."""
        if len(self._recent) < _ENOUGH or not self._network.hedge:
            return None
        if self.counts["requests"] - self._looked_at >= _ENOUGH:
            self._looked_at = self.counts["requests"]
            taken = sorted(self._recent)
            # Up to twice the usual time, a second request would hardly arrive before the first one.
            self._limit_s = max(_LEAST_S, taken[int(_SLOWEST * len(taken))], 2 * taken[len(taken) // 2])
        return None if self._limit_s == float("inf") else self._limit_s
