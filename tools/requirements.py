"""Prints what pyproject.toml asks for: of the build ("build"), or of groups of optional dependencies by name."""

import sys
from pathlib import Path

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
for group in sys.argv[1:]:
    print(
        *(
            project["build-system"]["requires"]
            if group == "build"
            else project["project"]["optional-dependencies"][group]
        )
    )
