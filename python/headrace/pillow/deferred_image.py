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
from headrace.pillow.effects import warp_of
from headrace.pillow.file_pixels import BYTES, FilePixels
from headrace.pillow.image_counts import ImageCounts
from headrace.pillow.lazy_core import MOST_PIXELS, LazyCore

_CONVERTED = (None, "RGB", "L")  # target modes for which Image.convert calls nothing but ImagingCore.convert
_IM = "_im" if hasattr(Image.Image, "im") else "im"  # where Pillow keeps the native image; "im" before Pillow 11
_COMPONENTS = {"RGB": 3, "L": 1}  # mode -> components of a file from which Pillow makes it; a draft's L has three


class _Recording(threading.local):
    """The deferred images whose recorded methods run in this thread."""

    def __init__(self) -> None:
        self.images: list[Any] = []


_recording = _Recording()


class PixelAccess:
    """What ``load`` of a deferred image returns: Pillow's PixelAccess, made at the first access to a pixel."""

    def __init__(self, image: Any) -> None:
        self._image = image

    def __getitem__(self, at: Any) -> Any:
        return self._image.im.pixel_access(self._image.readonly)[at]

    def __setitem__(self, at: Any, value: Any) -> None:
        self._image.im.pixel_access(self._image.readonly)[at] = value


class Deferred:
    """Mixed into a class of Pillow's, `_of`, which the object belongs to again once it has its pixels.

    Another thread may make the pixels at any moment. So no method looks anything up in this class after its begin, and
    `_lazy` (what was recorded) stays until the class has changed.
    """

    _of: type[Any]
    palette: Any

    @staticmethod
    def _record(image: Any) -> LazyCore | None:
        """Returns what was recorded, after reading the file; None if the operation cannot be recorded."""
        found: LazyCore | None = image.__dict__.get("_lazy")
        return found

    @property
    def im(self) -> Any:
        lazy = self.__dict__.get("_lazy")
        if lazy is not None and any(one is self for one in _recording.images):
            return lazy
        return _made(self).im

    @im.setter
    def im(self, value: Any) -> None:
        _leave(self)
        self.im = value

    @property
    def _im(self) -> Any:
        """`readonly` and ``putpalette`` look at it without reading pixels; ``close`` replaces it by an error."""
        lazy = self.__dict__.get("_lazy")
        return self.__dict__.get("_im") if lazy is None else lazy

    @_im.setter
    def _im(self, value: Any) -> None:
        _leave(self)
        self.__dict__["_im"] = value

    def load(self) -> Any:
        # With a palette, Pillow's method has something to do to the native image.
        return PixelAccess(self) if recorded(self) is not None and self.palette is None else _made(self).load()

    @property
    def __array_interface__(self) -> Any:
        lazy = recorded(self) if self.mode in _COMPONENTS else None
        values = None if lazy is None else lazy.mapped(BYTES[: len(lazy.mode)], "channels_last")
        if values is None:
            return _made(self).__array_interface__
        shape = values.shape if values.shape[2] == 3 else values.shape[:2]
        return {"shape": shape, "typestr": "|u1", "version": 3, "data": values.tobytes()}

    def _new(self, im: Any) -> Any:
        new: Any = Image.Image._new(self, im)  # type: ignore[arg-type]
        if isinstance(im, LazyCore):
            new.im = None
            new._lazy = im
            new.__class__ = DeferredImage
        return new

    def __eq__(self, other: object) -> bool:
        return bool(_made(self) == other)

    def __getattr__(self, name: str) -> Any:
        """Names Pillow's class in the error."""
        of = getattr(self, "_of", type(self))
        theirs = getattr(of, "__getattr__", None)
        if theirs is not None:
            return theirs(self, name)
        raise AttributeError(f"{of.__name__!r} object has no attribute {name!r}", name=name, obj=self)

    __hash__ = None  # type: ignore[assignment] # as of Pillow's images

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _made(self).__reduce_ex__(protocol)


def recorded(image: Any) -> LazyCore | None:
    """Returns what was recorded of an image, after reading its file; None if the next operation needs its pixels, or
    another thread has just made them."""
    record = getattr(image, "_record", None)
    return None if record is None else record(image)


def mapped(image: Any, table: Any, layout: str) -> Any:
    """Returns the values that a table gives for a deferred image's pixels, as `LazyCore.mapped`; None if the pixels are
    to be made first."""
    lazy = recorded(image)
    return None if lazy is None else lazy.mapped(table, layout)


def _made(image: Any) -> Any:
    """Returns the image as an object of Pillow's class, with its pixels if its file has been read."""
    lazy = image.__dict__.get("_lazy")
    if lazy is not None:
        image.__dict__[_IM] = lazy.made()  # where this raises, the image stays deferred
    _leave(image)
    return image


def _leave(image: Any) -> None:
    image.__class__ = getattr(image, "_of", type(image))
    image.__dict__.pop("_lazy", None)
    image.__dict__.pop("_reading", None)
    image.__dict__.pop("_counts", None)


