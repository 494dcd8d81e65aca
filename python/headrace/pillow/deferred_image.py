"""Pillow's images without pixels, until something needs them.

Note [lazy core]: Pillow's methods work on the attribute `im`, a native image. In an image without pixels it is a
LazyCore. Where one of the recorded methods of Pillow itself reads it, it gets the LazyCore, which records what the
method calls; for all other readers the pixels are made. So objects, classes, arguments, modes, sizes, ``info`` and
errors are Pillow's own. A program's function in place of one of Pillow's gets pixels, and calls Pillow's as it likes.
"""

from __future__ import annotations

import io
import operator
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeGuard, TypeVar

from PIL import Image, ImageFile
from PIL.JpegImagePlugin import JpegImageFile

from headrace._base.native import core
from headrace.pillow.file_pixels import BYTES, FilePixels
from headrace.pillow.image_counts import ImageCounts, in_force
from headrace.pillow.lazy_core import MOST_PIXELS, LazyCore
from headrace.pillow.patches import Untouched

T = TypeVar("T")

_IM = "_im" if hasattr(Image.Image, "im") else "im"  # where Pillow keeps the native image; "im" before Pillow 11
_RECORDED = frozenset(["convert", "copy", "crop", "load", "resize", "thumbnail", "transpose"])  # Pillow's methods
_PILLOW = Image.__file__  # where they are
_COMPONENTS = {"RGB": 3, "L": 1}  # mode -> components of a file from which Pillow makes it; a draft's L has three
_STEPS_OF_LOAD = frozenset(["load_read", "load_seek", "load_prepare", "load_end", "tile_prefix"])
_WHOLE = ((), (1, 0))  # what decodes a file in its own size
_FILES = (io.BufferedReader, io.BytesIO)
_TRAILING = 1 << 20  # bytes of a file beyond what its pixels can take: Pillow does not read them
_NATIVE: type = type(Image.core.new("L", (1, 1)))  # type: ignore[attr-defined]
_frame = sys._getframe
_pread: Callable[[int, int, int], bytes] | None = getattr(os, "pread", None)  # not on Windows
# Not `__dict__`, which the interpreter would make for each image.
_held: Callable[[Image.Image], Any] = (
    operator.attrgetter("_im") if _IM == "_im" else lambda image: image.__dict__.get("im")
)

_LOADING = Untouched(
    (ImageFile.ImageFile, "load"),
    (JpegImageFile, "load_read"),
    (JpegImageFile, "load_prepare"),
    (JpegImageFile, "load_end"),
    (JpegImageFile, "_close_fp"),
    (Image.Image, "load"),
    (Image, "_getdecoder"),
    (getattr(Image, "core"), "jpeg_decoder"),  # noqa: B009 - not among what Pillow's types export
)
_ARRAYS = Untouched((Image.Image, "tobytes"), (Image, "_conv_type_shape"), (Image, "_getencoder"))


class Unread:
    """Marks a JPEG file that Pillow has opened, and nobody has read: its ``load`` leads here.

    Args:
        counts: counts the image.
    """

    def __init__(self, counts: ImageCounts) -> None:
        self._counts = counts
        self._reading = threading.Lock()

    def read(self, image: JpegImageFile) -> None:
        """Reads the file, where Pillow would decode it, unless Pillow has to do that. Other threads wait."""
        own = image.__dict__
        with self._reading:
            if "_unread" not in own:
                return
            file = None
            reason = _why_pillow_must_decode(image)
            if reason is None:
                file, reason = _read_jpeg(image)
            if file is None:
                own["_by_pillow"] = reason
            else:
                mode, size = image.mode, image.size
                own[_IM] = LazyCore(FilePixels(file, size, mode, self._counts), mode, size)
                # What Pillow's load() leaves.
                image.tile, image.readonly, image.map = [], 0, None
                if image._exclusive_fp and image.fp is not None:
                    image.fp.close()
                image.fp = None
            del own["_unread"]


def _load_pixels(image: JpegImageFile) -> object:
    """Stands for the method that Pillow's class of JPEG files inherits."""
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
            counts.count(reason or "JPEG of a class that a program has replaced")
    if _IM == "_im":
        image._im = native
    else:
        image.__dict__["im"] = native


