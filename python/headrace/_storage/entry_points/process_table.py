"""The table of ``entry_points="auto"``: one for the loaders of a process, kept for later runs in the user's cache.

The file of a table is that of the first loader's dataset. Decision 0123.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from headrace._base import loggers
from headrace._base.lifetimes.finalizers import call_in_finalizer_thread
from headrace._base.lifetimes.threads import Serving
from headrace._base.native import core
from headrace._base.private_files import create_once, mapped_array, private_folder, read_own, user_cache
from headrace._base.types import Array
from headrace._storage.entry_points import sidecar
from headrace._storage.entry_points.entry_points import EntryPoints, write_at_exit

_VARIABLE = "HEADRACE_ENTRY_POINTS_FOLDER"
_SHARE = 32  # of this rank's memory, the table takes one part at most
_BYTES_AN_IMAGE = 650  # of an ImageNet file, on average
_LEAST_COVERED = 0.1  # of the samples: with less, the hashes cost what the known rows save
_LEAST_IMAGES = 100  # that a file is written for
_GROWN = 1 / 8  # by how much, for a file that is written while epochs follow
_GROWN_AT_END = 1 / 32  # 6 us an image of the whole file, which the program's end waits for; 0.1 ms are saved by one
_FOLDER_BYTES = 1 << 30  # of all files: those that were not used for the longest time are removed
_SECRETS = "secrets.npy"
_DAY_S = 86_400


class ProcessTable(EntryPoints):
    """The table of the loaders of a process. What can be read or written of its file changes speed, never an outcome:
    a failure is logged.

    Args:
        limit: most bytes.
        file: where the table is kept; None: nowhere.
        secrets: of all files in its folder.
    """

    def __init__(self, limit: int, file: Path | None, secrets: Array | None = None) -> None:
        self._given = limit, None
        self.native = core.EntryPoints(limit, secrets)
        self._file = None if file is None else _File(file, self.native)
        if self._file is not None:
            self.at_end: Callable[[], object] = call_in_finalizer_thread(self._file.end)
            write_at_exit(self)

    def save(self) -> None:
        """Has a thread write the file, if an eighth more is known than it holds."""
        if self._file is not None and self._file.grown >= _GROWN:
            call_in_finalizer_thread(self._file.save)()

    def _save_at_exit(self) -> None:
        """Writes the file, if a thirty-second more is known than it holds."""
        if self._file is not None:
            self._file.end()

    def wait(self) -> None:
        """Waits until what earlier runs have learned is in the table: before a fork, which a thread is not part of."""
        if self._file is not None:
            self._file.wait()

    def __reduce__(self) -> tuple[object, ...]:
        return EntryPoints, self._given


class _File:
    """What is kept of a table, read in a thread; it refers to no ProcessTable, whose end it outlives."""

    def __init__(self, path: Path, native: core.EntryPoints) -> None:
        self._path, self._native = path, native
        self._saved, self._process = 0, os.getpid()
        self._saving = threading.Lock()
        self._ended, self._is_read = False, not path.exists()
        self._reading = None if self._is_read else Serving(self._read, (), "headrace-entry-points")

    @property
    def grown(self) -> float:
        """By how much of what the file holds the table has grown."""
        known = self._native.counts()
        if known["images"] < _LEAST_IMAGES or os.getpid() != self._process:
            return 0.0
        return (known["bytes"] - self._saved) / max(self._saved, 1)

    def wait(self) -> None:
        if self._reading is not None:
            self._reading.join()

    def _read(self) -> None:
        try:
            held = sidecar.parse_content(read_own(self._path), str(self._path))
            if not np.array_equal(held["secrets"], self._native.secrets):
                raise ValueError(f"{self._path} belongs to another folder")
            with self._saving:  # the interpreter must not end in a function of ours
                if not self._ended:
                    self._native.add(held["keys"], held["counts"], held["bits"], held["dc"])
            self._saved = self._native.counts()["bytes"]
            os.utime(self._path)
        except (OSError, ValueError, MemoryError) as error:
            loggers.storage.info("entry points of earlier runs are not used: %s", str(error))
        self._is_read = True

    def save(self) -> None:
        """Writes the file, unless it is still read: little is known then that it does not hold."""
        if os.getpid() != self._process or not self._is_read:  # a thread of the parent's may hold the lock
            return
        with self._saving:
            if self.grown < _GROWN_AT_END:
                return
            known = self._native.counts()["bytes"]
            try:
                sidecar.save_sidecar(str(self._path), self._native, most=_FOLDER_BYTES)
                _remove_oldest(self._path.parent)
            except (OSError, MemoryError) as error:
                loggers.storage.info("entry points are not kept in %s: %s", self._path, str(error))
            self._saved = known

    def end(self) -> None:
        """The same when nobody uses the table any more; what is not read yet is not waited for."""
        if os.getpid() == self._process:
            with self._saving:
                self._ended = True
            self.save()


def _remove_oldest(folder: Path) -> None:
    """Removes the files that were not used for the longest time, above the limit, and what killed processes have left
    unfinished."""
    now, found = time.time(), []
    for path in folder.iterdir():
        with suppress(OSError):  # another process has removed it
            info = path.lstat()
            if path.suffix == ".npz":
                found.append((info.st_mtime, info.st_size, path))
            elif ".unfinished-" in path.name and now - info.st_mtime > _DAY_S:
                path.unlink()
    left = sum(size for _, size, _ in found)
    for _, size, path in sorted(found)[:-1]:
        if left <= _FOLDER_BYTES:
            break
        with suppress(OSError):
            path.unlink()
        left -= size


def _folder() -> Path | None:
    """Returns the folder of the files; None: nothing is kept."""
    named = os.environ.get(_VARIABLE)
    if named is None:
        return user_cache("entry_points")
    # One of its own for each user: the folder that is named may be in use for other files, and by others.
    return Path(named).expanduser().absolute() / f"entry_points-{os.geteuid()}" if named else None


def _secrets_of(folder: Path) -> Array:
    """Returns the secrets of all tables of a folder, so that what several processes learn fits together.

    Raises:
        OSError, ValueError: they cannot be read or made.
    """
    file = folder / _SECRETS
    try:
        return _read_secrets(file)
    except FileNotFoundError:
        pass
    except ValueError:  # damaged, as where a machine has failed: no table fits it any more
        file.unlink(missing_ok=True)
    with create_once(file) as out:
        np.save(out, core.EntryPoints(1).secrets)
    return _read_secrets(file)


def _read_secrets(file: Path) -> Array:
    secrets = np.array(mapped_array(file))
    if secrets.dtype != np.uint64 or secrets.shape != (5,):
        raise ValueError(f"{file} holds no secrets")
    return secrets


def _make_table(limit: int, name: Callable[[], str]) -> ProcessTable:
    try:
        folder = _folder()
        if folder is not None:
            private_folder(folder)
            file = folder / f"{hashlib.sha256(name().encode()).hexdigest()[:32]}.npz"
            return ProcessTable(limit, file, _secrets_of(folder))
    except Exception as error:  # no home, no permission; and a dataset of a program's own may raise any
        loggers.storage.info("entry points are not kept for later runs: %s", str(error))  # its frames hold what is made
    return ProcessTable(limit, None)


_of_process: weakref.ref[ProcessTable] | None = None


def shared_by_process(samples: int, memory: Callable[[], int], name: Callable[[], str]) -> ProcessTable | None:
    """Returns the table of all loaders of this process with ``entry_points="auto"``, which ends with the last of them.

    Args:
        samples: of the dataset.
        memory: returns the bytes that this rank has; a part of them is the limit of a table that is made now.
        name: returns what the dataset is known by in later runs: a table that is made now is kept by this name.

    Returns:
        None if it would hold too few of the samples to pay for the hash of each file.
    """
    global _of_process
    table = None if _of_process is None else _of_process()
    limit = max(1, memory() // _SHARE) if table is None else table.native.limit
    if samples * _BYTES_AN_IMAGE * _LEAST_COVERED > limit:
        return None
    if table is None:
        table = _make_table(limit, name)
        _of_process = weakref.ref(table)
    return table


def name_of_dataset(dataset: object, samples: int) -> str:
    """Returns what a dataset of a program's own is known by: its classes, and its number of samples.

    No line of the dataset's code runs: its attributes may be computed.
    """
    classes: list[str] = []
    inner: object = dataset
    while inner is not None and len(classes) < 8:  # a Subset of a wrapper of a dataset
        classes.append(f"{type(inner).__module__}.{type(inner).__qualname__}")
        try:
            inner = object.__getattribute__(inner, "__dict__").get("dataset")
        except AttributeError:  # it has slots
            break
    return f"{' of '.join(classes)}, {samples} samples"
