#!/usr/bin/env python3
"""Fails where a comment or docstring has a word that plain technical English avoids; prints what to write instead.

    tools/check_words.py [FILE OR FOLDER ...]    without arguments: all of FOLDERS

Checks comments of Python, C, C++ and CUDA, and Python docstrings. Ignores code, other strings, and `code` in backticks.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("python", "csrc", "tests", "bench", "fuzz", "tools", "examples")

PYTHON = {".py", ".pyi"}
NATIVE = {".c", ".cpp", ".cu", ".cuh", ".h"}

#: Pattern of a word -> what to write instead.
WORDS = {
    "behind": "after",
    "anew": "again",
    "told": '"passed", "given" or "notified"',
    "shall": '"must", or the imperative',
    r"(?:un)?heed\w*": '"check", "handle" or "respect"',
    r"so(?:[ \t]+|[ \t]*\n[ \t]*)many": '"this number of", or the name of the number',
    "lies?": '"is", "is stored in" or "starts at"',
    "lying": '"is", "stored in" or "at"',
}

#: Text of other projects that comments quote -> where it is from. It may have any word.
QUOTED: dict[str, str] = {}

_ANY_WORD = re.compile("|".join(rf"\b(?P<w{number}>{word})\b" for number, word in enumerate(WORDS)), re.IGNORECASE)
_REPLACEMENTS = list(WORDS.values())
_CODE_SPAN = re.compile(r"(`+)[^`\n]+\n?[^`\n]*\1")
_MARK = re.compile(r"^[ \t]*(?://+|\*+|#+)", re.MULTILINE)
_NOT_A_BREAK = re.compile(r"[^\n]")
_NATIVE_TOKEN = re.compile(
    r"""
    (?P<comment> //(?:\\\r?\n|[^\n])* | /\*.*?(?:\*/|\Z) )
    | \b(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\(.*?\)(?P=end)"
    | "(?:\\.|[^"\\\n])*"
    | \b\d[\w.']*            # a number, whose digits may be separated by '
    | '(?:\\.|[^'\\\n])*'
    """,
    re.VERBOSE | re.DOTALL,
)
_Span = tuple[int, int]


class Hit(NamedTuple):
    """A word to replace."""

    line: int
    word: str
    replacement: str


def main(arguments: list[str]) -> int:
    """Prints the hits in the files, or in all files of the folders; returns 1 if there are any."""
    count = 0
    for path in _files([Path(one) for one in arguments] or [ROOT / name for name in FOLDERS]):
        shown = path.resolve()
        shown = shown.relative_to(ROOT) if shown.is_relative_to(ROOT) else shown
        for hit in hits(path.suffix, path.read_text(encoding="utf-8")):
            print(f"{shown}:{hit.line}: {hit.word} -> {hit.replacement}")
            count += 1
    return int(count > 0)


def hits(suffix: str, text: str) -> list[Hit]:
    """Returns the hits in the comments and docstrings of a source file whose name has this suffix."""
    prose = _only(text, _python_spans(text) if suffix in PYTHON else _native_spans(text))
    for quote in QUOTED:
        prose = prose.replace(quote, " " * len(quote))
    prose = _blanked(_CODE_SPAN, prose)
    found = []
    for match in _ANY_WORD.finditer(prose):
        number = int((match.lastgroup or "")[1:])
        found.append(Hit(prose.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), _REPLACEMENTS[number]))
    return found


def _files(paths: list[Path]) -> Iterator[Path]:
    """Yields the source files, sorted within each folder."""
    for path in paths:
        candidates = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (one for one in candidates if one.suffix in PYTHON | NATIVE and one.is_file())


def _only(text: str, spans: list[_Span]) -> str:
    """Returns the text of the spans at its place: everything else, and the marks of comments, are spaces."""
    kept = []
    end = 0
    for begin, stop in spans:
        kept += [_NOT_A_BREAK.sub(" ", text[end:begin]), _blanked(_MARK, text[begin:stop])]
        end = stop
    return "".join(kept)


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """Returns the text with spaces in place of what matches, so that line numbers stay."""
    return pattern.sub(lambda match: _NOT_A_BREAK.sub(" ", match[0]), text)


def _python_spans(text: str) -> list[_Span]:
    """Returns the comments, and the strings that are statements of their own, as docstrings are."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    spans = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            begin = starts[token.start[0] - 1] + token.start[1]
            spans.append((begin, begin + len(token.string)))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            ends = ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
            begin, stop = (starts[row - 1] + len(lines[row - 1].encode()[:column].decode()) for row, column in ends)
            spans.append((begin, stop))
    return sorted(spans)


def _native_spans(text: str) -> list[_Span]:
    """Returns the comments. Literals are matched too, so that none of them begins a comment."""
    return [match.span("comment") for match in _NATIVE_TOKEN.finditer(text) if match["comment"]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
