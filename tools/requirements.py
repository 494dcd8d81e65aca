"""Prints what pyproject.toml asks for: of the build ("build"), or of groups of developers' tools by name.

The same as `pip install --group NAME`, which pip knows since 25.1: the one that a new environment brings may be older.
"""

import sys
from pathlib import Path

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
for group in sys.argv[1:]:
    print(*(project["build-system"]["requires"] if group == "build" else project["dependency-groups"][group]))
