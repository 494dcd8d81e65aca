"""Where the ranks of a job find each other's figures: a folder, or the store of torch.distributed. No server is added,
and no collective is called: a rank that publishes waits for no other."""

from __future__ import annotations

import os
import re
import socket
import time
from pathlib import Path
from typing import Any

import torch.distributed as dist

from headrace._base.private_files import private_folder, read_own, replace_file

_PREFIX = "headrace"
_OLD_S = 3600.0  # files of a job that has not written for so long are removed
_MOST_BYTES = 1 << 20


def default_store() -> Any:
    """Returns a connection of its own to the store with which torch.distributed began; None without one."""
    if not (dist.is_available() and dist.is_initialized()):
        return None
    try:
        store = dist.distributed_c10d._get_default_store()
        return store.clone() if hasattr(store, "clone") else store
    except Exception:  # a private function, and stores that cannot be cloned
        return None


def job_name(store: Any) -> str:
    """Returns what identifies the job of this process: the same on all its ranks, and another for each job.

    Args:
        store: of torch.distributed; None: the variables of torchrun have to do. "" without them.
    """
    if store is not None:
        try:
            found: bytes = store.compare_set(f"{_PREFIX}/job", "", os.urandom(8).hex())
            return found.decode()
        except Exception:  # the store is gone, or of a kind without this call
            pass
    named = [os.environ.get(one, "") for one in ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")]
    if not any(named):
        return ""
    return re.sub(r"[^\w.-]", "_", "-".join(["env", *named]))[:100]


class FolderBoard:
    """Figures in a folder, which may be one that machines share.

    Args:
        top: the folder of this user's files.
        job: its name.

    Raises:
        OSError: the folder cannot be made, or others may use it.
    """

    def __init__(self, top: Path, job: str) -> None:
        self._folder = top / f"job-{job}"
        _remove_old(top)
        private_folder(self._folder)

    def put(self, rank: str, text: str) -> None:
        """Replaces the figures of a rank. Raises OSError."""
        with replace_file(self._folder / f"{rank}.json") as file:
            file.write(text.encode())

    def count(self) -> int:
        """Returns the number of ranks that have figures here."""
        return len(self._names())

    def all(self, ranks: int) -> dict[str, str]:
        """Returns all figures by rank."""
        return {name: text for name in self._names() if (text := self._read(name))}

    def verdict(self) -> str:
        """Returns the verdict; "" if there is none."""
        return self._read("verdict")

    def _names(self) -> list[str]:
        return [path.stem for path in self._folder.glob("*.json") if path.stem.isdecimal()]

    def _read(self, name: str) -> str:
        try:
            return read_own(self._folder / f"{name}.json")[:_MOST_BYTES].decode(errors="replace")
        except OSError:  # there is none, it has just been removed, or it is another user's
            return ""

    def remove(self, rank: str) -> None:
        """Removes the figures of a rank, and with those of the last one the folder."""
        try:
            (self._folder / f"{rank}.json").unlink(missing_ok=True)
            if not self._names():
                for path in self._folder.iterdir():
                    path.unlink(missing_ok=True)
                self._folder.rmdir()
        except OSError:  # another rank does the same
            pass


def _remove_old(top: Path) -> None:
    """Removes the folders of jobs that were killed."""
    for folder in top.glob("job-*"):
        try:
            paths = [folder, *folder.iterdir()]
            if time.time() - max(path.lstat().st_mtime for path in paths) > _OLD_S:
                for path in paths[1:]:
                    path.unlink(missing_ok=True)
                folder.rmdir()
        except OSError:
            continue


class StoreBoard:
    """Figures in a store of torch.distributed.

    Args:
        store: a connection that no other thread uses.
    """

    def __init__(self, store: Any) -> None:
        self._store = store
        self._there: list[str] = []  # a get of other names would wait

    def put(self, rank: str, text: str) -> None:
        """Replaces the figures of a rank. Raises RuntimeError: the store has ended."""
        self._store.set(f"{_PREFIX}/{rank}", text)

    def all(self, ranks: int) -> dict[str, str]:
        """Returns all figures by rank. Raises RuntimeError: the store has ended."""
        missing = [name for name in map(str, range(ranks)) if name not in self._there]
        self._there += [name for name in missing if self._store.check([f"{_PREFIX}/{name}"])]
        keys = [f"{_PREFIX}/{name}" for name in self._there]
        at_once = getattr(self._store, "has_extended_api", bool)() and keys
        values = self._store.multi_get(keys) if at_once else [self._store.get(key) for key in keys]
        return {name: value.decode(errors="replace") for name, value in zip(self._there, values, strict=True)}

    def verdict(self) -> str:
        """Returns the verdict; "" if there is none. Raises RuntimeError: the store has ended."""
        name = f"{_PREFIX}/verdict"
        return self._store.get(name).decode(errors="replace") if self._store.check([name]) else ""


def host_name() -> str:
    """Returns the name of this machine."""
    return socket.gethostname()[:200]
