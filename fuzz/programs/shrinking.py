"""Makes a program that differs smaller, as long as it still differs in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable

from fuzz.programs.drawing.parts import Program
from fuzz.programs.trial import Difference, Runs, Unsteady, difference


def shrunk(
    program: Program, found: Difference, alive: Callable[[], None], seconds: float = 30.0
) -> tuple[Program, Difference]:
    """Returns a smaller program, and how it differs.

    Args:
        program, found: what differs.
        alive: called before each run.
        seconds: when to stop, at the latest.
    """
    end, goes_on = time.monotonic() + seconds, True
    while goes_on:
        goes_on = False
        for smaller in program.smaller():
            if time.monotonic() > end:
                return program, found
            alive()
            now = _difference(smaller)
            if now is not None and now.kind == found.kind:
                program, found, goes_on = smaller, now, True
                break
    return program, found


def _difference(program: Program) -> Difference | None:
    try:
        found, _ = difference(program)
    except (Unsteady, SyntaxError):
        return None
    return found


def steady(program: Program) -> bool:
    """Whether headrace's runs of a program are equal to each other."""
    from headrace import DataLoader

    runs = Runs(program)
    return runs.entries(DataLoader) == runs.entries(DataLoader)
