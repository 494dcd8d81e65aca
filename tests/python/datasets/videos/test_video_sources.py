"""Videos in tar shards, tables, memory and other machines: their clips are those of the files."""

from __future__ import annotations

import functools
import io
import pickle
import sys
import tarfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, Subset
from torch.utils.data import DataLoader as TorchDataLoader

from headrace import LMDB, Arrow, DataLoader, EncodedImages, Network, Parquet, SampleError, TarShards, Videos, from_hf
from headrace.datasets import ImageArray, ImageFiles, clips_at_random_indices, frames_at, uniform_frames
from support import eventually
from torchvision_shim import import_torchvision
from video_files import INDEXED, PASSED_ON, cut_video, forget_videos, make_video, turn_video, why_no_torchcodec

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

pytest.importorskip("av", exc_type=ImportError)
if (reason := why_no_torchcodec()) is not None:
    pytest.skip(reason, allow_module_level=True)

from bench.remote.object_server import Faults, ObjectServer

from headrace._media.video import video_clips
from headrace._media.video.known_videos import KnownVideo, KnownVideos
from headrace._media.video.packet_index import PacketIndex, read_index
from headrace._media.video.video_files import learn_by_scan, learn_from_tables
from headrace._storage.parts.sample_bytes import FileBytes, HeldBytes, SampleBytes
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
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[KnownVideos]:
    """What is known of videos: nothing."""
    yield forget_videos(monkeypatch)
    close_all()


def files(videos: Path, **options: Any) -> Videos:
    return Videos([videos / name for name in NAMES], list(range(len(NAMES))), TRAIN, clips=RANDOM, **options)


def batches(data: Any, workers: int = 2) -> list[Any]:
    loader = DataLoader(data, batch_size=2, shuffle=True, num_workers=workers, seed=3)
    assert loader.route == "native", loader.explain()
    return [batch for _ in range(2) for batch in loader]


@functools.cache
def batches_of_files(videos: Path) -> list[Any]:
    return batches(files(videos))


def assert_same_as_files(data: Any, videos: Path) -> None:
    for (clips, labels), (theirs, its) in zip(batches(data), batches_of_files(videos), strict=True):
        assert torch.equal(clips, theirs) and torch.equal(labels, its)


def table(videos: Path, bytes_in_it: bool) -> Any:
    import pyarrow as pa

    paths = [videos / name for name in NAMES]
    held = [{"bytes": one.read_bytes() if bytes_in_it else None, "path": str(one)} for one in paths]
    return pa.table({"video": held, "label": list(range(len(NAMES)))})


def test_tar_shards(videos: Path) -> None:
    data = Videos(TarShards(str(videos / "shard.tar"), image="mp4"), None, TRAIN, clips=RANDOM)
    assert_same_as_files(data, videos)
    loaders = [DataLoader(one, batch_size=3, num_workers=2, seed=3) for one in (data, files(videos))]
    assert loaders[0].verify(2).samples == len(NAMES) and "TarShards" in str(loaders[0].explain())
    for loader in loaders:
        list(loader)
    counted, theirs = (loader.stats().videos for loader in loaders)
    assert counted is not None and theirs is not None and 0 < counted.wanted <= counted.decoded
    assert (counted.wanted, counted.decoded) == (theirs.wanted, theirs.decoded)


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


def test_lmdb(videos: Path, tmp_path: Path) -> None:
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(tmp_path), map_size=1 << 24) as database, database.begin(write=True) as transaction:
        for number, name in enumerate(NAMES):
            transaction.put(b"%03d" % number, (videos / name).read_bytes())
    assert_same_as_files(Videos(LMDB(tmp_path, label=range(len(NAMES))), None, TRAIN, clips=RANDOM), videos)


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
        assert "remote: " in str(loader.stats()) and "groups of pictures" in str(loader.explain())
        shards = TarShards(f"{server.url}/shard.tar", image="mp4", cache=kept)
        assert_same_as_files(Videos(shards, None, TRAIN, clips=RANDOM), videos)


