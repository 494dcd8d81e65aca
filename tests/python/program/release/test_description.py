"""The metadata of the built distributions: README.md with addresses that lead somewhere from the package index."""

from __future__ import annotations

import re
import subprocess
import sys
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
README = (ROOT / "README.md").read_text("utf-8")
SITE, FILES = "https://headrace.github.io/headrace/", "https://github.com/headrace/headrace/blob/main/"
# After a text, with or without a title; in a definition; in HTML.
ADDRESS = re.compile(r"\]\(([^)\s]+)|^\[[^\]]+\]: +(\S+)|\b(?:src|srcset|href)=\"([^\"]+)\"", re.MULTILINE)
MAKE = "import sys; from scikit_build_core.build import prepare_metadata_for_build_wheel as make; make(sys.argv[1])"


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Message:
    """What a wheel's METADATA will be; nothing is compiled for it."""
    pytest.importorskip("scikit_build_core")
    pytest.importorskip("hatch_fancy_pypi_readme")
    folder = tmp_path_factory.mktemp("metadata")
    subprocess.run([sys.executable, "-c", MAKE, str(folder)], cwd=ROOT, check=True, capture_output=True, timeout=60)
    (file,) = folder.glob("*.dist-info/METADATA")
    return Parser().parsestr(file.read_text("utf-8"))


def addresses(text: str) -> list[str]:
    return ["".join(found) for found in ADDRESS.findall(text)]


def test_addresses_are_whole(metadata: Message) -> None:
    text = str(metadata.get_payload())
    assert len(addresses(text)) == len(addresses(README)) > 20
    assert [one for one in addresses(text) if not one.startswith("https://")] == []


def test_each_leads_to_what_the_readme_links(metadata: Message) -> None:
    for here, there in zip(addresses(README), addresses(str(metadata.get_payload())), strict=True):
        path, _, anchor = here.partition("#")
        assert (ROOT / path).exists(), here
        if path.endswith(".md") and path.startswith("docs/"):
            expected = f"{SITE}{path.removeprefix('docs/').removesuffix('.md')}.html"
        elif path.startswith("docs/assets/"):
            expected = SITE + path.removeprefix("docs/")
        else:
            expected = FILES + path
        assert there == expected + (f"#{anchor}" if anchor else ""), here


def test_nothing_but_addresses_differs(metadata: Message) -> None:
    assert ADDRESS.sub("", str(metadata.get_payload())).strip() == ADDRESS.sub("", README).strip()


def test_metadata(metadata: Message) -> None:
    assert metadata["License-Expression"] == "BSD-3-Clause"
    for name in metadata.get_all("License-File", []):
        assert (ROOT / name).is_file()
    assert f"authors:\n  - name: {metadata['Author']}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    urls = dict(one.split(", ") for one in metadata.get_all("Project-URL", []))
    assert {"Documentation", "Source", "Issues", "Changelog"} <= set(urls)
    assert (urls["Documentation"], f"{urls['Source']}/blob/main/") == (SITE, FILES)
    classifiers = metadata.get_all("Classifier", [])
    assert "Typing :: Typed" in classifiers and (ROOT / "python/headrace/py.typed").is_file()
    assert not [one for one in classifiers if one.startswith("License ::")]  # the expression takes their place
