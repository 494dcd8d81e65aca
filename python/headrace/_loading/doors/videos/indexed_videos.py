"""The handles of videos, whose frames are deferred tensors; they are decoded from an index of packets where there is
one.

A VideoDecoder holds a handle that it passes to torchcodec's operators. Ours answers the operators which return several
frames itself, by `headrace._media.video`, and gives all others a handle of torchcodec's, which it opens when needed.
Errors are torchcodec's: whatever is not plain is passed on.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from headrace._base.types import Array
from headrace._loading.doors.videos.deferred_clips import defer_frames
from headrace._media.video.frame_decoder import FrameDecoder, NotDecoded
from headrace._media.video.frame_times import frames_played_at, seconds_of
from headrace._media.video.index_encoding import torchcodecs_name
from headrace._media.video.kept_video import KeptVideo
from headrace._media.video.known_videos import KnownVideo, VideoKey, known_videos
from headrace._media.video.packet_index import PacketIndex
from headrace._media.video.rgb_frames import make_rgb
from headrace._media.video.video_files import learn_index
from headrace._storage.parts.sample_bytes import FileBytes
from headrace.pillow.memory import pixel_memory
from headrace.pillow.recording.image_counts import Door, ImageCounts

#: What a VideoDecoder gets: a handle, the number of the stream, its metadata.
Created = tuple[torch.Tensor, int, Any]


def open_video(plain: Callable[..., Created], options: dict[str, Any], counts: ImageCounts, door: Door) -> Created:
    """Returns what torchcodec's function does: of a file that has an index, with our handle.

    Args:
        plain: torchcodec's ``create_video_decoder``.
        options: its arguments. The source is the path of a file.
    """
    path = str(options["source"])
    try:
        file = FileBytes(path)
    except OSError:  # raised by torchcodec, in its words
        return plain(**options)
    kept = KeptVideo(known_videos, counts.indexes, file, options.get("stream_index"), torchcodecs_name)
    known, theirs = kept.find(), None
    if known is None:
        theirs = plain(**options)
        known = KnownVideo(learn_index(path, *theirs[1:]), copy.copy(theirs[2]))
        if file.path != path:  # it has been replaced meanwhile
            return hand_on(theirs, options, door)
        kept.add(known)
    counts.count_index(kept.origin)
    if isinstance(known.index, str):
        counts.count(known.index, door)
        return hand_on(plain(**options) if theirs is None else theirs, options, door)
    video = _Video(kept.key, known.index, known.described, file, options, door)
    video.counts = counts
    if theirs is None:
        video.opener = lambda: plain(**{**options, "source": file.path})[0]
    else:
        video.opened = theirs[0]
    return _Handle.of(video), known.index.stream_index, copy.copy(known.described)


def hand_on(theirs: Created, options: dict[str, Any], door: Door) -> Created:
    """Returns what torchcodec's function has returned, with a handle whose frames are deferred tensors."""
    return _Handle.of(_Opened(theirs[0], options, door)), *theirs[1:]


class _Handle(torch.Tensor):
    """A VideoDecoder's handle. It has no values; torchcodec's operators are called with it, and nothing else."""

    video: _Opened

    @classmethod
    def of(cls, video: _Opened) -> _Handle:
        made: _Handle = torch.Tensor._make_subclass(cls, torch.empty(0, dtype=torch.int64, device="cpu"))
        made.video = video
        return made

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(function, "namespace", None) != "torchcodec_ns" or not args or not isinstance(args[0], cls):
            return super().__torch_function__(function, types, args, kwargs)  # type: ignore[no-untyped-call]
        video, others = args[0].video, args[1:]

        def theirs() -> Any:
            return function(video.open(), *others, **kwargs)

        operator = function.name().split("::")[1]
        made = theirs() if others else video.call(operator, kwargs, theirs)
        if operator in _LEFT:
            video.count_left(_LEFT[operator])
        if operator not in _OF_FRAMES:
            return made
        data, *others = made
        return defer_frames(data, video.order, video.door), *others


#: Operators that return pixels of several frames, their times and durations.
_OF_FRAMES = ("get_frames_at_indices", "get_frames_in_range", "get_frames_by_pts", "get_frames_by_pts_in_range")

