"""Frames of decord's VideoReader are the same through the door, whatever a program calls before."""

from __future__ import annotations

import gc
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headrace._base.cores import usable_cores
from headrace.pillow.open_patch import deferred_here
from headrace.pillow.recording.image_counts import ImageCounts
from video_files import FRAMES, INDEXED, PASSED_ON, cut_video, forget_videos, make_video, turn_video

pytest.importorskip("av", exc_type=ImportError)
decord = pytest.importorskip("decord", exc_type=ImportError)

from headrace._loading.doors.videos import decord_videos  # noqa: E402 - after the check

pytestmark = pytest.mark.usefixtures("open_doors")

KINDS = {**INDEXED, **PASSED_ON}
#: Files whose frames decord returns alike whatever was read before.
CLOSED = (
    "x264.mp4",
    "x264.mov",
    "one_group.mp4",
    "every_frame_a_key.mp4",
    "no_b_frames.mp4",
    "no_pyramid.mp4",
    "variable.mp4",
    "variable.mkv",
    "fragmented.mp4",
    "late.mp4",
    "ntsc.mp4",
    "with_sound.mp4",
    "444.mp4",
    "full_range.mp4",
    "bt709.mp4",
    "10_bit.mp4",
    "rgb.mp4",
    "odd.mp4",
    "wide.mp4",
    "x265_layers.mp4",
    "x264.mkv",
    "ntsc.mkv",
)


@pytest.fixture(scope="session")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for videos."""
    return tmp_path_factory.mktemp("videos_of_decord")


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_videos(monkeypatch)


def make_request(draw: random.Random) -> Any:
    """What a program asks a reader for: a function of it, and how it is written.

    Not for `seek` to another frame than the first: what decord reads after it is not the same each time.
    """
    begin, stride, number = draw.randrange(FRAMES // 2), draw.randrange(1, 5), draw.randrange(-FRAMES, FRAMES)
    numbers = [draw.randrange(-FRAMES, FRAMES) for _ in range(draw.choice([1, 3, 9]))]
    clip = list(range(begin, FRAMES, stride))
    requests = {
        f"clip from {begin}": lambda one: one.get_batch(clip).asnumpy(),
        f"array from {begin}": lambda one: one.get_batch(np.array(clip, np.int32)).asnumpy(),
        f"{numbers}": lambda one: one.get_batch(numbers).asnumpy(),
        f"[{number}]": lambda one: one[number].asnumpy(),
        f"[{begin}:]": lambda one: one[begin::stride].asnumpy(),
        "seek(0)": lambda one: one.seek(0),
        f"seek_accurate({begin})": lambda one: one.seek_accurate(begin),
        "next": lambda one: one.next().asnumpy(),
        "next of two": lambda one: [one.next().asnumpy() for _ in range(2)],
        "skip": lambda one: one.skip_frames(stride),
        "length": len,
        "fps": lambda one: one.get_avg_fps(),
        "keys": lambda one: one.get_key_indices(),
        "times": lambda one: one.get_frame_timestamp(clip),
        "beyond": lambda one: one.get_batch([FRAMES * 2]).asnumpy(),
        "before": lambda one: one[-FRAMES * 2].asnumpy(),
        "empty": lambda one: one.get_batch([]).asnumpy(),
        "type": lambda one: [
            (type(made), made.shape, made.dtype, str(made.ctx)) for made in (one.get_batch([0, 1]), one[2])
        ],
    }
    return draw.choice(list(requests.items()))


def outcome(request: Any, reader: Any) -> Any:
    """A result as plain values; an error by its class and last line, without the time in it."""
    try:
        made = request(reader)
    except Exception as error:
        return type(error), str(error).strip().rpartition("\n")[2].rpartition("] ")[2]
    return describe(made)


def describe(value: Any) -> Any:
    if isinstance(value, list):
        return [describe(one) for one in value]
    return (value.shape, value.dtype, value.tobytes()) if isinstance(value, np.ndarray) else value


def read(path: Path, **options: Any) -> Any:
    return decord.VideoReader(str(path), **{"num_threads": 1, "ctx": decord.cpu(0), **options})


def check(path: Path, seeds: range, **options: Any) -> ImageCounts:
    """Compares programs of some requests with decord's own."""
    counts = ImageCounts()
    for seed in seeds:
        draw = random.Random(seed)
        program = [make_request(draw) for _ in range(draw.randint(1, 5))]
        plain = read(path, **options)
        right = [outcome(request, plain) for _, request in program]
        with deferred_here(counts):
            reader = read(path, **options)
            for (name, request), expected in zip(program, right, strict=True):
                assert outcome(request, reader) == expected, (path.name, seed, name, [one for one, _ in program])
    return counts


@pytest.mark.parametrize("name", CLOSED)
def test_frames_are_equal(videos: Path, name: str) -> None:
    counts = check(make_video(videos / name, *KINDS[name]), range(40 if name == "x264.mp4" else 6))
    assert counts.natively["decord.VideoReader"] > 0
    assert not counts.by_others


def test_what_decord_does_not_always_decode_is_decords(videos: Path) -> None:
    path, counts = make_video(videos / "x265.mkv", *KINDS["x265.mkv"]), ImageCounts()
    with deferred_here(counts):
        outcome(lambda one: one.get_batch([3, 1]).asnumpy(), read(path))  # frames, or an error
    assert list(counts.by_library()) == ["decord"]


