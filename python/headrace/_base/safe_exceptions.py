"""What is done with an exception of any class, whose own methods may fail: its words, its causes, its attributes.

A class of exceptions may define `__str__`, `__getattr__`, `__eq__`, `__bool__`, properties or a metaclass that raise.
The functions here use the methods of Python's own classes instead, and none of them raises.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Generator, Iterator
from typing import Any, Generic, ParamSpec, TypeVar, cast

from headrace._base.messages import printable

_ARGS, _CAUSE, _CONTEXT, _TRACE = (
    vars(BaseException)[name] for name in ("args", "__cause__", "__context__", "__traceback__")
)
_PRINTS_NOTES = sys.version_info >= (3, 11)
_STRERROR = vars(OSError)["strerror"]
_NAME, _MRO = (vars(type)[name] for name in ("__name__", "__mro__"))
_FIELDS = (types.MemberDescriptorType, types.GetSetDescriptorType)


def type_name_of(error: BaseException) -> str:
    """Returns the name of an exception's class."""
    return str(_NAME.__get__(type(error)))


def bases_of(kind: type) -> tuple[type, ...]:
    """Returns a class and its bases in the order in which attributes are looked up."""
    return tuple(_MRO.__get__(kind))


def is_instance(one: object, kinds: type | tuple[type, ...]) -> bool:
    """Returns whether an object's class is one of `kinds` or derived from it; ``isinstance`` may call its own code."""
    bases = bases_of(type(one))
    return any(base is kind for kind in (kinds if isinstance(kinds, tuple) else (kinds,)) for base in bases)


def find_builtin_type(error: BaseException) -> type[BaseException]:
    """Returns the first base of an exception's class that is Python's own, which can be made of a text."""
    return next(base for base in bases_of(type(error)) if base.__module__ == "builtins")


def message_of(error: BaseException) -> str:
    """Returns what an exception says; if that is nothing, or ``str()`` fails, the name of its class and why.

    The text can be printed and passed on as UTF-8.
    """
    try:
        said = printable(str.__str__(str(error)))
    except KeyboardInterrupt:
        raise
    except BaseException as failure:
        return f"{format_error(error)}, whose str() raises {type_name_of(failure)}"
    return said or type_name_of(error)


def named_message_of(error: BaseException) -> str:
    """Returns the name of an exception's class, and what it says."""
    said = message_of(error)
    return said if said.startswith(type_name_of(error)) else f"{type_name_of(error)}: {said}"


def format_error(error: BaseException) -> str:
    """Returns an exception as a call of its class with its arguments, as ``repr`` does."""
    try:
        arguments = ", ".join(map(repr, _ARGS.__get__(error)))
    except KeyboardInterrupt:
        raise
    except BaseException:
        arguments = "..."
    return printable(f"{type_name_of(error)}({arguments})")


def walk_causes(error: BaseException) -> Iterator[BaseException]:
    """Yields the error, its cause or context, and so on; each once, since a chain may return to itself."""
    one: BaseException | None = error
    seen: set[int] = set()
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        cause = _CAUSE.__get__(one)
        one = _CONTEXT.__get__(one) if cause is None else cause


def cause_of(error: BaseException) -> BaseException | None:
    """Returns the exception that an exception was raised from."""
    cause: BaseException | None = _CAUSE.__get__(error)
    return cause


def set_cause(error: BaseException, cause: BaseException | None) -> None:
    """Makes `cause` the exception that `error` is raised from."""
    _CAUSE.__set__(error, cause)


def traceback_of(error: BaseException) -> types.TracebackType | None:
    """Returns the traceback of an exception."""
    trace: types.TracebackType | None = _TRACE.__get__(error)
    return trace


def set_traceback(error: BaseException, trace: types.TracebackType | None) -> None:
    """Replaces the traceback of an exception."""
    BaseException.with_traceback(error, trace)


Error = TypeVar("Error", bound=BaseException)


def without_frames(error: Error) -> Error:
    """Removes the tracebacks of an exception and its causes, whose frames keep objects alive; returns it."""
    for one in walk_causes(error):
        set_traceback(one, None)
    return error


def _extend_message(error: BaseException, line: str, end: str) -> bool:
    """Adds a line to an exception's words. Returns whether that can be done."""
    try:
        said, given = str(error), _ARGS.__get__(error)
        if is_instance(error, OSError) and len(given) > 1 and type(system := _STRERROR.__get__(error)) is str:
            if end not in said:
                _STRERROR.__set__(error, f"{system} ({line})")
            return True
        if len(given) != 1 or type(given[0]) is not str or said != given[0]:
            return False
        lines = [one for one in said.split("\n") if not one.endswith(end)] + [line]
        _ARGS.__set__(error, ("\n".join(lines),))
        if str(error) == "\n".join(lines):
            return True
        _ARGS.__set__(error, given)
    except Exception:  # of the class's own code
        return False
    return False


def add_note(error: BaseException, note: str, end: str = "") -> None:
    """Adds a line that Python prints below the exception. Before Python 3.11, which prints no notes, the exception says
    it, where its words are its one argument's, or an operating system's.

    Args:
        end: an earlier line with this end is replaced, since one object may be raised several times; "": an equal one.
    """
    if _PRINTS_NOTES or not _extend_message(error, note, end or note):
        _add_note(error, note, end or note)


def _add_note(error: BaseException, note: str, end: str) -> None:
    try:
        held = attributes_of(error)
        held["__notes__"] = [one for one in held.get("__notes__", ()) if not one.endswith(end)] + [note]
    except Exception:  # notes that are no texts
        return


def attributes_of(error: BaseException) -> dict[str, Any]:
    """Returns the dictionary of an exception's attributes."""
    try:
        held = object.__getattribute__(error, "__dict__")
    except Exception:  # the class hides it
        return {}
    return held if type(held) is dict else {}


def copy_attributes(original: BaseException, copy: BaseException) -> None:
    """Gives `copy`, whose class is derived from that of `original`, the same attributes and fields, except `args`."""
    attributes_of(copy).update(attributes_of(original))
    for base in bases_of(type(original)):
        if base is BaseException or base is object:
            continue
        for name, field in list(vars(base).items()):
            if isinstance(field, _FIELDS) and not name.startswith("__"):
                try:
                    field.__set__(copy, field.__get__(original))
                except Exception:  # a field that was not set, or is read only
                    continue


# ---- contexts --------------------------------------------------------------------------------------------------------

P = ParamSpec("P")
T = TypeVar("T")


class _Context(Generic[T]):
    __slots__ = ("_steps",)

    def __init__(self, steps: Generator[T, None, None]) -> None:
        self._steps = steps

    def __enter__(self) -> T:
        return next(self._steps)

    def __exit__(self, _: object, error: BaseException | None, trace: types.TracebackType | None) -> bool | None:
        if error is None:
            next(self._steps, None)
            return False
        try:
            self._steps.throw(error)
        except BaseException as raised:
            # Python makes RuntimeError of a StopIteration that leaves a generator.
            if raised is not error and not (is_instance(error, StopIteration) and cause_of(raised) is error):
                raise
            set_traceback(error, trace)
            return False
        return True


def contextmanager(function: Callable[P, Iterator[T]]) -> Callable[P, _Context[T]]:
    """Does what ``contextlib.contextmanager`` does. An exception leaves the context as it is, also one whose attributes
    cannot be set: Python's own raises another one then."""

    @functools.wraps(function)
    def make_context(*args: P.args, **options: P.kwargs) -> _Context[T]:
        return _Context(cast("Generator[T, None, None]", function(*args, **options)))

    return make_context
