"""Clips of videos in other machines: their bytes are waited for while others are decoded, within limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from bench.remote.object_server import Faults, ObjectServer

from headrace import DataLoader, Network, Videos, uniform_frames
from headrace.datasets import frames_at
from torchvision_shim import import_torchvision
from video_files import INDEXED, forget_videos, make_video, why_no_torchcodec

pytest.importorskip("av", exc_type=ImportError)
if (reason := why_no_torchcodec()) is not None:
    pytest.skip(reason, allow_module_level=True)

from headrace._media.video import video_clips
from headrace._media.video.clip_limits import ClipLimits
from headrace._media.video.frame_decoder import FrameDecoder
from headrace._media.video.needed_bytes import fetch_packets
from headrace._storage.remote.fetcher_registry import close_all

v2 = import_torchvision().transforms.v2

NAMES = "x264.mp4", "ntsc.mp4", "x264.mkv"
COUNT = 12


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("far_clips")
    for name in NAMES:
        make_video(folder / name, *INDEXED[name])
    return folder


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    forget_videos(monkeypatch)
    yield
    close_all()


class Counted:
    """Counts the calls of a function that run at the same time."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.now, self.most, self.lock = function, 0, 0, threading.Lock()

    def call(self, *args: Any) -> Any:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            time.sleep(0.01)
            return self.function(*args)
        finally:
            with self.lock:
                self.now -= 1


def clips_of(paths: list[Any], **options: Any) -> Videos:
    wanted = [[3 * number, 3 * number + 4] for number in range(COUNT)]
    chosen = [paths[number % len(paths)] for number in range(COUNT)]
    return Videos(chosen, None, v2.CenterCrop(32), clips=frames_at(wanted), **options)


@pytest.mark.parametrize("threads", [1, 2])
def test_bytes_are_waited_for_while_others_are_decoded(
    videos: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    decodes = Counted(FrameDecoder.decode)
    monkeypatch.setattr(FrameDecoder, "decode", lambda *args: decodes.call(*args))
    expected = list(DataLoader(clips_of([videos / name for name in NAMES]), 4, num_workers=0))
    decodes.most = 0
    with ObjectServer(videos, Faults(latency_s=0.1)) as server:
        loader = DataLoader(clips_of([f"{server.url}/{name}" for name in NAMES]), 4, num_workers=threads)
        for _ in range(2):
            assert all(map(torch.equal, loader, expected))
        assert server.most_under_way >= 4
        assert 1 <= decodes.most <= threads
        loader.close()


def test_what_was_fetched_is_limited(videos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One clip at a time, if the limit has room for no more."""
    fetches = Counted(fetch_packets)
    monkeypatch.setattr(video_clips, "fetch_packets", fetches.call)
    path = videos / "x264.mp4"
    expected = list(DataLoader(clips_of([path]), 4, num_workers=0))
    with ObjectServer(videos, Faults(latency_s=0.02)) as server:
        small = Network(ahead=path.stat().st_size // 20)
        for network, is_one in ((small, True), (Network(), False)):
            fetches.most = 0
            loader = DataLoader(clips_of([f"{server.url}/x264.mp4"], network=network), 4, num_workers=2)
            assert all(map(torch.equal, loader, expected))
            assert (fetches.most == 1) == is_one


def test_an_index_in_the_folder_saves_requests(videos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the ETag of the object; without one, a change would go unnoticed."""
    for tags in (True, False):
        with ObjectServer(videos, Faults(no_tags=not tags)) as server:
            requests = []
            for _ in range(2):
                forget_videos(monkeypatch)
                close_all()
                before = server.requests()
                loader = DataLoader(clips_of([f"{server.url}/x264.mp4?token=x"]), num_workers=1, video_index=tmp_path)
                assert all(map(torch.equal, loader, DataLoader(clips_of([videos / "x264.mp4"]))))
                requests.append((server.requests() - before, loader.stats().videos))
            (first, learned), (second, found) = requests
            assert learned is not None and found is not None
            assert learned.indexes_learned == 1 and found.indexes_from_folder == int(tags)
            assert second < first or not tags
    assert all(b"token" not in path.read_bytes() for path in tmp_path.rglob("*.npz"))


def test_closing_waits_for_nobody(videos: Path) -> None:
    with ObjectServer(videos, Faults(latency_s=30)) as server:
        data = Videos([f"{server.url}/x264.mp4"] * 8, None, v2.CenterCrop(32), clips=uniform_frames(2))
        loader = DataLoader(data, 2, num_workers=1)
        iterator = iter(loader)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(next, iterator)
            time.sleep(0.3)
            begin = time.monotonic()
            loader.close()
            with pytest.raises(RuntimeError):
                waiting.result(20)
        assert time.monotonic() - begin < 20


def test_limits() -> None:
    limits, order = ClipLimits(1, 100), []

    def never() -> None:
        return None

    def gives_up() -> None:
        raise OSError("no longer wanted")

    with limits.room(70, never), limits.room(30, never), limits.decoding(never):
        for context in (limits.room(1, gives_up), limits.decoding(gives_up)):
            with pytest.raises(OSError, match="no longer wanted"), context:
                order.append("never")
        with ThreadPoolExecutor(1) as pool:
            limits.resize(2)
            assert pool.submit(lambda: limits.decoding(gives_up).__enter__()).result(20) is None
    with limits.room(1000, gives_up), pytest.raises(OSError, match="no longer"), limits.room(1, gives_up):
        order.append("never")
    with limits.room(100, gives_up):
        order.append("room again")
    assert order == ["room again"]
