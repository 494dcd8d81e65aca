"""The simulated parts: cores, links, queues, connections."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, product

#: Seconds of a core that a sample takes here, and at a helper with receiving and sending: fitted to the seven points of
#: "fast network, strong helper" in helpers.json, and to nothing else.
LOCAL_S, HELPER_S = 0.00059, 0.00065
#: Seconds of the trainer's core: of an answer's sample, half of them before the answer is whole; of a file sent.
INTAKE_S, SENDING_S = 115e-6, 69e-6
ANSWER, FILE = 150_720, 104_000  # bytes of a sample
STEP = 8  # samples that a connection's thread receives or stores before others get the core


class Clock:
    """What happens, in the order of its time."""

    def __init__(self) -> None:
        self.now, self._numbers = 0.0, count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []

    def after(self, seconds: float, then: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), then))

    def run(self, until: float = float("inf")) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, then = heapq.heappop(self._events)
            then()


class Cores:
    """Cores of a host; each does one piece of work at a time."""

    def __init__(self, clock: Clock, number: int) -> None:
        self._clock, self.number, self._free, self.busy = clock, number, number, 0.0
        self._queues: tuple[deque[tuple[float, Callable[[], None]]], ...] = (deque(), deque())

    def work(self, seconds: float, then: Callable[[], None], first: bool = False) -> None:
        self._queues[not first].append((seconds, then))
        self._begin()

    def _begin(self) -> None:
        while self._free and (queue := self._queues[0] or self._queues[1]):
            seconds, then = queue.popleft()
            self._free -= 1
            self.busy += seconds

            def end(then: Callable[[], None] = then) -> None:
                self._free += 1
                then()
                self._begin()

            self._clock.after(seconds, end)


class Link:
    """One direction of a network; `rate`: bytes a second."""

    def __init__(self, clock: Clock, rate: float, latency_s: float) -> None:
        self._clock, self._rate, self._latency, self._free_at, self.busy = clock, rate, latency_s, 0.0, 0.0

    def send(self, size: float, then: Callable[[], None]) -> None:
        begin = max(self._clock.now, self._free_at)
        self._free_at = begin + size / self._rate
        self.busy += size / self._rate
        self._clock.after(self._free_at + self._latency - self._clock.now, then)


@dataclass(frozen=True)
class Setting:
    """What is simulated.

    Attributes:
        loaders, cores, threads: on the host that trains; threads of each loader.
        helpers, helper_cores: each helper serves all loaders.
        local_s, helper_s: seconds of a core for a sample.
        sends: whether files are sent.
        rate: bytes a second of each host's network, in each direction; `own`: of each connection instead.
        period_s: between two batches that a GPU takes; 0: it takes what is there.
        batches: of a loader, all together. keep: a fixed number of samples that stay here; None: as the lane finds it.
        pauses: of a helper after a request, in times of the request.
        passing_s: seconds of the trainer's core for a sample that a proxy passes on there.
    """

    loaders: int = 1
    cores: int = 1
    threads: int = 1
    helpers: int = 1
    helper_cores: int = 1
    local_s: float = LOCAL_S
    helper_s: float = HELPER_S
    sends: bool = False
    rate: float = 12.5e9
    own: bool = False
    latency_s: float = 50e-6
    batch: int = 64
    prefetch: int = 6
    period_s: float = 0.0
    batches: int = 20
    keep: int | None = None
    pauses: float = 0.0
    passing_s: float = 0.0


class Batch:
    def __init__(self, size: int) -> None:
        self.first, self.last, self.missing = 0, size, size


class Loader:
    """Its queue, its native threads, and the GPU that takes its batches."""

    def __init__(self, world: World) -> None:
        self._world, self._given, self._at = world, 0, 0.0
        self._queue: deque[Batch] = deque()  # with samples that nobody has taken
        self._flight: deque[Batch] = deque()
        self._idle = world.setting.threads
        self.waiting: list[Connection] = []
        self.times: list[float] = []  # when batches were taken

    def push(self) -> None:
        setting = self._world.setting
        if self._given < setting.batches:
            self._given += 1
            made = Batch(setting.batch)
            self._queue.append(made)
            self._flight.append(made)
            while self._idle and self._start():
                self._idle -= 1
            waiting, self.waiting = self.waiting, []
            for one in waiting:
                one.ask()

    def _start(self) -> bool:
        while self._queue and self._queue[0].first == self._queue[0].last:
            self._queue.popleft()
        if not self._queue:
            return False
        batch = self._queue[0]
        batch.first += 1

        def done() -> None:
            self.store(batch, 1)
            if not self._start():
                self._idle += 1

        self._world.cores.work(self._world.setting.local_s, done)
        return True

    def take_last(self, most: int, keep: int) -> tuple[Batch, int] | None:
        """`SampleQueue::take_last`."""
        spare = sum(one.last - one.first for one in self._queue) - keep
        for one in reversed(self._queue):
            if spare > 0 and (taken := min(most, spare, one.last - one.first)) > 0:
                one.last -= taken
                return one, taken
        return None

    def store(self, batch: Batch, samples: int) -> None:
        batch.missing -= samples
        self._world.stored += samples
        self._take()

    def _take(self) -> None:
        """The GPU takes batches in order, and each makes room for another."""
        world = self._world
        while self._flight and self._flight[0].missing == 0:
            if world.clock.now < self._at - 1e-12:
                world.clock.after(self._at - world.clock.now, self._take)
                return
            self._at = max(self._at, world.clock.now - world.setting.period_s) + world.setting.period_s
            self._flight.popleft()
            self.times.append(world.clock.now)
            self.push()


class Helper:
    def __init__(self, world: World) -> None:
        setting, rate = world.setting, world.setting.rate
        self.cores = Cores(world.clock, setting.helper_cores)
        self.to, self.back = Link(world.clock, rate, 0.0), Link(world.clock, rate, 0.0)
        in_flight = max(32, 4 * setting.helper_cores)
        self.most = min(32, in_flight // 2)
        self.connections = min(8, -(-in_flight // self.most))


@dataclass
class Pace:
    """What the connections of a loader to one helper know together."""

    keep: int
    latency: float = 0.0
    made: int = 0


class Connection:
    """A thread of `HelperLane`."""

    def __init__(self, world: World, loader: Loader, helper: Helper, pace: Pace) -> None:
        self._world, self._loader, self._helper, self._pace = world, loader, helper, pace
        setting = world.setting
        links = [Link(world.clock, setting.rate, setting.latency_s) for _ in range(2)] if setting.own else []
        self._route = (links[:1], links[1:]) if links else ([world.out, helper.to], [helper.back, world.inward])

    def ask(self) -> None:
        setting = self._world.setting
        found = self._loader.take_last(self._helper.most, self._pace.keep if setting.keep is None else setting.keep)
        if found is None:
            self._loader.waiting.append(self)
            return
        batch, samples = found
        self._run(self._request(batch, samples))

    def _run(self, steps: Iterator[Callable[[Callable[[], None]], None]]) -> None:
        """Does steps, each of which calls what comes after it."""
        step = next(steps, None)
        if step is not None:
            step(lambda: self._run(steps))

    def _request(self, batch: Batch, samples: int) -> Iterator[Callable[[Callable[[], None]], None]]:
        world, setting, clock = self._world, self._world.setting, self._world.clock
        if setting.sends:
            yield from self._spend(samples, SENDING_S)
        begin = clock.now
        for link in self._route[0]:
            yield lambda then, link=link: link.send(samples * FILE * setting.sends + 1000, then)  # type: ignore[misc]
        arrived, left = clock.now, [samples]

        def make(then: Callable[[], None]) -> None:
            def one_made() -> None:
                left[0] -= 1
                if not left[0]:
                    then()

            for _ in range(samples):
                self._helper.cores.work(setting.helper_s, one_made)

        yield make
        yield lambda then: clock.after(setting.pauses * (clock.now - arrived), then)
        for link in self._route[1]:
            yield lambda then, link=link: link.send(samples * ANSWER, then)  # type: ignore[misc]
        yield from self._spend(samples, INTAKE_S / 2 + setting.passing_s)
        pace, seconds = self._pace, clock.now - begin
        yield from self._spend(samples, INTAKE_S / 2)
        pace.latency = 0.8 * pace.latency + 0.2 * seconds if pace.made else seconds
        pace.made += samples
        pace.keep = max(setting.threads, int(pace.latency / setting.local_s * setting.threads))
        world.helped += samples
        self._loader.store(batch, samples)
        self.ask()

    def _spend(self, samples: int, each: float) -> Iterator[Callable[[Callable[[], None]], None]]:
        for begin in range(0, samples, STEP):
            seconds = min(STEP, samples - begin) * each
            yield lambda then, seconds=seconds: self._world.cores.work(seconds, then, first=True)  # type: ignore[misc]


class World:
    """A host that trains, and its helpers."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.clock = setting, Clock()
        self.cores = Cores(self.clock, setting.cores)
        self.out = Link(self.clock, setting.rate, setting.latency_s)
        self.inward = Link(self.clock, setting.rate, setting.latency_s)
        self.helpers = [Helper(self) for _ in range(setting.helpers)]
        self.loaders = [Loader(self) for _ in range(setting.loaders)]
        self.stored = self.helped = 0
        for loader, helper in product(self.loaders, self.helpers):
            pace = Pace(keep=2 * setting.threads)
            loader.waiting += [Connection(self, loader, helper, pace) for _ in range(helper.connections)]
        for loader in self.loaders:
            for _ in range(setting.prefetch + 1):
                loader.push()
        self.clock.run()
