"""RGB pixels of decoded frames, as torchcodec makes them: by FFmpeg's swscale.

Whether the FFmpeg inside PyAV makes the bytes that the FFmpeg under torchcodec makes is compared once for each kind of
frame, on the first frames of it.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import av
import numpy as np
from av.video.reformatter import VideoReformatter

from headrace._base.types import Array

#: What decides how a frame's colours are converted.
FrameKind: TypeAlias = "tuple[str, int, int, bool, bool, bool, bool]"


#: Returns an array of a shape and a type, as `numpy.empty`.
Allocate: TypeAlias = "Callable[[tuple[int, ...], np.dtype[Any]], Array]"


class _Own(threading.local):
    """The converter of this thread: its tables belong to one kind of frame."""

    def __init__(self) -> None:
        self.reformatter = VideoReformatter()


_own = _Own()
_equal: dict[tuple[str, FrameKind], bool] = {}


@functools.cache
def _options() -> dict[str, int]:
    """Options of a conversion: one thread. Others would compete with the loader's for the cores, and a forked child
    that drops a converter would wait for its threads, which it does not have. Older versions of PyAV have
    one thread anyway."""
    try:
        VideoReformatter().reformat(av.VideoFrame(16, 16, "gray"), format="rgb24", threads=1)
    except TypeError:
        return {}
    return {"threads": 1}


def to_rgb(frames: Sequence[av.VideoFrame], out: Array) -> None:
    """Writes frames as RGB into `out`, uint8 (n, H, W, 3)."""
    for frame, place in zip(frames, out, strict=True):
        place[:] = _own.reformatter.reformat(frame, format="rgb24", **_options()).to_ndarray()


def make_rgb(
    codec: str, frames: Sequence[av.VideoFrame], by_library: Callable[[], Array], empty: Allocate = np.empty
) -> Array:
    """Returns frames as RGB, uint8 (n, H, W, 3), equal to the library's.

    Args:
        codec: of the stream.
        frames: one or more, of one size.
        by_library: returns them as the library decodes them, (n, H, W, 3).
        empty: returns an array of this shape and type.
    """
    kinds = {(codec, _kind_of(frame)) for frame in frames}
    size = {(frame.height, frame.width) for frame in frames}
    if len(size) > 1 or not all(_equal.get(kind, True) for kind in kinds):
        return by_library()
    made = empty((len(frames), *size.pop(), 3), np.dtype(np.uint8))
    to_rgb(frames, made)
    unknown = kinds - _equal.keys()
    if not unknown and all(_equal[kind] for kind in kinds):  # another thread may have compared one meanwhile
        return made
    theirs = by_library()
    are_equal = bool(np.array_equal(made, theirs))
    _equal.update(dict.fromkeys(unknown, are_equal))
    return theirs


def _kind_of(frame: av.VideoFrame) -> FrameKind:
    width, height = frame.width, frame.height
    colours = frame.format.name, int(frame.colorspace), int(frame.color_range)
    return *colours, bool(frame.interlaced_frame), width % 32 == 0, width % 2 == 0, height % 2 == 0
