"""Loaders with helpers, and what their epochs must show."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from helper_servers import address_of

from headrace import DataLoader
from headrace._engine.counters.helper_work import HelperWork
from headrace._helpers import helper_lane
from headrace._helpers.server import HelperServer
from support import WATCHDOG_S, assert_same


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Helpers take all samples but one: small ones are made here before an answer arrives."""
    monkeypatch.setattr(helper_lane.HelperLane, "_samples_made_here", lambda self, seconds: 1)


def epochs() -> Iterator[int]:
    """Numbers of epochs, until a test takes too long: on a busy machine helpers get work late."""
    end = time.monotonic() + WATCHDOG_S
    for number in count():
        if time.monotonic() > end:
            return
        yield number


def loader_of(dataset: Any, *helpers: str, **options: Any) -> DataLoader[Any]:
    given: dict[str, Any] = {
        "batch_size": 16,
        "shuffle": True,
        "num_workers": 1,
        "prefetch_factor": 5,
        "persistent_workers": True,
    }
    given |= {"seed": 7, **options}
    return DataLoader(dataset, helpers=list(helpers) or None, **given)


def assert_helped(dataset: Any, servers: list[HelperServer], **options: Any) -> None:
    """Asserts that epochs with helpers are those without, and that each helper has made samples."""
    loader = loader_of(dataset, *map(address_of, servers), **options)
    alone = loader_of(dataset, **options)
    for _ in epochs():
        assert_same(loader, alone)
        if all(server.samples > 20 for server in servers):
            return
    pytest.fail("a helper has made nothing")


def work_of(loader: DataLoader[Any]) -> HelperWork:
    """What the only helper of a loader has done in the newest epoch."""
    return next(iter(loader.stats().helpers.values()))