def test_only_the_needed_packets_are_fetched(videos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = ["-vf", "scale=320:200,noise=alls=60:allf=t", "-c:v", "libx264", "-preset", "ultrafast", "-qp", "10"]
    path = make_video(videos / "noise.mp4", *noise, "-pix_fmt", "yuv420p", "-g", "6")
    index, size = read_index(str(path)), path.stat().st_size
    first, last = index.order[[30, 33]]
    needed = int(index.position[last] + index.size[last] - index.position[first])
    with ObjectServer(videos) as server:
        data = Videos([f"{server.url}/noise.mp4"], None, v2.CenterCrop(32), clips=frames_at([[33, 30]]))
        loader = DataLoader(data, num_workers=1)
        (clip,) = loader
        assert torch.equal(clip[0], data[0])
        server.bytes_of.clear()
        before = server.requests()
        (again,) = loader
        assert torch.equal(again, clip)
        assert (server.bytes_of.total(), server.requests() - before) == (needed, 1)
        assert needed < size / 8
    close_all()
    forget_videos(monkeypatch)
    with ObjectServer(videos) as server:
        data = Videos([f"{server.url}/noise.mp4"], None, v2.CenterCrop(32), clips=frames_at([[33, 30]]))
        assert torch.equal(next(iter(DataLoader(data, num_workers=1))), clip)
        assert server.bytes_of.total() < size / 3  # with the tables, and what FFmpeg reads when it opens a file


def test_threads_that_meet_a_file_together_learn_it_once(
    videos: Path, monkeypatch: pytest.MonkeyPatch, known: KnownVideos
) -> None:
    scanned: list[SampleBytes] = []

    def scan(file: SampleBytes) -> KnownVideo:
        scanned.append(file)
        time.sleep(0.2)  # the other threads come meanwhile
        return learn_by_scan(file)

    monkeypatch.setattr(video_clips, "learn_by_scan", scan)
    with ObjectServer(videos) as server:
        for paths in ([f"{server.url}/x264.mkv"] * 4, [videos / "x264.mkv"] * 4):
            data = Videos(paths, None, v2.CenterCrop(32), clips=frames_at([[0], [1], [2], [3]]))
            (clips,) = DataLoader(data, batch_size=4, num_workers=4)
            assert torch.equal(clips, torch.stack([data[number] for number in range(4)]))
    assert len(scanned) == 2 and not known._turns

    def nobody_waits() -> None:
        raise OSError("nobody waits")

    with known.turn(("a", None), nobody_waits):
        with ThreadPoolExecutor(1) as pool, known.turn(("b", None), nobody_waits):
            waiting = pool.submit(known.turn(("a", None), nobody_waits).__enter__)
            with pytest.raises(OSError, match="nobody waits"):
                waiting.result(60)
        known.forget_locks()  # as a forked child does
        with known.turn(("a", None), nobody_waits):
            assert len(known._turns) == 1
    assert not known._turns


def test_sound_between_the_packets_is_not_fetched(videos: Path) -> None:
    sound = ["-f", "lavfi", "-i", "aevalsrc=random(0)|random(1)|random(2)|random(3):s=192000:d=2", "-c:a", "pcm_s32le"]
    video = ["-vf", "scale=240:160", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-g", "60"]
    path = make_video(videos / "loud.mov", *sound, *video)
    with ObjectServer(videos) as server:
        data = Videos([f"{server.url}/loud.mov"], None, v2.CenterCrop(32), clips=uniform_frames(4))
        loader = DataLoader(data, num_workers=1)
        (clip,) = loader
        assert torch.equal(clip[0], data[0])
        server.bytes_of.clear()
        (again,) = loader
        assert torch.equal(again, clip)
        pictures = int(read_index(str(path)).size.sum())
        assert server.bytes_of.total() < 2 * pictures < path.stat().st_size / 2


OF_TABLES = (
    *("x264.mov", "one_group.mp4", "open_groups.mp4", "no_pyramid.mp4", "late.mp4", "ntsc.mp4", "with_sound.mp4"),
    *("x265_open_groups.mp4", "x265_layers.mp4", "mpeg4.mp4", "mjpeg.mov", "interlaced.mp4"),
)


@pytest.mark.parametrize("name", OF_TABLES)
def test_tables_say_what_a_scan_finds(videos: Path, name: str) -> None:
    path = make_video(videos / name, *INDEXED[name])
    data = path.read_bytes()
    by_tables, by_scan = learn_from_tables(HeldBytes(data)), learn_by_scan(FileBytes(str(path)))
    assert by_tables is not None
    ours, theirs = by_tables.index, by_scan.index
    assert isinstance(ours, PacketIndex) and isinstance(theirs, PacketIndex)
    for array in ("pts", "duration", "position", "size", "is_key", "order"):
        assert np.array_equal(getattr(ours, array), getattr(theirs, array)), array
    assert ours.stream == theirs.stream and ours.time_base == theirs.time_base
    assert by_tables.described == by_scan.described
    assert ours.is_read is not None and not ours.is_read.any() and ours.is_reference.all()


def test_files_whose_tables_do_not_say_it(videos: Path, tmp_path: Path) -> None:
    whole = videos / "x264.mp4"
    paths = [turn_video(whole, tmp_path / "turned.mp4"), cut_video(whole, tmp_path / "cut.mp4", 0.5)]
    paths += [make_video(videos / name, *{**INDEXED, **PASSED_ON}[name]) for name in ("fragmented.mp4", "variable.mp4")]
    paths.append(tmp_path / "text.mp4")
    paths[-1].write_text("no video" * 100)
    for path in paths:
        assert learn_from_tables(HeldBytes(path.read_bytes())) is None, path


def test_tables_that_lie_about_key_frames(videos: Path, tmp_path: Path, known: KnownVideos) -> None:
    """A packet that is called a key frame and is none: torchcodec decodes the file."""
    data = bytearray((videos / "x264.mp4").read_bytes())
    at = data.index(b"stss") + 8
    keys = [int.from_bytes(data[at + 4 + 4 * n : at + 8 + 4 * n], "big") for n in range(3)]
    data[at + 8 : at + 12] = (keys[1] - 8).to_bytes(4, "big")
    (tmp_path / "lying.mp4").write_bytes(data)
    with ObjectServer(tmp_path) as server:
        far = Videos([f"{server.url}/lying.mp4"], None, v2.CenterCrop(32), clips=frames_at([[keys[1] - 6, 40]]))
        (clip,) = DataLoader(far, num_workers=1)
        assert torch.equal(clip[0], far[0])
        (one,) = known._known.values()
        assert one.index == "a packet that the file's tables call a key frame is none"


def test_an_epoch_goes_on_from_a_state(videos: Path) -> None:
    with ObjectServer(videos) as server:
        loader = DataLoader(served(server), batch_size=2, shuffle=True, num_workers=2, seed=3)
        epoch = iter(loader)
        next(epoch)
        state, rest = loader.state_dict(), list(epoch)
        resumed = DataLoader(pickle.loads(pickle.dumps(served(server))), 2, shuffle=True, num_workers=0, seed=3)
        resumed.load_state_dict(state)
        for (clips, labels), (theirs, its) in zip(resumed, rest, strict=True):
            assert torch.equal(clips, theirs) and torch.equal(labels, its)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_objects_that_cannot_be_decoded(videos: Path, tmp_path: Path, on_error: Any) -> None:
    whole = (videos / "x264.mp4").read_bytes()
    bad = {"text": b"no video", "empty": b"", "short": whole[: len(whole) // 2]}
    bad["huge"] = b"\x7f\xff\xff\xff" + whole[4:]
    for name, content in {**bad, "whole": whole}.items():
        (tmp_path / f"{name}.mp4").write_bytes(content)
    with ObjectServer(tmp_path, Faults(no_tags=True)) as server:
        for name in ("missing", *bad):
            urls = [f"{server.url}/{one}.mp4" for one in ("whole", name)]
            data = Videos(urls, [0, 1], v2.CenterCrop(32), clips=uniform_frames(4))
            loader = DataLoader(data, batch_size=2, num_workers=2, on_error=on_error)
            if on_error == "raise":
                with pytest.raises(SampleError, match=rf"sample 1 \(.*{name}\.mp4\)"):
                    list(loader)
            else:
                with pytest.warns(UserWarning, match=f"{name}.mp4"):
                    assert [labels.tolist() for _, labels in loader] == [[0]]


def test_a_server_with_faults(videos: Path) -> None:
    with ObjectServer(videos, Faults(error=0.2, reset=0.1, short=0.1)) as server:
        assert_same_as_files(served(server, network=Network(ahead=20_000)), videos)  # less than a file has


def _was_asked(server: ObjectServer) -> bool:
    return server.requests() + server.requests("HEAD") > 1


def test_closing_does_not_wait_for_a_server(videos: Path) -> None:
    for faults in (Faults(stall=1.0, stall_s=600.0), Faults()):
        with ObjectServer(videos, faults) as server:
            data = served(server, network=Network(timeout=300.0, patience=600.0))
            loader = DataLoader(data, num_workers=2)
            epoch = iter(loader)
            assert eventually(functools.partial(_was_asked, server))
            server.faults = Faults(stall=1.0, stall_s=600.0)
            begin = time.monotonic()
            loader.close()
            del epoch, loader
            assert time.monotonic() - begin < 60
            close_all()


def test_objects_and_shards_that_change(videos: Path, tmp_path: Path) -> None:
    (tmp_path / "video.mp4").write_bytes((videos / "x264.mp4").read_bytes())
    (tmp_path / "shard.tar").write_bytes((videos / "shard.tar").read_bytes())
    with ObjectServer(tmp_path) as server:
        far = Videos([f"{server.url}/video.mp4"], None, v2.CenterCrop(32), clips=uniform_frames(2))
        near = Videos(TarShards(str(tmp_path / "shard.tar"), "mp4"), None, far.transform, clips=far.clips)
        loaders = [DataLoader(far, num_workers=1), DataLoader(near, num_workers=1)]
        for loader in loaders:
            list(loader)
        for name in ("video.mp4", "shard.tar"):
            (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-1])
        for loader, where in zip(loaders, ("video.mp4", "shard.tar:000.mp4"), strict=True):
            with pytest.raises(SampleError, match=rf"{where}\).*was changed after it was indexed"):
                list(loader)


def test_arguments(videos: Path) -> None:
    some = EncodedImages([b"", b""], [1, 2])
    for given, error, message in (
        ({"labels": [1, 2]}, ValueError, "give labels to headrace.EncodedImages"),
        ({"cache": "memory:1 MB", "target_transform": str}, ValueError, "give target_transform and cache to"),
    ):
        with pytest.raises(error, match=message):
            Videos(some, clips=RANDOM, **given)
    for source, kind, message in (
        (EncodedImages([b""], None, TRAIN), ValueError, "give transform to Videos"),
        (EncodedImages([b""], mode="L"), ValueError, "mode='L'"),
        (ImageArray(np.zeros((1, 4, 4, 3), np.uint8)), TypeError, "does not locate encoded videos"),
        (files(videos), TypeError, "does not locate encoded videos"),
        (ImageFiles(["a.mp4"], cache="memory:1 MB"), ValueError, "leave it out"),
    ):
        with pytest.raises(kind, match=message):
            Videos(source, clips=RANDOM)
    with pytest.raises(ValueError, match="are for URLs"):
        Videos(["a.mp4"], clips=RANDOM, storage_options={})
