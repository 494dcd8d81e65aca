"""Videos that ffmpeg makes: small ones of many kinds."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from headrace._loading.doors.videos import decord_frames, indexed_videos
from headrace._media.video import video_clips
from headrace._media.video.known_videos import KnownVideos
from headrace._storage.video_indexes import shared_indexes

FRAMES = 60
_SOURCE = ["-f", "lavfi", "-i", f"testsrc2=size=98x66:rate=30:duration={FRAMES / 30},noise=alls=6:allf=t"]
_X264 = ["-c:v", "libx264", "-pix_fmt", "yuv420p"]
_X265 = ["-c:v", "libx265", "-pix_fmt", "yuv420p", "-x265-params"]
_VP9 = ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8"]
_AV1 = ["-c:v", "libaom-av1", "-cpu-used", "8"]
_VARIABLE = ["-vf", "select='not(mod(n,3))+not(mod(n,7))'", "-vsync", "vfr"]
_FIRST_LOST = ["-bsf:v", "noise=drop=eq(n\\,0)"]  # the stream begins with frames that need another one

#: Files whose frames are decoded from an index: name, arguments of ffmpeg.
INDEXED = {
    "x264.mp4": [*_X264, "-g", "25"],
    "x264.mov": [*_X264, "-g", "25"],
    "one_group.mp4": [*_X264, "-g", "300"],
    "every_frame_a_key.mp4": [*_X264, "-g", "1"],
    "no_b_frames.mp4": [*_X264, "-bf", "0"],
    "no_pyramid.mp4": [*_X264, "-x264-params", "b-pyramid=none:bframes=4"],
    "open_groups.mp4": [*_X264, "-x264-params", "open-gop=1:keyint=16:bframes=5"],
    "fragmented.mp4": [*_X264, "-movflags", "frag_keyframe+empty_moov", "-g", "15"],
    "late.mp4": ["-vf", "setpts=PTS+0.4/TB", *_X264],
    "ntsc.mp4": ["-r", "30000/1001", *_X264],
    "with_sound.mp4": ["-f", "lavfi", "-i", "sine=440:duration=2", *_X264, "-c:a", "aac", "-g", "20"],
    "444.mp4": ["-c:v", "libx264", "-pix_fmt", "yuv444p"],
    "full_range.mp4": ["-c:v", "libx264", "-pix_fmt", "yuvj420p"],
    "bt709.mp4": [*_X264, "-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709"],
    "10_bit.mp4": ["-c:v", "libx264", "-pix_fmt", "yuv420p10le"],
    "interlaced.mp4": ["-vf", "scale=96:64", *_X264, "-flags", "+ilme+ildct"],
    "rgb.mp4": ["-c:v", "libx264rgb"],
    "odd.mp4": ["-vf", "scale=99:67", "-c:v", "libx264", "-pix_fmt", "yuv444p"],
    "wide.mp4": ["-vf", "scale=128:66", *_X264],
    "x265.mp4": [*_X265, "log-level=none:keyint=20"],
    "x265_open_groups.mp4": [*_X265, "log-level=none:keyint=16:open-gop=1"],
    "x265_layers.mp4": [*_X265, "log-level=none:temporal-layers=2"],
    "x265_10_bit.mp4": ["-c:v", "libx265", "-pix_fmt", "yuv420p10le", "-x265-params", "log-level=none:keyint=20"],
    "mpeg4.mp4": ["-c:v", "mpeg4", "-bf", "2"],
    "x264.mkv": [*_X264, "-g", "25"],
    "ntsc.mkv": ["-r", "30000/1001", *_X264],
    "x265.mkv": [*_X265, "log-level=none:keyint=20:open-gop=0"],
    "no_cues.mkv": [*_X264, "-g", "25", "-live", "1"],  # and without sizes, as it is streamed
    "vp9.webm": [*_VP9, "-g", "25"],
    "vp9_odd.webm": [*_VP9, "-vf", "scale=99:67", "-pix_fmt", "yuv420p"],
    "vp9_10_bit.webm": [*_VP9, "-pix_fmt", "yuv420p10le"],
    "vp9_hidden.webm": ["-c:v", "libvpx-vp9", "-cpu-used", "5", "-auto-alt-ref", "1", "-lag-in-frames", "16"],
    "av1.webm": [*_AV1, "-g", "25"],
    "av1.mp4": [*_AV1, "-g", "25"],
    "mjpeg.mov": ["-c:v", "mjpeg", "-q:v", "3", "-pix_fmt", "yuvj420p"],
}

#: Files that torchcodec decodes as ever.
PASSED_ON = {
    "variable.mp4": [*_VARIABLE, *_X264],
    "variable.mkv": [*_VARIABLE, *_X264],
    "transport.ts": [*_X264, "-g", "25"],
    "x264.avi": [*_X264, "-bf", "0"],
    "mpeg2.mpg": ["-c:v", "mpeg2video", "-g", "12"],
    "no_first_key.mp4": [*_X264, "-g", "25", *_FIRST_LOST],
    "no_first_key.mkv": [*_X264, "-g", "25", *_FIRST_LOST],
    "no_first_key.ts": [*_X265, "log-level=none:keyint=20", *_FIRST_LOST],
}

#: A file with an index and more frames than the others, 360, in groups of 300.
LONG = {"long_groups.mp4": ["-vf", f"loop=5:{FRAMES}", *_X264, "-g", "300", "-sc_threshold", "0"]}


def forget_videos(monkeypatch: pytest.MonkeyPatch) -> KnownVideos:
    """Lets nothing be known of any video, as in a process that begins now. Returns what becomes known."""
    known = KnownVideos()
    for module in (decord_frames, indexed_videos, video_clips):
        monkeypatch.setattr(module, "known_videos", known)
    monkeypatch.setattr(shared_indexes, "_of_process", {})  # shared by loaders that may be alive
    return known


def make_video(path: Path, *arguments: str) -> Path:
    """Makes a video by ffmpeg, of a moving test pattern with noise, unless it is there."""
    if shutil.which("ffmpeg") is None:
        pytest.skip("no ffmpeg")
    if path.name.startswith("av1") and {"decord", "torchcodec"} <= sys.modules.keys():
        pytest.skip("decord and torchcodec are in this process: with decord's libdav1d, torchcodec crashes")
    if not path.exists():
        path.write_bytes(_encoded(path.suffix, arguments))
    return path


@functools.lru_cache(64)  # many tests ask for the same files
def _encoded(suffix: str, arguments: tuple[str, ...]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, f"made{suffix}")
        _run_ffmpeg([*_SOURCE, *arguments, "-threads", "1", "-bitexact", str(made)])
        return made.read_bytes()


def cut_video(whole: Path, path: Path, begin: float) -> Path:
    """Copies a video's packets from a time on: frames before it are in the file and not shown."""
    _run_ffmpeg(["-ss", str(begin), "-i", str(whole), "-c", "copy", str(path)])
    return path


def turn_video(whole: Path, path: Path) -> Path:
    """Copies a video that is to be shown upright on its side."""
    _run_ffmpeg(["-i", str(whole), "-c", "copy", "-metadata:s:v", "rotate=90", str(path)])
    return path


def lose_index(whole: Path, path: Path) -> Path:
    """Copies an AVI whose index is a chunk that nobody reads: players search the file for key frames."""
    data = whole.read_bytes()
    assert data.count(b"idx1") == 1
    path.write_bytes(data.replace(b"idx1", b"JUNK"))
    return path


def _run_ffmpeg(arguments: list[str]) -> None:
    subprocess.run(["ffmpeg", "-v", "error", "-y", *arguments], check=True, timeout=120, stdin=subprocess.DEVNULL)


@functools.cache
def why_no_torchcodec() -> str | None:
    """Returns why torchcodec cannot be imported; None: it can."""
    try:
        import torchcodec.decoders  # noqa: F401
    except (ImportError, RuntimeError, OSError) as error:
        return f"torchcodec: {error}".splitlines()[0]
    return None
