"""Helpers of the tests of packs: packing and checking without a command line."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import ExifTags, Image

from headrace._cli.pack.conversion import COPY, Conversion
from headrace._cli.pack.job_processes import run_in_processes
from headrace._cli.pack.manifest import require_manifest
from headrace._cli.pack.pack_verification import check_tar_pack
from headrace._cli.pack.packer import MachineShare, Packed, pack
from headrace._cli.pack.tar_contents import contents_of
from support import pictures

SMALL = 25_000  # bytes of a shard: a few of the pictures


@contextmanager
def no_bar(total: int, done: int) -> Iterator[Callable[[int], None]]:
    yield lambda more: None


def packed(source: Any, folder: Path, how: Conversion | str = COPY, **options: Any) -> Packed:
    conversion = Conversion(how) if isinstance(how, str) else how
    defaults = {
        "shard_size": SMALL,
        "share": MachineShare(),
        "engine": partial(run_in_processes, workers=1),
        "overwrite": False,
        "bar": no_bar,
    }
    return pack(contents_of(source), folder, conversion, **{**defaults, **options})


def checked(source: Any, folder: Path, workers: int = 1, limit: int | None = None) -> int:
    return check_tar_pack(
        contents_of(source), require_manifest(folder), folder, workers=workers, limit=limit, bar=no_bar
    )


def members(folder: Path) -> list[tuple[str, bytes]]:
    """All members of the shards, as Python reads them."""
    found = []
    for path in sorted(folder.glob("*.tar")):
        with tarfile.open(path) as tar:
            for info in tar:
                file = tar.extractfile(info)
                assert file is not None
                found.append((info.name, file.read()))
    return found


def content(folder: Path) -> dict[str, bytes]:
    """The bytes of the shards."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.tar"))}


def turned(orientation: int, edge: int = 60) -> bytes:
    """A JPEG with this EXIF orientation."""
    out, exif = BytesIO(), Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    Image.open(BytesIO(pictures(1)[0])).resize((edge, edge + 9)).save(out, "JPEG", exif=exif)
    return out.getvalue()


def write_tar(path: Path, parts: list[tuple[str, bytes]]) -> None:
    """Writes members with these names."""
    with tarfile.open(path, "w") as tar:
        for name, data in parts:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, BytesIO(data))
