"""Where a file of a table is stored: on this machine, or in another one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from headrace._storage.remote.clients.responses import Stamp
from headrace._storage.remote.remote_files import Access, RemoteFiles
from headrace._storage.remote.urls import name_object
from headrace.datasets.tables.access.remote_reads import RangeFile, copy_file
from headrace.datasets.tables.converted_files import made_once


@dataclass(frozen=True)
class FileLocation:
    """A file.

    Attributes:
        name: its path, or what names the object.
        files, number: the object, in another machine.
    """

    name: str
    files: RemoteFiles | None = None
    number: int = 0

    @property
    def far(self) -> bool:
        """Whether it is in another machine."""
        return self.files is not None

    @property
    def shown(self) -> str:
        """Its path, or its URL without credentials."""
        return self.name if self.files is None else self.files.shown[self.number]

    @property
    def stamp(self) -> Stamp | None:
        """The stamp of an object; None for a file of this machine."""
        return None if self.files is None or self.files.stamps is None else self.files.stamps[self.number]

    def open(self) -> object:
        """Returns what pyarrow opens for reading."""
        return self.name if self.files is None else RangeFile(self.files, self.number)

    def here(self, folder: Path) -> str:
        """Returns the path of the file, or of a copy of the object, which serves until the object changes. Raises
        OSError."""
        if self.files is None:
            return self.name
        make = partial(copy_file, self.files, self.number)
        suffix = PurePosixPath(self.shown).suffix
        return made_once(self.name, "copy", suffix, folder, make, self.stamp, self.shown)


def find_remote_files(urls: list[str], access: Access) -> list[FileLocation]:
    """Returns the locations of the URLs, with size and ETag fetched; a later change raises OSError. Raises OSError."""
    files = access.files(urls)
    return [FileLocation(name_object(url, files.options), files, number) for number, url in enumerate(urls)]
