"""Adds the licences of what a wheel contains beside headrace: pybind11, whose headers are compiled in, and libjpeg-
turbo, which auditwheel copies into it. Called by `make wheel`.

    python tools/wheel_licenses.py WHEEL...
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

#: Where the packages of Debian, Ubuntu, Fedora and the manylinux images keep the licence of libjpeg-turbo.
LIBJPEG_TURBO = (
    "usr/share/doc/libjpeg62-turbo/copyright",
    "usr/share/doc/libjpeg-turbo8/copyright",
    "usr/share/licenses/libjpeg-turbo/LICENSE.md",
    "usr/share/doc/libjpeg-turbo/LICENSE.md",
)


def licence_of_pybind11() -> str:
    """The text that the installed pybind11 brings."""
    files = distribution("pybind11").files or []
    found = [file for file in files if file.name == "LICENSE"]
    if not found:
        sys.exit("pybind11 is installed without its LICENSE: install it from its wheel")
    return found[0].read_text()


def licence_of_libjpeg_turbo() -> str:
    """The text that the system's package brings."""
    for path in LIBJPEG_TURBO:
        if (Path("/") / path).is_file():
            return (Path("/") / path).read_text(encoding="utf-8")
    sys.exit(f"no licence of libjpeg-turbo in /{', /'.join(LIBJPEG_TURBO)}: a wheel that contains it must bring it")


def add_licences(wheel: Path, texts: dict[str, str]) -> None:
    """Writes the texts into the wheel's folder of licences, and its list of files anew."""
    with tempfile.TemporaryDirectory() as temporary:
        subprocess.run([sys.executable, "-m", "wheel", "unpack", "--dest", temporary, wheel], check=True)
        (root,) = Path(temporary).iterdir()
        (info,) = root.glob("*.dist-info")
        for name, text in texts.items():
            (info / "licenses" / name).write_text(text, encoding="utf-8")
        subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", wheel.parent, root], check=True)


if __name__ == "__main__":
    found = {"pybind11.txt": licence_of_pybind11(), "libjpeg-turbo.txt": licence_of_libjpeg_turbo()}
    for name in sys.argv[1:]:
        add_licences(Path(name), found)
