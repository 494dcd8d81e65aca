"""Results for other programs: one JSON document, or the paths of broken files, one a line."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TextIO

from headrace._cli import inputs

#: The standard output, where a file is asked for.
STDOUT = Path("-")

_SHOWN = 20  # broken files


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Adds ``--json``."""
    what = "print the result as one JSON document; the text goes to the standard error"
    parser.add_argument("--json", action="store_true", help=what)


def add_bad_option(parser: argparse.ArgumentParser) -> None:
    """Adds ``--bad FILE``."""
    what = f"write the paths of broken files, one a line; {inputs.DASH}"
    parser.add_argument("--bad", type=Path, metavar="FILE", help=what)


@contextmanager
def stdout_for_result(args: argparse.Namespace) -> Iterator[TextIO]:
    """Yields the standard output; what is printed meanwhile goes to the standard error if a result will go there.

    Raises:
        GivenError: two results are asked for there, or a file cannot be written.
    """
    bad = getattr(args, "bad", None)
    document = args.json is True or args.json == STDOUT
    if document and bad == STDOUT:
        raise inputs.GivenError("--json and --bad - both write to the standard output; give --bad a file")
    for path in (bad, args.json):
        if isinstance(path, Path) and path != STDOUT:
            inputs.check_writable(path)
    out = sys.stdout
    if out is None and (document or bad == STDOUT):
        raise inputs.GivenError("the standard output is closed")
    if not document and bad != STDOUT:
        yield out
        return
    with redirect_stdout(sys.stderr):
        yield out


def write_document(document: dict[str, object], target: bool | Path | None, out: TextIO) -> None:
    """Writes a result as JSON.

    Args:
        target: the command's ``--json``: a file, `STDOUT` or True for `out`; None or False: nothing is written.
    """
    if not target:
        return
    text = json.dumps(document, indent=1, default=str) + "\n"  # ASCII: names of files may hold what is no UTF-8
    _write_bytes_to(text.encode(), target, out)


def write_bad(paths: Iterable[str], target: Path | None, out: TextIO) -> None:
    """Writes paths as the bytes that they are on the disk, each once. One with a line break is left out, with a note.

    Args:
        target: the command's ``--bad``; None: nothing is written.
    """
    if target is None:
        return
    unique = list(dict.fromkeys(paths))
    whole = [path for path in unique if "\n" not in path]
    data = b"".join(os.fsencode(path) + b"\n" for path in whole)
    _write_bytes_to(data, target, out)
    if len(whole) < len(unique):
        print(f"--bad leaves out paths that hold a line break: {len(unique) - len(whole)}", file=sys.stderr)


def _write_bytes_to(data: bytes, target: bool | Path, out: TextIO) -> None:
    """Writes a result. Raises GivenError if its place is full or the like."""
    try:
        if isinstance(target, Path) and target != STDOUT:
            target.write_bytes(data)
            return
        out.flush()
        out.buffer.write(data)
        out.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        where = "the standard output" if target is True or target == STDOUT else str(target)
        raise inputs.GivenError(f"{where} cannot be written: {error.strerror}") from error


def describe_broken_files(broken: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yields a line for each of the first broken files, (path, reason), and one that says how to get the others."""
    yield from (f"  {place}: {reason}" for place, reason in broken[:_SHOWN])
    if len(broken) > _SHOWN:
        yield f"  and {len(broken) - _SHOWN:,} more: --bad FILE writes the paths of all {len(broken):,}"


def broken_files_as_json(broken: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Returns broken files, (path, reason), for a document."""
    return [{"path": place, "reason": reason} for place, reason in broken]
