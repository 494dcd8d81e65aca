"""Opens images deferred: in place of what Pillow does with a JPEG, or by a function of its own.

Note [registry]: ``PIL.Image.open`` stays as it is: programs pickle it, look at its code and keep it. It looks up in a
registry what opens a format. There, Pillow's own entries for JPEG, PNG and WebP files are replaced while images are
opened deferred; one that the program has registered stays, and opens its images.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import IO, Any, Literal, Protocol

from PIL import Image, ImageFile, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

from headrace._base.safe_exceptions import contextmanager
from headrace.pillow.deferred_image import defer, prepare
from headrace.pillow.files.jpeg_openings import OPENINGS
from headrace.pillow.memory import pixel_memory
from headrace.pillow.recording.image_counts import ImageCounts, in_force
from headrace.pillow.recording.patches import is_own


class Replaceable(Protocol):
    """Functions that are replaced together: `patches.Replacements`."""

    def replace(self) -> bool: ...

    def put_back(self) -> None: ...


class _Steps:
    """The functions that are replaced while images are opened deferred.

    Those that do something with deferred images follow once there has been one: most datasets of arrays never have any,
    and in the main process functions are replaced once a batch.

    Attributes:
        modules: number of imported modules when functions were replaced.
        are_all: all modules with transforms have been imported, and their functions are replaced.
        openers: functions of other doors than Pillow's that open images, or work on plain arrays.
        followers: functions that do something with deferred images.
        follow: whether there has been a deferred image in this process.
    """

    def __init__(self) -> None:
        self.modules = 0
        self.are_all = False
        self.openers: list[Replaceable] = [OPENINGS]
        self.followers: list[Replaceable] = []
        self.follow = False

    def replace(self) -> None:
        """Replaces those that have been imported."""
        self.modules = len(sys.modules)
        found = [one.replace() for one in (*self.openers, *self._following())]
        self.are_all = self.follow and _has_transforms() and all(found)

    def put_back(self) -> None:
        for one in (*self.openers, *self._following()):
            one.put_back()
        self.modules, self.are_all = 0, False

    def _following(self) -> list[Replaceable]:
        if not self.follow:
            return []
        found = list(self.followers)
        if _has_transforms():
            from headrace.pillow import effect_patches, to_tensor_patches  # these import torch

            found += [effect_patches.STEPS, to_tensor_patches.STEPS]
        return found


def import_steps() -> None:
    """Imports what a worker process imports first: those that are forked from this one then have it."""
    if _has_transforms():
        from headrace.pillow import effect_patches, to_tensor_patches  # noqa: F401


def _has_transforms() -> bool:
    return "torchvision.transforms" in sys.modules or "headrace.transforms" in sys.modules


_lock = threading.Lock()
_steps = _Steps()
_is_in_place = False
_before: dict[str, Any] = {}  # format -> what Pillow opens it with
_installed = False  # by `install`
_pillows_jpeg: object = None  # what Pillow opens JPEGs with, once it has been looked at


def jpeg_factory(fp: Any = None, filename: Any = None) -> ImageFile.ImageFile:
    """Opens a JPEG file as Pillow's function of this name, deferred where that is in force."""
    return _defer_opened(_before.get("JPEG", JpegImagePlugin.jpeg_factory)(fp, filename))


def png_factory(fp: Any = None, filename: Any = None) -> ImageFile.ImageFile:
    """Opens a PNG file as Pillow's class for it, deferred where that is in force."""
    return _defer_opened(_before.get("PNG", _CLASSES["PNG"])(fp, filename))


def webp_factory(fp: Any = None, filename: Any = None) -> ImageFile.ImageFile:
    """Opens a WebP file as Pillow's class for it, deferred where that is in force."""
    return _defer_opened(_before.get("WEBP", _CLASSES["WEBP"])(fp, filename))


def _defer_opened(image: ImageFile.ImageFile) -> ImageFile.ImageFile:
    counts = in_force.here()
    if counts is None:
        return image
    replace_following()
    replace_imported()
    return defer(image, counts)


_FACTORIES: dict[str, Any] = {"JPEG": jpeg_factory, "PNG": png_factory, "WEBP": webp_factory}
#: Formats that Pillow's own classes open.
_CLASSES: dict[str, type] = {"PNG": PngImagePlugin.PngImageFile, "WEBP": WebPImagePlugin.WebPImageFile}


def replace_imported() -> None:
    """Replaces the functions of modules that have been imported since images are opened deferred."""
    if not _steps.are_all and _steps.modules != len(sys.modules):
        with _lock:
            if _is_in_place:
                _steps.replace()


def replace_following() -> None:
    """Called before an image is deferred: replaces the functions that do something with such images."""
    if not _steps.follow:
        with _lock:
            _steps.follow = True
            if _is_in_place:
                _steps.replace()


def has_deferred() -> bool:
    """Returns whether there has been a deferred image in this process, or in the one that it was forked from."""
    return _steps.follow


