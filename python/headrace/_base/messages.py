"""What the package says to people: warnings at a line of the program, and text for messages."""

from __future__ import annotations

import shlex
import sys
import textwrap
import warnings
from pathlib import Path

from headrace._base.version import RELEASED

_PLACEHOLDER = " ..."
_PACKAGE = str(Path(__file__).parents[1])


class PerformanceWarning(UserWarning):
    """A loader delivers the right batches, but headrace makes little or nothing of it faster. The text says why, and
    what to change."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns, at the line of the program that led here: the first outside this package and torch's loader."""
    torchs = getattr(sys.modules.get("torch.utils.data"), "__path__", [])  # not imported for a message
    inner = tuple(f"{folder}/" for folder in (_PACKAGE, *torchs))
    level, frame = 2, sys._getframe(1)
    while frame.f_code.co_filename.startswith(inner) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def public_name_of(kind: type) -> str:
    """Returns the name of a class as a program would import it: of the outermost loaded package that offers it."""
    parts = kind.__module__.split(".")
    if "." not in kind.__qualname__:
        for length in range(1, len(parts)):
            package = sys.modules.get(".".join(parts[:length]))
            try:
                if getattr(package, kind.__qualname__, None) is kind:
                    return f"{'.'.join(parts[:length])}.{kind.__qualname__}"
            except Exception:  # of a package's own __getattr__
                continue
    return f"{kind.__module__}.{kind.__qualname__}"


def install_command(extra: str = "", *packages: str) -> str:
    """Returns the command that installs an extra, or headrace itself.

    Args:
        packages: what the extra consists of; they are named until the package index has headrace.
    """
    if RELEASED:
        return f"pip install 'headrace[{extra}]'" if extra else "pip install headrace"
    return f"pip install {shlex.join(packages)}" if extra else "pip install . in a checkout, or with a wheel's file"


def shorten_text(text: str, width: int) -> str:
    """Returns `text` on one line of at most `width` characters, cut between words, or in the first if it is longer."""
    line = textwrap.shorten(text, width, placeholder=_PLACEHOLDER)
    if line == _PLACEHOLDER.strip() and len(text) > width:
        return text.split()[0][: width - len(_PLACEHOLDER)] + _PLACEHOLDER
    return line


def printable(text: str) -> str:
    r"""Returns `text` with lone surrogates written as ``\udce9``, as ``repr`` does.

    Names of files need not be UTF-8: Python keeps their other bytes as lone surrogates, which no stream takes.
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
