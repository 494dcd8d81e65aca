"""tools/check_words.py finds each word to avoid in comments and docstrings, and nowhere else."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parents[3] / "tools" / "check_words.py"
FOUND = ["behind", "Behind", "anew", "told", "shall", "heed", "heeded", "unheeded", "lie", "lies", "lying", "so many"]
NOT_FOUND = ["ahead", "beliefs", "told_by", "_told", "`behind`", "``behind``", "retold", "many so", "so. Many"]


def load() -> Any:
    """The tool, as a module: tools/ is no package."""
    spec = importlib.util.spec_from_file_location("check_words", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WORDS = load()


def places(suffix: str, text: str) -> list[tuple[int, str]]:
    """The lines and the words of the hits."""
    return [(hit.line, hit.word) for hit in WORDS.hits(suffix, text)]


@pytest.mark.parametrize("word", FOUND)
def test_a_word_is_found_in_python(word: str) -> None:
    text = f'"""A file, {word} it."""\n\nx = "é"  # it {word}\n\n\nclass A:\n    """First.\n\n    {word}\n    """\n'
    text += f'\n    def f(self):\n        """Says {word}."""\n\n    y = 1\n    """An attribute, {word}."""\n'
    assert places(".py", text) == [(line, word) for line in (1, 3, 9, 13, 16)]


@pytest.mark.parametrize("word", FOUND)
@pytest.mark.parametrize("suffix", [".cpp", ".h", ".cu"])
def test_a_word_is_found_in_native_code(word: str, suffix: str) -> None:
    text = f"// A file, {word} it.\nint x = 1'000;  // it {word}\n/* a\n * {word}\n */\nchar c = '\"';  // {word}\n"
    text += f'auto s = R"(//)" "\\"//";  /* {word} */ int y;\n'
    assert places(suffix, text) == [(line, word) for line in (1, 2, 4, 6, 7)]


@pytest.mark.parametrize("word", FOUND)
def test_code_and_other_strings_are_not_checked(word: str) -> None:
    name = word.replace(" ", "_")
    python = f'{name} = "{word} # {word}"\nprint("""\n# {word}\n""", f"{{{name}}} {word}", {name}.{name})\n'
    assert places(".py", python) == []
    native = f'int {name} = \'{word[0]}\';\nf("// {word}", R"x(/* {word} )" // {word} */)x", {name});\n'
    assert places(".cpp", native) == []


@pytest.mark.parametrize("word", NOT_FOUND)
def test_other_words_are_not_found(word: str) -> None:
    assert places(".py", f'"""{word}."""\n# {word}\n') == []
    assert places(".cpp", f"// {word}\n/* {word} */\n") == []


def test_two_words_may_be_on_two_lines() -> None:
    assert places(".py", '"""Takes so\nmany."""\n# so\n# many\n') == [(1, "so many"), (3, "so many")]
    assert places(".h", "// so\n// many\n/* so\n * many */\n") == [(1, "so many"), (3, "so many")]


def test_a_quotation_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORDS.QUOTED, "The bytes lie here.", "libfoo's manual")
    assert places(".py", "# The bytes lie here. They lie.\n") == [(1, "lie")]


def test_the_program_names_the_place_and_the_replacement(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text('"""A file."""\n', encoding="utf-8")
    assert run(tmp_path) == (0, "")
    (tmp_path / "notes.md").write_text("It lies there.\n", encoding="utf-8")
    (tmp_path / "bad.h").write_text("// A file.\n// It lies there.\n", encoding="utf-8")
    assert run(tmp_path) == (1, f"{tmp_path.resolve()}/bad.h:2: lies -> {WORDS.WORDS['lies?']}\n")


def run(folder: Path) -> tuple[int, str]:
    """The program's exit status and output."""
    done = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True)
    assert not done.stderr
    return done.returncode, done.stdout
