"""What counts as a library's own function: what its file makes, whatever names a patch copies."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

from headrace._base.originals.originality import is_own

LIBRARY = """
import functools
import math
from contextlib import contextmanager
from json import dumps as written

def plain(image, size=3):
    return [one for one in range(size)]

def other(image, size=3):
    return 2

def counted(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)
    return call

@counted
def decorated(image):
    return image

@contextmanager
def managed():
    yield

@functools.lru_cache(maxsize=None)
def cached(number):
    return number

if math.pi > 3:
    def chosen():
        return 1
else:
    def chosen():
        return 2

alias = same = plain
ended = math.floor
double = functools.partial(other, size=2)

class Transform:
    @staticmethod
    def get_params(image):
        return 1

    @classmethod
    def made(cls):
        return cls()

    @property
    def size(self):
        return 3

    def forward(self, image):
        return lambda: image

    __call__ = forward

class Other(Transform):
    def forward(self, image):
        return image
"""
NAMES = (
    "plain other decorated managed cached chosen alias same double written functools math Transform "
    "Transform.get_params Transform.made Transform.size Transform.forward Transform.__call__ Other.forward"
)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "some_library.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "some_library", raising=False)
    yield importlib.import_module("some_library")
    sys.modules.pop("some_library", None)


def value_of(library: ModuleType, path: str) -> Any:
    holder, _, name = path.rpartition(".")
    return vars(getattr(library, holder) if holder else library)[name]


@pytest.mark.parametrize("path", NAMES.split())
def test_what_the_file_makes_is_own(library: ModuleType, path: str) -> None:
    assert is_own(value_of(library, path), library, path)


@pytest.mark.parametrize("path", [one for one in NAMES.split() if one not in ("functools", "math")])
@pytest.mark.parametrize("way", ["function", "wraps", "mock", "partial", "cached", "other"])
def test_what_others_put_there_is_not(library: ModuleType, path: str, way: str) -> None:
    value = value_of(library, path)
    inner = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value

    def mine(*args: Any, **options: Any) -> Any:
        return inner(*args, **options)

    put = {
        "function": mine,
        "wraps": functools.wraps(inner)(mine) if callable(inner) else property(mine),
        "mock": mock.MagicMock(wraps=inner),
        "partial": functools.partial(mine),
        "cached": functools.lru_cache(mine),
        "other": library.other if path != "other" else library.chosen,
    }[way]
    assert not is_own(staticmethod(put) if isinstance(value, staticmethod) else put, library, path)


def test_replaced_code_is_not_own(library: ModuleType) -> None:
    before = library.plain.__code__
    library.plain.__code__ = (lambda image, size=3: 7).__code__
    assert not is_own(library.plain, library, "plain")
    library.plain.__code__ = before.replace(co_consts=(*before.co_consts, 1))
    assert not is_own(library.plain, library, "plain")
    library.plain.__code__ = before
    assert is_own(library.plain, library, "plain")


def test_another_function_of_the_file_is_not_own(library: ModuleType) -> None:
    assert not is_own(library.other, library, "plain")
    assert not is_own(library.Transform.forward, library, "Other.forward")


def test_a_module_that_was_loaded_again_is_own(library: ModuleType) -> None:
    importlib.reload(library)
    assert all(is_own(value_of(library, path), library, path) for path in NAMES.split())
