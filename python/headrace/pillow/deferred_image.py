"""Images without pixels, until something needs them.

Note [lazy core]: Pillow's methods work on the attribute `im`, a native image. While one of the recorded methods runs in
this thread, `im` of a deferred image is a LazyCore, which records what Pillow's method calls. In all other cases
reading `im` makes the pixels. So arguments, modes, sizes, ``info`` and errors are those of Pillow's own code. Once the
pixels are there, the object becomes an instance of Pillow's class again.
"""

from __future__ import annotations

import functools
import io
import threading
from collections.abc import Callable
from typing import Any

from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from headrace.base.native import core
from headrace.pillow.file_pixels import FilePixels
from headrace.pillow.lazy_core import LazyCore

_CONVERTED = (None, "RGB", "L")  # target modes for which Image.convert calls nothing but ImagingCore.convert


class _Recording(threading.local):
    """The deferred images whose recorded methods run in this thread."""

    def __init__(self) -> None:
        self.images: list[Any] = []


_recording = _Recording()


class _Pixels:
    """What ``load`` of a deferred image returns: Pillow's PixelAccess, made at the first access to a pixel."""

    def __init__(self, image: Any) -> None:
        self._image = image

    def __getitem__(self, at: Any) -> Any:
        return self._image.im.pixel_access(self._image.readonly)[at]

    def __setitem__(self, at: Any, value: Any) -> None:
        self._image.im.pixel_access(self._image.readonly)[at] = value


class _Deferred:
    """Mixed into a class of Pillow's, `_of`, which the object belongs to again once it has its pixels."""

    _of: type[Any]
    _lazy: LazyCore | None = None  # what was recorded; None: the file has not been read yet

    def _recordable(self) -> bool:
        """Whether operations can be recorded: `_lazy` is there, or could be made."""
        return self._lazy is not None

    def _make(self) -> None:
        """Makes the pixels, if the file has been read, and makes this an object of Pillow's class."""
        lazy = self._lazy
        made = None if lazy is None else lazy.made()  # where this raises, the image stays deferred
        self._leave()
        if made is not None:
            self.im = made

    def _leave(self) -> None:
        self.__dict__.pop("_lazy", None)
        self.__class__ = self._of

    @property
    def im(self) -> Any:
        if any(one is self for one in _recording.images):
            return self._lazy
        self._make()
        return self.im

    @im.setter
    def im(self, value: Any) -> None:
        self._leave()
        self.im = value

    def load(self) -> Any:
        if self._recordable():
            return _Pixels(self)
        self._leave()
        return self.load()

    def _new(self, im: Any) -> Any:
        # Not self._of: reading `im` has made this object a plain one since `self._new` was looked up.
        new: Any = Image.Image._new(self, im)  # type: ignore[arg-type]
        if isinstance(im, LazyCore):
            new.im = None
            new.__class__, new._lazy = DeferredImage, im
        return new

    def __eq__(self, other: object) -> bool:
        self._make()
        return bool(self == other)

    __hash__ = None  # type: ignore[assignment] # as of Pillow's images

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._make()
        return self.__reduce_ex__(protocol)

    def __repr__(self) -> str:
        shown = str(self._of.__repr__(self))  # type: ignore[call-arg]
        ours, theirs = type(self), self._of
        return shown.replace(f"{ours.__module__}.{ours.__name__}", f"{theirs.__module__}.{theirs.__name__}")


def _recorded(name: str, records: Callable[..., bool]) -> Callable[..., Any]:
    """A method of Pillow's that is recorded where `records` of its arguments is true."""
    plain = getattr(Image.Image, name)

    @functools.wraps(plain)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        if not (self._recordable() and records(*args, **options)):
            self._make()
            return getattr(self, name)(*args, **options)
        _recording.images.append(self)
        try:
            return plain(self, *args, **options)
        finally:
            _recording.images.pop()

    return method


def _is_plain(mode: Any = None, matrix: Any = None, *_: Any, **__: Any) -> bool:
    return mode in _CONVERTED and matrix is None


def _is_single(size: Any = None, resample: Any = None, box: Any = None, reducing_gap: Any = None) -> bool:
    return reducing_gap is None


def _always(*_: Any, **__: Any) -> bool:
    return True


_WHEN: dict[str, Callable[..., bool]] = {
    "convert": _is_plain,
    "copy": _always,
    "crop": _always,
    "resize": _is_single,
    "transpose": _always,
}
for _name, _records in _WHEN.items():
    setattr(_Deferred, _name, _recorded(_name, _records))


class DeferredImage(_Deferred, Image.Image):
    """The result of recorded methods."""

    _of = Image.Image


class DeferredJpeg(_Deferred, JpegImageFile):
    """A JPEG that Pillow has opened. It is read by the first recorded method or by ``load``, and closed if Pillow would
    close it, but not decoded."""

    _of = JpegImageFile

    def _recordable(self) -> bool:
        if self._lazy is None:
            data = None if self.decoderconfig or len(self.tile) != 1 else self._read()
            if data is not None:
                self._lazy = LazyCore(FilePixels(data, self.size), self.mode, self.size)
        return self._lazy is not None

    def _read(self) -> bytes | None:
        """Reads and closes the file; None if Pillow has to decode it or to raise an error."""
        if self.fp is None:
            return None
        try:
            self.fp.seek(0)
            data = self.fp.read()
            header = core.jpeg_header(data)
        except (OSError, ValueError):  # closed, unreadable, not JPEG any more
            return None
        if header["not_plain"] is not None or (header["width"], header["height"]) != self.size:
            return None
        # What Pillow's load() leaves.
        self.tile, self.readonly = [], 0
        if self._exclusive_fp:
            self.fp.close()
        self.fp = None
        return data


def defer(image: Any) -> Any:
    """Makes an image that Pillow has opened a deferred one, if it is an RGB JPEG in a file or in memory; returns it."""
    if type(image) is JpegImageFile and image.mode == "RGB" and type(image.fp) in (io.BufferedReader, io.BytesIO):
        image.__class__ = DeferredJpeg
    return image
