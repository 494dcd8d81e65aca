"""How long all ranks waited for the last one, from the times at which they arrived at the same collectives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headrace._reports.ranks.rank_figures import Arrivals

_FEWEST = 10  # collectives that all ranks have in common


@dataclass(frozen=True)
class Lateness:
    """What the arrivals say.

    Attributes:
        seconds: from the first to the last of the collectives.
        collectives: how many all ranks have in common; 0: nothing is known.
        costs: by rank, seconds in which all other ranks waited for this one.
        last: by rank, number of collectives at which it arrived last.
        clocks_disagree: whether a rank seems to have gone on before another one arrived, which cannot be: then nothing
            else is known.
        on_device: whether the times are those of the device.
    """

    seconds: float = 0.0
    collectives: int = 0
    costs: dict[int, float] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    clocks_disagree: bool = False
    on_device: bool = False

    def share(self, rank: int) -> float:
        """Returns the share of the time in which all other ranks waited for a rank."""
        return self.costs.get(rank, 0.0) / self.seconds if self.seconds > 0 else 0.0


def measure_lateness(ranks: Mapping[int, Arrivals]) -> Lateness:
    """Returns how long all ranks waited for each. Intervals of different collectives that overlap count once: gradients
    of several buckets wait at the same time.

    Args:
        ranks: arrivals of two ranks or more, whose clocks agree within a small part of a step.
    """
    backends = {one.backend for one in ranks.values()}
    if len(ranks) < 2 or len(backends) > 1 or backends == {""}:
        return Lateness()
    by_rank = {
        rank: dict(zip(one.numbers, zip(one.times_us, one.device_us, strict=True), strict=True))
        for rank, one in ranks.items()
    }
    common = sorted(set.intersection(*(set(one) for one in by_rank.values())))
    if len(common) < _FEWEST:
        return Lateness(collectives=len(common))
    timed = [number for number in common if all(one[number][1] >= 0 for one in by_rank.values())]
    on_device = len(timed) >= _FEWEST
    rows = (
        [_arrivals_on_device({rank: one[number] for rank, one in by_rank.items()}) for number in timed]
        if on_device
        else [{rank: one[number][0] for rank, one in by_rank.items()} for number in common]
    )
    if not on_device and _disagree(rows):
        return Lateness(collectives=len(common), clocks_disagree=True)
    waits: dict[int, list[tuple[int, int]]] = {rank: [] for rank in ranks}
    last: Counter[int] = Counter()
    for row in rows:
        *_, (before, _), (latest, rank) = sorted((at, rank) for rank, at in row.items())
        waits[rank].append((before, latest))
        last[rank] += latest > before
    seconds = (max(rows[-1].values()) - min(rows[0].values())) / 1e6
    costs = {rank: _covered(intervals) / 1e6 for rank, intervals in waits.items()}
    return Lateness(seconds, len(rows), costs, dict(last), on_device=on_device)


def _arrivals_on_device(row: dict[int, tuple[int, int]]) -> dict[int, int]:
    """All ranks leave a collective together, so the one that took least time there came last."""
    end = max(created + device for created, device in row.values())
    return {rank: end - device for rank, (_, device) in row.items()}


def _disagree(rows: Sequence[Mapping[int, int]]) -> bool:
    """Whether, for most collectives, a rank called one that is far ahead before another rank called this one: gradients
    of many buckets may be in flight, but not those of several steps."""
    ahead = len(rows) // 2
    pairs = list(zip(rows, rows[ahead:], strict=False))
    impossible = sum(min(later.values()) < max(now.values()) for now, later in pairs)
    return 2 * impossible > len(pairs) > 0


def _covered(intervals: list[tuple[int, int]]) -> int:
    """Returns the length of the union of intervals."""
    total, reached = 0, -(2**63)
    for begin, end in sorted(intervals):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total
