"""``headrace --print-completion SHELL``: the script that completes commands and options in a shell, made by shtab."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace._base.messages import install_command
from headrace._cli.console.spelling import actions_of

SHELLS = ("bash", "zsh", "tcsh")

_MISSING = "--print-completion needs shtab, which is not installed: "
#: Names of arguments that are completed as paths, though they may be other words, too.
_PATHS = {"DATASET", "SRC", "DST", "PATH", "FILE", "DIR", "JSON"}


def add_completion_option(parser: argparse.ArgumentParser) -> None:
    """Adds the option."""
    what = "print what makes this shell complete commands and options, and exit (needs shtab)"
    parser.add_argument("--print-completion", choices=SHELLS, action=_PrintCompletion, help=what)


class _PrintCompletion(argparse.Action):
    """Prints the script and ends the program, as ``--version`` does."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        try:
            import shtab
        except ImportError:
            parser.exit(2, f"{parser.prog}: {_MISSING}{install_command('completion', 'shtab')}\n")
        for action in actions_of(parser):
            if action.type is Path or action.metavar in _PATHS:
                action.complete = shtab.DIRECTORY if action.metavar == "DIR" else shtab.FILE  # type: ignore[attr-defined]
        print(shtab.complete(parser, str(values)))
        parser.exit()
