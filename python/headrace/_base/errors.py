"""Errors about samples that cannot be made: the original exception with the stage, the sample and a remedy."""

from __future__ import annotations

import builtins
import os
import sys
from errno import ENOMEM
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from headrace._base.messages import printable
from headrace._base.safe_exceptions import (
    add_note,
    attributes_of,
    bases_of,
    cause_of,
    copy_attributes,
    is_instance,
    set_cause,
)

REMEDY = 'on_error="skip" passes over such samples, on_error="replace" takes their neighbours'
_GROUP: type[BaseException] | None = getattr(builtins, "BaseExceptionGroup", None)  # from Python 3.11 on
_HEAP_TYPE = 1 << 9  # set in the flags of classes that are made by a class statement
_PLAIN = (type(None), int, float, str, bytes, PurePath)  # what a copy in another process has, too


class _Own:
    """An attribute of SampleError, which hides one of the same name of the original exception's class."""

    def __init__(self, default: object) -> None:
        self._default = default

    def __set_name__(self, _: type, name: str) -> None:
        self._key = f"_sample_{name}"

    def __get__(self, error: SampleError | None, kind: type) -> Any:
        return self if error is None else attributes_of(error).get(self._key, self._default)

    def __set__(self, error: SampleError, value: object) -> None:
        attributes_of(error)[self._key] = value


class HeadraceError(Exception):
    """Base class of the exceptions that headrace defines. They are instances of a built-in class, too, where that says
    what is wrong; wrong arguments raise TypeError and ValueError themselves, as torch's DataLoader does."""


class SampleError(HeadraceError):
    """A sample could not be read, decoded or transformed.

    Raised in the main thread when the sample's batch is due. The exception is also an instance of the original
    exception's type (such as ``FileNotFoundError`` or ``PIL.UnidentifiedImageError``) and has its attributes, so that
    ``except`` clauses written for torchvision still work. The original exception is its ``__cause__``; where nothing
    can be derived from its type, the original is raised itself, with a note that names the sample.

    Attributes:
        stage: ``"read"``, ``"header"``, ``"plan"``, ``"decode"``, ``"transform"`` or ``"resize"``.
        index: the sample's index in the dataset.
        location: the sample's path, or a description of where its bytes are stored.
        reason: the original message.
    """

    stage: str = _Own("")  # type: ignore[assignment]
    index: int = _Own(-1)  # type: ignore[assignment]
    location: str = _Own("")  # type: ignore[assignment]
    reason: str = _Own("")  # type: ignore[assignment]
    _message: str = _Own("")  # type: ignore[assignment]

    # The original type's own methods would run on an object that its __init__ has not seen.
    def __init_subclass__(cls, **_: object) -> None:
        """Does nothing: the original type's own method may refuse derived classes, or keep a list of them."""

    def __str__(self) -> str:
        return self._message or Exception.__str__(self)

    def __repr__(self) -> str:
        return f"SampleError({str(self)!r})"

    def __getattr__(self, name: str) -> Any:
        # What the original type computes on demand.
        original = cause_of(self)
        if original is None or name.startswith("__"):
            raise AttributeError(name)
        try:
            return getattr(original, name)
        except Exception:
            raise AttributeError(name) from None

    def __reduce__(self) -> tuple[object, ...]:
        # The class is created at run time (`_derive_type`), so unpickling in another process has to create it too.
        known = (one for one in bases_of(type(self))[1:] if not _is_headrace_error(one) and _is_importable(one))
        where = self.stage, self.index, self.location, self.reason
        kept = {name: one for name, one in _list_copied_attributes(self).items() if is_instance(one, _PLAIN)}
        return _unpickle_error, (next(known, Exception), *where), kept

    def __reduce_ex__(self, _: object) -> tuple[object, ...]:
        return self.__reduce__()

    def __setstate__(self, kept: dict[str, object] | None) -> None:
        for name, value in (kept or {}).items():
            try:
                setattr(self, name, value)
            except Exception:  # a property, which follows from the others
                continue

    def __copy__(self) -> SampleError:
        return self

    def __deepcopy__(self, _: dict[int, object]) -> SampleError:
        return self

    def __bool__(self) -> bool:
        return True

    if not TYPE_CHECKING:  # these have the types of any Exception's
        __getattribute__ = Exception.__getattribute__
        __setattr__ = Exception.__setattr__
        __delattr__ = Exception.__delattr__
        __eq__ = Exception.__eq__
        __hash__ = Exception.__hash__
        __format__ = Exception.__format__
        __dir__ = Exception.__dir__