#: Operators that torchcodec answers of every file, and what they return.
_LEFT = {
    "get_frame_at_index": "as single frames",
    "get_frame_at_pts": "as single frames",
    "get_frames_by_pts_in_range": "as the frames of a range of times",
}


class _Opened:
    """A video that torchcodec decodes.

    Args:
        opened: its handle; None: it is opened when it is needed.
        options: of torchcodec's function.
        door: by which the program gets frames.

    Attributes:
        order: of the dimensions of frames, "NCHW" or "NHWC".
    """

    def __init__(self, opened: torch.Tensor | None, options: dict[str, Any], door: Door) -> None:
        self.opened, self.door = opened, door
        self.order: str = options.get("dimension_order", "NCHW")

    def open(self) -> torch.Tensor:
        """Returns torchcodec's handle."""
        assert self.opened is not None
        return self.opened

    def call(self, operator: str, kwargs: dict[str, Any], theirs: Callable[[], Any]) -> Any:
        """Returns what an operator returns.

        Args:
            theirs: returns it as torchcodec makes it.
        """
        return theirs()

    def count_left(self, what: str) -> None:
        """Counts what torchcodec has returned. Such a file was counted when it was opened."""
        return None


class _Video(_Opened):
    """A file of which a VideoDecoder returns frames.

    Args:
        key: what the file is known by.
        described: torchcodec's metadata of the stream.

    Attributes:
        opener: opens it.
        counts: counts what is decoded.
    """

    counts: ImageCounts

    def __init__(
        self, key: VideoKey, index: PacketIndex, described: Any, file: FileBytes, options: dict[str, Any], door: Door
    ) -> None:
        super().__init__(None, options, door)
        self._key, self._index, self._described, self._file = key, index, described, file
        self._decoder = FrameDecoder(index, file.read)
        self.opener: Callable[[], torch.Tensor] | None = None
        self._left: set[str] = set()  # what was counted that torchcodec returned

    def open(self) -> torch.Tensor:
        """Returns torchcodec's handle."""
        if self.opened is None:
            assert self.opener is not None
            self.opened, self.opener = self.opener(), None
        return self.opened

    def call(self, operator: str, kwargs: dict[str, Any], theirs: Callable[[], Any]) -> Any:
        frames = self._find_frames(operator, kwargs)
        return theirs() if frames is None else self._make(frames, theirs)

    def count_left(self, what: str) -> None:
        if what not in self._left:  # once, as a clip counts once: a sample may take its frames one by one
            self._left.add(what)
            self.counts.count(what, self.door)

    def _find_frames(self, operator: str, kwargs: dict[str, Any]) -> Sequence[int] | None:
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
            found = None if seconds is None else frames_played_at(self._index, self._described, seconds)
        return found if found and min(found) >= 0 and max(found) < count else None

    def _make(self, frames: Sequence[int], theirs: Callable[[], Any]) -> Any:
        """Returns frames as torchcodec's operators do: pixels, times and durations in seconds.

        Args:
            theirs: returns them as torchcodec makes them.
        """
        index = self._index
        try:
            decoded = self._decoder.decode(frames)
        except (NotDecoded, OSError) as error:
            known_videos.add(self._key, KnownVideo(str(error), self._described))
            self.counts.count(str(error), self.door)
            return theirs()
        by_them = functools.cache(theirs)
        has_planes = self.order == "NCHW"

        def pixels_by_them() -> Array:
            made = by_them()[0]
            pixels: Array = (made.permute(0, 2, 3, 1) if has_planes else made).numpy()
            return pixels

        pixels = make_rgb(index.stream.codec, decoded, pixels_by_them, pixel_memory.empty_for_a_while)
        if by_them.cache_info().currsize:
            return by_them()
        self.counts.count(None, self.door)
        packets = index.order[np.asarray(frames)]
        made = torch.from_numpy(pixels)
        times = (torch.from_numpy(seconds_of(index, one[packets])) for one in (index.pts, index.duration))
        return made.permute(0, 3, 1, 2) if has_planes else made, *times


def _plain_list(values: torch.Tensor, dtype: torch.dtype) -> list[Any] | None:
    """Returns the values of a vector of this dtype; None for all else, which torchcodec refuses."""
    return values.tolist() if values.dtype == dtype and values.dim() == 1 else None
