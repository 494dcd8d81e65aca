"""The fetchers of a process outlive its loaders, so these tests end them for the tests that count threads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headrace._storage.remote.fetcher_registry import close_all


@pytest.fixture(autouse=True, scope="module")
def no_fetchers_stay() -> Iterator[None]:
    yield
    close_all()