@pytest.mark.parametrize("name", sorted(KINDS.keys() - {*CLOSED, "x265.mkv"}))
def test_others_are_decords(videos: Path, name: str) -> None:
    path, counts = make_video(videos / name, *KINDS[name]), ImageCounts()

    def see() -> Any:
        try:
            reader = read(path)
        except decord.DECORDError as error:  # of Matroska without sizes; by version 0.6 of AV1
            return type(error)
        return outcome(lambda one: one.get_batch([3, 1]).asnumpy(), reader)

    plain = see()
    with deferred_here(counts):
        made = see()
    # Of frames that need one which is not there, version 0.6 returns others from run to run.
    assert made == plain or name.startswith("no_first_key")
    # Of interlaced videos some frames are decoded from the index, some are decord's.
    assert name == "interlaced.mp4" or plain is decord.DECORDError or list(counts.by_library()) == ["decord"]


def test_as_videomae_writes_it(videos: Path) -> None:
    """The second reader of a file decodes by the index alone, and decord opens nothing."""
    path = make_video(videos / "x264.mp4", *INDEXED["x264.mp4"])
    wanted = [3, 7, 11, 40]
    right = read(path).get_batch(wanted).asnumpy()
    counts = ImageCounts()
    with deferred_here(counts):
        for _ in range(2):
            reader = read(path)
            reader.seek(0)
            assert np.array_equal(reader.get_batch(wanted).asnumpy(), right)
        assert reader._handle._decords is None
    assert counts.natively["decord.VideoReader"] == 2


def test_a_reader_that_is_kept(videos: Path) -> None:
    """After the doors are closed it returns frames, too."""
    path = make_video(videos / "x264.mp4", *INDEXED["x264.mp4"])
    with deferred_here(ImageCounts()):
        reader = read(path)
    assert isinstance(reader._handle, decord_videos.Reader)
    assert np.array_equal(reader.get_batch([5]).asnumpy()[0], read(path)[5].asnumpy())


@pytest.mark.parametrize("name", CLOSED)
def test_threads_of_readers_whose_cores_have_workers(videos: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that names no number gets one for each core, in each worker: one is enough then."""
    path = make_video(videos / name, *KINDS[name])
    worker = SimpleNamespace(num_workers=usable_cores())
    monkeypatch.setattr(decord_videos, "get_worker_info", lambda: worker)
    counts = check(path, range(40 if name == "x264.mp4" else 4), num_threads=0)
    assert counts.natively["decord.VideoReader"] > 0 and not counts.by_others
    for workers, threads in ((usable_cores() - 1, 0), (usable_cores(), 2)):  # cores are free; or the program says two
        worker.num_workers = workers
        assert not check(path, range(1), num_threads=threads).natively


@pytest.mark.parametrize("options", [{"num_threads": 0}, {"width": 32, "height": 20}, {"fault_tol": 3}])
def test_options(videos: Path, options: dict[str, Any]) -> None:
    counts = check(make_video(videos / "x264.mp4", *INDEXED["x264.mp4"]), range(2), **options)
    assert not counts.natively


def test_files_that_are_cut_or_turned(videos: Path) -> None:
    whole = make_video(videos / "x264.mp4", *INDEXED["x264.mp4"])
    for made in (cut_video(whole, videos / "cut.mp4", 0.5), turn_video(whole, videos / "turned.mp4")):
        wanted = [0, 5, 9]
        right = read(made).get_batch(wanted).asnumpy()
        counts = ImageCounts()
        with deferred_here(counts):
            assert np.array_equal(read(made).get_batch(wanted).asnumpy(), right)
        assert not counts.natively


@pytest.mark.parametrize("seed", range(6))
def test_damaged_files(videos: Path, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    data = bytearray(make_video(videos / "x264.mp4", *INDEXED["x264.mp4"]).read_bytes())
    for _ in range(draw.randrange(1, 12)):
        data[draw.randrange(len(data) // 20, len(data) * 19 // 20)] ^= draw.randrange(1, 256)
    path = tmp_path / "damaged.mp4"
    path.write_bytes(data)

    def see() -> Any:
        try:
            return outcome(lambda one: one.get_batch(range(0, FRAMES, 3)).asnumpy(), read(path))
        except Exception as error:
            return type(error)

    right = see()
    for _ in range(2):
        counts = ImageCounts()
        with deferred_here(counts):
            made = see()
        assert made == right or not counts.natively  # of damaged packets, decord's frames differ from run to run


@pytest.mark.parametrize("source", ["missing.mp4", "text.mp4", "empty.mp4"])
def test_errors_are_decords(tmp_path: Path, source: str) -> None:
    (tmp_path / "text.mp4").write_text("no video")
    (tmp_path / "empty.mp4").touch()
    with pytest.raises(Exception) as plain:
        read(tmp_path / source)
    with deferred_here(ImageCounts()), pytest.raises(type(plain.value)):
        read(tmp_path / source)


def test_readers_leave_nothing_open(videos: Path) -> None:
    path = make_video(videos / "x264.mp4", *INDEXED["x264.mp4"])
    with deferred_here(ImageCounts()):
        read(path)[3]
        gc.collect()
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(20):
            read(path)[3]
        gc.collect()
        assert len(list(Path("/proc/self/fd").iterdir())) == before
