"""The verdict on the ranks of a job: which one all others wait for, and the reason that its own figures give."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import median

from headrace._reports.ranks.lateness import Lateness, measure_lateness
from headrace._reports.ranks.rank_figures import JobVerdict, RankFigures

_WORTH = 0.05  # a smaller share of the time is no straggler
_MOST_OF = 0.5  # of what all ranks cost, the straggler's part
_SURE, _OFTEN = 0.75, 20  # a verdict is sure with this part, if it came last at this number of collectives
_FEWEST_LAST, _SELDOM = 5, 0.1  # a rank that comes last in fewer collectives, or a smaller share, was held up by chance
_EXPLAINS = 0.5  # part of the cost that a reason has to explain
_STOPPED = 0.2  # share of a quota's periods
_SLOW_CLOCK = 0.88  # of the median of the others' clocks
_CLOCKS_S = 0.01  # by which the clocks of machines may differ
_FEWEST = 10  # batches of each rank


def judge_ranks(job: str, figures: Mapping[int, RankFigures], ranks: int) -> JobVerdict:
    """Returns the verdict on a job.

    Args:
        job: identifies it.
        figures: of its ranks, as many as are known.
        ranks: how many there are.
    """
    made = _Judge(job, figures, ranks)
    if len(figures) < 2:
        return made.none("not enough data", "the figures of fewer than two ranks are known")
    late = measure_lateness({rank: one.arrivals for rank, one in figures.items()})
    found = made.by_arrivals(late) if late.seconds > 0 else made.by_waits(_why_no_arrivals(late))
    return replace(found, every_s=max(one.arrivals.every_s for one in figures.values()))


def _why_no_arrivals(late: Lateness) -> str:
    if late.clocks_disagree:
        return "the clocks of the ranks' machines disagree"
    if late.collectives:
        return f"the ranks have {late.collectives} collectives in common so far"
    return "torch has recorded no collectives that all of these ranks took part in"


class _Judge:
    def __init__(self, job: str, figures: Mapping[int, RankFigures], ranks: int) -> None:
        self._job, self._figures, self._ranks = job, figures, ranks

    def none(self, certainty: str, why: str, costs: Mapping[int, float] | None = None) -> JobVerdict:
        """Returns the verdict that no rank is a straggler, or that none is known."""
        shares: dict[str, object] = {str(rank): share for rank, share in (costs or {}).items()}
        return JobVerdict(
            self._job, time.time(), self._ranks, len(self._figures), certainty=certainty, costs=shares, why=why
        )

    def by_arrivals(self, late: Lateness) -> JobVerdict:
        """Returns the verdict from the times at which ranks arrived at collectives."""
        shares = {rank: late.share(rank) for rank in self._figures}
        rank = max(shares, key=lambda one: shares[one])
        cost, all_costs = shares[rank], sum(shares.values())
        each_ms = 1e3 * late.costs[rank] / max(1, late.last.get(rank, 0))
        said = f"of {late.collectives} collectives in {late.seconds:.3g} s rank {rank} came last in"
        why = f"{said} {late.last.get(rank, 0)}, {each_ms:.3g} ms after the one before it"
        if cost < _WORTH or cost < _MOST_OF * all_costs:
            if (slow := self._slow_gpu()) is not None and not late.on_device:
                return self._named(slow, "gpu", "unsure", 0.0, shares, self._clock_words(slow, "gpu_mhz"))
            waits = f"all others wait for it {cost:.0%} of the time, and {all_costs:.0%} for any rank"
            return self.none("likely", f"{why}; {waits}", shares)
        last = late.last.get(rank, 0)
        if last < max(_FEWEST_LAST, _SELDOM * late.collectives):
            return self.none("not enough data", f"{why}: too seldom to be the rank that is slow", shares)
        hosts = {one.host for one in self._figures.values()}
        if len(hosts) > 1 and not late.on_device and each_ms < 1e3 * _CLOCKS_S:
            return self.none("unsure", f"{why}, which is no more than the clocks of machines may differ", shares)
        sure = cost > _SURE * all_costs and last >= _OFTEN
        reason, figures = self._reason_of(rank, cost, late.on_device)
        return self._named(rank, reason, "sure" if sure else "likely", cost, shares, f"{why}; {figures}")

    def by_waits(self, missing: str) -> JobVerdict:
        """Returns the verdict from the ranks' waits for their loaders: all that is known without arrivals."""
        if any(one.batches < _FEWEST or one.seconds <= 0 for one in self._figures.values()):
            return self.none("not enough data", f"{missing}; and few batches so far")
        waits = {rank: _waited(one) for rank, one in self._figures.items()}
        *_, (before, _), (most, rank) = sorted((share, rank) for rank, share in waits.items())
        said = f"{missing}; rank {rank} waits {most:.0%} of the time for its loader, the next one {before:.0%}"
        if most - before < _WORTH or most < 2 * before:
            if (slow := self._slow_gpu()) is not None:
                return self._named(slow, "gpu", "unsure", 0.0, {}, self._clock_words(slow, "gpu_mhz"))
            return self.none("unsure", f"{said}, so the loaders hold up no rank; the steps are not compared")
        reason, figures = self._reason_of(rank, most - before, on_device=False)
        return self._named(rank, reason, "likely", most - before, {}, f"{said}; {figures}")

    def _named(
        self, rank: int, reason: str, certainty: str, cost: float, shares: Mapping[int, float], why: str
    ) -> JobVerdict:
        one = self._figures[rank]
        costs: dict[str, object] = {str(other): share for other, share in shares.items()}
        seen = len(self._figures)
        return JobVerdict(
            self._job, time.time(), self._ranks, seen, rank, one.host, reason, certainty, cost, costs, why
        )

    # ---- the reason --------------------------------------------------------------------------------------------------

    def _reason_of(self, rank: int, cost: float, on_device: bool) -> tuple[str, str]:
        """Returns the reason for a straggler, and the figures that it follows from.

        Args:
            cost: share of the time that is to be explained.
            on_device: whether the device's times show that it is late.
        """
        one = self._figures[rank]
        if one.seconds <= 0:
            return "unknown", "nothing else is known of this rank yet"
        stopped, others_stopped = one.stopped, self._others(rank, lambda other: other.stopped)
        if stopped >= _STOPPED and stopped > 2 * others_stopped:
            return "quota", (
                f"its quota stopped it in {stopped:.0%} of the periods, {one.stopped_s / one.seconds:.2g} s a second; "
                f"the others in {others_stopped:.0%}"
            )
        waited, others_waited = _waited(one), self._others(rank, _waited)
        words = f"it waits {waited:.0%} of the time for its loader, the others {others_waited:.0%}"
        if waited - others_waited >= _EXPLAINS * cost:
            reason, more = self._reason_of_loader(rank, cost)
            return reason, f"{words}; {more}"
        if self._is_slow(rank, "gpu_mhz") or on_device:
            clocks = f"; {self._clock_words(rank, 'gpu_mhz')}" if one.gpu_mhz else ""
            return "gpu", f"{words}{clocks}"
        reason, more = self._reason_without_core(rank, cost, _delayed)
        return (reason, f"{words}; {more}") if reason else ("step", words)

    def _reason_of_loader(self, rank: int, cost: float) -> tuple[str, str]:
        """Returns why a rank waits for its loader longer than others."""
        one = self._figures[rank]
        reads, others_reads = _read_ms(one), self._others(rank, _read_ms)
        work, others_work = _work_ms(one), self._others(rank, _work_ms)
        more_work = work - others_work
        words = (
            f"its threads read {reads:.3g} ms a batch and work {work:.3g} in all, the others' {others_reads:.3g} and "
            f"{others_work:.3g}"
        )
        has_slow_reads = more_work > 0.1 * others_work and reads - others_reads > _MOST_OF * more_work
        if has_slow_reads or (one.busy_s == 0 and one.bottleneck == "read"):
            return ("network" if one.far else "storage"), words
        reason, more = self._reason_without_core(rank, cost, _threads_delayed)
        if reason:
            return reason, more
        return "loader", f"the bottleneck of its loader: {one.bottleneck or 'not known'}"

    def _reason_without_core(self, rank: int, cost: float, delayed: Callable[[RankFigures], float]) -> tuple[str, str]:
        """Returns "clock" or "cores" with the figures, if one of them is the reason; otherwise twice "".

        Args:
            delayed: returns how long the threads that matter were ready to run without a core, in seconds a second.
        """
        if self._is_slow(rank, "cpu_mhz"):
            return "clock", self._clock_words(rank, "cpu_mhz")
        mine, others = delayed(self._figures[rank]), self._others(rank, delayed)
        if mine - others >= _EXPLAINS * cost:
            whose = "its thread is" if delayed is _delayed else "its threads are"
            return "cores", f"{whose} ready without a core {mine:.2g} s a second, the others' {others:.2g} s"
        return "", ""

    def _others(self, rank: int, value: Callable[[RankFigures], float]) -> float:
        return median(value(one) for other, one in self._figures.items() if other != rank)

    def _is_slow(self, rank: int, clock: str) -> bool:
        mine = float(getattr(self._figures[rank], clock))
        return 0 < mine < _SLOW_CLOCK * self._others(rank, lambda one: float(getattr(one, clock)))

    def _clock_words(self, rank: int, clock: str) -> str:
        mine, others = getattr(self._figures[rank], clock), self._others(rank, lambda one: float(getattr(one, clock)))
        return f"{'its GPU' if clock == 'gpu_mhz' else 'its CPU'} runs at {mine:.0f} MHz, the others at {others:.0f}"

    def _slow_gpu(self) -> int | None:
        """Returns the only rank whose GPU has a slow clock; None if there is none, or several."""
        slow = [rank for rank in self._figures if self._is_slow(rank, "gpu_mhz")]
        return slow[0] if len(slow) == 1 else None


def _waited(one: RankFigures) -> float:
    return _per_second(one.waited_s, one)


def _delayed(one: RankFigures) -> float:
    return _per_second(one.delayed_s, one)


def _threads_delayed(one: RankFigures) -> float:
    return _per_second(one.threads_delayed_s, one)


def _per_second(seconds: float, one: RankFigures) -> float:
    return seconds / one.seconds if one.seconds > 0 else 0.0


def _read_ms(one: RankFigures) -> float:
    return 1e3 * one.read_s / max(1, one.batches)


def _work_ms(one: RankFigures) -> float:
    return 1e3 * one.busy_s / max(1, one.batches)
