"""A PIL image made from native pixels, whose metadata is read from its file on first access."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PIL import Image

Info = dict[str | tuple[int, int], Any]  # as of Pillow
Metadata = Callable[[], Info]


class FileImage(Image.Image):
    """A ``PIL.Image.Image`` with the `info`, and so the ``getexif()``, of its file; so are images derived from it."""

    _held: Info | None = None
    _read: Metadata | None = None

    @classmethod
    def of(cls, image: Image.Image, read: Metadata) -> FileImage:
        """Converts `image` to this class, in place, and returns it.

        Args:
            image: the image.
            read: returns Pillow's ``info`` of the file.
        """
        image.__class__ = cls
        assert isinstance(image, FileImage)
        image._held, image._read = None, read
        return image

    @property
    def info(self) -> Info:
        if self._held is None:
            self._held = {} if self._read is None else dict(self._read())
        return self._held

    @info.setter
    def info(self, held: Info) -> None:
        self._held = held

    def _new(self, im: Any) -> Image.Image:
        if self._held is not None or self._read is None:
            return super()._new(im)
        self._held = {}  # the new image copies `info`: this keeps the copy from reading the file
        try:
            made = super()._new(im)
        finally:
            self._held = None
        return FileImage.of(made, self._read)
