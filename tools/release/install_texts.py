"""Writes how to install headrace into README.md and docs, as `RELEASED` in headrace/_base/version.py says.

    python tools/release/install_texts.py

Each text below is in its file in one of two forms: the one before the first release, or the one from it on.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = ROOT / "python/headrace/_base/version.py"
README, INSTALL = "README.md", "docs/getting-started/install.md"

_CPU = "--index-url https://download.pytorch.org/whl/cpu"

#: File, text before the first release, text from it on.
TEXTS = (
    (
        README,
        "There is no release on the package index yet. From a checkout, on Linux with Python",
        "On Linux with Python",
    ),
    (
        README,
        "git clone https://github.com/headrace/headrace && cd headrace\n"
        "pip install .        # needs a C++20 compiler; libjpeg-turbo is the system's, or built with it\n",
        "pip install headrace\n",
    ),
    (README, "Or try it first; both commands do", "From a checkout, both of these do"),
    (
        INSTALL,
        "](../platforms.md)). There is no release on the package index yet: install from a checkout, or make a wheel "
        'of it once and install that wherever you need it. What needs a release says "from the first release on".\n',
        "](../platforms.md)).\n",
    ),
    (
        INSTALL,
        "## From a checkout\n\n```sh\ngit clone https://github.com/headrace/headrace\ncd headrace\n",
        "## With pip\n\n```sh\n",
    ),
    (
        INSTALL,
        f"\npip install torch torchvision {_CPU}\npip install .\n",
        f"\npip install torch torchvision {_CPU}\npip install headrace\n",
    ),
    (INSTALL, '`pip install ".[s3,top]"`', '`pip install "headrace[s3,top]"`'),
    (INSTALL, "## As a wheel file\n", "## As a wheel of your own\n"),
    (INSTALL, "\nuv pip install .\n", "\nuv pip install headrace\n"),
    (
        INSTALL,
        "uv add torch ../headrace   # the path of the checkout\n```\n\n"
        "From the first release on: `uv add torch headrace`.\n",
        "uv add torch headrace\n```\n",
    ),
    (
        INSTALL,
        "Copy a wheel into the image, so that it needs no compiler:\n",
        "The wheels need no compiler:\n",
    ),
    (
        INSTALL,
        "COPY dist/headrace-*.whl /tmp/\nRUN pip install --no-cache-dir /tmp/headrace-*.whl\n```\n\nBuild the wheel "
        "with the same Python, on a system that is not newer than the image's. How",
        "RUN pip install --no-cache-dir headrace\n```\n\nHow",
    ),
    (
        INSTALL,
        "In a cell, with a wheel that you have uploaded:\n\n```text\n%pip install /path/to/headrace-0.1.0-...whl\n```\n"
        "\nOr from a checkout, which takes some minutes where there are two cores:\n\n```text\n"
        "!git clone --depth 1 https://github.com/headrace/headrace\n%pip install ./headrace\n```\n",
        "In a cell:\n\n```text\n%pip install headrace\n```\n",
    ),
)


def released() -> bool:
    """What the package says."""
    return "\nRELEASED = True\n" in VERSION.read_text("utf-8")


def written(pages: dict[str, str], after: bool) -> dict[str, str]:
    """Returns the pages with the wanted form of each text. Raises ValueError where a page has neither form, or both."""
    pages = dict(pages)
    for page, old, new in TEXTS:
        if pages[page].count(old) + pages[page].count(new) != 1:
            raise ValueError(f"{page} must have one of two texts once: {old!r} or {new!r}")
        pages[page] = pages[page].replace(*((old, new) if after else (new, old)))
    return pages


def texts() -> dict[str, str]:
    """The pages as they are."""
    return {page: (ROOT / page).read_text("utf-8") for page in (README, INSTALL)}


if __name__ == "__main__":
    for page, text in written(texts(), released()).items():
        (ROOT / page).write_text(text, "utf-8")
