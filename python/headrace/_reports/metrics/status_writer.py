"""The thread that writes this process's file for `headrace top`."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from headrace._base.safe_exceptions import is_instance, message_of, named_message_of
from headrace._base.version import __version__
from headrace._reports.metrics import processes, status_files
from headrace._reports.metrics.loader_registry import Loaders
from headrace._reports.metrics.process_figures import ProcessFigures
from headrace._reports.ranks.job_watch import JobWatch

#: A file is written so rarely that the thread runs for at most this share of the time.
MOST_OF_A_CORE = 0.005
_PATIENCE_S = 5.0  # with a store of torch.distributed that does not answer


class Writer:
    """Writes the file of this process at regular times.

    Args:
        loaders: what the file reports.
        where: the folder; None: see `status_files.own_folder`.
        every_s: seconds from file to file, or more where there are many loaders; see `MOST_OF_A_CORE`.

    Attributes:
        path: the file.
        trouble: why the newest one could not be written; "" if it could.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(self, loaders: Loaders, where: str | os.PathLike[str] | None, every_s: float) -> None:
        self._loaders, self._every_s = loaders, every_s
        self._folder = status_files.own_folder(where)
        self.trouble: str = ""
        self._first = os.getpid()
        status_files.remove_dead(self._folder)
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._watch = JobWatch(self._folder) if self._pid == self._first else None  # a forked process is no rank
        known = processes.find_process(self._pid)
        self._started = 0 if known is None else known.started
        self.path: Path = self._folder / status_files.name_of(self._pid)
        self._pause_s = self._every_s
        self._write()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace-publish", daemon=True)
        self._thread.start()

    def restart_in_child(self) -> None:
        """In a forked child, starts a writer with a file of its own; the parent keeps writing to its file."""
        if self._pid != os.getpid():
            try:
                self._begin()
            except OSError as error:
                self.trouble = str(error)

    @property
    def job_trouble(self) -> str:
        """Why the newest figures could not be exchanged with other ranks; "" if they could."""
        return "" if self._watch is None else self._watch.trouble

    def _run(self) -> None:
        while not self._end.wait(self._pause_s):
            try:
                self._write()
                self.trouble = ""
            except BaseException as error:  # a full disk, a folder that was removed: the next file may succeed
                self.trouble = message_of(error) if is_instance(error, OSError) else named_message_of(error)

    def _write(self) -> None:
        begin = time.thread_time()
        loaders, consumer, unpaced_s = self._loaders.figures(), self._loaders.consumer, 0.0
        if self._watch is not None:
            self._loaders.job = self._watch.look(self._loaders.load(), consumer, self._pause_s)
            unpaced_s = self._watch.unpaced_s
        figures = ProcessFigures(
            self._pid,
            self._started,
            time.time(),
            self._pause_s,
            consumer.rank,
            consumer.ranks,
            __version__,
            loaders,
            self._loaders.job,
        )
        status_files.replace_status_file(self.path, figures.as_text())
        self._pause_s = max(self._every_s, (time.thread_time() - begin - unpaced_s) / MOST_OF_A_CORE)

    def close(self) -> None:
        """Ends the thread and removes the file. Idempotent; in a forked process nothing is left to do."""
        if self._pid != os.getpid():
            return
        self._end.set()
        self._thread.join(_PATIENCE_S)
        if self._watch is not None:
            self._watch.close()
        self.path.unlink(missing_ok=True)
