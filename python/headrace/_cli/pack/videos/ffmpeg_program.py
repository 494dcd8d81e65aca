"""The program ffmpeg: writes a video's packets into another container, or encodes its frames with more key frames."""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from headrace._cli.pack.conversion import CRF, REENCODE, Conversion

_INSTALL = "install FFmpeg 5.1 or later, such as by apt install ffmpeg, conda install ffmpeg or brew install ffmpeg"
_INTERRUPTED = 255  # ffmpeg's exit status after a signal
_NO_SPACE = "No space left on device"
#: Frames keep their times, and equal runs write equal bytes.
_SAME_TIMES = ["-copyts"]
_SAME_BYTES = ["-fflags", "+bitexact", "-flags:v", "+bitexact"]


class FfmpegError(ValueError):
    """ffmpeg does not convert a file; the message is its own."""


def check_ffmpeg(how: Conversion) -> None:
    """Raises ImportError if ffmpeg is not installed, or cannot do the conversion; one sentence."""
    if shutil.which("ffmpeg") is None:
        raise ImportError(f"pack --video runs the program ffmpeg, which is not installed: {_INSTALL}")
    if how.kind != REENCODE:
        return
    try:
        _run([*_encoding(how), "-f", "null", "-"], ["-f", "lavfi", "-i", "color=size=64x64:duration=0.1"])
    except FfmpegError as error:
        raise ImportError(
            f"pack --gop encodes H.264 by ffmpeg and libx264, and fails here: {error}; {_INSTALL}"
        ) from error


def write_packets(source: Path, stream: int, made: Path) -> None:
    """Writes the packets of a video stream and of all sound into another container.

    Args:
        stream: number of the video stream.
        made: a new file; its ending says which container.

    Raises:
        FfmpegError: ffmpeg cannot do it.
        OSError: there is no space.
        RuntimeError: ffmpeg was killed.
    """
    _run([*_streams(stream), "-c", "copy", *_container(made), str(made)], ["-i", str(source)])


def write_encoded(source: Path, stream: int, made: Path, how: Conversion) -> None:
    """Encodes a video stream as H.264 with a key frame every ``how.gop`` frames or more often; sound is copied.

    Frames keep their number, times, size, and the angle by which they are turned when they are shown.

    Args:
        stream: number of the video stream.
        made: a new file; its ending says which container.

    Raises:
        FfmpegError: ffmpeg cannot do it.
        OSError: there is no space.
        RuntimeError: ffmpeg was killed.
    """
    arguments = [*_streams(stream), "-c", "copy", *_encoding(how), *_container(made), str(made)]
    _run(arguments, ["-noautorotate", "-i", str(source)])


def _streams(stream: int) -> list[str]:
    return ["-map", f"0:{stream}", "-map", "0:a?"]


def _encoding(how: Conversion) -> list[str]:
    quality = CRF if how.crf is None else how.crf
    times = ["-fps_mode", "passthrough", "-enc_time_base", "-1"]
    return ["-c:v", "libx264", "-crf", str(quality), "-g", str(how.gop), *times, "-threads", "1"]


def _container(made: Path) -> list[str]:
    """Returns arguments of the container: in MP4, the index is at the front, and the first frame's time is exact."""
    return ["-movflags", "+faststart", "-movie_timescale", "90000"] if made.suffix in (".mp4", ".mov") else []


def _run(arguments: Sequence[str], source: Sequence[str]) -> None:
    command = ["ffmpeg", "-nostdin", "-v", "error", "-y", *_SAME_TIMES, *source, *_SAME_BYTES, *arguments]
    # A session of its own: Ctrl-C in a terminal would end ffmpeg, as if the file were broken.
    done = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, check=False
    )
    if not done.returncode:
        return
    said = done.stderr.decode(errors="replace")
    if done.returncode < 0 or done.returncode == _INTERRUPTED:
        raise RuntimeError("ffmpeg was killed, or it ran out of memory")
    if _NO_SPACE in said:
        raise OSError(errno.ENOSPC, f"{_NO_SPACE}, where ffmpeg writes (TMPDIR)")
    lines = [line for line in said.splitlines() if line.strip()]
    raise FfmpegError(f"ffmpeg: {lines[0].strip() if lines else f'status {done.returncode}'}")
