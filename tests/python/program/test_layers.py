"""The folders of ARCHITECTURE.md: includes and imports point only upwards on that page, and files stay small."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CORE, GPU, BIND, PYTHON = (ROOT / name for name in ("csrc/core", "csrc/gpu", "csrc/bind", "python/headrace"))
SOURCES = {".py", ".h", ".cpp", ".cu"}

MOST_LINES = 400
MOST_ENTRIES = 16  # of a folder: files of code and folders, without __init__.py
#: Folders with one module for each public thing, or one file for each instruction set; the package with its stubs.
MAY_BE_LARGER = {"bench", "python/headrace", "tests/python", "tests/cpp"}


def rooms() -> list[Path]:
    """What ARCHITECTURE.md lists under "The rooms", in its order: folders, districts in them, rooms in these, and
    Python files that are in none. ``*`` stands for the files of a district itself, which otherwise come first."""
    listed: list[Path] = []
    page = (ROOT / "ARCHITECTURE.md").read_text().partition("## The rooms")[2]
    outer = [ROOT, ROOT, ROOT]
    for line in page.split("```")[1].strip().splitlines():
        level, name = (len(line) - len(line.lstrip())) // 2, line.split()[0]
        listed.append(outer[level] / name)
        outer[level + 1 :] = [listed[-1]] * (2 - level)
    return listed


ROOMS = rooms()
OWN_FILES = "*"
NUMBERS = {room: number for number, room in enumerate(ROOMS)}


def room_of(path: Path) -> int:
    """The number of the path's room on the page. A folder that is not listed belongs to its parent."""
    if path in NUMBERS:
        return NUMBERS[path]
    folder = next(folder for folder in path.parents if folder in NUMBERS)
    return NUMBERS.get(folder / OWN_FILES, NUMBERS[folder])


def files(*folders: Path) -> list[Path]:
    """Source files, sorted."""
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in SOURCES)


def test_the_page_lists_what_there_is() -> None:
    """Every folder of code, and in a district that has no modules of its own every folder in it."""
    twice = [str(room) for room, count in Counter(ROOMS).items() if count > 1]
    assert not twice
    with_code = {folder for top in (CORE, GPU, BIND, PYTHON) for folder in folders_of(top)}
    modules = {path for path in PYTHON.glob("*.py") if not path.name.startswith("__")}
    there = {CORE, GPU, BIND, PYTHON} | with_code | modules
    for district in folders_of(CORE) | folders_of(PYTHON):
        if not any(path.name != "__init__.py" and path.suffix in SOURCES for path in district.iterdir()):
            there |= folders_of(district)
    listed = {room for room in ROOMS if room.name != OWN_FILES}
    assert there <= listed
    assert all(room.is_file() or files(room) for room in listed)


def folders_of(folder: Path) -> set[Path]:
    """The folders with code in a folder."""
    return {path for path in folder.iterdir() if path.is_dir() and files(path)}


def test_includes_point_upwards() -> None:
    """`#include "core/jpeg/sequential/huffman.h"`: always the path below csrc/."""
    graph = {}
    for path in files(CORE, GPU, BIND):
        graph[path] = [ROOT / "csrc" / name for name in re.findall(r'#include "([^"]+)"', path.read_text())]
    assert_upwards(graph)


def test_native_code_knows_what_it_may() -> None:
    """No file of the core or the GPU path includes Python or torch; only files named cuda_* include CUDA or nvJPEG."""
    for path in files(CORE, GPU):
        forbidden = r"Python\.h|pybind11|torch/|ATen/"
        if not path.name.startswith("cuda_"):
            forbidden += "|cuda|nvjpeg"
        found = re.search(rf"#include <({forbidden})", path.read_text())
        assert found is None, f"{path.relative_to(ROOT)}: {found[0]}"


def python_modules() -> dict[str, Path]:
    """The modules of the package, by their dotted names."""
    found = {}
    for path in files(PYTHON):
        parts = path.relative_to(PYTHON.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def test_imports_point_upwards() -> None:
    """Imports for type checkers and imports inside functions count, too."""
    modules = python_modules()
    graph = {}
    for name, path in modules.items():
        if name == "headrace" or name.endswith(".__main__"):
            continue  # the package imports its public names on demand; programs start at the command line
        graph[path] = [modules[one] for one in imported(path) if one in modules]
        assert modules["headrace"] not in graph[path], f"{path.relative_to(ROOT)} imports from the package's face"
    assert_upwards(graph)


def imported(path: Path) -> Iterator[str]:
    """Dotted names of the modules that a module imports; those of the native modules are left out."""
    modules = python_modules()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.relative_to(ROOT)} imports relatively"
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if name in modules:
                    yield name
                elif name not in ("headrace._core", "headrace._gpu"):
                    yield node.module or ""


def assert_upwards(graph: dict[Path, list[Path]]) -> None:
    """Asserts that every edge leads to the same room or to one above, and that there is no cycle."""
    down = [
        f"{path.relative_to(ROOT)} -> {other.relative_to(ROOT)}"
        for path, others in graph.items()
        for other in others
        if room_of(other) > room_of(path)
    ]
    assert not down, "these includes or imports point downwards:\n" + "\n".join(down)
    try:
        TopologicalSorter({path: set(others) - {path} for path, others in graph.items()}).prepare()
    except CycleError as error:
        names = [str(path.relative_to(ROOT)) for path in error.args[1]]
        raise AssertionError("a circle: " + " <- ".join(names)) from None


def test_files_are_small_and_say_their_job() -> None:
    for path in files(*(ROOT / name for name in ("csrc", "python", "tests", "bench", "examples", "fuzz"))):
        lines = path.read_text().splitlines()
        name = str(path.relative_to(ROOT))
        assert len(lines) <= MOST_LINES, f"{name} is too long: split it, with one job per file"
        if lines and path.name != "__init__.py":
            first = lines[1] if lines[0].startswith("#!") else lines[0]
            assert first.startswith(("//", '"""', "# ", 'r"""')), f"{name}: the first line must state the file's job"


def test_folders_are_small() -> None:
    """Only code counts: documents and data are not limited."""
    entries: dict[Path, set[Path]] = {}
    for path in files(*(ROOT / name for name in ("csrc", "python", "tests", "bench"))):
        if path.name != "__init__.py":
            below = len(path.relative_to(ROOT).parts) - 1
            for entry in (path, *path.parents[: below - 1]):
                entries.setdefault(entry.parent, set()).add(entry)
    counts = {str(folder.relative_to(ROOT)): len(inside) for folder, inside in entries.items()}
    full = {name: count for name, count in counts.items() if count > MOST_ENTRIES and name not in MAY_BE_LARGER}
    assert not full


def test_a_base_name_occurs_once_in_a_district() -> None:
    """Modules and folders: a name that is found by its last word is found in one place."""
    for district in folders_of(PYTHON):
        names = Counter(path.stem for path in files(district) if path.name != "__init__.py")
        assert not [name for name, count in names.items() if count > 1], district.name