def _array_interface(image: Image.Image) -> object:
    """NumPy's view of an image: its bytes in one native pass, if it has no pixels yet."""
    lazy = recorded_bytes(image) if _ARRAYS else None
    values = None if lazy is None else lazy.map_pixels(BYTES[: len(lazy.mode)], "channels_last")
    if values is None:
        return _plain_array_interface(image)
    shape = values.shape if values.shape[2] == 3 else values.shape[:2]
    return {"shape": shape, "typestr": "|u1", "version": 3, "data": values.tobytes()}


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
    if getattr(Image.Image.__dict__.get("im"), "fget", None) is not _get_im:
        setattr(Image.Image, "im", property(_get_im, _set_im))  # noqa: B010 - not as Pillow's types have it
        setattr(Image.Image, "__array_interface__", property(_array_interface))  # noqa: B010
    if "load" not in JpegImageFile.__dict__:
        setattr(JpegImageFile, "load", _load_pixels)  # noqa: B010


def find_recording(image: object) -> LazyCore | None:
    """Returns what was recorded of an image, after reading its file; None if the next operation needs its pixels, or
    it has them."""
    if not isinstance(image, Image.Image):
        return None
    if "_unread" in image.__dict__:
        image.load()
    lazy = _held(image)
    if type(lazy) is not LazyCore or image.palette is not None:
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
    """Makes an image that Pillow has opened a deferred one, if it is an RGB or gray JPEG in a file or in memory;
    returns it.

    Args:
        counts: counts the image.
    """
    if _why_not_deferrable(image) is None:
        prepare()
        image.__dict__["_unread"] = Unread(counts)
    return image


def _why_not_deferrable(image: object) -> str | None:
    """Returns why an image cannot be deferred; None if it can."""
    if type(image) is not JpegImageFile:
        return str(getattr(image, "format", None) or type(image).__name__)
    if image.mode not in _COMPONENTS:
        return f"JPEG of mode {image.mode}"
    if type(image.fp) not in _FILES:
        return f"read through a {type(image.fp).__name__}"
    return None


def _why_pillow_must_decode(image: JpegImageFile) -> str | None:
    """Returns why Pillow has to decode a file; None if it would decode it now, to RGB or L, and whole: not after a
    ``draft`` that shrinks it, or when the program has changed what is decoded or how."""
    own, mode, (width, height) = image.__dict__, image.mode, image.size
    if image.fp is None or image.decoderconfig not in _WHOLE or mode not in _COMPONENTS:
        return "after draft(), closed or huge"
    if width * height > MOST_PIXELS:
        return "after draft(), closed or huge"
    if type(image.tile) is not list or image.tile != [("jpeg", (0, 0, width, height), 0, (mode, ""))]:
        return "changed before it was loaded"
    if image.palette is not None or own[_IM] is not None:
        return "changed before it was loaded"
    if type(image.fp) not in _FILES:
        return f"read through a {type(image.fp).__name__}"
    if not _LOADING or "jpeg" in Image.DECODERS or not _STEPS_OF_LOAD.isdisjoint(own):
        return "loaded by functions of the program"
    return None


def _read_contents(file: Any, most: int, own: bool) -> bytes | None:
    """Returns a file's bytes; None if there are more than `most`: then the file stays where it is, with what its buffer
    holds.

    Args:
        own: whether nobody else uses the file, which is closed next.
    """
    if type(file) is io.BytesIO:
        size = file.getbuffer().nbytes
    else:
        descriptor = file.fileno()
        size = os.fstat(descriptor).st_size
        if own and _pread is not None and 0 < size <= most and type(file.raw) is io.FileIO:
            data: bytes = _pread(descriptor, size, 0)  # file.read() makes four system calls, and a copy
            if len(data) == size:
                return data
    if size > most:
        return None
    file.seek(0)
    return bytes(file.read())


def _read_jpeg(image: JpegImageFile) -> tuple[core.JpegFile | None, str | None]:
    """Reads a file; returns None and the reason if Pillow has to decode it, maybe to raise an error.

    Note [plain files]: Pillow raises no error about a file whose header is plain, whatever its entropy-coded data are.
    Huffman decoding by libjpeg has no errors, only warnings, which Pillow does not show. It needs no bytes after the
    marker that ends a scan, and gets to that marker from any data: the restart markers on the way are complete and in
    order. After it come sound segments and at last an EOI, so the file is never truncated for it.
    """
    try:
        data = _read_contents(image.fp, _TRAILING + 6 * image.width * image.height, image._exclusive_fp)
        if data is None:
            return None, "followed by other data"
        file = core.JpegFile(data)
    except core.NeedsPillow as error:
        return None, str(error)
    except (OSError, ValueError):  # closed, unreadable
        return None, "not readable"
    if (file.width, file.height, file.components) != (*image.size, _COMPONENTS[image.mode]):
        return None, "the file has changed since it was opened"
    return file, None
