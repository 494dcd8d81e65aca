"""Errors about samples that cannot be made: the original exception with the stage, the sample and a remedy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from errno import ENOMEM

_SYSTEM = ("errno", "strerror", "filename")  # additional attributes of OSError
REMEDY = 'on_error="skip" passes over such samples, on_error="replace" takes their neighbours'


class SampleError(Exception):
    """A sample could not be read, decoded or transformed.

    Raised in the main thread when the sample's batch is due. The exception is also an instance of the original
    exception's type (such as ``FileNotFoundError`` or ``PIL.UnidentifiedImageError``), so that ``except`` clauses
    written for torchvision still work.

    Attributes:
        stage: ``"read"``, ``"header"``, ``"plan"``, ``"decode"`` or ``"resize"``.
        index: the sample's index in the dataset.
        location: the sample's path, or a description of where its bytes are stored.
        reason: the original message.
    """

    stage: str
    index: int
    location: str
    reason: str

    def __str__(self) -> str:
        # Some original types build their message from their own attributes, without stage and sample.
        return str(self.args[0])

    def __reduce__(self) -> tuple[object, ...]:
        # The class is created at run time (`_mixed`), so unpickling in another process has to create it too.
        system = {name: getattr(self, name) for name in _SYSTEM} if isinstance(self, OSError) else None
        return (_rebuild, (type(self).__bases__[1:], self.stage, self.index, self.location, self.reason), system)


class VerificationError(AssertionError):
    """A batch differs from the oracle's. The message names the first sample that differs."""


def _mixed(original: type[BaseException]) -> type[SampleError]:
    if issubclass(SampleError, original):
        return SampleError
    try:
        return type("SampleError", (SampleError, original), {"__module__": __name__, "__doc__": SampleError.__doc__})
    except TypeError:  # the two base classes have incompatible memory layouts
        return SampleError


def _rebuild(bases: tuple[type[BaseException], ...], stage: str, index: int, location: str, reason: str) -> SampleError:
    return _make(
        _mixed(bases[0]) if bases and bases[0] is not Exception else SampleError, stage, index, location, reason
    )


def _make(kind: type[SampleError], stage: str, index: int, location: str, reason: str) -> SampleError:
    message = f"{stage}: sample {index} ({location}): {reason}; {REMEDY}"
    try:
        error = kind.__new__(kind, message)
    except TypeError:  # MemoryError.__new__ rejects classes whose first base it is not
        error = Exception.__new__(kind, message)
    Exception.__init__(error, message)
    error.stage, error.index, error.location, error.reason = stage, index, location, reason
    return error


def sample_error(stage: str, index: int, location: str, reason: str, original: BaseException | None) -> SampleError:
    """Returns the error for one sample; `original` becomes its ``__cause__``, and its type a base class."""
    error = _make(_mixed(type(original)) if original is not None else SampleError, stage, index, location, reason)
    error.__cause__ = original
    if isinstance(error, OSError) and isinstance(original, OSError):
        for name in _SYSTEM:
            setattr(error, name, getattr(original, name))
    return error


def native_cause(stage: str, reason: str, errno: int, location: str) -> BaseException:
    """Returns the exception that Python code would have raised for a failure of a native stage."""
    if errno == ENOMEM and stage != "read":
        return MemoryError(reason)
    if errno:
        return OSError(errno, os.strerror(errno), location)
    if stage == "plan":
        return ValueError(reason)
    return RuntimeError(reason)


def with_causes(error: BaseException) -> Iterator[BaseException]:
    """Yields the error, its cause or context, and so on."""
    one: BaseException | None = error
    while one is not None:
        yield one
        one = one.__cause__ or one.__context__
