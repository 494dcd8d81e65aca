"""The files that the GPU benchmarks read: a folder of yours, or headrace's photographs, repeated."""

from __future__ import annotations

from pathlib import Path

from bench.datasets import PHOTOS

WANTED = 2048


def files(folder: Path | None, count: int = WANTED) -> list[Path]:
    """`count` JPEG files below the folder; repeated in order where it holds fewer."""
    found = sorted(path for path in (folder or PHOTOS).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    if not found:
        raise SystemExit(f"there are no JPEG files below {folder}")
    return [found[i % len(found)] for i in range(count)]


def engine_files(paths: list[Path]) -> list[Path]:
    """Those that the GPU's decoders take."""
    from headrace import target

    module, why_not = target.native()
    if module is None:
        raise SystemExit(why_not)
    return [path for path in paths if module.route(path.read_bytes()) is None]
