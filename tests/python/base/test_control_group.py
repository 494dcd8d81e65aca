"""Limits of control groups, read from synthetic files: the CPU quota, and what the hierarchies of version 1 share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace._base import control_group
from headrace._base.control_group import Throttling, cpu_quota, cpu_set, cpu_throttling, memory_limit, memory_used
from headrace._cli.doctor.checks import machine as checks

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


@pytest.mark.parametrize(
    ("membership", "files", "found"),
    [
        (NO_GROUP, {}, Throttling()),
        (
            "0::/a/b\n",
            {"a/b/cpu.stat": "usage_usec 9\nnr_periods 10\nnr_throttled 4\nthrottled_usec 1500000\nnr_bursts 0\n"},
            Throttling(10, 4, 1.5),
        ),
        (
            "3:cpu:/a\n",
            {"cpu/a/cpu.stat": "nr_periods 10\nnr_throttled 4\nthrottled_time 2500000000\n"},
            Throttling(10, 4, 2.5),
        ),
        # the group above is the one that stops it
        (
            "0::/a/b\n",
            {
                "a/b/cpu.stat": "nr_periods 99\nnr_throttled 0\nthrottled_usec 0\n",
                "a/cpu.stat": "nr_periods 10\nnr_throttled 4\nthrottled_usec 500000\n",
            },
            Throttling(10, 4, 0.5),
        ),
    ],
)
def test_how_often_a_quota_stopped_the_groups(
    tmp_path: Path, membership: str, files: dict[str, str], found: Throttling
) -> None:
    assert cpu_throttling(machine(tmp_path, membership, files)) == found


def test_a_system_without_control_groups_has_no_quota(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path) is None


def test_each_hierarchy_of_version_1_has_a_path_of_its_own(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        "7:memory:/jobs/big\n5:cpuset:/pinned\n4:cpu,cpuacct:/jobs\n1:name=systemd:/other\n",
        {
            **of_version_1("cpu,cpuacct/jobs", 300_000),
            **of_version_1("cpu,cpuacct/pinned", 100_000),
            "memory/jobs/big/memory.limit_in_bytes": "9223372036854771712\n",
            "memory/jobs/memory.limit_in_bytes": "2000\n",
            "memory/pinned/memory.limit_in_bytes": "10\n",
            "memory/jobs/big/memory.usage_in_bytes": "900\n",
            "memory/jobs/big/memory.stat": "cache 5\ntotal_inactive_file 200\n",
            "cpuset/pinned/cpuset.cpus": "4-7\n",
            "cpuset/cpuset.cpus": "0-63\n",
        },
    )
    assert cpu_quota(root) == 3.0
    assert memory_limit(root) == 2000 and memory_used(root) == 700
    assert cpu_set(root) == "4-7"


@pytest.mark.parametrize("folder", ["cpu,cpuacct", "cpuacct,cpu", "cpu"])
def test_a_hierarchy_of_version_1_is_mounted_by_any_of_its_names(tmp_path: Path, folder: str) -> None:
    root = machine(tmp_path, "4:cpuacct,cpu:/jobs\n", of_version_1(f"{folder}/jobs", 150_000))
    assert cpu_quota(root) == 1.5


def test_a_hierarchy_that_controllers_share_limits_both(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        "4:cpu,memory:/jobs\n",
        {**of_version_1("cpu,memory/jobs", 50_000), "cpu,memory/jobs/memory.limit_in_bytes": "4096\n"},
    )
    assert cpu_quota(root) == 0.5 and memory_limit(root) == 4096


def test_doctor_tells_a_quota_of_version_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quota = cpu_quota(machine(tmp_path, VERSION_1, of_version_1("cpu", 150_000)))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(control_group, "cpu_quota", lambda: quota)
    finding = checks.cores()
    assert finding.level == "note"
    assert "quota of 1.5" in finding.text
    assert finding.remedy.startswith("num_workers=2 is enough")
