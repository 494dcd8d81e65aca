"""One line of the doctor's report."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

_INDENT = 22 * " "


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Attributes:
        level: ``"ok"``; ``"note"``: works, but could be better; ``"wrong"``: pixels or work are at risk.
        remedy: what to do about it, if anything.
        means: one line about what it is good for.
    """

    level: str
    subject: str
    text: str
    remedy: str = ""
    means: str = ""

    def __str__(self) -> str:
        lines = [f"{self.level:<6}{self.subject:<16}{self.text}"]
        if self.means:
            lines.append(f"{_INDENT}{self.means}")
        if self.remedy:
            lines.append(f"{_INDENT}-> {self.remedy}")
        return "\n".join(lines)


Check = Callable[[], Finding]


def means(text: str) -> Callable[[Check], Check]:
    """Returns a decorator that adds to a check's finding what it is good for."""

    def decorate(check: Check) -> Check:
        @functools.wraps(check)
        def run_check() -> Finding:
            return replace(check(), means=text)

        return run_check

    return decorate
