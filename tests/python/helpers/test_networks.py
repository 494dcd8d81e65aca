"""A helper on a host of its own, whose link is cut in the middle of an epoch: no sample is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from far_host import FarHost, why_none

from headrace import DataLoader
from headrace._helpers import helper_lane
from support import WATCHDOG_S, assert_same, blobs, train


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[FarHost]:
    """A host with a helper."""
    if why := why_none():
        pytest.skip(why)
    monkeypatch.setenv("HEADRACE_TOKEN", "of a test")
    with closing(FarHost(0)) as made:
        made.start()
        yield made


@pytest.mark.processes
@pytest.mark.slow
def test_a_link_that_is_cut_loses_nothing(host: FarHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper_lane.HelperLane, "_samples_made_here", lambda self, seconds: 1)
    monkeypatch.setattr(helper_lane, "_WAIT_S", 1.0)
    options: dict[str, Any] = {"shuffle": True, "num_workers": 1, "prefetch_factor": 5, "seed": 7}
    dataset, options = blobs(96, train(96)), {**options, "persistent_workers": True}
    loader = DataLoader(dataset, 16, helpers=[host.address], **options)
    alone = DataLoader(dataset, 16, **options)
    end = time.monotonic() + WATCHDOG_S

    def run_until(what: str, cut: bool = False) -> None:
        """Compares epochs, the first with a link that is cut after a batch, until the helper's count is above 0."""
        while time.monotonic() < end:
            batches = []
            for batch in loader:
                batches.append(batch)
                if cut:
                    host.cut()
                    cut = False
            assert assert_same(batches, alone) == 6
            if getattr(loader.stats().helpers[host.address], what):
                return
        pytest.fail(f"the helper has no {what}")

    run_until("samples")
    run_until("failures", cut=True)
    host.mend()
    run_until("samples")
