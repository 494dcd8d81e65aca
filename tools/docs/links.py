"""Rewrites links between files of the repository, as GitHub resolves them, into links of the site.

A link to a file that the site shows becomes a link to its page. A link to any other file becomes its address in the
repository. A link to a file that does not exist is reported.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from pathlib import Path

from pages import ROOT, file_of, page_of

# Code is left alone: fenced blocks, and spans between backticks.
_FENCED = r"^(?P<fence>```+|~~~+).*?^(?P=fence)[ \t]*$"
_SPAN = r"(?<!`)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
_CODE = re.compile(f"{_FENCED}|{_SPAN}", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(\]\()([^)\s]+)((?:\s+\"[^\"]*\")?\))")
_ATTRIBUTE = re.compile(r"(<[^<>]*? (?:src|srcset|href)=\")([^\"\s]+)(\")")
_DEFINITION = re.compile(r"(^\[[^\]]+\]:\s+)(\S+)()", re.MULTILINE)
_ELSEWHERE = re.compile(r"^([a-z][a-z0-9+.-]*:|//|#)", re.IGNORECASE)


def rewritten(markdown: str, page: str, repo_url: str, report: Callable[[str], None]) -> str:
    """The text of a page (its path below docs/, or as in pages.py) with the site's links."""
    source = file_of(page)

    def link(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        return before + _target(target, source, page, repo_url, report) + after

    # The code, masked, so that a link whose text is code is one piece.
    code: list[str] = []

    def mask(match: re.Match[str]) -> str:
        code.append(match[0])
        return f"\0{len(code) - 1}\0"

    masked = _CODE.sub(mask, markdown)
    for pattern in (_INLINE, _DEFINITION, _ATTRIBUTE):
        masked = pattern.sub(link, masked)
    return re.sub(r"\0(\d+)\0", lambda match: code[int(match[1])], masked)


def _target(target: str, source: str, page: str, repo_url: str, report: Callable[[str], None]) -> str:
    if _ELSEWHERE.match(target):
        return target
    path, _, anchor = target.partition("#")
    file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if file.startswith("../") or not (ROOT / file).exists():
        report(f"{source}: the link {target!r} leads to {file!r}, which does not exist")
        return target
    shown = page_of(file)
    if shown is not None:
        return _relative(shown, page) + (f"#{anchor}" if anchor else "")
    if file.startswith("bench/results/") and file.endswith(".png"):
        return _relative(f"benchmarks/results/{Path(file).name}", page)
    if file.startswith("docs/assets/"):
        return _relative(file.removeprefix("docs/"), page) + (f"#{anchor}" if anchor else "")
    if anchor and not re.fullmatch(r"L\d+(-L\d+)?", anchor):
        report(f"{source}: the link {target!r} has an anchor that cannot be checked: {file!r} is not on the site")
    kind = "tree" if (ROOT / file).is_dir() else "blob"
    return f"{repo_url.rstrip('/')}/{kind}/main/{file}" + (f"#{anchor}" if anchor else "")


def _relative(shown: str, page: str) -> str:
    return posixpath.relpath(shown, posixpath.dirname(page) or ".")
