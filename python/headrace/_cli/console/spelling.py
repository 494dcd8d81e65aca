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
            near = get_close_matches(option[1], set(_options_of(self)), 1)
        else:
            return ""
        return f"; did you mean {near[0]}?" if near else ""


def _options_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yields the options of a parser and of its commands'."""
    for action in parser._actions:
        yield from action.option_strings
        for command in action.choices.values() if isinstance(action.choices, dict) else ():
            yield from _options_of(command)