def add_replacements(openers: Iterable[Replaceable], followers: Iterable[Replaceable]) -> None:
    """Has more functions replaced while images are opened deferred.

    Args:
        openers: those that open images, or work on plain arrays.
        followers: those that do something with deferred images.
    """
    with _lock:
        _steps.openers += openers
        _steps.followers += followers
        if _is_in_place:
            _steps.replace()


def open(
    fp: str | bytes | os.PathLike[str] | os.PathLike[bytes] | IO[bytes],
    mode: Literal["r"] = "r",
    formats: list[str] | tuple[str, ...] | None = None,
) -> ImageFile.ImageFile:
    """Opens an image as ``PIL.Image.open`` does, without decoding it.

    A PNG, a WebP, or an RGB or gray JPEG, is read where Pillow would decode it, by the first ``load``, ``convert``,
    ``crop``, ``resize``, ``transpose`` or ``copy``, and closed then if Pillow opened it. A PNG is decoded then,
    natively, and a WebP by Pillow's decoder. The pixels of images are made at the first access to them.
    Errors are raised where Pillow raises them: files that it may refuse are decoded by it at once. A file object is
    read to its end.

    Args:
        fp, mode, formats: as of ``PIL.Image.open``.

    Returns:
        An instance of Pillow's class for the format.

    Raises:
        OSError, ValueError, TypeError: as ``PIL.Image.open``.
    """
    with deferred_here(in_force.here() or ImageCounts()):
        return Image.open(fp, mode, formats)


def install() -> None:
    """Makes ``PIL.Image.open`` open images as ``open`` does, for all code of this process. A second call has no
    effect."""
    global _installed
    with _lock:
        if not _installed:
            _install_patch()
            in_force.uses += 1
            _installed = True


def uninstall() -> None:
    """Undoes ``install``. Images that are deferred remain so."""
    global _installed
    with _lock:
        if _installed:
            _installed = False
            in_force.uses -= 1
            _remove_unused()


@contextmanager
def deferred() -> Iterator[None]:
    """Inside ``with``, ``PIL.Image.open`` opens images deferred, in all threads of the process."""
    with _lock:
        _install_patch()
        in_force.uses += 1
    try:
        yield
    finally:
        with _lock:
            in_force.uses -= 1
            _remove_unused()


class deferred_here:
    """Inside ``with``, ``PIL.Image.open`` opens images deferred in this thread.

    Args:
        counts: counts the images.
    """

    def __init__(self, counts: ImageCounts) -> None:
        self._counts = counts

    def __enter__(self) -> None:
        self._thread = threading.get_ident()
        with _lock:
            _install_patch()
            self._before = in_force.threads.get(self._thread)
            in_force.threads[self._thread] = self._counts

    def __exit__(self, *_: object) -> None:
        with _lock:
            if self._before is None:
                in_force.threads.pop(self._thread, None)
                _remove_unused()
            else:
                in_force.threads[self._thread] = self._before


def install_for(counts: ImageCounts) -> None:
    """Opens images deferred for the rest of this process's life, and uses the memory of their values again.

    Args:
        counts: counts the images.
    """
    with _lock:
        _install_patch()
        in_force.counts = counts
        in_force.threads.clear()  # blocks of the process that this one was forked from
        in_force.uses += 1
        pixel_memory.use_again()


def _install_patch() -> None:
    global _is_in_place
    if not _is_in_place:
        _is_in_place = True
        prepare()
        for format, factory in _FACTORIES.items():
            opens, accepts = Image.OPEN.get(format, (None, None))
            if opens is not factory and opens is not None and _is_pillows(format, opens):
                _before[format] = opens
                Image.OPEN[format] = factory, accepts
        _steps.replace()


def _is_pillows(format: str, opens: object) -> bool:
    global _pillows_jpeg
    if format in _CLASSES:
        return opens is _CLASSES[format]
    if opens is not _pillows_jpeg and is_own(opens, JpegImagePlugin, "jpeg_factory") and not isinstance(opens, type):
        _pillows_jpeg = opens
    return callable(opens) and opens is _pillows_jpeg


def _remove_unused() -> None:
    """Puts back Pillow's function, unless the program has registered another one since."""
    global _is_in_place
    if not _is_in_place or in_force.uses or in_force.threads:
        return
    _is_in_place = False
    for format, factory in _FACTORIES.items():
        opens, accepts = Image.OPEN.get(format, (None, None))
        if opens is factory:
            Image.OPEN[format] = _before[format], accepts
    _steps.put_back()


def _after_fork() -> None:
    """Another thread of the parent may have held the lock, or been inside `deferred_here`."""
    global _lock
    _lock = threading.Lock()
    here = threading.get_ident()
    in_force.threads = {thread: counts for thread, counts in in_force.threads.items() if thread == here}
    _remove_unused()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
