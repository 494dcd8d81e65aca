"""The budget of a rank: affinity, quotas of control groups, ranks on one machine, memory; from synthetic files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headrace._loading.autotune import budget
from headrace._loading.autotune.budget import AutoWorkers, Budget, budget_of, local_ranks, ranks_on_same_cores

GIB = 2**30


def machine(
    root: Path, *, quota: str = "max 100000", memory: str = "max", used: str = "0", available_kib: int = 16 * 2**20
) -> Path:
    """A root with control groups of version 2."""
    files = {
        "proc/self/cgroup": "0::/pod\n",
        "proc/meminfo": f"MemTotal: 99999999 kB\nMemAvailable: {available_kib} kB\n",
        "sys/fs/cgroup/pod/cpu.max": quota,
        "sys/fs/cgroup/pod/memory.max": memory,
        "sys/fs/cgroup/pod/memory.current": used,
        "sys/fs/cgroup/pod/memory.stat": f"anon 5\ninactive_file {GIB}\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    for name in budget._PER_NODE:
        monkeypatch.delenv(name, raising=False)


def test_one_thread_a_core(tmp_path: Path) -> None:
    found = budget_of(AutoWorkers(), root=machine(tmp_path))
    assert (found.cores, found.first, found.most) == (8.0, 8, 64)
    assert found.memory == 2 * GIB


@pytest.mark.parametrize(("quota", "cores", "first"), [("100000 100000", 1.0, 1), ("150000 100000", 1.5, 2)])
def test_a_quota_below_the_cores(tmp_path: Path, quota: str, cores: float, first: int) -> None:
    found = budget_of(AutoWorkers(), root=machine(tmp_path, quota=quota))
    assert (found.cores, found.first) == (cores, first)
    assert "quota" in found.why


def test_a_quota_of_version_1(tmp_path: Path) -> None:
    for name, text in {
        "proc/self/cgroup": "4:cpu,cpuacct:/docker/4f\n",
        "sys/fs/cgroup/cpu,cpuacct/docker/4f/cpu.cfs_quota_us": "250000",
        "sys/fs/cgroup/cpu,cpuacct/docker/4f/cpu.cfs_period_us": "100000",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert budget_of(AutoWorkers(), root=tmp_path).cores == 2.5


def test_ranks_share_the_cores_the_quota_and_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert budget_of(AutoWorkers(), root=machine(tmp_path / "a")).cores == 2.0
    assert budget_of(AutoWorkers(), root=machine(tmp_path / "a")).memory == GIB // 2
    assert budget_of(AutoWorkers(), root=machine(tmp_path / "b", quota="400000 100000")).cores == 1.0


@pytest.mark.parametrize(
    ("ranks", "own", "launchers", "share"),
    [
        (1, 8, 8, 1),
        (1, 2, 8, 1),
        (4, 8, 8, 4),  # none is bound
        (4, 2, 8, 1),  # each is bound to its own cores
        (8, 32, 64, 4),  # each is bound to its NUMA node, with three others
        (4, 8, 0, 4),  # the launcher's are not known
    ],
)
def test_ranks_that_are_bound_to_cores_do_not_share_them(ranks: int, own: int, launchers: int, share: int) -> None:
    assert ranks_on_same_cores(ranks, range(own), range(launchers)) == share


@pytest.mark.parametrize(
    ("environment", "ranks"),
    [
        ({}, 1),
        ({"LOCAL_WORLD_SIZE": "8"}, 8),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, 2),
        ({"LOCAL_WORLD_SIZE": "0"}, 1),
        ({"LOCAL_WORLD_SIZE": "many"}, 1),
    ],
)
def test_the_ranks_on_this_machine(environment: dict[str, str], ranks: int) -> None:
    assert local_ranks(environment) == ranks


def test_memory_of_the_control_group_without_its_page_cache(tmp_path: Path) -> None:
    root = machine(tmp_path, memory=str(4 * GIB), used=str(3 * GIB))
    assert budget_of(AutoWorkers(), root=root).memory == 2 * GIB // 8  # 4 - (3 - 1 of inactive files)


def test_what_is_given_counts(tmp_path: Path) -> None:
    found = budget_of(AutoWorkers(cores=1.5, memory=1000), root=machine(tmp_path))
    assert (found.cores, found.memory, found.first) == (1.5, 1000, 2)
    assert budget_of(AutoWorkers(), (0, 1, 2), machine(tmp_path)).cores == 3.0


def test_the_depth_is_bounded_by_bytes() -> None:
    assert [Budget(2.0, memory).depth(100) for memory in (1, 100, 399, 400, 10_000)] == [1, 1, 2, 3, 99]


def test_the_argument() -> None:
    assert AutoWorkers.of("auto") == AutoWorkers()
    assert AutoWorkers.of(AutoWorkers(cores=2)) == AutoWorkers(cores=2)
    assert AutoWorkers.of(4) is None
    with pytest.raises(ValueError, match="num_workers must be a number, 'auto' or headrace"):
        AutoWorkers.of("all")
    for wrong in ({"cores": 0}, {"cores": float("inf")}, {"memory": -1}, {"cores": float("nan")}):
        with pytest.raises(ValueError, match=r"AutoWorkers: \w+ must be above 0"):
            AutoWorkers(**wrong)
    for odd in ({"cores": True}, {"memory": 1.5}, {"cores": "2"}):
        with pytest.raises(TypeError, match=r"AutoWorkers: \w+ must be a number"):
            AutoWorkers(**odd)
