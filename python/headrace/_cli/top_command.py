"""``headrace top``: shows what the loaders of other processes do, until these end."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headrace._base.messages import install_command
from headrace._cli import inputs

if TYPE_CHECKING:
    from headrace._reports.top.discovery import Found


def add(commands: inputs.Commands) -> None:
    """Adds the command."""
    what = "show what the loaders of running processes do, and what limits them"
    parser = inputs.add_command(commands, "top", what, ["top 12345", "top --json | jq"])
    number = "processes that publish, or that started such ones; default: all of this user"
    parser.add_argument("pids", type=inputs.count, nargs="*", metavar="PID", help=number)
    parser.add_argument("--every", type=inputs.seconds, default=1.0, metavar="S", help="between two looks; default: 1")
    parser.add_argument("--once", action="store_true", help="print one look, and end")
    parser.add_argument("--json", action="store_true", help="print all figures of one look as JSON, and end")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="the folder that headrace.publish() was given")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Shows the processes, once or until they end. Returns the exit status: 1 if there are none, 2 without rich."""
    import json
    from dataclasses import asdict, replace

    from headrace._reports.top.discovery import NothingFoundError, find_processes

    try:
        found = find_processes(args.pids, args.folder)
    except NothingFoundError as error:
        print(f"headrace top: {error}", file=sys.stderr)
        return 1
    if args.json:
        print(
            json.dumps([{"alive": one.alive, "command": one.command, **asdict(one.figures)} for one in found], indent=1)
        )
        return _exit_status(found)
    try:
        from rich.console import Console
        from rich.live import Live

        from headrace._reports.top.screen import Screen
    except ImportError:
        print(
            "headrace top: it draws with rich, which is not installed: "
            f"{install_command('top', 'rich')}; --json needs none",
            file=sys.stderr,
        )
        return 2
    console = Console(highlight=False)
    if args.once or not console.is_terminal:
        console.print(Screen(found, time.time()))
        return _exit_status(found)
    try:
        with Live(Screen(found, time.time()), console=console, screen=True, auto_refresh=False) as live:
            while any(one.alive for one in found):
                live.update(Screen(found, time.time()), refresh=True)
                time.sleep(args.every)
                try:
                    found = find_processes(args.pids, args.folder)
                except NothingFoundError:
                    found = [replace(one, alive=False) for one in found]
    except KeyboardInterrupt:  # how one leaves
        return 0
    finally:
        console.print(Screen(found, time.time()))  # the screen is gone; the last figures stay
    return 0


def _exit_status(found: Sequence[Found]) -> int:
    return 0 if any(one.alive for one in found) else 1
