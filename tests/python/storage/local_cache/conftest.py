"""Caches live as long as their datasets; those that a failed test leaves must not serve the next test."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from headrace._storage.local_cache.local_caches import sum_caches


@pytest.fixture(autouse=True)
def no_cache_stays() -> Iterator[None]:
    yield
    gc.collect()
    assert sum_caches() is None, "a cache outlives its datasets"
