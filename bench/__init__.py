"""Compares the speed of headrace with that of other loaders. Start with README.md, then run.py."""

from __future__ import annotations

import os

os.environ["HEADRACE_ENTRY_POINTS_FOLDER"] = ""  # what is timed begins with nothing that earlier runs have learned
