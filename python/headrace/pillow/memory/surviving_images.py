"""Images without pixels that outlive the batch they were opened for: their pixels are made, and their files let go.

An image that a dataset keeps from one epoch to the next would otherwise hold its compressed file and, as crops of it
are read again and again, all pixels of that file. With Pillow it has its own pixels and nothing else.

Note [survivors]: an image of a sample is gone once the next batch is made, or the program keeps it. So what was there
when the last batch ended is looked at when the next one ends. Where no batches end (``headrace.pillow.install``), the
bytes of all files are limited, and those read first are let go.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

MOST = 1 << 26  # bytes of files, compressed and decoded, that images without pixels keep alive
_LONG = 256  # references to files; those to files that are gone are removed now and then


class ReadFile(Protocol):
    """A file that images without pixels refer to.

    Attributes:
        nbytes: what it takes.
        purpose: whose batches it was read for.
        is_old: a batch has ended since it was read.
    """

    nbytes: int
    purpose: object
    is_old: bool

    def make_images(self) -> None:
        """Makes the pixels of all images of the file, after which none refers to it."""


class ReadFiles:
    """The files that images without pixels refer to, in the order in which they were read.

    No weak reference has a callback: Python ignores what is raised in these, Ctrl-C included.

    Attributes:
        least: bytes of the files that are kept at least, where `MOST` is less.
    """

    def __init__(self) -> None:
        self.least: int = 0
        self._lock = threading.RLock()  # the garbage collector may call code that opens an image
        self._files: list[weakref.ref[ReadFile]] = []
        self._longest = _LONG
        self._bytes = 0  # theirs, also of those that have gone since they were counted

    def add(self, file: ReadFile) -> None:
        """Called when a file has been read."""
        with self._lock:
            self._files.append(weakref.ref(file))
            if len(self._files) > self._longest:
                self._longest = 2 * len(self._files_in_use()) + _LONG
            else:
                self._bytes += file.nbytes
            let_go = self._files_over_limit() if self._bytes > max(MOST, self.least) else []
        for old in let_go:
            old.make_images()

    def grow(self, by: int) -> None:
        """Called when a file takes `by` bytes more."""
        with self._lock:
            self._bytes += by
            let_go = self._files_over_limit() if self._bytes > max(MOST, self.least) else []
        for old in let_go:
            old.make_images()

    def _files_over_limit(self) -> list[ReadFile]:
        """Returns the files that are too much, those read first."""
        alive = self._files_in_use()
        left, count = self._bytes, 0
        while left > max(MOST, self.least) and count < len(alive) - 1:  # never the newest: its image is being made
            left -= alive[count].nbytes
            count += 1
        return alive[:count]

    def end_batch(self, purpose: object, samples_are_gone: bool) -> None:
        """Called when a batch has been made.

        Args:
            purpose: whose batch.
            samples_are_gone: whether nothing of this function's caller refers to the batch's samples any more.
        """
        with self._lock:
            alive = [file for file in self._files_in_use() if file.purpose is purpose]
        for file in alive:
            if samples_are_gone or file.is_old:
                file.make_images()
            file.is_old = True

    def _files_in_use(self) -> list[ReadFile]:
        found = [file for file in (one() for one in self._files) if file is not None]
        self._files = [weakref.ref(file) for file in found]
        self._bytes = sum(file.nbytes for file in found)
        return found

    def forget_lock(self) -> None:
        """In a child process: another thread of the parent may have held the lock."""
        self._lock = threading.RLock()


files: ReadFiles = ReadFiles()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=files.forget_lock)
