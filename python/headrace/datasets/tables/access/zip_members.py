"""The members of a zip archive in another machine: located by its directory, checked by the header before each."""

from __future__ import annotations

from zipfile import ZipInfo

import numpy as np
import numpy.typing as npt

from headrace._storage.remote.remote_files import RemoteFiles
from headrace.datasets.tables.access.remote_reads import read_short
from headrace.datasets.tables.access.remote_spans import FarSpans

_HEADER = 30  # bytes of a member's own header before its name
_SIGNATURE = b"PK\3\4"
_MOST_EXTRA = 1 << 10  # bytes of the further fields of a header; a longer gap holds something else
_SIZES_FOLLOW = 8  # flag: the header has no sizes, which follow the member
_ZIP64 = 0xFFFFFFFF  # a size that is in a further field

_OWN = np.dtype(
    {
        "names": ["flags", "size", "name", "extra"],
        "formats": ["<u2", "<u4", "<u2", "<u2"],
        "offsets": [6, 18, 26, 28],
        "itemsize": _HEADER,
    }
)

Int64s = npt.NDArray[np.int64]


def far_members(files: RemoteFiles, members: list[ZipInfo]) -> FarSpans:
    """Returns the spans of stored members.

    The directory says where a member's header begins, but not how long it is. Where members follow each other, the gap
    between two is the length; the others' headers are read. Each member is read with the bytes before it, which must be
    a header of this length, for a member of this size.

    Raises:
        OSError: the archive cannot be read.
        ValueError: it is damaged.
    """
    assert files.stamps is not None
    size, shown = files.stamps[0].size, files.shown[0]
    headers = np.array([one.header_offset for one in members], np.int64)
    sizes = np.array([one.file_size for one in members], np.int64)
    names = np.array([len(one.orig_filename.encode("utf-8" if one.flag_bits & 0x800 else "cp437")) for one in members])
    if ((headers < 0) | (sizes < 0) | (headers > size - _HEADER)).any():
        raise ValueError(f"{shown} is damaged: a member is not within it")
    begins = headers + _HEADER + names
    order = np.argsort(headers, kind="stable")
    gaps = np.full(len(members), -1, np.int64)
    gaps[order[:-1]] = headers[order[1:]] - (begins + sizes)[order[:-1]]
    unknown = (gaps < 0) | (gaps > _MOST_EXTRA) | np.array([bool(one.flag_bits & _SIZES_FOLLOW) for one in members])
    if unknown.any():
        rows = np.flatnonzero(unknown)
        rows = rows[np.argsort(headers[rows], kind="stable")]
        own = read_short(files, 0, headers[rows], _HEADER)
        if (own[:, :4] != np.frombuffer(_SIGNATURE, np.uint8)).any():
            raise ValueError(f"{shown} is damaged: a member does not begin where its directory says")
        lengths = own[:, 26:30].copy().view("<u2").astype(np.int64)
        begins[rows] = headers[rows] + _HEADER + lengths[:, 0]
        gaps[rows] = lengths[:, 1]
    begins = begins + gaps
    checked = RemoteFiles(files.urls, files.access, lead=int((begins - headers).max(initial=0)), check=fits)
    checked.stamps = files.stamps
    return FarSpans(checked, np.zeros(len(members), np.int64), begins, sizes)


def fits(lead: bytes, length: int) -> str:
    """Returns "" if a header for a member of `length` bytes ends where `lead` does; else what is wrong."""
    at = lead.rfind(_SIGNATURE)
    while at >= 0:
        if len(lead) - at >= _HEADER:
            size, name, extra = (
                int.from_bytes(lead[at + a : at + b], "little") for a, b in ((18, 22), (26, 28), (28, 30))
            )
            sizes_follow = int.from_bytes(lead[at + 6 : at + 8], "little") & _SIZES_FOLLOW
            if at + _HEADER + name + extra == len(lead) and (size in (length, _ZIP64) or sizes_follow):
                return ""
        at = lead.rfind(_SIGNATURE, 0, at)
    return "the archive is damaged: no member of this length begins there"
