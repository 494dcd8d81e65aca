"""The number of usable cores: affinity, and the quota of control groups."""

from __future__ import annotations

import os
import threading

import pytest

from headrace._base import control_group
from headrace._base.cores import usable_cores
from headrace.ops import functions as ops
from support import WATCHDOG_S


@pytest.mark.parametrize(
    ("affinity", "quota", "usable"), [(8, None, 8), (8, 2.0, 2), (8, 1.5, 2), (8, 0.2, 1), (2, 6.0, 2)]
)
def test_usable_cores_are_the_least_of_affinity_and_quota(
    monkeypatch: pytest.MonkeyPatch, affinity: int, quota: float | None, usable: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(affinity)))
    monkeypatch.setattr(control_group, "cpu_quota", lambda: quota)
    assert usable_cores() == usable


def test_the_affinity_is_that_of_now() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


def test_ops_take_a_thread_for_each_usable_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)))
    monkeypatch.setattr(control_group, "cpu_quota", lambda: 3.0)
    together = threading.Barrier(3, timeout=WATCHDOG_S)
    names = ops._map_in_threads(
        lambda _: together.wait() >= 0 and threading.current_thread().name, [(i,) for i in range(9)], 0
    )
    assert len(set(names)) == 3
