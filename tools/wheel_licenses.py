"""Adds the licences of what a wheel contains beside headrace: pybind11, whose headers are compiled in, and the system's
libjpeg-turbo and libdeflate, if auditwheel has copied them into it; one that was built with headrace has brought its
own. Called by `make wheel`.

    python tools/wheel_licenses.py WHEEL...
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path

#: Library -> (a file that auditwheel copies, where a library built with headrace puts its licence, and where the
#: packages of Debian, Ubuntu, Fedora and the manylinux images keep it).
LIBRARIES = {
    "libjpeg-turbo": (
        "libjpeg",
        "LICENSE.md",
        (
            "usr/share/doc/libjpeg62-turbo/copyright",
            "usr/share/doc/libjpeg-turbo8/copyright",
            "usr/share/licenses/libjpeg-turbo/LICENSE.md",
            "usr/share/doc/libjpeg-turbo/LICENSE.md",
        ),
    ),
    "libdeflate": (
        "libdeflate",
        "COPYING",
        ("usr/share/doc/libdeflate0/copyright", "usr/share/licenses/libdeflate/COPYING"),
    ),
}


def licence_of_pybind11() -> str:
    """The text that the installed pybind11 brings."""
    files = distribution("pybind11").files or []
    found = [file for file in files if file.name == "LICENSE"]
    if not found:
        sys.exit("pybind11 is installed without its LICENSE: install it from its wheel")
    return found[0].read_text()


def licence_of_package(library: str) -> str:
    """The text that the system's package brings."""
    paths = LIBRARIES[library][2]
    for path in paths:
        if (Path("/") / path).is_file():
            return (Path("/") / path).read_text(encoding="utf-8")
    sys.exit(f"no licence of {library} in /{', /'.join(paths)}: a wheel that contains it must bring it")


def add_licences(wheel: Path, texts: dict[str, str]) -> None:
    """Writes the texts into the wheel's folder of licences, names all files of that folder in the metadata, and renews
    the list of files."""
    with tempfile.TemporaryDirectory() as temporary:
        subprocess.run([sys.executable, "-m", "wheel", "unpack", "--dest", temporary, wheel], check=True)
        (root,) = Path(temporary).iterdir()
        (info,) = root.glob("*.dist-info")
        for name, text in texts.items():
            (info / "licenses" / name).write_text(text, encoding="utf-8")
        _name_licences(info)
        subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", wheel.parent, root], check=True)


def _name_licences(info: Path) -> None:
    head, _, description = (info / "METADATA").read_text(encoding="utf-8").partition("\n\n")
    folder = info / "licenses"
    found = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    lines = [line for line in head.splitlines() if not line.startswith("License-File:")]
    at = next(number for number, line in enumerate(lines) if line.startswith("License-Expression:")) + 1
    lines[at:at] = [f"License-File: {name}" for name in found]
    (info / "METADATA").write_text("\n".join(lines) + f"\n\n{description}", encoding="utf-8")


def licences(wheel: Path) -> dict[str, str]:
    """The texts by file name; ends if a library is neither a copy of the system's nor has brought its own."""
    texts = {"pybind11.txt": licence_of_pybind11()}
    names = zipfile.ZipFile(wheel).namelist()
    for library, (copied, own, _) in LIBRARIES.items():
        if any(f".libs/{copied}" in name for name in names):
            texts[f"{library}.txt"] = licence_of_package(library)
        elif not any(name.endswith(f"licenses/{library}/{own}") for name in names):
            sys.exit(f"{wheel} contains neither a copy of {library} nor its licence: repair it with auditwheel first")
    return texts


if __name__ == "__main__":
    for name in sys.argv[1:]:
        add_licences(Path(name), licences(Path(name)))
