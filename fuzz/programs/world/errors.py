"""Exceptions that are hard to wrap, copy, print or send, and steps that raise them. The reason is always "boom"."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import subprocess
import urllib.error
import zipfile
from collections.abc import Callable
from typing import Any

import torch
from PIL import Image, UnidentifiedImageError


class NeedsTwo(Exception):
    """Its constructor takes two arguments."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class KeywordOnly(Exception):
    """Its constructor takes keywords alone."""

    def __init__(self, *, reason: str) -> None:
        super().__init__(reason)


class Code(Exception):
    """`str()` of it fails: it returns a number."""

    def __str__(self) -> str:
        return self.args[0]


class NoText(Exception):
    """`str()` and `repr()` of it raise."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


class NoSubclasses(Exception):
    """A class that refuses subclasses."""

    def __init_subclass__(cls, **options: Any) -> None:
        raise TypeError("final")


class _Final(type):
    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        return super().__call__("boom")


class Fixed(Exception, metaclass=_Final):
    """Its metaclass ignores what the class is called with."""


class Slotted(OSError):
    """An OSError with a slot and a constructor of its own."""

    __slots__ = ("where",)

    def __new__(cls, where: str) -> Slotted:
        return super().__new__(cls, 5, "boom", where)

    def __init__(self, where: str) -> None:
        super().__init__(5, "boom", where)
        self.where = where


class Holding(Exception):
    """Cannot be pickled or copied."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.held = lambda: text

    def __reduce__(self) -> Any:
        raise TypeError("not pickled")


class NoAttributes(Exception):
    """Refuses to have attributes set."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"no {name}")


class Both(KeyError, ValueError):
    """Of two classes."""


class Base(BaseException):
    """No Exception."""


def _chained() -> Exception:
    try:
        raise LookupError("first")
    except LookupError as first:
        second = ValueError("boom")
        second.__cause__ = first
        return second


def _noted() -> Exception:
    error = ValueError("boom")
    if hasattr(error, "add_note"):
        error.add_note("a note")
    return error


NASTY: dict[str, Callable[[], BaseException]] = {
    "ValueError": lambda: ValueError("boom"),
    "KeyError": lambda: KeyError("boom"),
    "KeyError of a number": lambda: KeyError(7),
    "IndexError": lambda: IndexError("boom"),
    "StopIteration": lambda: StopIteration("boom"),
    "StopAsyncIteration": lambda: StopAsyncIteration("boom"),
    "FileNotFoundError": lambda: FileNotFoundError(2, "boom", "mask.png"),
    "OSError": lambda: OSError("boom"),
    "OSError of two files": lambda: OSError(18, "boom", "a", None, "b"),
    "SyntaxError": lambda: SyntaxError("boom"),
    "SyntaxError of a line": lambda: SyntaxError("boom", ("file.py", 3, 1, "x = (", 3, 5)),
    "UnicodeDecodeError": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "boom"),
    "HTTPError": lambda: urllib.error.HTTPError("http://store/a", 503, "boom", {}, None),  # type: ignore[arg-type]
    "JSONDecodeError": lambda: json.JSONDecodeError("boom", "{", 0),
    "CalledProcessError": lambda: subprocess.CalledProcessError(3, ["boom"]),
    "BadZipFile": lambda: zipfile.BadZipFile("boom"),
    "UnidentifiedImageError": lambda: UnidentifiedImageError("boom"),
    "ExceptionGroup": lambda: ExceptionGroup("boom", [ValueError("a")]),  # noqa: F821 - Python 3.11
    "MemoryError": lambda: MemoryError("boom"),
    "RecursionError": lambda: RecursionError("boom"),
    "AssertionError": lambda: AssertionError(),
    "empty": lambda: RuntimeError(),
    "many lines": lambda: RuntimeError("boom\nand more\n\nof it"),
    "percent": lambda: RuntimeError("boom %s {} {0!r}"),
    "tuple": lambda: ValueError("boom", 3, None),
    "TimeoutError": lambda: TimeoutError("boom"),
    "InvalidStateError": lambda: concurrent.futures.InvalidStateError("boom"),
    "CancelledError": lambda: asyncio.CancelledError("boom"),
    "OutOfMemoryError": lambda: torch.cuda.OutOfMemoryError("boom"),
    "NotImplementedError": lambda: NotImplementedError("boom"),
    "NeedsTwo": lambda: NeedsTwo(3, "boom"),
    "KeywordOnly": lambda: KeywordOnly(reason="boom"),
    "Code": lambda: Code(404),
    "NoText": NoText,
    "NoSubclasses": lambda: NoSubclasses("boom"),
    "Fixed": Fixed,
    "Slotted": lambda: Slotted("mask.png"),
    "Holding": lambda: Holding("boom"),
    "NoAttributes": lambda: NoAttributes("boom"),
    "Both": lambda: Both("boom"),
    "Base": lambda: Base("boom"),
    "chained": _chained,
    "noted": _noted,
    "Warning": lambda: UserWarning("boom"),
}


def dark(value: Any) -> bool:
    """Whether an image's or a tensor's first pixel is dark: so it is for every third image."""
    if isinstance(value, Image.Image):
        first = value.getpixel((0, 0))
        return max(first[:3] if isinstance(first, tuple) else [first or 0]) < 40
    return bool(value.flatten()[0] < (40 if not value.is_floating_point() else 40 / 255))


class Raises:
    """A step that raises at every third image. Without `kind`: RuntimeError."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, value: Any) -> Any:
        if dark(value):
            raise NASTY[self.kind]()
        return value


class RaisesAt:
    """A target_transform, or a function of samples, that raises at one value."""

    def __init__(self, kind: str, value: Any) -> None:
        self.kind, self.value = kind, value

    def __call__(self, value: Any) -> Any:
        if value == self.value:
            raise NASTY[self.kind]()
        return value
