"""The number of usable cores: affinity and the quotas of control groups, read from synthetic files."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from headrace._base import cores
from headrace._base.cores import cpu_quota, usable_cores
from headrace._cli.doctor.checks import machine as checks
from headrace.ops import functions as ops
from support import WATCHDOG_S

NO_GROUP = "0::/\n"
VERSION_1 = "12:cpuset:/\n4:cpu,cpuacct:/docker/4f\n1:name=systemd:/docker/4f\n0::/\n"


def machine(root: Path, membership: str, files: dict[str, str]) -> Path:
    """A root of the file system with /proc/self/cgroup and files below /sys/fs/cgroup."""
    for name, text in {"proc/self/cgroup": membership, **{f"sys/fs/cgroup/{k}": v for k, v in files.items()}}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def of_version_1(folder: str, quota: int, period: int = 100_000) -> dict[str, str]:
    return {f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": f"{period}\n"}


@pytest.mark.parametrize(
    ("membership", "files", "quota"),
    [
        (NO_GROUP, {}, None),
        (NO_GROUP, {"cpu.max": "max 100000\n"}, None),
        (NO_GROUP, {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/a.slice/b.scope\n", {"a.slice/b.scope/cpu.max": "50000 100000\n"}, 0.5),
        # a parent group may have a lower quota, or the only quota
        ("0::/a/b\n", {"a/b/cpu.max": "400000 100000\n", "a/cpu.max": "300000 100000\n"}, 3.0),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "cpu.max": "20000 10000\n"}, 2.0),
        # a container sees its group at the root, but the group's path is the machine's
        ("0::/docker/4f\n", {"cpu.max": "200000 100000\n"}, 2.0),
        ("0::/../../outside\n", {"cpu.max": "200000 100000\n"}, 2.0),
        (VERSION_1, of_version_1("cpu,cpuacct", 250_000), 2.5),
        (VERSION_1, of_version_1("cpu", 25_000, 50_000), 0.5),
        (VERSION_1, of_version_1("cpu", -1), None),
        (VERSION_1, {**of_version_1("cpu/docker/4f", 100_000), **of_version_1("cpu", -1)}, 1.0),
        # the folder of another controller does not limit CPU time
        ("5:cpuset:/a\n", of_version_1("cpuset", 100_000), None),
        (NO_GROUP, {"cpu.max": "nonsense"}, None),
        (VERSION_1, {"cpu/cpu.cfs_quota_us": "100000\n"}, None),
        (VERSION_1, of_version_1("cpu", 100_000, 0), None),
    ],
)
def test_the_quota_of_control_groups(tmp_path: Path, membership: str, files: dict[str, str], quota: float) -> None:
    assert cpu_quota(machine(tmp_path, membership, files)) == quota


def test_a_system_without_control_groups_has_no_quota(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path) is None


@pytest.mark.parametrize(
    ("affinity", "quota", "usable"), [(8, None, 8), (8, 2.0, 2), (8, 1.5, 2), (8, 0.2, 1), (2, 6.0, 2)]
)
def test_usable_cores_are_the_least_of_affinity_and_quota(
    monkeypatch: pytest.MonkeyPatch, affinity: int, quota: float | None, usable: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(affinity)))
    monkeypatch.setattr(cores, "cpu_quota", lambda: quota)
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
    monkeypatch.setattr(cores, "cpu_quota", lambda: 3.0)
    together = threading.Barrier(3, timeout=WATCHDOG_S)
    names = ops._map_in_threads(
        lambda _: together.wait() >= 0 and threading.current_thread().name, [(i,) for i in range(9)], 0
    )
    assert len(set(names)) == 3


def test_doctor_tells_a_quota_of_version_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quota = cpu_quota(machine(tmp_path, VERSION_1, of_version_1("cpu", 150_000)))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(cores, "cpu_quota", lambda: quota)
    finding = checks.cores()
    assert finding.level == "note"
    assert "quota of 1.5" in finding.text
    assert finding.remedy.startswith("num_workers=2 is enough")
