"""torchcodec's VideoDecoder in torch's workers: opened without a scan, and without frames that no wanted one needs.

A VideoDecoder holds a handle that it passes to torchcodec's operators. Ours answers the operators which return several
frames itself, by `headrace._media.video`, and gives all others a handle of torchcodec's, which it opens when needed.
Errors are torchcodec's: whatever is not plain is passed on.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headrace._base.lifetimes.finalizers import Ending
from headrace._base.messages import install_command
from headrace._base.types import Array
from headrace.pillow.recording.image_counts import Door, ImageCounts, in_force
from headrace.pillow.recording.patches import Place, Replacements

if TYPE_CHECKING:
    from headrace._media.video.frame_decoder import FrameDecoder
    from headrace._media.video.known_videos import KnownVideo, VideoKey
    from headrace._media.video.packet_index import PacketIndex

VIDEO_DECODER = Door("torchcodec.decoders.VideoDecoder", "torchcodec")

#: What a VideoDecoder gets: a handle, the number of the stream, its metadata.
_Created = tuple[torch.Tensor, int, Any]
_OWN_OPTIONS = {"seek_mode": "exact", "num_ffmpeg_threads": 1, "device": "cpu", "transforms": None}


def _creator(plain: Callable[..., _Created]) -> Callable[..., _Created]:
    """A version of the function that opens a video for a VideoDecoder."""

    @functools.wraps(plain)
    def create_video_decoder(**options: Any) -> _Created:
        counts = in_force.here()
        if counts is None:
            return plain(**options)
        reason = _why_not(options)
        if reason is None:
            return _open_known(plain, options, counts)
        counts.count(reason, VIDEO_DECODER)
        return plain(**options)

    return create_video_decoder


def _why_not(options: dict[str, Any]) -> str | None:
    """Returns why torchcodec opens a video itself; None: it need not."""
    if not isinstance(options.get("source"), (str, Path)) or not os.path.isfile(options["source"]):  # noqa: PTH113
        return "not a file of this machine"
    if any(options.get(name, usual) != usual for name, usual in _OWN_OPTIONS.items()):
        return "with other options than exact seeks, one thread and the CPU"
    if options.get("custom_frame_mappings") is not None:
        return "with frame mappings of the program's own"
    return None if _has_pyav() else f"without PyAV ({install_command('video', 'torchcodec>=0.13', 'av>=14')})"


@functools.cache
def _has_pyav() -> bool:
    return importlib.util.find_spec("av") is not None


def _open_known(plain: Callable[..., _Created], options: dict[str, Any], counts: ImageCounts) -> _Created:
    from headrace._media.video.known_videos import key_of, known_videos
    from headrace._media.video.packet_index import NotIndexed

    path = str(options["source"])
    file = _File(path)
    key = key_of(file.status, options.get("stream_index"))
    known = known_videos.find(key)
    theirs = None
    if known is None:
        theirs = plain(**options)
        known = _learn(path, theirs)
        known_videos.add(key, known)
    if isinstance(known.index, NotIndexed):
        counts.count(str(known.index), VIDEO_DECODER)
        return plain(**options) if theirs is None else theirs
    handle = _Handle(key, known, file, counts, options.get("dimension_order", "NCHW"))
    handle.opener = (lambda: plain(**{**options, "source": file.path})[0]) if theirs is None else None
    handle.theirs = None if theirs is None else theirs[0]
    return handle, known.index.stream_index, copy.copy(known.described)


def _learn(path: str, theirs: _Created) -> KnownVideo:
    """Returns what is known of a video that torchcodec has scanned."""
    import av

    from headrace._media.video.known_videos import KnownVideo
    from headrace._media.video.packet_index import NotIndexed, read_index

    _, stream_index, metadata = theirs
    try:
        index = read_index(path, stream_index)
    except NotIndexed as reason:
        return KnownVideo(reason, copy.copy(metadata))
    except (av.FFmpegError, OSError) as error:
        return KnownVideo(NotIndexed(f"PyAV cannot read it: {error}"), copy.copy(metadata))
    if not _agrees(index, metadata):
        return KnownVideo(NotIndexed("PyAV finds other frames than torchcodec"), copy.copy(metadata))
    if not index.is_regular:  # FFmpeg's versions do not agree on the durations of frames
        return KnownVideo(NotIndexed("of a variable frame rate"), copy.copy(metadata))
    return KnownVideo(index, copy.copy(metadata))


def _agrees(index: PacketIndex, metadata: Any) -> bool:
    """Whether torchcodec found the same frames, which are shown as they are stored."""
    ends = index.pts + index.duration
    seconds = _seconds(index, np.array([index.pts.min(), ends.max()]))
    said = metadata.begin_stream_seconds_from_content, metadata.end_stream_seconds_from_content
    size = metadata.height, metadata.width
    return (
        metadata.num_frames == len(index)
        and said == tuple(seconds.tolist())
        and size == (index.stream.height, index.stream.width)
        and not metadata.rotation
    )


def _seconds(index: PacketIndex, times: Array) -> Array:
    """Returns times in seconds as torchcodec rounds them: the product first."""
    made: Array = times.astype(np.float64) * index.time_base.numerator / index.time_base.denominator
    return made


class _File(Ending):
    """A file that stays open: it may be removed before frames are read."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.at_end = functools.partial(os.close, self._descriptor)
        self.status: os.stat_result = os.fstat(self._descriptor)

    def read(self, position: int, count: int) -> bytes:
        return os.pread(self._descriptor, count, position)

    @property
    def path(self) -> str:
        """Where the same file can be opened."""
        try:
            now = Path(self._path).stat()
        except OSError:
            now = None
        same = now is not None and os.path.samestat(now, self.status)
        return self._path if same else f"/proc/self/fd/{self._descriptor}"