def _recording_method(name: str, records: Callable[..., bool]) -> Callable[..., Any]:
    """A method of Pillow's that is recorded where `records` of its arguments is true."""
    plain = getattr(Image.Image, name)

    @functools.wraps(plain)
    def method(self: Any, *args: Any, **options: Any) -> Any:
        if not records(*args, **options):
            return plain(self, *args, **options)
        _recording.images.append(self)
        try:
            return plain(self, *args, **options)  # it calls `load`, after its own checks, and then reads `im`
        finally:
            _recording.images.pop()

    return method


def _is_plain(mode: Any = None, matrix: Any = None, *_: Any, **__: Any) -> bool:
    return mode in _CONVERTED and matrix is None


def _always(*_: Any, **__: Any) -> bool:
    return True


_WHEN: dict[str, Callable[..., bool]] = {
    "convert": _is_plain,
    "copy": _always,
    "crop": _always,
    "resize": _always,
    "transpose": _always,
}
for _name, _records in _WHEN.items():
    setattr(Deferred, _name, _recording_method(_name, _records))


@functools.wraps(Image.Image.transform)
def _transform(
    self: Any, size: Any, method: Any, data: Any = None, resample: Any = 0, fill: Any = 1, fillcolor: Any = None
) -> Any:
    warp = warp_of(self.mode, size, method, data, resample, fillcolor)
    lazy = None if warp is None else recorded(self)
    if warp is None or lazy is None:
        return Image.Image.transform(self, size, method, data, resample, fill, fillcolor)
    return self._new(lazy.effect("warp", warp, warp.size))


setattr(Deferred, "transform", _transform)  # noqa: B010 - as the methods above: Pillow's types are narrower


class DeferredImage(Deferred, Image.Image):
    """The result of recorded methods."""

    _of = Image.Image


class DeferredJpeg(Deferred, JpegImageFile):
    """A JPEG that Pillow has opened. It is read by the first recorded method or by ``load``, and closed if Pillow would
    close it, but not decoded."""

    _of = JpegImageFile

    @staticmethod
    def _record(image: Any) -> LazyCore | None:
        reading = image.__dict__.get("_reading")
        if reading is None:  # another thread has made the pixels
            return None
        with reading:
            lazy: LazyCore | None = image.__dict__.get("_lazy")
            if lazy is not None:
                return lazy
            if not _is_deferrable(image):
                image._counts.count("after draft(), closed or huge")
            else:
                data = _read(image)
                if data is not None:
                    pixels = FilePixels(data, image.size, image.mode, image._counts)
                    lazy = image._lazy = LazyCore(pixels, image.mode, image.size)
            return lazy


for _kind in (DeferredImage, DeferredJpeg):  # messages that name an object's class name Pillow's
    _kind.__module__, _kind.__qualname__ = _kind._of.__module__, _kind._of.__qualname__
    _kind.__name__ = _kind._of.__name__


def _is_deferrable(image: Any) -> bool:
    """Whether Pillow would decode the file now, to RGB or L, and whole: not after a ``draft`` that shrinks it."""
    if image.fp is None or len(image.tile) != 1 or image.decoderconfig not in ((), (1, 0)):
        return False
    return image.mode in _COMPONENTS and image.width * image.height <= MOST_PIXELS


def _read(image: Any) -> bytes | None:
    """Reads a file, and closes it as Pillow does; None if Pillow has to decode it, maybe to raise an error.

    Note [plain files]: Pillow raises no error about a file whose header is plain, whatever its entropy-coded data are.
    Huffman decoding by libjpeg has no errors, only warnings, which Pillow does not show. It needs no bytes behind the
    marker that ends a scan, and gets to that marker from any data: the restart markers on the way are complete and in
    order. Behind it come sound segments and at last an EOI, so the file is never truncated for it.
    """
    try:
        image.fp.seek(0)
        data: bytes = image.fp.read()
        header = core.jpeg_header(data)
    except (OSError, ValueError):  # closed, unreadable
        return None
    reason = header["not_plain"]
    shape = header["width"], header["height"], len(header["components"])
    if reason is None and shape != (*image.size, _COMPONENTS[image.mode]):
        reason = "the file has changed since it was opened"
    if reason is not None:
        image._counts.count(reason)
        return None
    # What Pillow's load() leaves.
    image.tile, image.readonly, image.map = [], 0, None
    if image._exclusive_fp:
        image.fp.close()
    image.fp = None
    return data


def defer(image: Any, counts: ImageCounts) -> Any:
    """Makes an image that Pillow has opened a deferred one, if it is an RGB or gray JPEG in a file or in memory;
    returns it.

    Args:
        counts: counts the image.
    """
    reason = _why_not(image)
    if reason is None:
        image.__dict__.update(_counts=counts, _reading=threading.Lock())
        image.__class__ = DeferredJpeg
    else:
        counts.count(reason)
    return image


def _why_not(image: Any) -> str | None:
    """Returns why an image cannot be deferred; None if it can."""
    if type(image) is not JpegImageFile:
        return str(getattr(image, "format", None) or type(image).__name__)
    if image.mode not in _COMPONENTS:
        return f"JPEG of mode {image.mode}"
    if type(image.fp) not in (io.BufferedReader, io.BytesIO):
        return f"read through a {type(image.fp).__name__}"
    return None
