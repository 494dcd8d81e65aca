"""Shows what the loaders of other processes do, until these end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from headrace._reports.top.discovery import Found, NothingFoundError, find


def run(pids: Sequence[int], folder: Path | None, every_s: float, once: bool, as_json: bool) -> int:
    """Shows the processes, once or until they end. Returns the exit status: 1 if there are none, 2 without rich."""
    try:
        found = find(pids, folder)
    except NothingFoundError as error:
        print(f"headrace top: {error}", file=sys.stderr)
        return 1
    if as_json:
        print(
            json.dumps([{"alive": one.alive, "command": one.command, **asdict(one.figures)} for one in found], indent=1)
        )
        return _status(found)
    try:
        from rich.console import Console
        from rich.live import Live

        from headrace._reports.top.screen import Screen
    except ImportError:
        print(
            "headrace top: it draws with rich, which is not installed: pip install 'headrace[top]'; --json needs none",
            file=sys.stderr,
        )
        return 2
    console = Console(highlight=False)
    if once or not console.is_terminal:
        console.print(Screen(found, time.time()))
        return _status(found)
    try:
        with Live(Screen(found, time.time()), console=console, screen=True, auto_refresh=False) as live:
            while any(one.alive for one in found):
                live.update(Screen(found, time.time()), refresh=True)
                time.sleep(every_s)
                found = _again(pids, folder, found)
    except KeyboardInterrupt:  # how one leaves
        return 0
    finally:
        console.print(Screen(found, time.time()))  # the screen is gone; the last figures stay
    return 0


def _again(pids: Sequence[int], folder: Path | None, before: list[Found]) -> list[Found]:
    try:
        return find(pids, folder)
    except NothingFoundError:
        return [replace(one, alive=False) for one in before]


def _status(found: Sequence[Found]) -> int:
    return 0 if any(one.alive for one in found) else 1
