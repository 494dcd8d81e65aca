"""The files in which processes of one user report their loaders: their folders, who may read and write them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from headrace._base.errors import HeadraceError
from headrace._reports.metrics.processes import find_process, pid_namespace

_MOST_BYTES = 4 << 20  # a file has some kilobytes a loader


class NoFolderError(HeadraceError, OSError):
    """No folder is safe to use; the message is one sentence."""


def own_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """Returns the folder to write to, made if it is missing.

    Args:
        given: the user's choice. None: ``$XDG_RUNTIME_DIR/headrace``, which the system makes for each login; where
            there is none, ``/tmp/headrace-UID``. ``$TMPDIR`` is not used: a reader may have another one.

    Raises:
        OSError: it cannot be made, or others may write to it.
    """
    if given is not None:
        path = Path(given)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path
    user = os.geteuid()
    at_login = os.environ.get("XDG_RUNTIME_DIR", "")
    if at_login and _owner_of(Path(at_login)) == user:  # `su` keeps the variable of another user
        path = Path(at_login) / "headrace"
    else:
        path = _shared_folder(user)
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != user or found.st_mode & 0o077:
        raise NoFolderError(
            f"{path} is not a folder that only this user may use, so figures of loaders are not written there; remove "
            "it, or name another folder"
        )
    return path


def folders_of(user: int, given: str | os.PathLike[str] | None = None) -> list[Path]:
    """Returns the folders that may hold files of a user's processes."""
    if given is not None:
        return [Path(given)]
    at_login = os.environ.get("XDG_RUNTIME_DIR", "")
    named = [Path(at_login) / "headrace"] if at_login and user == os.geteuid() else []
    return list(dict.fromkeys([*named, Path(f"/run/user/{user}/headrace"), _shared_folder(user)]))


def _shared_folder(user: int) -> Path:
    return Path("/tmp") / f"headrace-{user}"  # its owner and mode are checked


def _owner_of(folder: Path) -> int | None:
    try:
        found = folder.lstat()
    except OSError:
        return None
    return found.st_uid if stat.S_ISDIR(found.st_mode) else None


def name_of(pid: int) -> str:
    """Returns the name of a process's file. Processes of other containers and machines may share folder and number."""
    return f"{pid_namespace()}-{pid}.json"


def replace_status_file(path: Path, text: str) -> None:
    """Writes a file that only this user may read. A reader sees the old content or the new one.

    Raises:
        OSError: it cannot be written.
    """
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)  # what a process of this number left
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with open(new, "w", encoding="utf-8", opener=lambda name, _: os.open(name, flags, 0o600)) as file:
        file.write(text)
    new.replace(path)


def read_status_file(path: Path, user: int) -> str:
    """Returns the content of a user's file.

    Raises:
        OSError: it cannot be read, or is not that user's, or no plain file.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid != user:
            raise PermissionError(1, "it does not belong to the user of the process", str(path))
        return file.read(_MOST_BYTES).decode(errors="replace")


def files_in(folder: Path) -> Iterator[tuple[int, Path]]:
    """Yields number and file of the processes of this container that have one in a folder, by number.

    Raises:
        PermissionError: the folder is another user's.
    """
    try:
        found = list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    own = ((re.fullmatch(rf"{pid_namespace()}-(\d+)\.json", path.name), path) for path in found)
    yield from sorted((int(match[1]), path) for match, path in own if match is not None)


def remove_dead(folder: Path) -> None:
    """Removes the files of processes that have ended without removing them."""
    for pid, path in files_in(folder):
        if find_process(pid) is None:
            path.unlink(missing_ok=True)
