"""Pillow's images without pixels, until something needs them.

Note [lazy core]: Pillow's methods work on the attribute `im`, a native image. In an image without pixels it is a
LazyCore. Where one of the recorded methods of Pillow itself reads it, it gets the LazyCore, which records what the
method calls; for all other readers the pixels are made. So objects, classes, arguments, modes, sizes, ``info`` and
errors are Pillow's own. A program's function in place of one of Pillow's gets pixels, and calls Pillow's as it likes.
"""

from __future__ import annotations

import operator
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeGuard, TypeVar

from PIL import Image, ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile

from headrace.pillow.files import jpeg_files, png_files, webp_files
from headrace.pillow.files.contents import leave_loaded
from headrace.pillow.files.pixels import BYTES, FilePixels
from headrace.pillow.recording.image_counts import ImageCounts, in_force
from headrace.pillow.recording.lazy_core import MODES, LazyCore
from headrace.pillow.recording.patches import Untouched

T = TypeVar("T")

_IM = "_im" if hasattr(Image.Image, "im") else "im"  # where Pillow keeps the native image; "im" before Pillow 11
_RECORDED = frozenset(["convert", "copy", "crop", "load", "resize", "thumbnail", "transpose"])  # Pillow's methods
_PILLOW = Image.__file__  # where they are
_NATIVE: type = type(Image.core.new("L", (1, 1)))  # type: ignore[attr-defined]
_frame = sys._getframe
# Not `__dict__`, which the interpreter would make for each image.
_held: Callable[[Image.Image], Any] = (
    operator.attrgetter("_im") if _IM == "_im" else lambda image: image.__dict__.get("im")
)

_ARRAYS = Untouched((Image.Image, "tobytes"), (Image, "_conv_type_shape"), (Image, "_getencoder"))


class Format(NamedTuple):
    """What is done with images of one of Pillow's classes.

    Attributes:
        why_not_deferrable: returns why an image cannot be deferred; None if it can.
        read: reads a file where Pillow would decode it; returns None and the reason if Pillow has to. Raises what
            Pillow's ``load`` raises, if that decodes.
    """

    why_not_deferrable: Callable[[Any], str | None]
    read: Callable[[Any, ImageCounts], tuple[FilePixels | None, str | None]]


_FORMATS: dict[type, Format] = {
    JpegImageFile: Format(jpeg_files.why_not_deferrable, jpeg_files.read),
    PngImageFile: Format(png_files.why_not_deferrable, png_files.read),
    WebPImageFile: Format(webp_files.why_not_deferrable, webp_files.read),
}


class Unread:
    """Marks an image whose file Pillow has opened and not read yet: its ``load`` leads here.

    Args:
        counts: counts the image.
    """

    def __init__(self, counts: ImageCounts) -> None:
        self._counts = counts
        self._reading = threading.Lock()

    def read(self, image: ImageFile.ImageFile) -> None:
        """Reads the file, where Pillow would decode it, unless Pillow has to do that. Other threads wait."""
        own = image.__dict__
        with self._reading:
            if "_unread" not in own:
                return
            pixels, reason = _FORMATS[type(image)].read(image, self._counts)
            if pixels is None:
                own["_by_pillow"] = reason
            else:
                own[_IM] = LazyCore(pixels, image.mode, image.size)
                leave_loaded(image)
            del own["_unread"]


def _load_pixels(image: ImageFile.ImageFile) -> object:
    """Stands for the method that Pillow's classes of files inherit."""
    unread = image.__dict__.get("_unread")
    if unread is not None:
        unread.read(image)
    return ImageFile.ImageFile.load(image)


def _get_im(image: Image.Image) -> object:
    """What the attribute `im` gives."""
    held = _held(image)
    kind = type(held)
    if kind is _NATIVE:
        return held
    if kind is not LazyCore:
        return _plain_im(image)
    if held.native is not None:
        return held.native
    code = _frame(1).f_code
    return held if code.co_name in _RECORDED and code.co_filename == _PILLOW else held.make_native()


def _set_im(image: Image.Image, native: Any) -> None:
    if isinstance(image, ImageFile.ImageFile) and native is not None and _held(image) is None:
        counts = in_force.here()
        if counts is not None and image.tile:  # Pillow decodes the file
            reason = image.__dict__.pop("_by_pillow", None) or _why_not_deferrable(image)
            counts.count(reason or f"{image.format} that was not opened by Pillow's own function")
    if _IM == "_im":
        image._im = native
    else:
        image.__dict__["im"] = native


