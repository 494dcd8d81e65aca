"""Finds the processes that publish, and says why there are none."""

from __future__ import annotations

import os
import pwd
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headrace._base.errors import HeadraceError
from headrace._reports.metrics import processes, status_files
from headrace._reports.metrics.process_figures import ProcessFigures

_HOW = "start it with HEADRACE_PUBLISH=1, or call headrace.publish() in it; a loader appears with its next epoch"


class NothingFoundError(HeadraceError):
    """No process was found; the message is one sentence."""


@dataclass(frozen=True)
class Found:
    """A process that publishes, or did.

    Attributes:
        figures: of its newest file.
        alive: whether it has not ended.
        command: its command line; "" if that is not known.
    """

    figures: ProcessFigures
    alive: bool
    command: str = ""


@dataclass
class _Search:
    found: list[Found] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    forbidden: bool = False


def find_processes(pids: Sequence[int], given: Path | None = None) -> list[Found]:
    """Returns the processes with these numbers, and those that they started, that publish.

    Args:
        pids: none: all processes of this user that have not ended.
        given: the folder of their files; None: where `publish` writes them by default.

    Raises:
        NothingFoundError: there are none.
    """
    if not pids:
        mine = _search_user(os.geteuid(), None, given)
        alive = [one for one in mine.found if one.alive]
        if not alive:
            raise NothingFoundError(
                _choose_message(mine, f"no process of this user publishes its loaders' figures: {_HOW}")
            )
        return alive
    found = []
    for pid in pids:
        owner = processes.owner_of_process(pid)
        search = _search_user(os.geteuid() if owner is None else owner, pid, given)
        if not search.found:
            raise NothingFoundError(_choose_message(search, _why_not(pid, owner, search.forbidden)))
        found += search.found
    return found


def _search_user(user: int, pid: int | None, given: Path | None) -> _Search:
    """Returns what is found in a user's folders of all processes, or of one and those that it started."""
    search, seen = _Search(), set()
    for where in status_files.folders_of(user, given):
        try:
            for number, path in status_files.files_in(where):
                wanted = pid is None or number == pid or processes.is_descendant(number, pid)
                if wanted and number not in seen:
                    seen.add(number)
                    _read_process(number, path, user, search)
        except PermissionError:
            search.forbidden = True
    return search


def _read_process(pid: int, path: Path, user: int, search: _Search) -> None:
    try:
        figures = ProcessFigures.of_text(status_files.read_status_file(path, user))
    except FileNotFoundError:  # the process has ended in between
        return
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        search.faults.append(f"{path} cannot be read: {reason}")
        return
    known = processes.find_process(pid)
    alive = known is not None and known.started == figures.started
    search.found.append(Found(figures, alive, processes.command_of_process(pid) if alive else ""))


def _choose_message(search: _Search, otherwise: str) -> str:
    return search.faults[0] if search.faults else otherwise


def _why_not(pid: int, owner: int | None, forbidden: bool) -> str:
    if owner is None:
        return f"there is no process {pid} here: it has ended, or it runs in another container or on another machine"
    if owner != os.geteuid() and (forbidden or os.geteuid() != 0):
        return f"process {pid} belongs to {_user_name(owner)}: only that user and root can read its figures"
    return f"process {pid} publishes nothing: {_HOW}"


def _user_name(user: int) -> str:
    try:
        return f"the user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"user {user}"
