"""Exceptions of classes that are hard to show, to derive from, to construct, to compare or to copy."""

from __future__ import annotations

import email.message
import enum
import importlib
import json
import sys
import threading
import urllib.error
from abc import ABCMeta
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NoReturn, TypeVar


class Code(Exception):
    """Its `str()` fails: args[0] is no text."""

    def __str__(self) -> str:
        return self.args[0]


class Silent(Exception):
    def __str__(self) -> str:
        raise LookupError("no words")

    def __repr__(self) -> str:
        raise LookupError("no words")


class Endless(Exception):
    def __str__(self) -> str:
        return str(self)


class Exits(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


class Strange(str):
    def __add__(self, _: Any) -> NoReturn:
        raise LookupError("no sum")

    __format__ = __len__ = __radd__ = strip = encode = __add__  # type: ignore[assignment]


class OddText(Exception):
    def __str__(self) -> str:
        return Strange("words")


class Surrogates(Exception):
    def __init__(self) -> None:
        super().__init__("name caf\udce9 and \ud800")


class Final(Exception):
    def __init_subclass__(cls, **_: Any) -> NoReturn:
        raise TypeError("this class is final")


class NeedsKeyword(Exception):
    def __init_subclass__(cls, *, code: int, **_: Any) -> None:
        pass


class FinalMeta(type):
    def __new__(mcs, name: str, bases: tuple[type, ...], content: dict[str, Any]) -> Any:
        if any(isinstance(base, FinalMeta) for base in bases):
            raise TypeError("final by its metaclass")
        return super().__new__(mcs, name, bases, content)


class MetaFinal(Exception, metaclass=FinalMeta):
    pass


class HostileMeta(type):
    def __instancecheck__(cls, _: Any) -> NoReturn:
        raise LookupError("no check")

    __subclasscheck__ = __eq__ = __instancecheck__

    def __hash__(cls) -> NoReturn:
        raise LookupError("no hash")


class MetaHostile(Exception, metaclass=HostileMeta):
    pass


class Abstract(Exception, metaclass=ABCMeta):
    pass


class Slots(Exception):
    __slots__ = ("code",)

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


class NewWithArguments(Exception):
    def __new__(cls, code: int, *, more: str) -> NewWithArguments:
        return super().__new__(cls, code)

    def __init__(self, code: int, *, more: str) -> None:
        super().__init__(f"{code} {more}")
        self.code = code


class Holds(Exception):
    """Holds objects that cannot be pickled or copied."""

    def __init__(self) -> None:
        super().__init__("held")
        self.lock, self.call = threading.Lock(), lambda: None


class OtherArgs(Exception):
    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.args = (words, 3, [[]])


class NoAttributes(Exception):
    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError("read only")

    __delattr__ = __setattr__  # type: ignore[assignment]


class NoReading(Exception):
    def __getattribute__(self, name: str) -> NoReturn:
        raise LookupError("no attributes")


class Delegates(Exception):
    """Like tempfile's wrappers, it asks an object for what it does not have."""

    def __init__(self) -> None:
        super().__init__("delegates")
        self.inner = object()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["inner"], name)


class OtherClass(Exception):
    @property
    def __class__(self) -> Any:
        raise LookupError("no class")

    @__class__.setter
    def __class__(self, _: Any) -> None:
        raise LookupError("no class")


class NoComparing(Exception):
    def __eq__(self, _: object) -> NoReturn:
        raise LookupError("no comparing")

    __hash__ = __bool__ = __len__ = __iter__ = __eq__  # type: ignore[assignment]


class Falsy(Exception):
    def __len__(self) -> int:
        return 0


class Taken(Exception):
    """Has the names of SampleError's attributes as properties without a setter."""

    @property
    def stage(self) -> str:
        return "mine"

    index = location = reason = stage
    _message = "mine"


class NoTraceback(Exception):
    def with_traceback(self, _: Any) -> NoReturn:
        raise LookupError("no traceback")

    add_note = __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __setstate__ = with_traceback  # type: ignore[assignment]


class Deletes(Exception):
    deleted: ClassVar[list[str]] = []

    def __init__(self) -> None:
        super().__init__("deletes")
        self.words = "made"

    def __del__(self) -> None:
        self.deleted.append(vars(self)["words"] if vars(self) else "unfinished")


T = TypeVar("T")


class Generics(Exception, Generic[T]):
    pass


@dataclass(frozen=True)
class Frozen(Exception):
    code: int


class Named(str, enum.Enum):
    ONE = "one"


class HasEnum(Exception):
    def __init__(self) -> None:
        super().__init__(Named.ONE)
        self.name = Named.ONE


