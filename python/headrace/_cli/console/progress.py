"""How far a command is: a bar on a terminal, otherwise a plain line on the standard error now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType

EVERY_S = 10.0


class SpacedLines:
    """Prints lines on the standard error, at most one every `EVERY_S` seconds, the first one after that time."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def say(self, text: str) -> None:
        """Prints the text, unless the last line is too new."""
        now = time.monotonic()
        if now - self._last >= EVERY_S and sys.stderr is not None:
            self._last = now
            print(text, file=sys.stderr, flush=True)


class Progress:
    """The progress of a command; a context, which removes the bar at its end.

    Args:
        command: name of the command, for lines.
        total: number of units.
        unit: what is counted, such as ``"file"``.
        label: which part of the work this is; shown before the bar, and in brackets after a line.
        done: number of units that were done before.
        shown: False shows nothing.
    """

    def __init__(
        self, command: str, total: int, unit: str, *, label: str = "", done: int = 0, shown: bool = True
    ) -> None:
        self._command, self._total, self._unit, self._label = command, total, unit, label
        self._done, self._lines = done, SpacedLines()
        self._shown = shown and sys.stderr is not None
        self._bar = None
        if self._shown and on_terminal():
            from tqdm import tqdm  # type: ignore[import-untyped]

            self._bar = tqdm(total=total, initial=done, desc=label or command, unit=unit, leave=False)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()

    def describe(self, label: str) -> None:
        """Changes the label."""
        self._label = label
        if self._bar is not None:
            self._bar.set_description(label)

    def update(self, more: int = 1) -> None:
        """Adds units that are done."""
        self._done += more
        if self._bar is not None:
            self._bar.update(more)
        elif self._shown:
            what = f" ({self._label})" if self._label else ""
            self._lines.say(f"{self._command}: {self._done:,} of {self._total:,} {self._unit}s{what}")


def on_terminal() -> bool:
    """Returns whether the standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()
