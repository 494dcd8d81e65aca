"""Pillow's door alone: others stay open once a loader has opened them, and defer what these tests look at."""

from __future__ import annotations

import pytest

from headrace._loading.doors import opened_doors
from headrace.pillow import open_patch
from headrace.pillow.files.jpeg_openings import OPENINGS
from headrace.pillow.to_tensor_patches import Later


@pytest.fixture(autouse=True)
def without_other_doors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened_doors, "_added", True)
    monkeypatch.setattr(open_patch._steps, "openers", [OPENINGS])
    monkeypatch.setattr(open_patch._steps, "followers", [])
    monkeypatch.setattr(Later, "defers_bytes", False)