def _array_interface(image: Image.Image) -> object:
    """NumPy's view of an image: its bytes in one native pass, if it has no pixels yet."""
    if not _ARRAYS:
        return _plain_array_interface(image)
    lazy, data = recorded_bytes(image), _bytes_of_file(image)
    if data is not None:
        shape, typestr = Image._conv_type_shape(image)
        return {"shape": shape, "typestr": typestr, "version": 3, "data": data}
    values = None if lazy is None else lazy.map_pixels(BYTES[: len(lazy.mode)], "channels_last")
    if values is None:
        return _plain_array_interface(image)
    shape = values.shape if values.shape[2] == 3 else values.shape[:2]
    return {"shape": shape, "typestr": "|u1", "version": 3, "data": values.tobytes()}


def _bytes_of_file(image: Image.Image) -> bytes | None:
    """Returns the bytes of an image that has been decoded and has no pixels of Pillow's yet; None for all others."""
    lazy = _held(image)
    is_plain = type(lazy) is LazyCore and type(image).tobytes is Image.Image.tobytes
    return lazy.bytes_of_file() if is_plain and lazy.is_still(image.mode, image.size) else None


def _attribute_im(image: Image.Image) -> object:
    """Pillow's attribute before it was a property."""
    if "im" not in image.__dict__:
        raise AttributeError(f"{type(image).__name__!r} object has no attribute 'im'", name="im", obj=image)
    return image.__dict__["im"]


_plain_im: Callable[[Image.Image], object] = (
    Image.Image.__dict__["im"].fget if "im" in Image.Image.__dict__ else _attribute_im
)
_plain_array_interface: Callable[[Image.Image], object] = Image.Image.__array_interface__.fget  # type: ignore[attr-defined]


def prepare() -> None:
    """Makes Pillow's classes know images without pixels, for the rest of this process's life: they may outlive all that
    opened them."""
    without_load = [kind for kind in _FORMATS if "load" not in kind.__dict__]
    if not without_load and getattr(Image.Image.__dict__.get("im"), "fget", None) is _get_im:
        return
    for kind in without_load:
        setattr(kind, "load", _load_pixels)  # noqa: B010 - not as Pillow's types have it
    webp_files.LOAD.replace()
    setattr(Image.Image, "__array_interface__", property(_array_interface))  # noqa: B010
    setattr(Image.Image, "im", property(_get_im, _set_im))  # noqa: B010


def find_recording(image: object) -> LazyCore | None:
    """Returns what was recorded of an RGB or gray image, after reading its file; None if the next operation needs its
    pixels, or it has them."""
    if not isinstance(image, Image.Image):
        return None
    if "_unread" in image.__dict__:
        image.load()
    lazy = _held(image)
    if type(lazy) is not LazyCore or image.palette is not None or image.mode not in MODES:
        return None
    return lazy if lazy.is_still(image.mode, image.size) else None


def recorded_bytes(image: Image.Image) -> LazyCore | None:
    """Returns what `find_recording` does; None, too, for an image of a class that makes its bytes in its own way."""
    return find_recording(image) if type(image).tobytes is Image.Image.tobytes else None


def is_recorded(image: object) -> TypeGuard[Image.Image]:
    """Whether an image has no pixels, but would have them with Pillow."""
    lazy = _held(image) if isinstance(image, Image.Image) else None
    return type(lazy) is LazyCore and lazy.get_recording() is not None


def is_deferred(image: object) -> TypeGuard[Image.Image]:
    """Whether an image has no pixels, but a file that they will be made from."""
    return is_recorded(image) or (isinstance(image, Image.Image) and "_unread" in image.__dict__)


def defer(image: T, counts: ImageCounts) -> T:
    """Makes an image that Pillow has opened a deferred one, if it is a PNG, or an RGB or gray JPEG, in a file or in
    memory; returns it.

    Args:
        counts: counts the image.
    """
    if _why_not_deferrable(image) is None:
        prepare()
        image.__dict__["_unread"] = Unread(counts)
    return image


def _why_not_deferrable(image: object) -> str | None:
    """Returns why an image cannot be deferred; None if it can."""
    known = _FORMATS.get(type(image))
    if known is None:
        return str(getattr(image, "format", None) or type(image).__name__)
    return known.why_not_deferrable(image)
