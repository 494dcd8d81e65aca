"""Decoders of videos: kept open within a limit, indexes within a limit, nothing is left open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from video_files import FRAMES, INDEXED, make_video

av: Any = pytest.importorskip("av", exc_type=ImportError)

from headrace._media.video import frame_decoder, rgb_frames  # noqa: E402 - they import av
from headrace._media.video.known_videos import KnownVideo, KnownVideos, key_of  # noqa: E402
from headrace._media.video.packet_index import NotIndexed, PacketIndex, read_index  # noqa: E402
from headrace._storage.parts.sample_bytes import FileBytes  # noqa: E402


def reader(path: Path) -> Any:
    data = path.read_bytes()
    return lambda position, count: data[position : position + count]


def decode_all(path: Path) -> list[np.ndarray]:
    """Every frame in the order in which they are shown, by PyAV's own loop."""
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


@pytest.mark.parametrize("name", ["x264.mp4", "open_groups.mp4", "x265.mp4", "mjpeg.mov"])
def test_frames_are_those_of_the_whole_file(tmp_path: Path, name: str) -> None:
    """Forwards, backwards, scattered, again, on one decoder."""
    path = make_video(tmp_path / name, *INDEXED[name])
    index, whole = read_index(str(path)), decode_all(path)
    decoder = frame_decoder.FrameDecoder(index, reader(path))
    rng = np.random.default_rng(0)
    for wanted in (
        [0],
        [5, 6, 7],
        [8, 9],
        [30],
        [31, 40],
        [20],
        [59, 0, 59],
        *rng.integers(0, FRAMES, (12, 5)).tolist(),
    ):
        frames = decoder.decode(wanted)
        out = np.empty((len(wanted), *whole[0].shape), np.uint8)
        rgb_frames.to_rgb(frames, out)
        np.testing.assert_array_equal(out, np.stack([whole[number] for number in wanted]))


def test_frames_that_nothing_needs_are_not_read(tmp_path: Path) -> None:
    """Of 60 frames in one group, for one that is not referred to: the references before it, and itself."""
    path = make_video(tmp_path / "no_pyramid.mp4", *INDEXED["no_pyramid.mp4"])
    index = read_index(str(path))
    sent: list[int] = []
    decoder = frame_decoder.FrameDecoder(index, reader(path))
    make = decoder._make_packet
    decoder._make_packet = lambda packet, last: (sent.append(packet), make(packet, last))[1]  # type: ignore[func-returns-value, method-assign]
    wanted = int(np.flatnonzero(~index.is_reference[index.order])[10])
    decoder.decode([wanted])
    assert not [packet for packet in sent if not index.is_reference[packet] and packet != index.order[wanted]]
    assert len(sent) < wanted


def test_open_decoders_are_bounded(tmp_path: Path) -> None:
    names = ["x264.mp4", "wide.mp4", "odd.mp4", "444.mp4", "x265.mp4", "mjpeg.mov"]
    for name in names:
        path = make_video(tmp_path / name, *INDEXED[name])
        decoder = frame_decoder.FrameDecoder(read_index(str(path)), reader(path))
        decoder.decode([0])
        open_before = list(frame_decoder._kept.decoders)
        del decoder
        assert open_before != list(frame_decoder._kept.decoders)
        assert 0 < len(frame_decoder._kept.decoders) <= frame_decoder.OPEN_DECODERS


def test_a_file_that_became_shorter(tmp_path: Path) -> None:
    path = make_video(tmp_path / "x264.mp4", *INDEXED["x264.mp4"])
    index, data = read_index(str(path)), path.read_bytes()
    decoder = frame_decoder.FrameDecoder(
        index, lambda position, count: data[: len(data) // 2][position : position + count]
    )
    with pytest.raises(frame_decoder.NotDecoded, match="shorter than it was"):
        decoder.decode([FRAMES - 1])


def test_reading_an_index_leaves_nothing_open(tmp_path: Path) -> None:
    path = make_video(tmp_path / "x264.mp4", *INDEXED["x264.mp4"])
    read_index(str(path))
    before = list(Path("/proc/self/fd").iterdir())
    for _ in range(20):
        read_index(str(path))
    assert len(list(Path("/proc/self/fd").iterdir())) == len(before)


def test_memory_of_indexes_is_bounded(tmp_path: Path) -> None:
    path = make_video(tmp_path / "x264.mp4", *INDEXED["x264.mp4"])
    index = read_index(str(path))
    file = FileBytes(str(path))
    room = KnownVideos(limit=3 * KnownVideo(index, None).nbytes)
    for number in range(10):
        room.add(key_of(file, number), KnownVideo(index, None))
        assert 0 < room.nbytes <= 3 * KnownVideo(index, None).nbytes
    assert room.find(key_of(file, 9)) is not None
    assert room.find(key_of(file, 0)) is None
    room.add(key_of(file, 9), KnownVideo("for a reason", None))
    found = room.find(key_of(file, 9))
    assert found is not None
    assert not isinstance(found.index, PacketIndex)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("x264.avi", "not MP4, MOV, Matroska or WebM"), ("raw.264", "not MP4, MOV, Matroska or WebM")],
)
def test_streams_without_an_index(tmp_path: Path, name: str, reason: str) -> None:
    path = make_video(tmp_path / name, "-c:v", "libx264", "-pix_fmt", "yuv420p")
    with pytest.raises(NotIndexed, match=reason):
        read_index(str(path))


def test_no_such_stream(tmp_path: Path) -> None:
    path = make_video(tmp_path / "x264.mp4", *INDEXED["x264.mp4"])
    for number in (1, 100):
        with pytest.raises(NotIndexed, match="no such video stream"):
            read_index(str(path), number)


def test_a_kind_of_frame_that_another_thread_compares_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its two looks at what is known: where the pixels are others, they are the library's all the same."""
    path = make_video(tmp_path / "x264.mp4", *INDEXED["x264.mp4"])
    frames = frame_decoder.FrameDecoder(read_index(str(path)), reader(path)).decode([3])
    library = np.zeros((1, frames[0].height, frames[0].width, 3), np.uint8)
    known: dict[object, bool] = {}
    monkeypatch.setattr(rgb_frames, "_equal", known)
    kind = "h264", rgb_frames._kind_of(frames[0])

    def compare_meanwhile(shape: tuple[int, ...], dtype: np.dtype[np.uint8]) -> np.ndarray[Any, Any]:
        known[kind] = False
        return np.empty(shape, dtype)

    assert rgb_frames.make_rgb("h264", frames, lambda: library, compare_meanwhile) is library
    assert known == {kind: False}
