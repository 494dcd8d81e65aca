"""A fixture that counts the JPEG files that are opened natively."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from headrace.pillow.files import jpeg_openings
from headrace.pillow.files.jpeg_openings import OPENINGS


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch, photographs: list[Path]) -> Iterator[list[Any]]:
    """The images that are opened natively while it is in use."""
    opened: list[Any] = []
    plain = jpeg_openings._Opener._set

    def counted(self: Any, image: Any) -> bool:
        done = plain(self, image)
        if done:
            opened.append(image)
        return done

    monkeypatch.setattr(jpeg_openings._Opener, "_set", counted)
    OPENINGS.replace()
    try:
        Image.open(photographs[0]).close()
        opened.clear()  # those that the first one is compared with
        yield opened
    finally:
        OPENINGS.put_back()
