"""decord's VideoReader in torch's workers: opened without a scan, and without frames that no wanted one needs.

Its methods call functions in C with a handle. Ours stands for that of a file whose frames are decoded from an index of
its packets; decord's own is opened when a program asks for anything else.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from torch.utils.data import get_worker_info

from headrace._base.cores import usable_cores
from headrace._base.types import Array
from headrace._loading.doors.videos.torchcodec_videos import NO_PYAV, has_pyav
from headrace.pillow.recording.image_counts import Door, ImageCounts, in_force
from headrace.pillow.recording.patches import Place, Replacements

VIDEO_READER = Door("decord.VideoReader", "decord")

if TYPE_CHECKING:
    from headrace._loading.doors.videos.decord_frames import FrameSource

_PREFIX = "_CAPI_VideoReader"
_OPENER = _PREFIX + "GetVideoReader"
_MODULE = "decord.video_reader"
_CPU = 1  # device type
_OF_PATH = 0  # kind of source
_NO_LIMIT = "-1"  # of damaged frames
_AS_CORES = 0  # threads, where the program names no number: one for each core


class Reader:
    """What the functions get in place of decord's handle; one for each VideoReader.

    Args:
        source: decodes frames.
        decords: decord's reader of the same file; None: it is not open.
        open_decords: opens one.
        counts: counts what is decoded.
    """

    def __init__(self, source: FrameSource, decords: Any, open_decords: Callable[[], Any], counts: ImageCounts) -> None:
        self._source, self._open, self._counts = source, open_decords, counts
        self._decords = decords
        self._sought: int | None = None  # frame that was sought last
        self._read = 0  # frames that were read one by one since
        self._batch: Any = None  # numbers of the frames that were read last, if not one by one
        self._is_left = False  # whether decord answers all

    def call(self, name: str, *args: Any) -> Any:
        """Returns what a function does."""
        if name == "Free":
            return self._free()
        if name in ("GetKeyIndices", "GetFramePTS"):
            return call_plain(name, self._get_decords())
        if not self._is_left:
            known = getattr(self, f"_{name}", None)
            made = None if known is None else known(*args)
            if made is not None:
                return made
            self._leave()
        return call_plain(name, self._get_decords(), *args)

    def _GetFrameCount(self) -> Any:
        return self._source.described[0]

    def _GetAverageFPS(self) -> Any:
        return self._source.described[1]

    def _Seek(self, position: int) -> Any:
        """To the first frame, of which nothing was read. Later, what decord returns after it depends on its threads."""
        is_new = self._batch is None and self._sought is None and not self._read
        return True if is_new and position == 0 else None

    def _SeekAccurate(self, position: int) -> Any:
        self._sought, self._read, self._batch = position, 0, None
        return True

    def _NextFrame(self) -> Any:
        number = (self._sought or 0) + self._read
        made = self._make([number]) if self._batch is None and number < len(self._source) else None
        if made is None:
            return None
        self._read += 1
        return sys.modules["decord"].nd.array(made[0])

    def _GetBatch(self, numbers: Any) -> Any:
        wanted = numbers.asnumpy().tolist()
        made = self._make(wanted) if wanted else None
        if made is None:
            return None
        self._sought, self._read, self._batch = None, 0, numbers
        return sys.modules["decord"].nd.array(made)

    def _make(self, numbers: Sequence[int]) -> Array | None:
        return self._source.make(numbers, self._counts, self._by_decord)

    def _by_decord(self, numbers: Sequence[int]) -> Array:
        """Returns frames as decord decodes them, by a reader of its own."""
        module = sys.modules["decord"]
        reader = self._open()
        try:
            made: Array = call_plain("GetBatch", reader, module.nd.array(list(numbers))).asnumpy()
            return made
        finally:
            call_plain("Free", reader)

    def _leave(self) -> None:
        """Has decord answer from now on, after what it would have done last."""
        self._is_left = True
        decords = self._get_decords()
        if self._batch is not None:
            call_plain("GetBatch", decords, self._batch)
        if self._sought is not None:
            call_plain("SeekAccurate", decords, self._sought)
        for _ in range(self._read):
            call_plain("NextFrame", decords)

    def _get_decords(self) -> Any:
        if self._decords is None:
            self._decords = self._open()
        return self._decords

    def _free(self) -> None:
        if self._decords is not None:
            call_plain("Free", self._decords)
            self._decords = None


def _creator(plain: Callable[..., Any]) -> Callable[..., Any]:
    """A version of the function that opens a file for a VideoReader."""

    @functools.wraps(plain)
    def open_reader(source: Any, *options: Any) -> Any:
        counts = in_force.here()
        if counts is None:
            return plain(source, *options)
        if (reason := _why_not(source, *options)) is not None:
            counts.count(reason, VIDEO_READER)
            return plain(source, *options)
        return _open_reader(plain, source, options, counts)

    return open_reader


def _why_not(source: Any, *options: Any) -> str | None:
    """Returns why decord opens a file itself; None: it need not."""
    device, _, width, height, threads, kind, limit = options if len(options) == 7 else (None,) * 7
    if kind != _OF_PATH or type(source) is not str or not os.path.isfile(source):  # noqa: PTH113
        return "not a file of this machine"
    if (device, width, height, limit) != (_CPU, -1, -1, _NO_LIMIT):
        return "with other options than the CPU and the file's size"
    if threads != 1 and not (threads == _AS_CORES and _are_cores_taken()):
        return "with another number of threads than one"
    return None if has_pyav() else NO_PYAV


def _are_cores_taken() -> bool:
    """Whether each core has a worker of torch's: more threads in each of them would only be in each other's way."""
    worker: Any = get_worker_info()
    return worker is not None and worker.num_workers >= usable_cores()


def _open_reader(plain: Callable[..., Any], source: str, options: tuple[Any, ...], counts: ImageCounts) -> Any:
    from headrace._loading.doors.videos.decord_frames import find_frames  # imports av

    opened: list[Any] = []

    def describe() -> tuple[int, float] | None:
        opened.append(plain(source, *options))
        if opened[0] is None:  # it cannot be read
            return None
        return call_plain("GetFrameCount", opened[0]), call_plain("GetAverageFPS", opened[0])

    found = find_frames(source, describe, counts, VIDEO_READER)
    decords = opened[0] if opened else None
    if found is None:
        return decords if opened else plain(source, *options)
    _dispatch()
    file = found.file
    return Reader(found, decords, lambda: plain(file.path, *options), counts)


def call_plain(name: str, *args: Any) -> Any:
    """Calls one of decord's functions for a reader of its own."""
    function = getattr(sys.modules[_MODULE], _PREFIX + name)
    return getattr(function, "__wrapped__", function)(*args)


def _dispatch() -> None:
    """Has the functions accept our handles, for as long as the process lives: a program may keep a reader."""
    names = vars(sys.modules[_MODULE])
    for name, function in list(names.items()):
        if name.startswith(_PREFIX) and name != _OPENER and not hasattr(function, "__wrapped__"):
            names[name] = _version_of(name.removeprefix(_PREFIX), function)


def _version_of(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def call(handle: Any, *args: Any) -> Any:
        return handle.call(name, *args) if isinstance(handle, Reader) else plain(handle, *args)

    return call


STEPS = Replacements([Place(_MODULE, lambda module: module if hasattr(module, _OPENER) else None, _OPENER, _creator)])
