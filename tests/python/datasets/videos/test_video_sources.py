"""Videos in tar shards, tables, memory and other machines: their clips are those of the files."""

from __future__ import annotations

import io
import pickle
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import ConcatDataset, Subset
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import Arrow, DataLoader, EncodedImages, Parquet, TarShards, Videos, from_hf
from headrace.datasets import ImageFiles, clips_at_random_indices, uniform_frames
from torchvision_shim import import_torchvision
from video_files import INDEXED, PASSED_ON, make_video, why_no_torchcodec

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

pytest.importorskip("av", exc_type=ImportError)
if (reason := why_no_torchcodec()) is not None:
    pytest.skip(reason, allow_module_level=True)

from bench.remote.object_server import ObjectServer

from headrace._media.video import video_clips
from headrace._media.video.known_videos import KnownVideos
from headrace._storage.remote.fetcher_registry import close_all

v2 = import_torchvision().transforms.v2

NAMES = "x264.mp4", "open_groups.mp4", "x264.mkv", "variable.mp4", "x264.avi"
RANDOM = clips_at_random_indices(num_clips=2, num_frames_per_clip=3, num_indices_between_frames=4)
TRAIN = v2.Compose([v2.RandomResizedCrop(24, antialias=True), v2.RandomHorizontalFlip()])


@pytest.fixture(scope="session")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of videos, and of a tar shard of them."""
    folder = tmp_path_factory.mktemp("sources")
    made = {**INDEXED, **PASSED_ON}
    with tarfile.open(folder / "shard.tar", "w") as tar:
        for number, name in enumerate(NAMES):
            path = make_video(folder / name, *made[name])
            for extension, data in (("mp4", path.read_bytes()), ("cls", str(number).encode())):
                info = tarfile.TarInfo(f"{number:03}.{extension}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return folder


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(video_clips, "known_videos", KnownVideos())
    yield
    close_all()


def files(videos: Path, **options: Any) -> Videos:
    return Videos([videos / name for name in NAMES], list(range(len(NAMES))), TRAIN, clips=RANDOM, **options)


def batches(data: Any, workers: int = 2) -> list[Any]:
    loader = DataLoader(data, batch_size=2, shuffle=True, num_workers=workers, seed=3)
    assert loader.route == "native", loader.explain()
    return [batch for _ in range(2) for batch in loader]


def assert_same_as_files(data: Any, videos: Path) -> None:
    for (clips, labels), (theirs, its) in zip(batches(data), batches(files(videos)), strict=True):
        assert torch.equal(clips, theirs) and torch.equal(labels, its)


def table(videos: Path, bytes_in_it: bool) -> Any:
    import pyarrow as pa

    paths = [videos / name for name in NAMES]
    held = [{"bytes": one.read_bytes() if bytes_in_it else None, "path": str(one)} for one in paths]
    return pa.table({"video": held, "label": list(range(len(NAMES)))})


def test_tar_shards(videos: Path) -> None:
    data = Videos(TarShards(str(videos / "shard.tar"), image="mp4"), None, TRAIN, clips=RANDOM)
    assert_same_as_files(data, videos)
    loader = DataLoader(data, batch_size=3, num_workers=2)
    assert loader.verify(2).samples == len(NAMES) and "TarShards" in str(loader.explain())
    assert loader.stats().videos is not None or list(loader)


@pytest.mark.parametrize("bytes_in_it", [True, False])
def test_columns(videos: Path, tmp_path: Path, bytes_in_it: bool) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    made = table(videos, bytes_in_it)
    parquet.write_table(made, tmp_path / "videos.parquet")
    with pa.ipc.new_file(tmp_path / "videos.arrow", made.schema) as writer:
        writer.write_table(made)
    assert_same_as_files(Videos(Arrow(tmp_path / "videos.arrow", "video"), None, TRAIN, clips=RANDOM), videos)
    converted = Parquet(tmp_path / "videos.parquet", "video", cache=tmp_path / "cache")
    assert_same_as_files(Videos(converted, None, TRAIN, clips=RANDOM), videos)


def test_hugging_face_videos(videos: Path) -> None:
    datasets = pytest.importorskip("datasets")
    held = [{"bytes": (videos / name).read_bytes(), "path": name} for name in NAMES]
    columns = {"video": held, "label": list(range(len(NAMES)))}
    data = datasets.Dataset.from_dict(columns).cast_column("video", datasets.Video())
    assert_same_as_files(Videos(from_hf(data, image="video"), None, TRAIN, clips=RANDOM), videos)
    second = data.cast_column("video", datasets.Video(stream_index=1))
    with pytest.raises(ValueError, match="chooses stream 1"):
        from_hf(second, image="video")


def test_bytes_in_memory(videos: Path) -> None:
    blobs = [(videos / name).read_bytes() for name in NAMES]
    data = Videos(EncodedImages(blobs, range(len(NAMES))), None, TRAIN, clips=RANDOM)
    assert_same_as_files(data, videos)
    assert_same_as_files(pickle.loads(pickle.dumps(data)), videos)
    first = Videos(ImageFiles([videos / NAMES[0]], [7]), None, v2.CenterCrop(32), clips=uniform_frames(2))
    second = Videos(EncodedImages(blobs, range(len(NAMES))), None, first.transform, clips=first.clips)
    chosen: Subset[Any] = Subset(ConcatDataset([first, second]), [0, 3, 5])
    del first, second  # the loader's table keeps them
    loader = DataLoader(chosen, num_workers=1)
    assert loader.route == "native"
    for (clips, labels), (theirs, its) in zip(loader, TorchDataLoader(chosen), strict=True):
        assert torch.equal(clips, theirs) and torch.equal(labels, its)


def served(server: ObjectServer, names: Any = NAMES, **options: Any) -> Videos:
    urls = [f"{server.url}/{name}?token=x" for name in names]
    return Videos(urls, list(range(len(urls))), TRAIN, clips=RANDOM, **options)


@pytest.mark.parametrize("cache", [None, "disk", "memory:10 MB"])
def test_urls(videos: Path, tmp_path: Path, cache: str | None) -> None:
    kept = tmp_path / "cache" if cache == "disk" else cache
    with ObjectServer(videos) as server:
        data = served(server, cache=kept)
        assert_same_as_files(data, videos)
        loader = DataLoader(data, batch_size=2, num_workers=0)
        assert loader.verify(2).samples == 4 and "token" not in data.location(0)
        list(loader)
        assert "remote: " in str(loader.stats())
        shards = TarShards(f"{server.url}/shard.tar", image="mp4", cache=kept)
        assert_same_as_files(Videos(shards, None, TRAIN, clips=RANDOM), videos)
