"""Opens images deferred: with a function of its own, or in place of ``PIL.Image.open``."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any, Literal

from PIL import Image

from headrace.pillow import pixel_memory
from headrace.pillow.deferred_image import defer
from headrace.pillow.image_counts import ImageCounts


class _Opener:
    """Stands in place of ``PIL.Image.open``, and calls the function that was there.

    Attributes:
        uses: number of `deferred` blocks and installations in force, which hold for all threads.
        counts: of the images opened for these.
        threads: counts of the images opened inside `deferred_here`, by thread.
        modules: number of imported modules when their functions were replaced.
        fuses_all: all modules with transforms have been imported, and their functions are replaced.
    """

    def __init__(self, below: Any) -> None:
        functools.update_wrapper(self, below)
        self.below = below
        self.uses = 0
        self.counts = ImageCounts()
        self.threads: dict[int, ImageCounts] = {}
        self.fuses_all = False
        self.modules = 0

    def __call__(self, *args: Any, **options: Any) -> Any:
        image = self.below(*args, **options)
        counts = self.threads.get(threading.get_ident()) or (self.counts if self.uses else None)
        if counts is None:
            return image
        if not self.fuses_all and self.modules != len(sys.modules) and _has_transforms():
            with _lock:
                if _opener is self:
                    self.replace_steps()
        return defer(image, counts)

    def replace_steps(self) -> None:
        """Replaces the functions of transforms that have been imported."""
        if _has_transforms():
            from headrace.pillow import effect_steps, tensor_steps  # these import torch

            self.modules = len(sys.modules)
            effects, tensors = effect_steps.STEPS.replace(), tensor_steps.STEPS.replace()
            self.fuses_all = effects and tensors

    def put_back(self) -> None:
        """Puts back the transforms' functions and ``PIL.Image.open``."""
        if _has_transforms():
            from headrace.pillow import effect_steps, tensor_steps

            tensor_steps.STEPS.put_back()
            effect_steps.STEPS.put_back()
        if Image.open is self:
            Image.open = self.below


def _has_transforms() -> bool:
    return "torchvision.transforms" in sys.modules or "headrace.transforms" in sys.modules


_lock = threading.Lock()
_opener: _Opener | None = None  # the one in force
_installed = False  # by `install`


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
    return defer(Image.open(fp, mode, formats), ImageCounts())


def install() -> None:
    """Puts ``open`` in place of ``PIL.Image.open``, for all code of this process. A second call has no effect."""
    global _installed
    with _lock:
        if not _installed:
            _put_in_place().uses += 1
            _installed = True


def uninstall() -> None:
    """Undoes ``install``. A function that other code has put in place of ``PIL.Image.open`` since stays, and calls
    Pillow's again. Images that are deferred remain so."""
    global _installed
    with _lock:
        if _installed:
            _installed = False
            _end_use()


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Inside ``with``, ``PIL.Image.open`` opens images deferred, in all threads of the process."""
    with _lock:
        _put_in_place().uses += 1
    try:
        yield
    finally:
        with _lock:
            _end_use()


@contextlib.contextmanager
def deferred_here(counts: ImageCounts) -> Iterator[None]:
    """Inside ``with``, ``PIL.Image.open`` opens images deferred in this thread.

    Args:
        counts: counts the images.
    """
    thread = threading.get_ident()
    with _lock:
        opener = _put_in_place()
        before = opener.threads.get(thread)
        opener.threads[thread] = counts
    try:
        yield
    finally:
        with _lock:
            if before is None:
                opener.threads.pop(thread, None)
                _remove_unused()
            else:
                opener.threads[thread] = before


def install_for(counts: ImageCounts) -> None:
    """Opens images deferred for the rest of this process's life, and uses the memory of their values again.

    Args:
        counts: counts the images.
    """
    with _lock:
        opener = _put_in_place()
        opener.counts = counts
        opener.threads.clear()  # blocks of the process that this one was forked from
        opener.uses += 1
        pixel_memory.use_again()


def _put_in_place() -> _Opener:
    global _opener
    if _opener is None:
        _opener = Image.open = _Opener(Image.open)
        _opener.replace_steps()
    return _opener


def _end_use() -> None:
    if _opener is not None:
        _opener.uses -= 1
    _remove_unused()


def _remove_unused() -> None:
    """Puts back the function that was there. If other code has replaced ours since, ours stays and only calls it."""
    global _opener
    if _opener is None or _opener.uses or _opener.threads:
        return
    _opener.put_back()
    _opener = None


def _after_fork() -> None:
    """Another thread of the parent may have held the lock, or been inside `deferred_here`."""
    global _lock
    _lock = threading.Lock()
    if _opener is not None:
        here = threading.get_ident()
        _opener.threads = {thread: counts for thread, counts in _opener.threads.items() if thread == here}
        _remove_unused()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