class VerificationError(HeadraceError, AssertionError):
    """A batch differs from the oracle's. The message names the first sample that differs."""


def sample_error(stage: str, index: int, location: str, reason: str, original: BaseException | None) -> SampleError:
    """Returns the error for one sample; `original` becomes its ``__cause__``; its type a base, if classes can be
    derived from it."""
    error = None if original is None else _make_dual_error(original)
    error = SampleError() if error is None else error
    _set_error_fields(error, stage, index, location, reason)
    set_cause(error, original)
    return error


def choose_error_to_raise(error: SampleError) -> BaseException:
    """Returns what to raise for a sample's error: an instance of the original exception's type, whatever that is."""
    original = cause_of(error)
    if original is None or any(base is type(original) for base in bases_of(type(error))):
        return error
    add_note(original, str(error), REMEDY)
    return original


def make_native_cause(stage: str, reason: str, errno: int, location: str) -> BaseException:
    """Returns the exception that Python code would have raised for a failure of a native stage."""
    if errno == ENOMEM and stage != "read":
        return MemoryError(reason)
    if errno:
        return OSError(errno, os.strerror(errno), location)
    if stage == "plan":
        return ValueError(reason)
    return RuntimeError(reason)


# ---- classes of both -------------------------------------------------------------------------------------------------


def _make_dual_error(original: BaseException) -> SampleError | None:
    """Returns an empty SampleError that is an instance of the original's type, too; None if there can be none."""
    try:
        kind = _derive_type(type(original))
        error = None if kind is None else _make_uninitialised_error(kind, original)
        if error is not None:
            copy_attributes(original, error)
        return error
    except Exception:  # of a metaclass
        return None


def _derive_type(original: type[BaseException]) -> type[SampleError] | None:
    if any(base is original for base in bases_of(SampleError)):
        return SampleError
    content: dict[str, object] = {"__module__": __name__, "__doc__": SampleError.__doc__, "__class__": property(type)}
    if any("__del__" in vars(base) for base in bases_of(original)):
        content["__del__"] = object.__sizeof__  # the original has one of its own; no code of Python runs
    made = type("SampleError", (SampleError, original), content)
    first, *rest = bases_of(made)[1:]
    return (
        made if first is SampleError and next(one for one in rest if not _is_headrace_error(one)) is original else None
    )


def _is_headrace_error(kind: type) -> bool:
    return kind is SampleError or kind is HeadraceError


def _make_uninitialised_error(kind: type[SampleError], original: BaseException) -> SampleError | None:
    """Returns an object of a class, made without the `__new__` and `__init__` of the classes of Python code."""
    more: tuple[object, ...] = ("",)
    if _GROUP is not None and is_instance(original, _GROUP):
        more = ("", vars(_GROUP)["exceptions"].__get__(original))
    for base in bases_of(kind):
        if vars(type)["__flags__"].__get__(base) & _HEAP_TYPE or "__new__" not in vars(base):
            continue
        try:
            error: SampleError = vars(base)["__new__"](kind, *more)
        except TypeError:  # Python asks for that of another base
            continue
        return error
    return None


def _set_error_fields(error: SampleError, stage: str, index: int, location: str, reason: str) -> None:
    message = printable(f"{stage}: sample {index} ({location}): {reason}; {REMEDY}")
    error.stage, error.index, error.location, error.reason = stage, index, location, reason
    error._message = message
    BaseException.__init__(error, message)
    if is_instance(error, SyntaxError):  # Python prints this instead of str()
        vars(SyntaxError)["msg"].__set__(error, message)


# ---- copies ----------------------------------------------------------------------------------------------------------


def _unpickle_error(kind: type[BaseException], stage: str, index: int, location: str, reason: str) -> SampleError:
    try:
        derived = None if kind is Exception else _derive_type(kind)
        error = None if derived is None else _make_uninitialised_error(derived, Exception())
    except Exception:
        error = None
    error = SampleError() if error is None else error
    _set_error_fields(error, stage, index, location, reason)
    return error


def _list_copied_attributes(error: SampleError) -> dict[str, object]:
    """Returns what was copied from the original: its attributes, and the fields of its types."""
    found = {name: one for name, one in attributes_of(error).items() if not name.startswith("_sample_")}
    if is_instance(error, OSError):
        found |= {name: getattr(error, name) for name in ("errno", "strerror", "filename", "filename2")}
    return found


def _is_importable(kind: type) -> bool:
    try:
        found: object = sys.modules.get(kind.__module__)
        for part in kind.__qualname__.split("."):
            found = getattr(found, part)
        return found is kind
    except Exception:
        return False
