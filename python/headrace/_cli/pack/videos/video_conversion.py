"""What a pack stores for a video: its packets in another container, or its frames with more key frames, compared."""

from __future__ import annotations

import tempfile
from pathlib import Path

import av

from headrace._base.safe_exceptions import message_of
from headrace._cli.pack.conversion import COPY, MOST_CAUSES, REMUX, Conversion, Converted
from headrace._cli.pack.videos.ffmpeg_program import FfmpegError, write_encoded, write_packets
from headrace._cli.pack.videos.frame_comparison import Compared, Unequal, compare_videos
from headrace._cli.recipes import CLIP_FRAMES, CLIP_STEP
from headrace._media.video.decoding_cost import DecodingCost, expected_cost
from headrace._media.video.video_files import index_or_reason
from headrace.datasets.videos.videos_dataset import ENDINGS

#: Containers that the packets of a file may be written into, by its ending; the default is for all others.
_CONTAINERS = {"mkv": ("mkv",), "webm": ("webm",)}
_PLAIN = ("mp4", "mov")
MADE = ("mp4", "mov", "mkv", "webm")
_CLIP = range(0, CLIP_FRAMES * CLIP_STEP, CLIP_STEP)  # frames of a clip whose cost is stated
_CLIPS = 8  # of a file, equally far apart


def is_video(path: str) -> bool:
    return path.lower().endswith(ENDINGS)


def convert_video(data: bytes, how: Conversion, extension: str) -> Converted:
    """Returns what is stored for a video file.

    A video that cannot be converted, whose frames would differ in number, time or size, or with REMUX in a value, or
    of whose result torchcodec would not deliver all frames, is kept as it is.

    Args:
        data: the bytes of the file.
        extension: of the file's name.

    Raises:
        OSError: there is no space for temporary files.
        RuntimeError: ffmpeg was killed.
        ImportError: torchcodec cannot be imported.
    """
    if how.kind == COPY:
        return Converted(data, None, "copied")
    with tempfile.TemporaryDirectory(prefix="headrace-pack-") as folder:
        source = Path(folder, f"source.{extension}")
        source.write_bytes(data)
        try:
            made = _make(source, how)
            compared = compare_videos(source, made)
            if how.kind == REMUX and compared.squared_error:
                raise Unequal("the frames would have other pixels")
        except (FfmpegError, Unequal, av.FFmpegError) as error:
            return Converted(data, None, " ".join(message_of(error).split())[:MOST_CAUSES])
        counts = {**_counts_of(compared), **_cost_counts("before", source), **_cost_counts("after", made)}
        return Converted(made.read_bytes(), made.suffix[1:], None, counts)


def _make(source: Path, how: Conversion) -> Path:
    """Returns the converted file. Raises FfmpegError of the last container that was tried."""
    with av.open(str(source), metadata_errors="ignore") as container:
        stream = container.streams.best("video")
        if stream is None:
            raise FfmpegError("it has no video stream")
        number = stream.index
    containers = _CONTAINERS.get(source.suffix[1:].lower(), _PLAIN)
    if how.kind != REMUX and containers == ("webm",):  # which has no H.264
        containers = ("mkv",)
    for ending in containers:
        made = source.with_name(f"made.{ending}")
        try:
            if how.kind == REMUX:
                write_packets(source, number, made)
            else:
                write_encoded(source, number, made, how)
        except FfmpegError:
            if ending == containers[-1]:
                raise
        else:
            break
    return made


def _counts_of(compared: Compared) -> dict[str, float]:
    held: dict[str, float] = {"frames": compared.frames, "by_pyav": compared.frames if compared.by_pyav else 0}
    if compared.squared_error:
        held |= {"files": 1, "psnr": compared.psnr, "least_psnr": compared.psnr}
    return held


def _cost_counts(name: str, path: Path) -> dict[str, float]:
    cost = clip_cost(path)
    return {f"wanted_{name}": cost.wanted, f"decoded_{name}": cost.decoded} if cost.wanted else {}


def clip_cost(path: Path) -> DecodingCost:
    """Returns how many frames are decoded for the clips that commands make; none of a file that has no index."""
    index = index_or_reason(str(path))
    if isinstance(index, str):
        return DecodingCost()
    length = len(index)
    begins = [max(0, length - _CLIP.stop) * number // (_CLIPS - 1) for number in range(_CLIPS)]
    clips = [[min(begin + frame, length - 1) for frame in _CLIP] for begin in begins]
    return sum((expected_cost(index, clip) for clip in clips), DecodingCost())


def video_difference(source: bytes, packed: bytes, how: Conversion) -> str | None:
    """Returns how a packed video differs from its source in what the conversion keeps; None: it does not.

    With COPY that is every byte, and nothing is decoded; with REMUX the values of all frames; with REENCODE their
    number, times and sizes.

    Raises:
        ImportError: torchcodec cannot be imported.
    """
    if how.kind == COPY:
        return None if source == packed else "the video has other bytes"
    try:
        compared = compare_videos(source, packed)
    except Unequal as error:
        return str(error)
    return "the frames have other pixels" if how.kind == REMUX and compared.squared_error else None
