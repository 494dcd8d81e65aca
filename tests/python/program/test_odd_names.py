"""Names of files that are not UTF-8: nothing that headrace prints or writes fails at them."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace import DataLoader, ImageFiles, ImageFolder
from headrace import transforms as T
from support import TENSOR, pictures

RECIPE = T.Compose([T.Resize((8, 8)), *TENSOR])


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder, a class and files with names in latin-1; one of the files is no image."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/da\xe9ta"))
    try:
        (folder / "cl\udce9ss").mkdir(parents=True)
    except OSError:
        pytest.skip("this file system takes only names in UTF-8")
    for number, data in enumerate(pictures(5)):
        (folder / f"cl\udce9ss/g\udce9{number}.jpg").write_bytes(data)
    (folder / "cl\udce9ss/bad\udce9.jpg").write_bytes(b"no image")
    return folder


def good(folder: Path, **options: Any) -> ImageFiles:
    return ImageFiles(sorted(folder.glob("*/g*.jpg")), range(5), RECIPE, **options)


def strict() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), "utf-8", errors="strict")


@pytest.mark.parametrize("workers", [0, 2])
def test_what_a_loader_says_can_be_printed(odd: Path, workers: int, tmp_path: Path) -> None:
    loader = DataLoader(ImageFolder(odd, RECIPE), 3, num_workers=workers, on_error="skip")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert sum(len(labels) for _, labels in loader) == 5
    (error,) = loader.errors
    assert Path(error.location).read_bytes() == b"no image"  # the name itself is kept
    assert "bad\\udce9.jpg" in str(error)
    for said in (*(str(one.message) for one in told), error, repr(error), loader.explain(), loader.stats()):
        print(said, file=strict(), flush=True)
    for path in (tmp_path / "report.html", odd / "report\udce9.html"):
        loader.report(path)
        assert "bad\\udce9.jpg" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["cl\udce9ss/bad\udce9.jpg", "cl\udce9ss/none\udce9.jpg"])
def test_a_raised_error_can_be_logged(odd: Path, name: str) -> None:
    with pytest.raises(OSError, match=r"none|bad") as raised:
        next(iter(DataLoader(ImageFiles([odd / name], None, RECIPE))))
    print("".join(traceback.format_exception(raised.value)), file=strict(), flush=True)


def test_files_of_traces_caches_and_entry_points(odd: Path, tmp_path: Path) -> None:
    with headrace.profile() as recorded:
        expected = list(DataLoader(good(odd), 2, num_workers=1))
    recorded.export_chrome_trace(odd / "trace\udce9.json")
    cached = good(odd, cache=odd / "cache\udce9")
    points = headrace.EntryPoints(1 << 20, path=tmp_path / "points\udce9.npz")
    for _ in range(2):
        assert len(list(DataLoader(cached, 2, entry_points=points))) == len(expected)
    assert (odd / "trace\udce9.json").exists() and (odd / "cache\udce9").is_dir()


COMMANDS: dict[str, Callable[[Path, Path], list[Any]]] = {
    "doctor": lambda odd, _: [odd],
    "verify": lambda odd, _: [odd],
    "verify parent": lambda odd, _: [odd.parent],
    "bench": lambda odd, out: [odd, "--seconds", "0.2", "--rounds", "1", "--markdown", out / "b\udce9.md"],
    "tune": lambda odd, _: [odd, "--seconds", "0.1"],
    "pack": lambda odd, out: [odd, out / "p\udce9ck"],
    "index": lambda odd, _: [odd / "none\udce9.tar"],
    "report": lambda odd, _: [odd / "none\udce9.json"],
}


@pytest.mark.processes
@pytest.mark.parametrize("name", COMMANDS)
def test_commands(odd: Path, tmp_path: Path, name: str) -> None:
    (odd / "cl\udce9ss/bad\udce9.jpg").unlink() if name in ("bench", "tune") else None
    command = [sys.executable, "-m", "headrace", name.split()[0], *map(str, COMMANDS[name](odd, tmp_path))]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    told = done.stdout.decode("utf-8") + done.stderr.decode("utf-8")
    assert "Traceback" not in told and "UnicodeEncodeError" not in told and "\\udce9" in told
