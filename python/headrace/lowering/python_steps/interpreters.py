"""Decides where Python steps are called: in threads, which share one interpreter, or in torch's worker processes.

Threads wait for each other while a step holds the interpreter. So however many there are, they call at most one step at
a time, and from some number on torch's own loader, whose workers have an interpreter each, would be faster. The
decision follows from the program alone, never from a measurement: the random numbers of the two routes differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.base.interpreter import has_gil
from headrace.lowering.python_steps.short import is_short

#: Up to so many threads call Python steps; see docs/decisions/0068 for the measurement.
MOST_THREADS = 3


def in_processes(steps: Sequence[Any], dataset: Any, num_workers: Any) -> str | None:
    """Returns why torch's worker processes are to call a recipe's Python steps; None if threads are to call them.

    Threads call those of a dataset of headrace's own, or of a class derived from one: it was chosen for them.

    Args:
        steps: the transforms without a native implementation.
        num_workers: the loader's argument; None if it is chosen while the loader works.
    """
    if type(num_workers) is not int or num_workers <= MOST_THREADS or not has_gil():
        return None
    long = [step for step in steps if not is_short(step)]
    if not long or any(one.__module__.startswith("headrace.") for one in type(dataset).__mro__):
        return None
    names = ", ".join(dict.fromkeys(getattr(step, "__qualname__", type(step).__qualname__) for step in long))
    return (
        f"{names} would run in Python, where {num_workers} threads wait for one interpreter, and worker processes have "
        "one each; seed= makes batches that do not depend on num_workers, in threads"
    )
