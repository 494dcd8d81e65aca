"""The files that the GPU benchmarks read: a given folder, or headrace's photographs, repeated."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bench.datasets import PHOTOS

WANTED = 2048


def files(folder: Path | None, count: int = WANTED) -> list[Path]:
    """`count` JPEG files below the folder, repeated in order if it holds fewer."""
    found = sorted(path for path in (folder or PHOTOS).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    if not found:
        raise SystemExit(f"there are no JPEG files below {folder}")
    return [found[i % len(found)] for i in range(count)]


def engine_files(paths: Iterable[Path]) -> list[bytes]:
    """The bytes of the files that headrace routes to the GPU's decoders. Each file is read and routed once."""
    from headrace._engine import destination

    route, paths = destination.require_gpu().route, list(paths)
    read = {path: path.read_bytes() for path in dict.fromkeys(paths)}
    taken = {path for path, data in read.items() if route(data) is None}
    return [read[path] for path in paths if path in taken]


def colour(files: list[bytes], count: int) -> list[bytes]:
    """`count` of the files with three components, repeated in order."""
    from headrace._base.native import core

    found = [data for data in files if len(core.jpeg_header(data)["components"]) == 3]
    if not found:
        raise SystemExit("none of the files is a colour JPEG that nvJPEG takes")
    return [found[i % len(found)] for i in range(count)]
