"""What the tuner chose and why, for the reports about a loader."""

from __future__ import annotations

from dataclasses import dataclass

from headrace._loading.autotune.tuner import Trial, Tuner

NOTHING_MEASURED = "nothing measured yet: that takes half a second within one epoch"
_SHOWN = 3  # trials


@dataclass(frozen=True)
class Tuned:
    """The numbers that a loader chose; ``str()`` is one line.

    Attributes:
        threads: number of native threads, or of torch's workers, now.
        depth: batches in flight beyond the one in use, now.
        first: the two numbers at the beginning.
        why: where the first number of threads comes from.
        trials: the newest changes that were tried, with their measured gains; the oldest first.
        state: "searching", "settled", that nothing was measured yet, or why the number does not change.
    """

    threads: int
    depth: int
    first: tuple[int, int]
    why: str
    trials: tuple[Trial, ...] = ()
    state: str = ""

    def __str__(self) -> str:
        began = f"began with {self.first[0]} and {self.first[1]} ({self.why})"
        tried = "; ".join(str(one) for one in self.trials[-_SHOWN:])
        count = f"{self.threads} thread{'' if self.threads == 1 else 's'}"
        text = f"num_workers='auto': {count}, {self.depth} ahead; {began}; {self.state}"
        return f"{text}; tried {tried}" if tried else text


def summarise(tuner: Tuner | None, fixed: str = "") -> Tuned | None:
    """Returns what the tuner chose; None if the numbers are given.

    Args:
        fixed: why the number does not change any more.
    """
    if tuner is None:
        return None
    state = "settled" if tuner.settled else "searching" if tuner.measured else NOTHING_MEASURED
    if fixed:
        state = f"fixed, because {fixed}"
    threads, depth = tuner.choice
    first = tuner.first.threads, tuner.first.depth
    return Tuned(threads, depth, first, tuner.budget.why, tuple(tuner.trials), state)
