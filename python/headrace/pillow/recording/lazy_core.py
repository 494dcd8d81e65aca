"""What stands for Pillow's native image in an image without pixels, and records what Pillow's methods call."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from PIL import Image

from headrace._base.types import Array

_TRANSPOSES = range(7)  # the members of PIL.Image.Transpose
_SWAPPING = (2, 4, 5, 6)  # ROTATE_90, ROTATE_270, TRANSPOSE, TRANSVERSE: width and height change places
MODES = ("RGB", "L")  #: modes in which operations are recorded
SELECTED = ("P", "I;16")  #: modes in which operations that only choose pixels are recorded
_CONVERTED = (*MODES, "RGBA", "LA", "1", "P")  # those that are converted to these
MOST_PIXELS = 1 << 26  # more of them are made at once, so that a MemoryError comes where Pillow raises it

Operation = tuple[Any, ...]  # a method of Pillow's ImagingCore and its arguments


class Maker(Protocol):
    """Makes the pixels of a file after some operations."""

    def hold(self, lazy: LazyCore) -> None: ...

    def make(self, operations: tuple[Operation, ...]) -> object: ...

    def map_pixels(
        self, operations: tuple[Operation, ...], table: Array, layout: str, out: Array | None = None
    ) -> Array | None: ...

    def bytes_of(self, operations: tuple[Operation, ...]) -> bytes | None: ...


Recorded = tuple[Maker, tuple[Operation, ...]]


class PixelAccess:
    """What ``load`` returns for an image without pixels: Pillow's PixelAccess, made at the first access to a pixel.

    It belongs to the native image that the image had when ``load`` was called, as Pillow's does.
    """

    def __init__(self, lazy: LazyCore, readonly: int) -> None:
        self._lazy, self._readonly = lazy, readonly

    def __getitem__(self, at: object) -> object:
        return self._lazy.make_native().pixel_access(self._readonly)[at]

    def __setitem__(self, at: object, value: object) -> None:
        self._lazy.make_native().pixel_access(self._readonly)[at] = value


class LazyCore:
    """Records operations with the methods of Pillow's ImagingCore that the recorded methods of an image call.

    Note [made]: the pixels are made once. From then on this object only passes on calls to Pillow's native image, which
    may be changed in place, and keeps neither the file nor what was recorded. What was recorded from it before stays as
    it was. Several threads may do all this at once: `_recorded` is read in one step, and is removed only after the
    native image is there.

    Arguments that Pillow's native code would refuse are passed to it at once, so its error is raised where Pillow
    raises it.

    Attributes:
        mode, size: of the image after the operations, as Pillow's methods read them.
        readonly: 0, as of an image whose memory is not a mapped file.
    """

    readonly: ClassVar[int] = 0
    _recorded: Recorded | None
    blends: tuple[str, Recorded] | None = None  # an effect whose image of factor 0 this is, and of what
    native: Any = None  # Pillow's image, once it is made
    _mapped = False
    _palette: Any = None  # Pillow's native image of one pixel, whose palette is this one's

    def __init__(self, maker: Maker, mode: str, size: tuple[int, int], operations: tuple[Operation, ...] = ()) -> None:
        self._mode, self._size = mode, size
        self._recorded = maker, operations
        maker.hold(self)

    @property
    def mode(self) -> str:
        return self._mode if self.native is None else self.native.mode

    @property
    def size(self) -> tuple[int, int]:
        return self._size if self.native is None else self.native.size

    def get_recording(self) -> Recorded | None:
        """Returns what makes the pixels, and the operations before them; None if the pixels are made."""
        return self._recorded

    def is_still(self, mode: str, size: tuple[int, int]) -> bool:
        """Whether the pixels are not made, and an image with this mode and size expects the ones recorded."""
        return self._recorded is not None and self._mode == mode and self._size == size

    def make_native(self) -> Any:
        """Returns Pillow's native image, made at the first call."""
        recorded = self._recorded
        if recorded is not None:
            maker, operations = recorded
            made = maker.make(operations)
            self.__dict__.setdefault("native", made)  # in one step: another thread may have made it, too
            self._recorded = None
        return self.native

    def map_pixels(self, table: Array, layout: str) -> Array | None:
        """Returns the values that a table gives for the pixels, without making these; see `FilePixels.map_pixels`.

        Returns:
            None if the pixels are made already, should be made because they are needed again, or cannot be mapped.
        """
        recorded = self._recorded
        if recorded is None or self._mapped:
            return None
        self._mapped = True
        maker, operations = recorded
        return maker.map_pixels(operations, table, layout)

    def bytes_of_file(self) -> bytes | None:
        """Returns what Pillow's ``tobytes`` gives, without making pixels; None if that is not at hand."""
        recorded = self._recorded
        return None if recorded is None else recorded[0].bytes_of(recorded[1])

    def pixel_access(self, readonly: int = 0) -> PixelAccess:
        return PixelAccess(self, readonly)

    def crop(self, box: tuple[int, int, int, int]) -> object:
        left, top, right, bottom = box
        width, height = self._size
        inside = 0 <= left < right <= width and 0 <= top < bottom <= height
        if self._mode not in MODES and not (inside and self._mode in SELECTED):
            return self.make_native().crop(box)
        return self._record_operation("crop", box, size=(max(0, right - left), max(0, bottom - top)))

    def resize(self, size: Sequence[int], resample: int, box: Sequence[float]) -> object:
        try:
            width, height = (operator.index(edge) for edge in size)
        except (TypeError, ValueError):
            width = height = 0
        own = self._size
        if self._mode not in MODES and not (self._mode in SELECTED and resample == Image.Resampling.NEAREST):
            width = 0
        if tuple(box) != (0, 0, *own) or min(width, height, *own) < 1 or width * height > MOST_PIXELS:
            return self.make_native().resize(size, resample, box)
        return self._record_operation("resize", (width, height), resample, (0, 0, *own), size=(width, height))

    def transpose(self, method: int) -> object:
        if method not in _TRANSPOSES or self._mode not in (*MODES, *SELECTED):
            return self.make_native().transpose(method)
        width, height = self._size
        return self._record_operation(
            "transpose", method, size=(height, width) if method in _SWAPPING else (width, height)
        )

    def convert(self, mode: str, *dither: object) -> object:
        if mode not in MODES or self._mode not in _CONVERTED or (self._mode == "P" and self._palette is None):
            return self.make_native().convert(mode, *dither)
        return self._record_operation("convert", mode, *dither, mode=mode)

    def putpalette(self, *palette: object) -> None:
        """Of an image of mode P: (mode, raw mode, bytes)."""
        recorded = self._recorded
        if recorded is None or recorded[1] or self._mode != "P":
            self.make_native().putpalette(*palette)
            return
        self._palette = Image.core.new("P", (1, 1))  # type: ignore[attr-defined]
        self._palette.putpalette(*palette)
        self._recorded = recorded[0], (("putpalette", *palette),)

    def getpalette(self, *modes: str) -> object:
        """The bytes of the palette."""
        palette = self._palette if self.native is None else None
        return (self.make_native() if palette is None else palette).getpalette(*modes)

    def copy(self) -> object:
        return self._record_operation()

    def _record_operation(
        self, *operation: Any, mode: str | None = None, size: tuple[int, int] | None = None
    ) -> object:
        recorded = self._recorded
        if recorded is None:
            name, *arguments = operation or ("copy",)
            return getattr(self.native, name)(*arguments)
        maker, operations = recorded
        added = (*operations, operation) if operation else operations
        made = LazyCore(maker, mode or self._mode, size or self._size, added)
        if made._mode == "P":
            made._palette = self._palette
        return made

    def effect(self, name: str, value: object, size: tuple[int, int] | None = None) -> LazyCore | None:
        """Records one of `effects`, which makes an image of another size if `size` is given; ImagingCore has no such
        method. Returns None if the pixels are made."""
        recorded = self._recorded
        if recorded is None:
            return None
        maker, operations = recorded
        return LazyCore(maker, self._mode, size or self._size, (*operations, ("effect", name, value)))

    def __getattr__(self, name: str) -> object:
        """All else that Pillow's methods read from a native image."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.make_native(), name)
