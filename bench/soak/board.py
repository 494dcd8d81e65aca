"""The numbers that all processes of a soak share: rates and counts of faults, what was served, and the clocks.

The board is a file of one page that each process maps, so that counts survive the crash of the process that made them.
`faults.cpp` reads its first words.
"""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np

#: In the order of `Kind` in faults.cpp.
FAULTS = (
    "open: no such file",
    "open: I/O error",
    "read: I/O error",
    "read: interrupted",
    "read: short",
    "read: ends early",
    "read: stalls",
    "write: no space left",
    "no thread",
    "no memory",
)
COUNTERS = (
    "epochs",
    "batches",
    "samples",
    "samples_reported",  # failed, and named in loader.errors, under on_error="skip"
    "samples_replaced",  # failed, and replaced as on_error="replace" says
    "errors_raised",
    "loaders",
    "resumes",
    "interrupts",
    "forks",
    "out_of_descriptors",
    "lost",
    "wrong",
    "unexpected",
)
CLOCKS = ("progress", "awake_us", "quiet_us", "longest_wait_us", "longest_quiet_wait_us")

_PAGE = 4096
_RATES = 2
_COUNTS = _RATES + len(FAULTS)
_LANES = _COUNTS + len(FAULTS)
_CLOCKS = _LANES + 2 * len(COUNTERS)


class Board:
    """Counters in a mapped file.

    Attributes:
        lane: 0, or 1 in a forked child, whose counts its parent adds with `take_lane`.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(_PAGE))
        with path.open("r+b") as file:
            self._mapped = mmap.mmap(file.fileno(), _PAGE)
        self._words = np.frombuffer(self._mapped, np.uint64)
        self.lane = 0

    def arm(self, chances: dict[str, float]) -> None:
        """Makes calls fail with these chances; all others succeed."""
        for number, name in enumerate(FAULTS):
            self._words[_RATES + number] = round(chances.get(name, 0.0) * 2**32)
        self._words[0] = 1

    def disarm(self) -> None:
        """Lets all calls succeed."""
        self._words[0] = 0

    def rearm(self) -> None:
        """Makes calls fail as before `disarm`."""
        self._words[0] = 1

    @property
    def armed(self) -> bool:
        return bool(self._words[0])

    def seed(self, seed: int) -> None:
        """Sets where the sequence of random numbers of the faults begins."""
        self._words[1] = seed % 2**63

    def faults(self) -> dict[str, int]:
        """Returns how many of each kind were injected."""
        return {name: int(self._words[_COUNTS + number]) for number, name in enumerate(FAULTS)}

    def add(self, counter: str, amount: int = 1) -> None:
        self._words[_LANES + self.lane * len(COUNTERS) + COUNTERS.index(counter)] += np.uint64(amount)

    def take_lane(self) -> None:
        """Adds what a forked child has counted; call it when the child has ended."""
        own = slice(_LANES, _LANES + len(COUNTERS))
        child = slice(_LANES + len(COUNTERS), _LANES + 2 * len(COUNTERS))
        self._words[own] += self._words[child]
        self._words[child] = 0

    def counters(self) -> dict[str, int]:
        """Returns all counters, those of a running child included."""
        lanes = self._words[_LANES : _LANES + 2 * len(COUNTERS)].reshape(2, -1).sum(0)
        return dict(zip(COUNTERS, lanes.tolist(), strict=True))

    def clock(self, name: str) -> int:
        return int(self._words[_CLOCKS + CLOCKS.index(name)])

    def advance(self, name: str, amount: int = 1) -> None:
        self._words[_CLOCKS + CLOCKS.index(name)] += np.uint64(amount)

    def note_longest(self, name: str, amount: int) -> None:
        place = _CLOCKS + CLOCKS.index(name)
        self._words[place] = max(int(self._words[place]), amount)
