"""A parser of the command line that says which command, choice or option may be meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Adds ``did you mean ...?`` to the error about an unknown choice or option. Commands' parsers are such, too."""

    def error(self, message: str) -> NoReturn:
        """Prints the usage and the error, and exits with status 2."""
        super().error(message + self._suggest(message))

    def _suggest(self, message: str) -> str:
        from difflib import get_close_matches

        if choice := re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)$", message, re.DOTALL):
            near = get_close_matches(choice[1], re.findall(r"[\w-]+", choice[2]), 1)
        elif option := re.search(r"unrecognized arguments: .*?(--[\w-]+)", message, re.DOTALL):
            known = {name for action in actions_of(self) for name in action.option_strings}
            near = get_close_matches(option[1], known, 1)
        else:
            return ""
        return f"; did you mean {near[0]}?" if near else ""


def actions_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yields the arguments of a parser and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from actions_of(command)
