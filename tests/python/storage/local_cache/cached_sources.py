"""Datasets of local files that take the argument `cache`, each over the same pictures."""

from __future__ import annotations

import io
import os
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headrace
from headrace import transforms as T
from support import pictures, write_folder

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "datasets/tables"))

import test_mds

COUNT = 24
SETTLED_S = 0.05  # longer than a tick of the clock by which the kernel says when files changed
OLD_NS = 10**18  # a time of modification, long ago: files that changed a moment ago are not kept


def transform() -> T.Compose:
    return T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.PILToTensor()])


def settle(folder: Path) -> None:
    """Sets the time of modification of all files below a folder."""
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, ns=(OLD_NS, OLD_NS))
    time.sleep(SETTLED_S)


def files(folder: Path, **options: Any) -> Any:
    if not folder.exists():
        write_folder(folder)
        settle(folder)
    return headrace.ImageFiles(sorted(folder.rglob("*.jpg")), range(COUNT), transform(), **options)


def image_folder(folder: Path, **options: Any) -> Any:
    files(folder)
    return headrace.ImageFolder(folder, transform(), **options)


def tar(folder: Path, **options: Any) -> Any:
    if not folder.exists():
        folder.mkdir()
        for shard in range(2):
            with tarfile.open(folder / f"{shard}.tar", "w") as out:
                for i, data in enumerate(pictures(COUNT)[shard::2]):
                    for name, held in ((f"{i:03}.jpg", data), (f"{i:03}.cls", str(i).encode())):
                        info = tarfile.TarInfo(name)
                        info.size = len(held)
                        out.addfile(info, io.BytesIO(held))
        settle(folder)
    return headrace.TarShards(str(folder / "{0..1}.tar"), transform=transform(), index=False, **options)


def archive(folder: Path, **options: Any) -> Any:
    if not folder.exists():
        folder.mkdir()
        with zipfile.ZipFile(folder / "a.zip", "w") as out:
            for i, data in enumerate(pictures(COUNT)):
                out.writestr(f"class_{i % 3}/{i}.jpg", data)
        settle(folder)
    return headrace.Zip(folder / "a.zip", transform=transform(), **options)


def mds(folder: Path, **options: Any) -> Any:
    if not folder.exists():
        folder.mkdir()
        test_mds.write(folder, test_mds.samples(), test_mds.ENCODINGS)
        settle(folder)
    return headrace.MDS(folder, "image", "label", transform(), **options)


def _table() -> Any:
    import pyarrow as pa

    images = [{"bytes": data, "path": None} for data in pictures(COUNT)]
    return pa.table({"image": images, "label": list(range(COUNT))})


def arrow(folder: Path, **options: Any) -> Any:
    import pyarrow as pa

    if not folder.exists():
        folder.mkdir()
        table = _table()
        for number, part in enumerate((table.slice(0, 10), table.slice(10))):
            with pa.ipc.new_file(folder / f"{number}.arrow", table.schema) as out:
                out.write_table(part, max_chunksize=4)
        settle(folder)
    return headrace.Arrow(sorted(folder.glob("*.arrow")), transform=transform(), **options)


def parquet(folder: Path, **options: Any) -> Any:
    import pyarrow.parquet as pq

    if not folder.exists():
        folder.mkdir()
        pq.write_table(_table(), folder / "a.parquet", row_group_size=7)
        settle(folder)
        headrace.Parquet(folder / "a.parquet")
        settle(Path(os.environ["XDG_CACHE_HOME"]))
    return headrace.Parquet(folder / "a.parquet", transform=transform(), **options)


def key_values(folder: Path, **options: Any) -> Any:
    import lmdb

    if not folder.exists():
        with lmdb.open(str(folder), map_size=1 << 28) as env, env.begin(write=True) as transaction:
            for i, data in enumerate(pictures(COUNT)):
                transaction.put(b"%06d" % i, data)
        settle(folder)
    return headrace.LMDB(folder, label=list(range(COUNT)), transform=transform(), **options)


SOURCES: dict[str, Callable[..., Any]] = {
    "files": files,
    "folder": image_folder,
    "tar": tar,
    "zip": archive,
    "MDS": mds,
    "Arrow": arrow,
    "Parquet": parquet,
    "LMDB": key_values,
}
NEEDS = {"Arrow": "pyarrow", "Parquet": "pyarrow", "LMDB": "lmdb"}


def batches(dataset: Any, workers: int = 2, **options: Any) -> list[Any]:
    """An epoch of a shuffled loader, which must be native."""
    loader = headrace.DataLoader(dataset, 8, shuffle=True, num_workers=workers, seed=0, **options)
    assert loader.native, loader.explain()
    return list(loader)
