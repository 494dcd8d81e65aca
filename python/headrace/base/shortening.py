"""Text of bounded length."""

import textwrap

_PLACEHOLDER = " ..."


def shortened(text: str, width: int) -> str:
    """Returns `text` on one line of at most `width` characters, cut between words, or in the first if it is longer."""
    line = textwrap.shorten(text, width, placeholder=_PLACEHOLDER)
    if line == _PLACEHOLDER.strip() and len(text) > width:
        return text.split()[0][: width - len(_PLACEHOLDER)] + _PLACEHOLDER
    return line
