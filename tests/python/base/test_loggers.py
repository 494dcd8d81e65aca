"""``logging`` under ``headrace``: silent by default, a line for each event that costs time and is no error."""

from __future__ import annotations

import asyncio
import io
import logging
import tarfile
from pathlib import Path

import pytest

from headrace import DataLoader, EncodedImages, EntryPoints, Network
from headrace._base import loggers
from headrace._engine.destination import resolve_destination
from headrace._loading.autotune.budget import Budget
from headrace._loading.autotune.tuner import Tuner
from headrace._loading.fallback.torch_epochs import TorchEpochs
from headrace._storage.remote.clients.responses import TemporaryError
from headrace._storage.remote.disk_cache import DiskCache
from headrace._storage.remote.retries import Attempts
from headrace.datasets.tar_shards.tar_index import index_of
from support import evaluation, output_of, pictures

NAMES = {f"headrace.{name}" for name in ("storage", "loading", "tuning", "device")}


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The records of all levels."""
    caplog.set_level(logging.DEBUG, logger="headrace")
    return caplog


SILENT = """
import logging, sys, warnings
from headrace._base import loggers
from headrace import DataLoader
warnings.simplefilter("ignore")
list(DataLoader(list(range(4)), 2))
loggers.storage.error("nobody listens")
print("silent")
logging.basicConfig(level=logging.INFO, stream=sys.stdout)
list(DataLoader(list(range(4)), 2))
"""


@pytest.mark.processes
def test_silent_until_the_program_configures_logging() -> None:
    first, *more = output_of(SILENT).splitlines()
    assert first == "silent"
    assert [line[: line.index(" epoch: ")] for line in more] == [
        "INFO:headrace.loading:torch's DataLoader delivers this"
    ]


def test_all_loggers_are_children_of_the_package() -> None:
    ours = [one for one in vars(loggers).values() if isinstance(one, logging.Logger)]
    assert {one.name for one in ours} == NAMES
    assert not [one for one in ours if one.handlers or one.level]
    assert any(isinstance(one, logging.NullHandler) for one in logging.getLogger("headrace").handlers)


@pytest.mark.filterwarnings("ignore:torch's DataLoader delivers")
def test_the_reason_of_a_fallback_once_a_loader(said: pytest.LogCaptureFixture) -> None:
    loader: DataLoader[int] = DataLoader(list(range(4)), 2)  # type: ignore[arg-type]
    for _ in range(3):
        list(loader)
    first, *later = said.records
    assert first.message.startswith("torch's DataLoader delivers this epoch: headrace does not know ")
    assert [(one.levelname, one.message) for one in later] == [("DEBUG", first.message)] * 2
    assert first.levelname == "INFO"


def test_another_reason_is_news() -> None:
    epochs = TorchEpochs(None, 0, resolve_destination(None, "auto"))
    assert [epochs.is_news(reason) for reason in ("one", "one", "two", "two")] == [True, False, True, False]


def test_a_native_epoch_says_nothing(said: pytest.LogCaptureFixture) -> None:
    assert len(list(DataLoader(EncodedImages(pictures(4), transform=evaluation(24, 16)), 2, num_workers=1))) == 2
    assert not said.records


def test_the_way_to_a_device(said: pytest.LogCaptureFixture) -> None:
    images = EncodedImages(pictures(4), transform=evaluation(24, 16))
    with_device = DataLoader(images, 2, num_workers=1, device="emulated")
    list(with_device)
    assert said.messages == ["device cpu: the GPU path, emulated by threads of this machine"]


def test_requests_that_are_made_again(said: pytest.LogCaptureFixture) -> None:
    results: list[Exception | bytes] = [TemporaryError("503 Slow Down"), TemporaryError("503 Slow Down"), b"data"]

    async def call() -> bytes:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    async def all_of_them() -> bytes:
        attempts = Attempts(Network(), lambda host, seconds: None)
        return await attempts.run("http://store/a.tar?signature=secret", call, asyncio.Semaphore(1))

    assert asyncio.run(all_of_them()) == b"data"
    assert [line.partition(" failed (503 Slow Down); the next one in ")[0][-9:] for line in said.messages] == [
        "request 1",
        "request 2",
    ]
    assert not [line for line in said.messages if "secret" in line]


def test_a_cache_that_removes_entries_or_cannot_keep_one(tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    cache = DiskCache(str(tmp_path), 1000)
    for number in range(4):
        cache.write(str(cache.folder / "abc" / f"{number}"), bytes(400))
    cache.tidy()
    assert said.messages and all(line.startswith(f"the cache in {cache.folder} had ") for line in said.messages)
    said.clear()
    (cache.folder / "abc" / "folder").mkdir()
    cache.write(str(cache.folder / "abc" / "folder"), bytes(4))
    assert said.messages == [f"the cache does not keep {cache.folder}/abc/folder: a folder is in its place"]


def test_entry_points_whose_file_is_damaged_by_now(tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "rows.npz"
    points = EntryPoints("1 MB", file)
    file.write_bytes(b"damaged")
    loader = DataLoader(EncodedImages(pictures(4, 300), transform=evaluation(24, 16)), 2, entry_points=points)
    list(loader)
    loader.close()
    points.save()
    assert [line for line in said.messages if line.startswith(f"the entry points in {file} are replaced: ")]


def test_an_index_that_cannot_be_kept(tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    shard = tmp_path / "a.tar"
    with tarfile.open(shard, "w") as archive:
        for number, data in enumerate(pictures(2)):
            member = tarfile.TarInfo(f"{number}.jpg")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    (tmp_path / "file").write_text("no folder")
    index_of(str(shard), str(tmp_path / "file"))
    assert [line.partition(": ")[0] for line in said.messages] == [
        f"the index of {shard} is not kept, and will be made again"
    ]


def test_each_change_of_the_tuner(said: pytest.LogCaptureFixture) -> None:
    tuner = Tuner(lambda: Budget(2.0, 2**30))
    first = tuner.choice
    tuner.expect(first._replace(threads=4), 1.0)
    assert tuner.revert_if_no_better(2.0)
    tuner.refuse_more(1)
    assert said.messages == [
        "taking 4 threads, 2 ahead instead of 2 threads, 2 ahead",
        "4 threads, 2 ahead: 0.50x of 2 threads, 2 ahead, taken back",
        "taking 2 threads, 2 ahead instead of 4 threads, 2 ahead",
        "the system gives no more threads than 1",
    ]
    assert {record.name for record in said.records} == {"headrace.tuning"}