class _Handle(torch.Tensor):
    """A VideoDecoder's handle. It has no values; torchcodec's operators are called with it, and nothing else.

    Attributes:
        theirs: torchcodec's handle, once it is open.
        opener: opens it.
    """

    theirs: torch.Tensor | None
    opener: Callable[[], torch.Tensor] | None
    _key: VideoKey
    _known: KnownVideo
    _frames: FrameDecoder | None
    _order: str
    _counts: ImageCounts
    _file: _File

    @staticmethod
    def __new__(cls, key: VideoKey, known: KnownVideo, file: _File, counts: ImageCounts, order: str) -> _Handle:
        made: _Handle = torch.Tensor._make_subclass(cls, torch.empty(0, dtype=torch.int64, device="cpu"))
        made._key, made._known = key, known
        made._file, made._counts, made._order, made._frames = file, counts, order, None
        return made

    def __init__(self, *_: object) -> None:
        super().__init__()

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if str(getattr(function, "namespace", "")) != "torchcodec_ns" or not args or not isinstance(args[0], cls):
            return super().__torch_function__(function, types, args, kwargs)  # type: ignore[no-untyped-call]
        handle, *others = args

        def theirs() -> Any:
            return function(handle._open(), *others, **kwargs)

        frames = handle._frames_asked(function.name().split("::")[1], kwargs) if not others else None
        return theirs() if frames is None else handle._make(frames, theirs)

    def _open(self) -> torch.Tensor:
        if self.theirs is None:
            assert self.opener is not None
            self.theirs, self.opener = self.opener(), None
        return self.theirs

    def _frames_asked(self, operator: str, kwargs: dict[str, Any]) -> Sequence[int] | None:
        """Returns the numbers of the frames that an operator returns; None: torchcodec makes them, or raises."""
        count = len(self._index)
        found: Sequence[int] | None = None
        if operator == "get_frames_at_indices":
            numbers = _plain_list(kwargs["frame_indices"], torch.int64)
            found = None if numbers is None else [one + count if one < 0 else one for one in numbers]
        elif operator == "get_frames_in_range":
            found = range(kwargs["start"], kwargs["stop"], kwargs.get("step") or 1) if kwargs["start"] >= 0 else None
        elif operator == "get_frames_by_pts":
            seconds = _plain_list(kwargs["timestamps"], torch.float64)
            found = None if seconds is None else self._frames_played_at(seconds)
        return found if found and min(found) >= 0 and max(found) < count else None

    def _frames_played_at(self, seconds: list[float]) -> list[int] | None:
        """Returns the numbers of the frames that are shown at these times."""
        metadata: Any = self._known.described
        begin, end = metadata.begin_stream_seconds, metadata.end_stream_seconds
        if not all(begin <= one < end for one in seconds):  # also not a number
            return None
        index = self._index
        found: list[int] = np.searchsorted(_seconds(index, index.pts[index.order])[1:], seconds, side="right").tolist()
        return found

    @property
    def _index(self) -> PacketIndex:
        index: Any = self._known.index
        return index  # type: ignore[no-any-return]

    def _make(self, frames: Sequence[int], theirs: Callable[[], Any]) -> Any:
        """Returns frames as torchcodec's operators do: pixels, times and durations in seconds."""
        from headrace._media.video.frame_decoder import FrameDecoder, NotDecoded
        from headrace._media.video.known_videos import KnownVideo, known_videos
        from headrace._media.video.packet_index import NotIndexed
        from headrace._media.video.rgb_frames import make_rgb

        index = self._index
        if self._frames is None:
            self._frames = FrameDecoder(index, self._file.read)
        try:
            decoded = self._frames.decode(frames)
        except (NotDecoded, OSError) as error:
            refused = NotIndexed(str(error))
            known_videos.add(self._key, KnownVideo(refused, self._known.described))
            self._counts.count(str(refused), VIDEO_DECODER)
            return theirs()
        by_them = functools.cache(theirs)
        is_last = self._order == "NCHW"
        pixels = make_rgb(
            index.stream.codec, decoded, lambda: (by_them()[0].permute(0, 2, 3, 1) if is_last else by_them()[0]).numpy()
        )
        if by_them.cache_info().currsize:
            return by_them()
        self._counts.count(None, VIDEO_DECODER)
        packets = index.order[np.asarray(frames)]
        made = torch.from_numpy(pixels)
        times = (torch.from_numpy(_seconds(index, one[packets])) for one in (index.pts, index.duration))
        return made.permute(0, 3, 1, 2) if is_last else made, *times


def _plain_list(values: torch.Tensor, dtype: torch.dtype) -> list[Any] | None:
    """Returns the values of a vector of this dtype; None for all else, which torchcodec refuses."""
    return values.tolist() if values.dtype == dtype and values.dim() == 1 else None


STEPS = Replacements(
    [
        Place(
            "torchcodec.decoders._video_decoder",
            lambda module: module if hasattr(module, "create_video_decoder") else None,
            "create_video_decoder",
            _creator,
        )
    ]
)
