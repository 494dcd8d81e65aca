"""Counts what libtiff prints about damaged files, in place of showing it.

Pillow's libtiff is C code: it writes lines to file descriptor 2 for each file, and no Python setting stops it.
"""

from __future__ import annotations

import faulthandler
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

_STDERR = 2
#: A line begins with the function that complains, or with the name that Pillow gives a file in memory.
_NAME = re.compile(
    rb"(?:_?TIFF\w+|tempfile\.tif|(?:Dump|Fax|JPEG|LERC|LogL\w*|LZMA|LZW|NeXT|OJPEG|PackBits|PixarLog|SGILog|ThunderScan"
    rb"|WebP|ZIP|ZSTD)\w*): "
)
_END = b".\n"


@dataclass
class KeptMessages:
    """What was kept back.

    Attributes:
        lines: of libtiff's; 0 until the context ends.
    """

    lines: int = 0

    def __str__(self) -> str:
        return f"{self.lines:,} {'line' if self.lines == 1 else 'lines'} of libtiff's messages not shown"


@contextmanager
def count_libtiff_messages() -> Iterator[KeptMessages]:
    """Lets file descriptor 2 write to a temporary file, counts libtiff's lines, and prints the others at the end.

    All threads of the process write to that file, and the processes that it starts. Python's own ``sys.stderr``, such
    as a progress bar, stays on the screen. Nothing is redirected where there is no standard error or no temporary
    folder, nor with `faulthandler` enabled: what it writes when the process crashes would be lost with the file.
    """
    counted = KeptMessages()
    if (places := _open_redirection()) is None:
        yield counted
        return
    kept, screen = places
    try:
        with _redirect_stderr(kept, screen):
            yield counted
    finally:
        counted.lines = _print_other_lines(kept, _STDERR)
        kept.close()


def _open_redirection() -> tuple[IO[bytes], int] | None:
    """Returns a file for what is kept back and a duplicate of descriptor 2; None where nothing can be redirected."""
    if sys.stderr is None or sys.__stderr__ is None or faulthandler.is_enabled():
        return None
    try:
        screen = os.dup(_STDERR)
    except OSError:
        return None
    try:
        return tempfile.TemporaryFile(), screen
    except OSError:
        os.close(screen)
        return None


@contextmanager
def _redirect_stderr(kept: IO[bytes], screen: int) -> Iterator[None]:
    """Lets descriptor 2 write to `kept`, and ``sys.stderr``, if it is that descriptor, to its duplicate `screen`."""
    usual = sys.stderr
    usual.flush()
    # `screen` stays open: a log handler made meanwhile may write to it later.
    ours = _open_text_stream(screen, usual) if _is_descriptor_2(usual) else usual
    os.dup2(kept.fileno(), _STDERR)
    sys.stderr = ours
    try:
        yield
    finally:
        with suppress(OSError):
            ours.flush()
        if sys.stderr is ours:
            sys.stderr = usual
        os.dup2(screen, _STDERR)


def _is_descriptor_2(stream: object) -> bool:
    try:
        return isinstance(stream, io.TextIOWrapper) and stream.fileno() == _STDERR
    except (OSError, ValueError):  # it has no descriptor
        return False


def _open_text_stream(descriptor: int, like: object) -> io.TextIOWrapper:
    assert isinstance(like, io.TextIOWrapper)
    raw = io.FileIO(descriptor, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), like.encoding, like.errors, line_buffering=True)


def _print_other_lines(kept: IO[bytes], screen: int) -> int:
    """Prints the lines that are not libtiff's to descriptor `screen`, and returns the number of the others.

    libtiff writes a name, a message and the end of the line one after the other. Other threads come between: for each
    name of a line that has no end there, a later line has an end without a name.
    """
    kept.seek(0)
    found, nameless = 0, 0
    with suppress(OSError):  # nobody reads the standard error any more
        for line in kept:
            if _NAME.match(line) or (line.endswith(_END) and (nameless > 0 or line == _END)):
                found += 1
                nameless = max(nameless + len(_NAME.findall(line)) - line.endswith(_END), 0)
                continue
            while line:
                line = line[os.write(screen, line) :]
    return found
