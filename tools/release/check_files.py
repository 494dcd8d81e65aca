"""Checks the files of a release as the package index will see them, and writes their descriptions as it will show them.

    python tools/release/check_files.py dist/headrace-*

Needs the group `release` of pyproject.toml. The pages are written beside the files' folder, into description-*.html.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

from readme_renderer import markdown
from trove_classifiers import classifiers

_ADDRESS = re.compile(r'\b(?:href|src|srcset)="([^"]*)"')


def members(file: Path) -> dict[str, bytes]:
    """The members of a wheel or a source distribution by name; those of the latter without their common folder."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(file) as archive:
        found = ((info.name.partition("/")[2], archive.extractfile(info)) for info in archive)
        return {name: stream.read() for name, stream in found if stream is not None}


def description(metadata: EmailMessage, wrong: list[str]) -> str:
    """The description as HTML. What does not lead anywhere on the index is added to `wrong`."""
    html = markdown.render(str(metadata.get_payload()))
    if html is None:
        wrong.append("its description cannot be shown")
        return ""
    own = set(re.findall(r'\bid="([^"]*)"', html))
    for address in _ADDRESS.findall(html):
        if not address.startswith("https://") and address.removeprefix("#") not in own:
            wrong.append(f"its description has the address {address!r}, which leads nowhere on the index")
    if "<img" not in html:
        wrong.append("its description has no picture")
    return html


def faults(file: Path) -> tuple[list[str], str]:
    """What is wrong with a file, and its description as HTML."""
    names = members(file)
    wheel = file.suffix == ".whl"
    (name,) = [
        name for name in names if re.fullmatch(r"headrace-[^/]*\.dist-info/METADATA" if wheel else "PKG-INFO", name)
    ]
    metadata = message_from_bytes(names[name], EmailMessage, policy=policy.compat32)
    wrong = [f"unknown classifier: {one}" for one in metadata.get_all("Classifier", []) if one not in classifiers]
    wrong += [f"no {field}" for field in ("Author", "License-Expression", "Project-URL") if field not in metadata]
    folder = f"{name.partition('/')[0]}/licenses/" if wheel else ""
    wrong += [f"no file {one}" for one in metadata.get_all("License-File", []) if folder + one not in names]
    if wheel:
        listed = {folder + one for one in metadata.get_all("License-File", [])}
        wrong += [f"{one} is not in its metadata" for one in names if one.startswith(folder) and one not in listed]
        needed = ("headrace/py.typed", "headrace/_core.pyi")
        if "-manylinux_" not in file.name:
            wrong.append("it is of one system alone: repair it with auditwheel")
    else:
        needed = ("LICENSE", "README.md", "CMakeLists.txt", "pyproject.toml", "python/headrace/py.typed")
        wrong += [f"{one} is built" for one in names if one.endswith(".so")]
        for library in ("libjpeg-turbo", "libdeflate"):
            if not any(re.fullmatch(rf"third_party/{library}-.*\.tar\.gz", one) for one in names):
                wrong.append(f"it has no source of {library}: make sdist")
    wrong += [f"no file {one}" for one in needed if one not in names]
    return wrong, description(metadata, wrong)


def main() -> int:
    files = [Path(one) for one in sys.argv[1:]]
    good = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files]).returncode == 0
    for file in files:
        wrong, html = faults(file)
        page = file.parent.parent / "build" / f"description-{'wheel' if file.suffix == '.whl' else 'sdist'}.html"
        page.parent.mkdir(exist_ok=True)
        page.write_text(f"<!doctype html><meta charset=utf-8><title>{file.name}</title>{html}", "utf-8")
        print(f"{file.name}: {'; '.join(wrong) or 'nothing is wrong'}")
        good = good and not wrong
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
