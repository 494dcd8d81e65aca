"""The file of a table of entry points: arrays in .npz, with a hash; read with checks, and replaced as a whole.

False entry points give other pixels, as a changed image would, but never an access outside memory: the decoder cuts
every place at the scan's end, and an image whose codes do not fit goes to Pillow.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from typing import BinaryIO

import numpy as np

from headrace._base import loggers
from headrace._base.native import core
from headrace._base.private_files import create_once, read_own, replace_file
from headrace._base.types import Array

_VERSION = 1
_ARRAYS: dict[str, tuple[type[np.generic], int]] = {  # dtype and number of axes of each array
    "secrets": (np.uint64, 1),
    "keys": (np.uint64, 1),
    "counts": (np.uint32, 1),
    "bits": (np.uint32, 1),
    "dc": (np.int16, 2),
}
_SECRETS = 5
_MOST_BYTES = 1 << 40  # of a file: no limit
_MOST_ROWS = 1 << 13  # an image has at most 65,535 rows of pixels, 8 or more in a row of blocks

Content = dict[str, Array]


def load_or_make(file: str, limit: int) -> core.EntryPoints:
    """Returns a table with the content of a file, which is made if it is missing.

    Raises:
        OSError: the file cannot be read or made.
        ValueError: it holds no table, or is damaged.
    """
    if not Path(file).exists():
        with create_once(_with_folder(file)) as out:  # all processes must have its secrets
            _write_content(out, core.EntryPoints(1))
    held = parse_content(read_own(file, follow=True), file)
    native = core.EntryPoints(limit, held["secrets"])
    native.add(held["keys"], held["counts"], held["bits"], held["dc"])
    return native


def save_sidecar(file: str, native: core.EntryPoints, most: int = _MOST_BYTES) -> None:
    """Writes a table to its file, with what other processes have written there, up to `most` bytes. Raises OSError.

    If the file is gone, damaged or another table's by now, it is replaced: what it held is learned again.
    """
    merged = core.EntryPoints(most, native.secrets)
    merged.add(*native.content())
    try:
        held = parse_content(read_own(file, follow=True), file)
        if np.array_equal(held["secrets"], native.secrets):
            merged.add(held["keys"], held["counts"], held["bits"], held["dc"])
    except (OSError, ValueError) as error:
        loggers.storage.info("the entry points in %s are replaced: %s", file, error)
    with replace_file(_with_folder(file)) as out:
        _write_content(out, merged)


def parse_content(data: bytes, file: str) -> Content:
    """Returns the arrays in the bytes of a file, after a check of each. Raises ValueError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if any(one.compress_type != zipfile.ZIP_STORED for one in members):
                raise ValueError("it is compressed")
        with np.load(io.BytesIO(data), allow_pickle=False) as held:
            if int(held["version"]) != _VERSION:
                raise ValueError(f"its version is {int(held['version'])}, not {_VERSION}")
            content = {name: held[name] for name in _ARRAYS}
            digest = held["digest"].tobytes()
    except Exception as error:  # numpy, zipfile and Python's tokenizer raise many classes for damaged files
        raise ValueError(f"{file} holds no entry points, or it is damaged: {error}; remove it") from error
    if not _is_consistent(content) or digest != _digest_of_content(content):
        raise ValueError(f"{file} is damaged: its numbers contradict each other; remove it")
    return content


def _is_consistent(content: Content) -> bool:
    kinds = all(content[name].dtype == kind and content[name].ndim == axes for name, (kind, axes) in _ARRAYS.items())
    if not kinds or len(content["secrets"]) != _SECRETS:
        return False
    keys, counts, bits, dc = (content[name] for name in ("keys", "counts", "bits", "dc"))
    rows = int(counts.sum(dtype=np.uint64))
    fits = len(keys) == len(counts) and len(bits) == rows and dc.shape == (rows, 3)
    if not fits or (len(counts) > 0 and (int(counts.min()) < 1 or int(counts.max()) > _MOST_ROWS)):
        return False
    first = np.zeros(rows, bool)  # of each image; within one, each row begins after the one before
    first[np.cumsum(counts[:-1], dtype=np.int64)] = True
    return bool((np.diff(bits.astype(np.int64)) > 0)[~first[1:]].all()) if rows else True


def _digest_of_content(content: Content) -> bytes:
    digest = hashlib.sha256()
    for name in _ARRAYS:
        digest.update(np.ascontiguousarray(content[name]).data)
    return digest.digest()


def _write_content(out: BinaryIO, native: core.EntryPoints) -> None:
    content: Content = dict(zip(_ARRAYS, (native.secrets, *native.content()), strict=True))
    digest = np.frombuffer(_digest_of_content(content), np.uint8)
    np.savez(out, allow_pickle=False, version=np.array(_VERSION), digest=digest, **content)


def _with_folder(file: str) -> Path:
    """Returns a path whose folder is there."""
    path = Path(file)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
