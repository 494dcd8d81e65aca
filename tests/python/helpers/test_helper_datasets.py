"""Helpers of loaders with datasets of all kinds: their files are sent, or read by the helper, here or over HTTP."""

from __future__ import annotations

import io
import shutil
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helped_loaders import assert_helped, eager, epochs, loader_of, work_of
from helper_servers import address_of, helper
from torch.utils.data import ConcatDataset, Subset

import headrace
from headrace import transforms as T
from headrace._helpers import helper_lane, requests
from headrace._helpers.order_engine import checksums_of
from headrace._storage.remote.fetcher_registry import close_all
from headrace.datasets.sources import BlobDataset, as_source
from support import REPOSITORY, assert_same, pictures, train

sys.path.insert(0, str(REPOSITORY))

from bench.remote.object_server import ObjectServer

__all__ = ["eager"]

pytestmark = pytest.mark.usefixtures("eager")
SIZE = 48
PIXELS = 3 * SIZE * SIZE  # bytes of a sample in an answer
FILES = [one for number, one in enumerate(pictures(48, 250)) if number % 12 not in (3, 5)]  # those are left to Pillow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tar shards, a zip file, and a folder of class folders."""
    made = tmp_path_factory.mktemp("data")
    half = len(FILES) // 2
    for shard, files in enumerate((FILES[:half], FILES[half:])):
        with tarfile.open(made / f"{shard:03}.tar", "w") as tar:
            for number, data in enumerate(files):
                for name, content in ((f"{number:03}.jpg", data), (f"{number:03}.cls", b"%d" % number)):
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
    with zipfile.ZipFile(made / "all.zip", "w") as archive:
        for number, data in enumerate(FILES):
            archive.writestr(f"{number % 3}/{number:03}.jpg", data)
            path = made / f"images/{number % 3}/{number:03}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return made


@pytest.fixture
def url(folder: Path) -> Iterator[str]:
    """The folder on a server of this machine."""
    pytest.importorskip("aiohttp", reason="fsspec reads HTTP with aiohttp")
    close_all()
    with ObjectServer(folder) as server:
        yield server.url
    close_all()


def parquet(folder: Path) -> headrace.Parquet:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    tables = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    path = folder / "all.parquet"
    if not path.exists():
        tables.write_table(arrow.table({"image": FILES, "label": list(range(len(FILES)))}), path, row_group_size=16)
    return headrace.Parquet(path, transform=train(SIZE), cache=folder / "cache")


def shards(folder: Any, **options: Any) -> headrace.TarShards:
    return headrace.TarShards(f"{folder}/{{000..001}}.tar", transform=train(SIZE), **options)


def assert_read(mine: Any, its: Any, *, reads: bool = True) -> None:
    """Asserts that a helper with the dataset `its` makes a loader's samples, and reads their files or not."""
    with helper(dataset=None if its is None else as_source(its)) as server:
        assert_helped(mine, [server])
        loader = loader_of(mine, address_of(server))
        assert any(len(list(loader)) and work_of(loader).samples for _ in epochs())
        work = work_of(loader)
        assert work.reads == reads
        assert (work.bytes / work.samples < PIXELS + 300) == reads  # the files have 3,000 bytes and more


KINDS: dict[str, Callable[[Path], Any]] = {
    "folder": lambda folder: headrace.ImageFolder(folder / "images", train(SIZE)),
    "tar shards": shards,
    "zip": lambda folder: headrace.Zip(folder / "all.zip", transform=train(SIZE)),
    "parquet": parquet,
    "subset": lambda folder: Subset(shards(folder), range(35, 1, -1)),
    "joined": lambda folder: ConcatDataset([shards(folder), Subset(shards(folder), range(9))]),
    "in memory": lambda folder: headrace.EncodedImages(FILES, list(range(len(FILES))), train(SIZE)),
}


@pytest.mark.parametrize("name", KINDS)
def test_files_are_sent_or_read(name: str, folder: Path) -> None:
    make = KINDS[name]
    assert_read(make(folder), None, reads=False)
    assert_read(make(folder), make(folder))


def test_another_selection_is_another_dataset(folder: Path) -> None:
    assert_read(KINDS["subset"](folder), shards(folder), reads=False)


def test_objects_of_other_machines(folder: Path, url: str, tmp_path: Path) -> None:
    assert_read(shards(url), None, reads=False)
    assert_read(shards(url), shards(url))
    assert_read(shards(url), shards(folder))  # a copy on a disk of the helper
    assert_read(shards(folder), shards(url))
    assert_read(shards(folder), shards(url, cache=str(tmp_path / "cache")))
    assert list((tmp_path / "cache").rglob("*")), "the helper's cache is empty"


def test_where_rows_begin_is_learned_on_the_helper(folder: Path) -> None:
    for its in (None, as_source(shards(folder))):
        with helper(dataset=its) as server:
            loader, alone = loader_of(shards(folder), address_of(server)), loader_of(shards(folder))
            for _ in epochs():
                assert_same(loader, alone)
                if server.points.counts().entered:
                    break
            found = server.points.counts()
            assert found.images > 0 and found.entered > 0


class Nameless(headrace.EncodedImages):
    """A dataset whose fingerprint raises."""

    def identity(self, index: int) -> str:
        raise KeyError(index)


def test_a_dataset_without_a_fingerprint_is_sent() -> None:
    def nameless() -> BlobDataset:
        return Nameless(FILES, list(range(len(FILES))), train(SIZE))

    for its in (None, nameless()):
        assert_read(nameless(), its, reads=False)


class Unreadable(headrace.EncodedImages):
    """A dataset of which one sample cannot be read, for a reason of its library."""

    def read(self, index: int) -> bytes:
        if index == 1:
            raise KeyError(index)
        return super().read(index)


def test_a_sample_that_cannot_be_read_has_no_checksum() -> None:
    found = checksums_of(Unreadable(FILES, list(range(len(FILES)))), np.arange(3))
    assert found.tolist() == [zlib.crc32(FILES[0]), -1, zlib.crc32(FILES[2])]


def test_a_file_that_differs_ends_the_reading(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = KINDS["folder"](folder)
    its = headrace.ImageFolder(Path(shutil.copytree(folder / "images", tmp_path / "there")))
    changed = tmp_path / "there" / Path(mine.location(1)).relative_to(folder / "images")
    changed.write_bytes(changed.read_bytes() + b"more")  # it is not compared at first; its pixels are equal
    monkeypatch.setattr(requests, "_CHECKED", 1.0)
    with helper(dataset=its) as server:
        loader, alone = loader_of(mine, address_of(server)), loader_of(mine)
        with pytest.warns(RuntimeWarning, match="has other bytes of a file of the dataset .* files are sent"):
            for _ in epochs():
                assert_same(loader, alone)
                if not work_of(loader).reads and work_of(loader).samples:
                    break
        engine: Any = loader._runner.engine
        lane = next(one for one in engine._lanes if isinstance(one, helper_lane.HelperLane))
        earlier = list(lane._pace.connections)
        for one in earlier:
            one.abort()  # the next connection compares eight files again, which are equal
        before = server.samples
        for _ in epochs():
            assert_same(loader, alone)
            if server.samples > before + 20:
                break
        assert server.samples > before + 20
        assert any(one not in earlier for one in lane._pace.connections)
        assert not work_of(loader).reads


def test_other_transforms_of_the_helpers_dataset_have_no_effect(folder: Path) -> None:
    its = shards(folder)
    its.transform = T.Compose([T.Resize(10), T.CenterCrop(5), T.ToTensor()])
    assert_read(shards(folder), its)
