"""Notes of exceptions, and what exceptions say before Python 3.11, which prints no notes."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from headrace._base import safe_exceptions
from headrace._base.messages import public_name_of
from headrace._base.safe_exceptions import add_note


class Silent(Exception):
    """Its words are its own."""

    def __str__(self) -> str:
        return "nothing"


class Raising(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.fixture
def without_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that prints no notes."""
    monkeypatch.setattr(safe_exceptions, "_PRINTS_NOTES", False)


def test_words_stay_the_original_ones() -> None:
    error = ValueError("num_workers option should be non-negative")
    for _ in range(2):  # one object may be raised several times
        add_note(error, "pass 0 or more")
    assert str(error) == "num_workers option should be non-negative" and error.__notes__ == ["pass 0 or more"]


@pytest.mark.usefixtures("without_notes")
def test_a_remedy_follows_the_original_words() -> None:
    error = ValueError("num_workers option should be non-negative")
    for _ in range(2):  # one object may be raised several times
        add_note(error, "pass 0 or more")
    assert str(error) == "num_workers option should be non-negative\npass 0 or more"
    assert not hasattr(error, "__notes__")
    add_note(error, "pass 1 or more", "or more")
    assert str(error).splitlines()[1:] == ["pass 1 or more"]


@pytest.mark.usefixtures("without_notes")
def test_a_remedy_of_an_operating_systems_error() -> None:
    error = FileNotFoundError(errno.ENOENT, "No such file or directory", "photo")
    for _ in range(2):
        add_note(error, "look for a misspelt name")
    assert str(error) == "[Errno 2] No such file or directory (look for a misspelt name): 'photo'"
    assert (error.errno, error.filename, error.args[:2]) == (2, "photo", (2, "No such file or directory"))
    assert not hasattr(error, "__notes__")


@pytest.mark.usefixtures("without_notes")
@pytest.mark.parametrize("error", [Silent("words"), Raising("words"), KeyError("key"), ValueError(1, 2), ValueError()])
def test_where_the_words_are_not_ours_to_change_it_is_a_note(error: Exception) -> None:
    given = error.args
    add_note(error, "do this")
    assert error.args == given and error.__notes__ == ["do this"]


def test_notes_are_words_where_python_prints_none(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ValueError("it is wrong")
    monkeypatch.setattr(safe_exceptions, "_PRINTS_NOTES", True)
    add_note(error, "sample 3: skip it", "skip it")
    assert str(error) == "it is wrong" and error.__notes__ == ["sample 3: skip it"]
    monkeypatch.setattr(safe_exceptions, "_PRINTS_NOTES", False)
    other = ValueError("it is wrong")
    for number in (3, 4):
        add_note(other, f"sample {number}: skip it", "skip it")
    assert str(other) == "it is wrong\nsample 4: skip it" and not hasattr(other, "__notes__")
    silent = Silent()
    add_note(silent, "sample 3: skip it", "skip it")
    assert str(silent) == "nothing" and silent.__notes__ == ["sample 3: skip it"]


def test_a_class_has_the_name_that_programs_import() -> None:
    import headrace

    assert public_name_of(headrace.ImageFolder) == "headrace.ImageFolder"
    assert public_name_of(headrace.transforms.ToTensor) == "headrace.transforms.ToTensor"
    assert public_name_of(Silent) == f"{__name__}.Silent" and public_name_of(int) == "builtins.int"
    assert public_name_of(subprocess.Popen) == "subprocess.Popen"

    class Inner:
        pass

    assert public_name_of(Inner).endswith("<locals>.Inner") and sys.modules[Inner.__module__].__name__ == __name__
