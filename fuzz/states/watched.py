"""Notices what data make Python do, by its audit events: names that an unpickler looks up, new processes, libraries."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_EVENTS = ("pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "ctypes.dlopen")
_seen: list[str] | None = None
_installed = False


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if _seen is not None and event in _EVENTS:
        _seen.append(f"{event}{arguments!r:.200}")


@contextmanager
def watched() -> Iterator[list[str]]:
    """Lists the events in its scope. Not reentrant; one thread."""
    global _seen, _installed
    if not _installed:
        sys.addaudithook(_hook)  # for ever: Python removes none
        _installed = True
    _seen = []
    try:
        yield _seen
    finally:
        _seen = None
