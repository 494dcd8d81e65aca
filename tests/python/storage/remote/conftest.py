"""The fetchers of a process outlive its loaders, so each of these tests begins without any, for it may count what they
do, and ends its own, for the tests that count threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace._storage.remote.fetcher_registry import close_all


@pytest.fixture(autouse=True)
def no_fetchers_stay() -> Iterator[None]:
    close_all()
    yield
    close_all()
