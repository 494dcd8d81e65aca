"""Gates do not outlive their test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from slow_samples import Gate


@pytest.fixture(autouse=True)
def _opened() -> Iterator[None]:
    yield
    for gate in Gate.made:
        gate.go.set()
    Gate.made.clear()
