"""Opens images deferred: with a function of its own, or in place of ``PIL.Image.open``."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any, Literal

from PIL import Image

from headrace.pillow.deferred_image import defer


class _Opener:
    """Stands in place of ``PIL.Image.open``, and calls the function that was there."""

    def __init__(self, below: Any) -> None:
        functools.update_wrapper(self, below)
        self.below, self.active = below, True

    def __call__(self, *args: Any, **options: Any) -> Any:
        image = self.below(*args, **options)
        return defer(image) if self.active else image


_lock = threading.Lock()
_installed: _Opener | None = None


def open(fp: Any, mode: Literal["r"] = "r", formats: Any = None) -> Any:
    """Opens an image as ``PIL.Image.open`` does, without decoding it.

    An RGB or gray JPEG is read where Pillow would decode it, by the first ``load``, ``convert``, ``crop``, ``resize``,
    ``transpose`` or ``copy``, and closed then if Pillow opened it. Its pixels are made at the first access to them.
    Errors are raised where Pillow raises them: files that it may refuse are decoded by it at once. A file object is
    read to its end.

    Args:
        fp, mode, formats: as of ``PIL.Image.open``.

    Returns:
        An instance of Pillow's class for the format, or of a subclass of it until the pixels are made.

    Raises:
        OSError, ValueError, TypeError: as ``PIL.Image.open``.
    """
    return defer(Image.open(fp, mode, formats))


def install() -> None:
    """Puts ``open`` in place of ``PIL.Image.open``, for all code of this process. A second call has no effect."""
    global _installed
    with _lock:
        if _installed is None:
            _installed = Image.open = _Opener(Image.open)


def uninstall() -> None:
    """Undoes ``install``. A function that other code has put in place of ``PIL.Image.open`` since stays, and calls
    Pillow's again. Images that are deferred remain so."""
    global _installed
    with _lock:
        if _installed is not None:
            _installed.active = False
            if Image.open is _installed:
                Image.open = _installed.below
            _installed = None


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Inside ``with``, ``PIL.Image.open`` opens images deferred, in all threads of the process."""
    before = _installed
    install()
    try:
        yield
    finally:
        if before is None:
            uninstall()
