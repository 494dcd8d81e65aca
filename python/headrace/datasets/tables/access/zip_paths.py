"""Members of zip archives of this machine: where their bytes are, and those that rows name by `zip://` paths."""

from __future__ import annotations

import os
from collections.abc import Sequence
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from headrace.datasets.tables.file_spans import FileSpans, Stamp

Int64s = npt.NDArray[np.int64]

_SCHEME = "zip://"
_HEADER = 30  # bytes of a member's own header before its name
_ENCRYPTED = 1


def is_member(path: str) -> bool:
    """Whether a path is ``zip://member::archive``, as fsspec and Hugging Face's datasets write it, of an archive in a
    file of this machine."""
    archive = path.rpartition("::")[2]
    return path.startswith(_SCHEME) and path.count("::") == 1 and "://" not in archive


def spans_of_members(column: str, rows: Int64s, paths: Sequence[str]) -> FileSpans:
    """Returns where the bytes of members are, in the order of the paths.

    Args:
        column: for messages.
        rows: for messages, int64 (n,).
        paths: those for which `is_member` holds; n.

    Raises:
        ValueError: an archive is not there or damaged, or a member is not there, compressed or encrypted.
    """
    numbers: dict[str, int] = {}
    split = [path.removeprefix(_SCHEME).partition("::") for path in paths]
    which = np.array([numbers.setdefault(archive, len(numbers)) for _, _, archive in split], np.int64)
    stamps: list[Stamp] = []
    begins, sizes = np.empty(len(paths), np.int64), np.empty(len(paths), np.int64)
    for archive, number in numbers.items():
        wanted = np.flatnonzero(which == number)
        try:
            stamps.append(Stamp.of(os.path.abspath(archive)))  # noqa: PTH100 - a string
            with ZipFile(archive) as file:
                known = file.NameToInfo  # of several members with one name the last, as ZipFile.open takes
        except (OSError, BadZipFile, NotImplementedError) as error:
            raise ValueError(f"row {rows[wanted[0]]} of column {column!r} names {paths[wanted[0]]}: {error}") from error
        members = []
        for one in wanted.tolist():
            member = known.get(split[one][0].lstrip("/"))
            if member is None:
                raise ValueError(
                    f"row {rows[one]} of column {column!r} names {paths[one]}, which is not in the archive"
                )
            members.append(member)
        check_stored(archive, members)
        begins[wanted], sizes[wanted] = places_of_members(archive, members)
    return FileSpans(stamps, which, begins, sizes)


def check_stored(path: str, members: list[ZipInfo]) -> None:
    """Raises ValueError unless each member is a range of bytes of the archive."""
    for member in members:
        if member.flag_bits & _ENCRYPTED:
            raise ValueError(f"{member.filename} in {path} is encrypted, which is not read")
        if member.compress_type != ZIP_STORED or member.compress_size != member.file_size:
            raise ValueError(
                f"{member.filename} in {path} is compressed, so it is no range of bytes; pack the images without "
                "compression (zip -0 -r), or unpack them"
            )


def places_of_members(path: str, members: list[ZipInfo]) -> tuple[Int64s, Int64s]:
    """Returns where the members' bytes begin, and their numbers: int64 (n,)."""
    headers = np.array([member.header_offset for member in members], np.int64)
    if (headers < 0).any():
        raise ValueError(f"{path} is damaged: a member is not within it")
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a string
        parts = [os.pread(file.fileno(), _HEADER, at) for at in headers.tolist()]
    if any(len(part) < _HEADER for part in parts):
        raise ValueError(f"{path} is damaged: a member is not within it")
    own = np.frombuffer(b"".join(parts), np.uint8).reshape(-1, _HEADER)
    if (own[:, :4] != np.frombuffer(b"PK\x03\x04", np.uint8)).any():
        raise ValueError(f"{path} is damaged: a member does not begin where its directory says")
    variable = own[:, 26:30].copy().view("<u2").astype(np.int64).sum(axis=1)  # the lengths of the name and the rest
    return headers + _HEADER + variable, np.array([member.file_size for member in members], np.int64)
