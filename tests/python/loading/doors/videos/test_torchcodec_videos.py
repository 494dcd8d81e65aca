"""Frames of torchcodec's VideoDecoder are the same through the door."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from video_files import (
    FRAMES,
    INDEXED,
    PASSED_ON,
    cut_video,
    forget_videos,
    lose_index,
    make_video,
    turn_video,
    why_no_torchcodec,
)

av = pytest.importorskip("av", exc_type=ImportError)
if (reason := why_no_torchcodec()) is not None:
    pytest.skip(reason, allow_module_level=True)

from torchcodec import samplers  # noqa: E402 - after the check
from torchcodec.decoders import VideoDecoder  # noqa: E402

OFTEN = "x264.mp4", "open_groups.mp4", "x265_open_groups.mp4"  # compared with more requests

pytestmark = pytest.mark.usefixtures("open_doors")


@pytest.fixture(scope="session")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for videos."""
    return tmp_path_factory.mktemp("videos")


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_videos(monkeypatch)


def requests(seed: int) -> list[Any]:
    """What programs ask a decoder for."""
    rng = random.Random(seed)
    begin, stride = rng.randrange(FRAMES // 2), rng.randrange(1, 5)
    numbers = [rng.randrange(-FRAMES, FRAMES) for _ in range(rng.choice([1, 3, 9]))]
    clip = list(range(begin, FRAMES, stride))
    times = [rng.uniform(0.45, 1.9) for _ in range(4)]
    return [
        lambda one: one.get_frames_at(clip),
        lambda one: one.get_frames_at(numbers),
        lambda one: one.get_frames_at(torch.tensor(sorted(clip * 2, reverse=True), dtype=torch.int32)),
        lambda one: one.get_frames_in_range(begin, FRAMES, stride),
        lambda one: one.get_frames_in_range(-5, 1000),
        lambda one: one[begin:],
        lambda one: one[begin],
        lambda one: one.get_frame_at(FRAMES - 1),
        lambda one: one.get_frames_played_at(times),
        lambda one: one.get_frames_played_at(torch.tensor(one.get_frames_at(clip).pts_seconds)),
        lambda one: one.get_frame_played_at(times[0]),
        lambda one: one.get_frames_played_in_range(times[0], times[0] + 0.2),
        lambda one: one.get_frames_played_in_range(0.5, 1.0, fps=12),
        lambda one: one.get_frames_at([FRAMES]),
        lambda one: one.get_frames_at([0, -FRAMES - 1]),
        lambda one: one.get_frames_at([]),
        lambda one: one.get_frames_in_range(5, 5),
        lambda one: one.get_frames_played_at([times[0], 100.0]),
        lambda one: one.get_frames_played_at([float("nan")]),
        lambda one: one.get_frames_at([1.5]),
        lambda one: one.get_frames_at("frames"),
        lambda one: len(one),
        lambda one: one.metadata,
        lambda one: one.stream_index,
        lambda one: str(one.cpu_fallback),
        lambda one: one._get_key_frame_indices(),
        lambda one: samplers.clips_at_regular_indices(one, num_clips=3, num_frames_per_clip=4),
        lambda one: samplers.clips_at_regular_timestamps(one, seconds_between_clip_starts=0.3, num_frames_per_clip=2),
    ]


def outcome(request: Any, decoder: VideoDecoder) -> Any:
    """A result as plain values; the words of an error."""
    try:
        made = request(decoder)
    except Exception as error:
        return type(error), str(error)
    if hasattr(made, "pts_seconds"):
        return describe(made.data), describe(made.pts_seconds), describe(made.duration_seconds)
    return describe(made)


def describe(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return repr(value)
    return type(value), value.dtype, tuple(value.shape), value.stride(), value.contiguous().numpy().tobytes()


def through_door(path: Path, **options: Any) -> tuple[VideoDecoder, ImageCounts]:
    """A decoder of a file, opened while the doors are open; the counts."""
    counts = ImageCounts()
    with deferred_here(counts):
        return VideoDecoder(path, **options), counts


def check(path: Path, seed: int, *, shuffled: bool = True, **options: Any) -> ImageCounts:
    """Compares all requests with those of a decoder without the door, in another order; twice, new and known.

    Args:
        shuffled: False for files of which torchcodec returns other frames after other requests.
    """
    wanted = requests(seed)
    seen = ImageCounts()
    plain = VideoDecoder(path, **options)
    right = [outcome(one, plain) for one in wanted]
    for _ in range(2):
        numbers = list(range(len(wanted)))
        if shuffled:
            random.Random(seed).shuffle(numbers)
        decoder, counts = through_door(path, **options)
        with deferred_here(counts):
            for number in numbers:
                assert outcome(wanted[number], decoder) == right[number], (path.name, number)
        seen.add(counts)
    return seen


@pytest.mark.parametrize("name", INDEXED)
def test_frames_are_equal(videos: Path, name: str) -> None:
    path = make_video(videos / name, *INDEXED[name])
    for seed in range(3 if name in OFTEN else 1):
        check(path, seed)


@pytest.mark.parametrize("name", PASSED_ON)
def test_others_are_torchcodecs(videos: Path, name: str) -> None:
    counts = check(make_video(videos / name, *PASSED_ON[name]), 0, shuffled=False)
    assert counts.native == 0
    assert list(counts.by_library()) == ["torchcodec"]


def test_usual_files_are_decoded_from_the_index(videos: Path) -> None:
    """Without frames that no other needs: none is passed on but what the first file of a kind is compared with."""
    path = make_video(videos / "x264.mp4", *INDEXED["x264.mp4"])
    through, counts = through_door(path)
    with deferred_here(counts):
        through.get_frames_at([3, 40])  # compared
        before = counts.native
        through.get_frames_at([5, 50])
    assert counts.native == before + 1
    assert list(counts.natively) == ["torchcodec.decoders.VideoDecoder"]
    assert not counts.by_others


def test_what_torchcodec_answers_is_counted(videos: Path) -> None:
    """Once a decoder, of a file that has an index: a loader whose dataset asks for nothing else says so."""
    through, counts = through_door(make_video(videos / "x264.mp4", *INDEXED["x264.mp4"]))
    with deferred_here(counts):
        for request in (
            lambda one: one[3],
            lambda one: one.get_frame_at(5),
            lambda one: one.get_frame_played_at(1.0),
            lambda one: one.get_frames_played_in_range(0.5, 1.0),
        ):
            request(through)
        with pytest.raises(IndexError):
            through[FRAMES]
    assert counts.native == 0
    assert counts.by_others == {
        ("torchcodec", "as single frames"): 1,
        ("torchcodec", "as the frames of a range of times"): 1,
    }


@pytest.mark.parametrize(
    "options", [{"dimension_order": "NHWC"}, {"num_ffmpeg_threads": 2}, {"seek_mode": "approximate"}]
)
def test_options(videos: Path, options: dict[str, Any]) -> None:
    check(make_video(videos / "x264.mp4", *INDEXED["x264.mp4"]), 1, **options)


def test_frames_that_are_not_shown(videos: Path) -> None:
    whole = make_video(videos / "x264.mp4", *INDEXED["x264.mp4"])
    check(cut_video(whole, videos / "cut.mp4", 0.5), 0)


def test_turned(videos: Path) -> None:
    whole = make_video(videos / "x264.mp4", *INDEXED["x264.mp4"])
    check(turn_video(whole, videos / "turned.mp4"), 0)


def test_without_an_index_in_the_file(videos: Path) -> None:
    whole = make_video(videos / "x264.avi", *PASSED_ON["x264.avi"])
    counts = check(lose_index(whole, videos / "no_index.avi"), 0, shuffled=False)
    assert counts.native == 0


def test_pyavs_own_door_stays_closed(videos: Path) -> None:
    """`av.open` and its frames are PyAV's."""
    path = make_video(videos / "x264.mp4", *INDEXED["x264.mp4"])
    plain, counts = av.open, ImageCounts()
    with deferred_here(counts):
        assert av.open is plain
        with av.open(str(path)) as container:
            frame = next(container.decode(video=0))
            assert type(frame) is av.VideoFrame and type(frame.to_ndarray(format="rgb24")) is np.ndarray
    assert counts.native == 0 and not counts.by_others


def test_a_changed_file_is_read_again(videos: Path, tmp_path: Path) -> None:
    path = tmp_path / "changes.mp4"
    for name in ("x264.mp4", "no_b_frames.mp4"):
        path.write_bytes(make_video(videos / name, *INDEXED[name]).read_bytes())
        check(path, 0)


def test_a_removed_file_is_read_to_its_end(videos: Path, tmp_path: Path) -> None:
    """As torchcodec reads it: it has opened the file."""
    whole = make_video(videos / "x264.mp4", *INDEXED["x264.mp4"])
    path = tmp_path / "removed.mp4"
    path.write_bytes(whole.read_bytes())
    through_door(path)  # it is known now
    decoder, counts = through_door(path)
    path.unlink()
    plain = VideoDecoder(whole)
    with deferred_here(counts):
        for request in requests(0):
            if outcome(request, plain) != outcome(request, decoder):
                raise AssertionError(request)


@pytest.mark.parametrize("seed", range(12))
def test_damaged_files(videos: Path, tmp_path: Path, seed: int) -> None:
    """Bytes changed in the middle, and files that end early: the frames, or the error, are torchcodec's."""
    rng = random.Random(seed)
    name = rng.choice(["x264.mp4", "x265.mp4", "one_group.mp4", "mpeg4.mp4"])
    data = bytearray(make_video(videos / name, *INDEXED[name]).read_bytes())
    if seed % 3 == 0:
        del data[rng.randrange(len(data) // 4, len(data)) :]
    else:
        for _ in range(rng.randrange(1, 12)):
            data[rng.randrange(len(data) // 20, len(data) * 19 // 20)] ^= rng.randrange(1, 256)
    path = tmp_path / name
    path.write_bytes(data)
    try:
        plain = VideoDecoder(path)
    except Exception as error:
        with pytest.raises(type(error)) as raised:
            through_door(path)
        assert str(raised.value) == str(error)
        return
    numbers = list(range(0, len(plain), 3))
    for _ in range(2):
        decoder, counts = through_door(path)
        with deferred_here(counts):
            assert outcome(lambda one: one.get_frames_at(numbers), decoder) == outcome(
                lambda one: one.get_frames_at(numbers), VideoDecoder(path)
            )


@pytest.mark.parametrize("source", ["missing.mp4", "text.mp4", "empty.mp4", "huge.mp4", b"bytes", 3, None])
def test_errors_are_torchcodecs(videos: Path, tmp_path: Path, source: Any) -> None:
    (tmp_path / "text.mp4").write_text("no video")
    (tmp_path / "empty.mp4").touch()
    whole = make_video(videos / "x264.mp4", *INDEXED["x264.mp4"]).read_bytes()
    (tmp_path / "huge.mp4").write_bytes(b"\x7f\xff\xff\xff" + whole[4:])  # a header of 2 GB
    given = tmp_path / source if isinstance(source, str) else source
    with pytest.raises(Exception) as plain:
        VideoDecoder(given)
    with pytest.raises(type(plain.value)) as raised:
        through_door(given)
    assert str(raised.value) == str(plain.value)
