"""What stands for Pillow's native image while Pillow's own methods run on an image without pixels."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

_TRANSPOSES = range(7)  # the members of PIL.Image.Transpose
_SWAPPING = (2, 4, 5, 6)  # ROTATE_90, ROTATE_270, TRANSPOSE, TRANSVERSE: width and height change places
MOST_PIXELS = 1 << 26  # more of them are made at once, so that a MemoryError comes where Pillow raises it

Operation = tuple[Any, ...]  # a method of Pillow's ImagingCore and its arguments


class Maker(Protocol):
    """Makes the pixels of a file after some operations."""

    def make(self, operations: tuple[Operation, ...]) -> Any: ...

    def mapped(self, operations: tuple[Operation, ...], table: Any, layout: str) -> Any: ...


@dataclass
class LazyCore:
    """Records operations with the methods of Pillow's ImagingCore that the recorded methods of an image call.

    Arguments that Pillow's native code would refuse are passed to it at once, so its error is raised where Pillow
    raises it.

    Attributes:
        maker: makes the pixels.
        mode, size: of the image after the operations, as Pillow's methods read them.
        readonly: 0, as of an image whose memory is not a mapped file.
    """

    maker: Maker
    mode: str
    size: tuple[int, int]
    operations: tuple[Operation, ...] = ()
    readonly: ClassVar[int] = 0
    _made: Any = field(default=None, repr=False)
    _mapped: bool = field(default=False, repr=False)

    def made(self) -> Any:
        """Returns Pillow's native image, made at the first call."""
        if self._made is None:
            self._made = self.maker.make(self.operations)
        return self._made

    def mapped(self, table: Any, layout: str) -> Any:
        """Returns the values that a table gives for the pixels, without making these; see `FilePixels.mapped`.

        Returns:
            None if the pixels are made already, should be made because they are needed again, or cannot be mapped.
        """
        if self._made is not None or self._mapped:
            return None
        self._mapped = True
        return self.maker.mapped(self.operations, table, layout)

    def crop(self, box: tuple[int, int, int, int]) -> LazyCore:
        left, top, right, bottom = box
        return self._then(("crop", box), size=(max(0, right - left), max(0, bottom - top)))

    def resize(self, size: Any, resample: Any, box: Any) -> Any:
        try:
            width, height = (operator.index(edge) for edge in size)
        except (TypeError, ValueError):
            width = height = 0
        whole = tuple(box) == (0, 0, *self.size)
        if not whole or min(width, height, *self.size) < 1 or width * height > MOST_PIXELS:
            return self.made().resize(size, resample, box)
        return self._then(("resize", (width, height), resample, (0, 0, *self.size)), size=(width, height))

    def reduce(self, factor: Any, box: Any) -> Any:
        return self.made().reduce(factor, box)  # called by Image.resize with a reducing_gap, which resizes the result

    def transpose(self, method: Any) -> Any:
        if method not in _TRANSPOSES:
            return self.made().transpose(method)
        width, height = self.size
        return self._then(("transpose", method), size=(height, width) if method in _SWAPPING else (width, height))

    def convert(self, mode: str, *dither: Any) -> LazyCore:
        return self._then(("convert", mode, *dither), mode=mode)

    def effect(self, name: str, value: Any, size: tuple[int, int] | None = None) -> LazyCore:
        """Records one of `effects`, which makes an image of another size if `size` is given; ImagingCore has no such
        method."""
        return self._then(("effect", name, value), size=size)

    def copy(self) -> LazyCore:
        return self._then()

    def _then(self, *operation: Operation, mode: str | None = None, size: tuple[int, int] | None = None) -> LazyCore:
        return LazyCore(self.maker, mode or self.mode, size or self.size, (*self.operations, *operation))
