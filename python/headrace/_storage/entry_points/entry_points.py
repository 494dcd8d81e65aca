"""What users say about entry points: how many bytes of memory, and where they are kept."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from headrace._base import messages
from headrace._base.checks import checked_size
from headrace._base.lifetimes.finalizers import Ending, call_in_finalizer_thread
from headrace._base.lifetimes.weak_list import Living
from headrace._base.native import core
from headrace._storage.entry_points import sidecar

AUTO: Literal["auto"] = "auto"


@dataclass(frozen=True)
class Entries:
    """What is known of the rows of JPEGs, and how often it was used, by all loaders that share it.

    Attributes:
        images, bytes: what is in memory now.
        limit: most bytes.
        decodes, entered: JPEGs without restart markers that were decoded, and those of them that were known.
    """

    images: int
    bytes: int
    limit: int
    decodes: int
    entered: int

    @property
    def hit_rate(self) -> float:
        """The share of the decodes whose image was known."""
        return self.entered / self.decodes if self.decodes else 0.0

    def __str__(self) -> str:
        return (
            f"entry points: of {self.images} images, {self.bytes:,} of {self.limit:,} bytes; {self.hit_rate:.1%} of "
            f"{self.decodes} decodes entered at known rows"
        )


class EntryPoints(Ending):
    """Where the rows of JPEGs begin, for ``DataLoader(entry_points=)``: later epochs decode fewer of their codes.

    A JPEG has no index, so a decoder reads all codes above a crop. This table notes, for each row of blocks that a
    decode passes, where its codes begin; a later decode of the same file begins at the first row of its crop. The
    pixels are the same. An image is known by a hash of all bytes of its file, so a file that changes is another image.
    It costs about 12 bytes for each row of blocks (8 or 16 pixels) and 150 bytes an image. At the limit nothing more is
    learned. All loaders that are given one object share it, and torch's worker processes of these loaders, too; a copy
    in another process learns for itself.

    Args:
        memory: most bytes, a number or a text such as ``"1 GB"``.
        path: a file in which the table is kept for later runs, ``.npz``; it is made if it is missing, read now, and
            written when an epoch begins, when a loader is closed and when the process ends, if more is known then.
            Several processes may use one. It must be trusted as the images are: false entry points give other pixels.
            None: the table ends with the process.

    Raises:
        ValueError: `memory` is no size, or the file at `path` is no such table, or damaged.
        OSError: the file cannot be read, or its folder cannot be written to.
    """

    def __init__(self, memory: int | str, path: str | os.PathLike[str] | None = None) -> None:
        limit = checked_size(memory, "memory")
        self._given = memory, path
        self.native: core.EntryPoints
        if path is None:
            self.native = core.EntryPoints(limit)
            return
        file = os.path.abspath(os.fspath(path))  # noqa: PTH100 - resolve() follows links
        self.native = sidecar.load_or_make(file, limit)
        self._saver = _Saver(self.native, file)
        self.at_end: Callable[[], object] = call_in_finalizer_thread(self._saver.save)
        write_at_exit(self)

    def counts(self) -> Entries:
        """Returns what is known now."""
        return Entries(limit=self.native.limit, **self.native.counts())

    def save(self) -> None:
        """Writes the file, if there is one and more is known than it holds. A failure is a warning, once."""
        if self._given[1] is not None:
            self._saver.save()

    def _save_at_exit(self) -> None:
        self.save()

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._given

    def __deepcopy__(self, known: dict[int, object]) -> EntryPoints:
        return self  # a table that loaders share, as a lock would be

    def __repr__(self) -> str:
        memory, path = self._given
        return f"EntryPoints({memory!r})" if path is None else f"EntryPoints({memory!r}, {os.fspath(path)!r})"


class _Saver:
    """Writes a table to its file; it refers to no EntryPoints, whose end it outlives."""

    def __init__(self, native: core.EntryPoints, file: str) -> None:
        self._native, self._file = native, file
        self._saved, self._process = native.counts()["bytes"], os.getpid()
        self._broken = False

    def save(self) -> None:
        known = self._native.counts()["bytes"]
        if known <= self._saved or self._broken or os.getpid() != self._process:
            return
        try:
            sidecar.save_sidecar(self._file, self._native)
        except OSError as error:
            self._broken = True
            messages.warn(
                f"the entry points cannot be written to {self._file} ({error.strerror or error}): this process goes on "
                "without writing them"
            )
        self._saved = known


_with_files: Living[EntryPoints] = Living()


def write_at_exit(points: EntryPoints) -> None:
    """Has the file of a table written when the process ends, if the table still lives."""
    _with_files.add(points)


@atexit.register
def _save_all() -> None:
    for one in _with_files:
        one._save_at_exit()


def checked_entry_points(given: object) -> EntryPoints | Literal["auto"] | None:
    """Returns the argument `entry_points` of a loader: ``"auto"``, an EntryPoints, or the bytes of one.

    Raises:
        TypeError: it is none of these.
        ValueError: it is no size.
    """
    if given is None or isinstance(given, EntryPoints):
        return given
    if isinstance(given, str) and given == AUTO:
        return AUTO
    if isinstance(given, (int, str)) and not isinstance(given, bool):
        return EntryPoints(checked_size(given, "entry_points"))
    raise TypeError(
        "entry_points must be 'auto', bytes of memory, such as '1 GB', a headrace.EntryPoints, or None, not "
        f"{type(given).__name__}"
    )
