"""Files in folders that others may be able to write to: opened only if they are what this program, or the folder's
owner, can have written; made so that others can neither read them nor have them written elsewhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np

from headrace._base.types import Array

PRIVATE = 0o600
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def open_own(path: str | os.PathLike[str], *, follow: bool = False) -> BinaryIO:
    """Opens a regular file for reading that this user, root, or the owner of its folder has written.

    A pipe, a device or a socket is neither waited for nor read.

    Args:
        follow: whether the last part of the path may be a link.

    Raises:
        OSError: there is none, or it is none of these.
    """
    number = os.open(path, _READ | (0 if follow else os.O_NOFOLLOW))
    try:
        info = os.fstat(number)
        if not stat.S_ISREG(info.st_mode):
            raise PermissionError(1, "it is no regular file", str(path))
        if info.st_uid not in (os.geteuid(), 0) and info.st_uid != _owner_of_folder(path):
            raise PermissionError(1, "it belongs to another user, who does not own its folder", str(path))
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def _owner_of_folder(path: str | os.PathLike[str]) -> int:
    return os.stat(os.path.dirname(os.path.abspath(path))).st_uid  # noqa: PTH100, PTH116, PTH120 - no resolve()


def read_own(path: str | os.PathLike[str], *, follow: bool = False) -> bytes:
    """Returns the content of such a file. Raises OSError."""
    with open_own(path, follow=follow) as file:
        return file.read()


def mapped_array(path: str | os.PathLike[str]) -> Array:
    """Returns the array in such a file, of numpy's format, mapped read-only.

    Raises:
        OSError: there is no such file.
        ValueError: it holds no array, or fewer bytes than the array has.
    """
    form = np.lib.format
    with open_own(path) as file:
        version = form.read_magic(file)
        read = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}.get(version)
        if read is None:
            raise ValueError(f"{path} is of a version of numpy's format that is not read")
        try:
            shape, is_fortran, dtype = read(file)
        except Exception as error:  # numpy and Python's tokenizer raise many classes for damaged headers
            raise ValueError(f"{path} holds no array, or it is damaged: {error}") from error
        if dtype.hasobject:
            raise ValueError(f"{path} holds objects, which are not read")
        order: Literal["F", "C"] = "F" if is_fortran else "C"
        if 0 in shape:  # nothing can be mapped
            return np.empty(shape, dtype, order)
        return np.memmap(file, dtype, "r", file.tell(), shape, order)


def is_own_folder(path: Path) -> bool:
    """Whether there is a folder, not a link, of this user, root, or the owner of its parent folder."""
    try:
        info = path.lstat()
        return stat.S_ISDIR(info.st_mode) and info.st_uid in (os.geteuid(), 0, _owner_of_folder(path))
    except OSError:
        return False


def is_own(path: str | os.PathLike[str]) -> bool:
    """Whether there is such a file."""
    try:
        with open_own(path):
            return True
    except OSError:
        return False


def create_file(path: str | os.PathLike[str], mode: int = PRIVATE) -> BinaryIO:
    """Makes a file and opens it for writing. Raises FileExistsError if there is anything of that name, also a link.

    Args:
        mode: who may read it, as far as the process's umask lets them.
    """
    number = os.open(path, _NEW, mode)
    return os.fdopen(number, "wb")


def replace_file(path: Path, mode: int = PRIVATE) -> AbstractContextManager[BinaryIO]:
    """Gives a new file to write to, which takes the place of `path` as a whole if nothing is raised. Raises OSError."""
    return _file_beside(path, mode, lambda unfinished: unfinished.replace(path))


def create_once(path: Path) -> AbstractContextManager[BinaryIO]:
    """Gives a new file to write to, which becomes `path` as a whole if nothing is raised, unless there is one by then:
    of several processes one makes it. Raises OSError."""

    def put(unfinished: Path) -> None:
        with suppress(FileExistsError):
            os.link(unfinished, path)

    return _file_beside(path, PRIVATE, put)


@contextmanager
def _file_beside(path: Path, mode: int, put: Callable[[Path], object]) -> Iterator[BinaryIO]:
    """Gives a new file beside `path` to write to; `put` is called with its path when it is written."""
    unfinished = path.with_name(f"{path.name}.unfinished-{os.getpid()}-{os.urandom(4).hex()}")
    file = create_file(unfinished, mode)
    try:
        with file:
            yield file
        put(unfinished)
    finally:
        unfinished.unlink(missing_ok=True)


def permissions_like(path: str | os.PathLike[str]) -> int:
    """Returns the mode of a file that may be read by those who may read another one. Raises OSError."""
    return os.stat(path).st_mode & 0o666 | PRIVATE  # noqa: PTH116 - a string


def private_folder(path: Path) -> None:
    """Makes a folder, or takes one of this user, that no other user may use.

    Raises:
        OSError: it cannot be made, or is no folder of this user, or cannot be closed to others.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    info = path.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise NotADirectoryError(20, "it is no folder", str(path))
    if info.st_uid != os.geteuid():
        raise PermissionError(1, "it belongs to another user", str(path))
    if info.st_mode & 0o077:
        path.chmod(0o700)
        if path.lstat().st_mode & 0o077:
            raise PermissionError(1, "it cannot be closed to other users", str(path))


def user_cache(name: str) -> Path:
    """Returns a folder of headrace's in the user's folder of caches. Raises RuntimeError if the user has no home."""
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (root if root.is_absolute() else Path.home() / ".cache") / "headrace" / name  # as XDG has it