class Base(BaseException):
    """Not an Exception."""


_raised_again: list[BaseException] = []


def forget_frames() -> None:
    """Takes the tracebacks from the exceptions that are raised again and again: their frames keep loaders alive."""
    for error in _raised_again:
        for name in ("__traceback__", "__context__", "__cause__"):
            BaseException.__dict__[name].__set__(error, None)


def raised(error: BaseException) -> Callable[[], NoReturn]:
    _raised_again.append(error)

    def call() -> NoReturn:
        raise error

    return call


def chained() -> NoReturn:
    """The chain of causes returns to its beginning."""
    first, second = ValueError("first"), KeyError("second")
    first.__context__, second.__cause__ = second, first
    raise first


def itself() -> NoReturn:
    error = ValueError("its own cause")
    raise error from error


def noted() -> NoReturn:
    error: Any = ValueError("noted")
    error.__notes__ = ["a note"]
    raise error


def no_notes() -> NoReturn:
    error: Any = Final("noted")
    error.__notes__ = 3
    raise error


def deep() -> NoReturn:
    deep()


def grouped() -> NoReturn:
    raise ExceptionGroup("downloads", [ValueError("a"), TypeError("b")])  # type: ignore[name-defined,unused-ignore]  # noqa: F821


def no_number() -> NoReturn:
    raise json.JSONDecodeError("no value", "[", 1)


def warned() -> NoReturn:
    raise UserWarning("as an error")


def local_class() -> type[Exception]:
    class Local(Exception):
        pass

    return Local


def http() -> NoReturn:
    raise urllib.error.HTTPError("http://store/mask.png", 503, "busy", email.message.Message(), None)


def syntax() -> NoReturn:
    raise SyntaxError("broken file", ("a.py", 3, 1, "text"))


#: Functions that raise, by name.
EXCEPTIONS: dict[str, Callable[[], NoReturn]] = {
    "code": raised(Code(404)),
    "silent": raised(Silent(3)),
    "endless": raised(Endless()),
    "exits": raised(Exits()),
    "odd text": raised(OddText()),
    "surrogates": raised(Surrogates()),
    "final": raised(Final("f")),
    "keyword": raised(NeedsKeyword("k")),
    "metaclass": raised(MetaFinal("m")),
    "hostile metaclass": raised(MetaHostile("m")),
    "abstract": raised(Abstract("a")),
    "slots": raised(Slots(7)),
    "new": raised(NewWithArguments(7, more="words")),
    "holds": lambda: raised(Holds())(),
    "args": raised(OtherArgs("words")),
    "no attributes": raised(NoAttributes("words")),
    "no reading": raised(NoReading("words")),
    "delegates": raised(Delegates()),
    "class": raised(OtherClass("words")),
    "no comparing": raised(NoComparing("words")),
    "falsy": raised(Falsy("words")),
    "taken": raised(Taken("words")),
    "no traceback": raised(NoTraceback("words")),
    "deletes": lambda: raised(Deletes())(),
    "generic": raised(Generics[int]("words")),
    "frozen": raised(Frozen(3)),
    "enum": raised(HasEnum()),
    "chained": chained,
    "itself": itself,
    "noted": noted,
    "notes": no_notes,
    "deep": deep,
    "json": no_number,
    "warned": warned,
    "local": raised(local_class()("local")),
    "http": http,
    "syntax": syntax,
    "key": raised(KeyError("name")),
    "empty": raised(AssertionError()),
    "unicode": raised(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")),
    "file": raised(FileNotFoundError(2, "No such file or directory", b"caf\xe9.jpg")),
    "errno": raised(OSError("seven", "words")),
    "stop": raised(StopIteration(3)),
    "stop async": raised(StopAsyncIteration()),
    "memory": raised(MemoryError("too much")),
    "import": raised(ImportError("none", name="a", path="b")),
    "name": raised(NameError("none", name="a")),
    **({"group": grouped} if sys.version_info >= (3, 11) else {}),
}

#: Those that are not an Exception. In the caller's thread they are raised as they are, as in torch's main process.
OTHERS: dict[str, Callable[[], NoReturn]] = {
    "base": raised(Base("words")),
    "exit": raised(SystemExit(3)),
    "interrupt": raised(KeyboardInterrupt()),
    "generator": raised(GeneratorExit()),
}


def raise_named(name: str) -> None:
    """Raises one of these. What a step reaches is examined when a loader is made, and these are not to be found."""
    vars(importlib.import_module(__name__))["ALL"][name]()


ALL = EXCEPTIONS | OTHERS
