"""Text for messages: of bounded length, and such as every stream takes."""

import textwrap

_PLACEHOLDER = " ..."


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
