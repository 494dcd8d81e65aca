"""Files that are made once of another file, and kept in a folder until that file changes."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from headrace._base.messages import install_command
from headrace._base.private_files import is_own, user_cache
from headrace._storage.remote.clients.responses import Stamp, is_strong

_VERSION = 2  # of the names
_CHUNK = 1 << 20  # bytes that are decompressed at a time
_CODECS = {"zstd": "zstd", "gz": "gzip", "br": "brotli", "bz2": "bz2"}  # of streaming and litdata -> of pyarrow


def cache_folder(cache: str | os.PathLike[str] | None) -> Path:
    """Returns the folder that is given, or headrace/tables in the user's folder of caches."""
    return user_cache("tables") if cache is None else Path(cache).absolute()


def made_once(
    source: str,
    what: object,
    suffix: str,
    folder: Path,
    make: Callable[[str], None],
    stamp: Stamp | None = None,
    title: str = "",
) -> str:
    """Returns the path of what `make` makes of a file, from the folder if it is there.

    The file appears whole or not at all, so processes can share the folder. Those made of the source as it was earlier
    are removed: a process that has mapped one keeps it.

    Only this user may read it.

    Args:
        source: the file. What is made of it serves until its state changes. Or what names an object, with its stamp.
        what: which of the things that can be made of it; its repr() is part of the name.
        make: called with the path of an empty file.
        stamp: of an object. One that does not say what its bytes are serves once.
        title: of the object, for the file's name.

    Raises:
        OSError: the folder cannot be written to.
    """
    now: tuple[object, ...] = _state_of_file(source) if stamp is None else stamp
    place = os.path.realpath(source) if stamp is None else source
    name = f"{PurePosixPath(title or source).stem[:80]}-{_digest_of((_VERSION, place, what))}-"
    target = folder / f"{name}{_digest_of(now)}{suffix}"
    if (stamp is None or is_strong(stamp)) and is_own(target):
        return str(target)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    number, unfinished = tempfile.mkstemp(dir=folder, prefix=target.stem, suffix=".unfinished")
    os.close(number)
    try:
        make(unfinished)
        Path(unfinished).replace(target)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
    for old in folder.iterdir():
        if old.name.startswith(name) and old.suffix == suffix and old != target:
            with suppress(OSError):
                old.unlink()
    return str(target)


def _state_of_file(path: str) -> tuple[int, ...]:
    """Returns what distinguishes the states of a file; see LocalCache in csrc."""
    info = Path(path).stat()
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _digest_of(what: object) -> str:
    return hashlib.sha256(repr(what).encode(errors="surrogateescape")).hexdigest()[:16]


def decompress_file(path: str, compression: str, size: int, cache: Path) -> str:
    """Returns the path of a decompressed copy of a file, in the folder `cache`.

    Args:
        compression: its name, with an optional level: ``zstd:7``.
        size: bytes of what is in it.

    Raises:
        ImportError: pyarrow, which decompresses, is not installed.
        OSError: the file cannot be read, or the cache cannot be written.
        ValueError: the file is damaged, holds another number of bytes, or the compression is not known.
    """
    codec = _CODECS.get(compression.partition(":")[0])
    if codec is None:
        raise ValueError(f"{path} is compressed with {compression}; {', '.join(_CODECS)} are read")
    pa = pyarrow()

    def make(target: str) -> None:
        left = size
        with pa.OSFile(path) as file, Path(target).open("wb") as out:
            try:
                with pa.CompressedInputStream(file, codec) as stream:
                    while left >= 0 and (data := stream.read(_CHUNK)):
                        left -= len(data)
                        out.write(data)
            except (pa.ArrowException, OSError) as error:
                if getattr(error, "errno", None) is not None:
                    raise
                raise ValueError(f"{path} is damaged: {error}") from error
        if left:
            raise ValueError(f"{path} is damaged: it does not hold {size} bytes, as its index says")

    return made_once(path, (codec, size), ".bin", cache, make)


def pyarrow() -> Any:
    """Returns the module pyarrow. Raises ImportError with a remedy where it is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.ipc
    except ImportError as error:
        raise ImportError(f"tables need pyarrow: {install_command('arrow', 'pyarrow')}") from error
    return pa
