"""Helpers of several loaders, ranks and jobs; and of loaders whose number of threads changes."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from typing import Any

import pytest
import torch
from helped_loaders import assert_helped, eager, epochs, loader_of, work_of
from helper_servers import address_of, ended, helper, started_process

import headrace
from headrace._helpers.helper_lane import HelperLane
from headrace._recipe.arithmetic import pillow_rule
from support import assert_same, pictures, train

__all__ = ["eager"]

pytestmark = pytest.mark.usefixtures("eager")
FILES = [one for number, one in enumerate(pictures(24, 250)) if number % 12 not in (3, 5)] * 4
LEAST = 30  # samples that each loader gets


def photographs(size: int = 96) -> headrace.EncodedImages:
    return headrace.EncodedImages(FILES, list(range(len(FILES))), train(size))


def assert_shared(loaders: list[Any], alone: list[Any]) -> None:
    """Asserts that loaders whose epochs run side by side get samples of the only helper, and the batches of those
    without one."""
    made = [0] * len(loaders)
    for _ in epochs():
        for mine, its in zip(zip(*loaders, strict=True), zip(*alone, strict=True), strict=True):
            assert_same(mine, its)
        made = [before + work_of(one).samples for before, one in zip(made, loaders, strict=True)]
        if min(made) > LEAST:
            return
    pytest.fail(f"the helper has made {made} samples")


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_of_a_job_share_a_helper(ranks: int) -> None:
    with helper() as server:
        dealt = [{"rank": rank, "world_size": ranks} for rank in range(ranks)]
        loaders = [loader_of(photographs(), address_of(server), **one) for one in dealt]
        assert_shared(loaders, [loader_of(photographs(), **one) for one in dealt])
        assert len(server._engines) == 1


def test_jobs_with_different_recipes_share_a_helper() -> None:
    sizes = (96, 64, 80)
    with helper() as server:
        loaders = [loader_of(photographs(size), address_of(server), seed=size) for size in sizes]
        assert_shared(loaders, [loader_of(photographs(size), seed=size) for size in sizes])
        assert len(server._engines) == len(sizes)


def test_more_recipes_than_a_helper_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace._helpers.server._MOST_ORDERS", 1)
    with helper() as server:
        loaders = [loader_of(photographs(size), address_of(server)) for size in (96, 64)]
        assert_shared(loaders, [loader_of(photographs(size)) for size in (96, 64)])
        assert len(server._engines) == 1


@pytest.mark.parametrize("workers", ["auto", 2])
def test_the_number_of_threads_may_change(workers: Any) -> None:
    with helper() as server:
        assert_helped(photographs(), [server], num_workers=workers)
        loader = loader_of(photographs(), address_of(server), num_workers=workers)
        alone = loader_of(photographs())
        assert_same(loader, alone)
        engine: Any = loader._runner.engine
        lane = next(one for one in engine._lanes if isinstance(one, HelperLane))
        for threads in (3, 1):
            engine.resize(threads)
            assert lane._threads_here == threads  # what is kept from the helper follows
            assert_same(loader, alone)


def test_a_state_of_each_batch_goes_on_with_other_helpers() -> None:
    dataset, numbers, state = photographs(), itertools.cycle((0, 1, 5, 2)), None
    alone = loader_of(dataset)
    with ExitStack() as stack:
        servers = [stack.enter_context(helper()) for _ in range(5)]
        for _ in epochs():
            batches = []
            for _ in range(len(alone)):
                loader = loader_of(dataset, *map(address_of, servers[: next(numbers)]))
                if state is not None:
                    loader.load_state_dict(state)
                batches.append(next(iter(loader)))
                state = loader.state_dict()
            assert_same(batches, alone)
            if sum(server.samples for server in servers) > LEAST:
                return
    pytest.fail("the helpers have made nothing")


@pytest.mark.processes
def test_a_helper_resizes_as_the_loaders_pillow_does(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, dataset = list(loader_of(photographs())), photographs()
    others = [one for one in pillow_rule.ORDERS if one != pillow_rule.pass_order()]
    process, port = started_process()  # has the rule of the installed Pillow
    try:
        changed = 0
        for order in others:
            monkeypatch.setattr(pillow_rule, "pass_order", lambda order=order: order)
            loader, alone = loader_of(dataset, f"127.0.0.1:{port}"), loader_of(dataset)
            changed += any(not torch.equal(one, its) for (one, _), (its, _) in zip(alone, usual, strict=True))
            alone = loader_of(dataset)
            made = 0
            for _ in epochs():
                assert_same(loader, alone)
                made += work_of(loader).samples
                if made > LEAST:
                    break
            assert made > LEAST
        assert changed
    finally:
        ended(process)
