"""The doctor's checks of the machine: limits of control groups, memory, shared memory, GPU."""

from __future__ import annotations

import importlib
import io
import resource
import shutil
import threading
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
import torch

from headrace._base import control_group
from headrace._base.messages import install_command
from headrace._cli.doctor.checks import gpu, machine, pixels
from headrace._cli.doctor.doctor_command import findings
from headrace._engine.counters.thread_times import NEVER, scheduler_times_of_threads
from headrace._loading.autotune.budget import AutoWorkers, budget_of
from headrace._reports.loader.machine import describe_machine

GIB = 2**30


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


def test_every_check_says_what_it_means_in_one_line() -> None:
    for finding in findings():
        assert finding.means and "\n" not in finding.means and len(finding.means) <= 78
        assert finding.subject in str(finding) and finding.means in str(finding)


def test_torchvision_is_recognised_only_if_it_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    def there(name: str) -> str:
        return "0.99.0"

    def other_torch(name: str) -> None:
        raise RuntimeError("operator torchvision::nms does not exist\nmore")

    monkeypatch.setattr(pixels, "version", there)
    monkeypatch.setattr(importlib, "import_module", lambda name: None)
    assert str(pixels.torchvision()).startswith("ok    torchvision     0.99.0: its datasets and transforms are recog")
    monkeypatch.setattr(importlib, "import_module", other_torch)
    found = pixels.torchvision()
    assert found.level == "note" and "from the same index" in found.remedy
    assert found.text == "0.99.0 cannot be imported (RuntimeError: operator torchvision::nms does not exist)"

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(pixels, "version", missing)
    assert "not installed, and not needed" in pixels.torchvision().text


def test_facts_that_may_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox without /proc and /sys: every check and the description of the machine go on without them."""
    real_text, real_open = Path.read_text, io.open

    def forbidden(path: Any) -> None:
        if str(path).startswith(("/proc/", "/sys/")):
            raise PermissionError(13, "Permission denied", str(path))

    def read_text(path: Path, *args: Any, **options: Any) -> str:
        forbidden(path)
        return real_text(path, *args, **options)

    def opened(path: Any, *args: Any, **options: Any) -> Any:
        forbidden(path)
        return real_open(path, *args, **options)

    monkeypatch.setattr(Path, "read_text", read_text)
    monkeypatch.setattr("builtins.open", opened)
    with pytest.raises(PermissionError):
        Path("/proc/self/cgroup").read_text()
    found = list(findings())
    assert all(one.means and "\n" not in one.means for one in found)
    assert not [one for one in found if one.level == "wrong" and one.subject in ("cores", "memory", "control groups")]
    control_group.cpu_quota.cache_clear()
    described = describe_machine()
    control_group.cpu_quota.cache_clear()
    assert isinstance(described["usable_cores"], int)
    assert described["cpu"] and described["usable_cores"] >= 1 and described["quota"] is None
    assert budget_of(AutoWorkers()).most >= 1
    assert scheduler_times_of_threads((threading.get_native_id(),)) == NEVER


def test_control_groups_of_version_2(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/job/task",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory",
            "sys/fs/cgroup/job/memory.max": str(4 * GIB),
            "sys/fs/cgroup/job/task/memory.max": "max",
            "sys/fs/cgroup/job/task/cpuset.cpus.effective": "0-3",
        },
    )
    assert control_group.version(root) == 2
    assert control_group.memory_limit(root) == 4 * GIB  # a parent's limit applies, too
    assert control_group.cpu_set(root) == "0-3"


def test_control_groups_of_version_1(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": "5:memory:/docker/x\n3:cpuset:/docker/x",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": str(2 * GIB),  # the host's path is not in the container
            "sys/fs/cgroup/cpuset/cpuset.cpus": "2,5",
        },
    )
    assert control_group.version(root) == 1
    assert control_group.memory_limit(root) == 2 * GIB
    assert control_group.cpu_set(root) == "2,5"
    (root / "sys/fs/cgroup/memory/memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert control_group.memory_limit(root) is None


def test_a_system_without_control_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert control_group.version(tmp_path) == 0
    assert control_group.memory_limit(tmp_path) is None and control_group.cpu_set(tmp_path) == ""
    monkeypatch.setattr(control_group, "version", lambda: 0)
    assert machine.control_groups().text == "none"


def test_little_memory_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_group, "memory_limit", lambda: GIB // 2)
    finding = machine.memory()
    assert finding.level == "note" and finding.text.startswith("0.5 GiB for the control group")
    monkeypatch.setattr(control_group, "memory_limit", lambda: None)
    assert machine.memory().level == "ok"
    monkeypatch.setattr(shutil, "disk_usage", lambda path: (GIB // 16, 0, GIB // 16))
    assert (machine.shared_memory().level, machine.shared_memory().text[:24]) == ("note", "0.06 GiB of 0.06 GiB fre")

    def missing(path: str) -> None:
        raise FileNotFoundError(path)

    monkeypatch.setattr(shutil, "disk_usage", missing)
    assert "there is no /dev/shm" in machine.shared_memory().text
    monkeypatch.setattr(resource, "getrlimit", lambda number: (GIB, GIB))
    assert (machine.memory_limits().level, machine.memory_limits().text) == (
        "note",
        "address space 1,024 MiB, locked 1,024 MiB",
    )


@pytest.mark.parametrize(
    "line",
    [
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.54.03  Release Build",
    ],
)
def test_the_gpu_driver(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_DRIVER", tmp_path / "version")
    assert gpu.driver().text == "none of NVIDIA's is loaded"
    (tmp_path / "version").write_text(line)
    assert gpu.driver().text == "NVIDIA 535.54.03"


def test_nvjpeg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_version", lambda name: "13.3.0" if name == "nvidia-nvjpeg" else None)
    assert gpu.nvjpeg().text == "nvidia-nvjpeg 13.3.0"
    monkeypatch.setattr(gpu, "_version", lambda name: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert gpu.nvjpeg().remedy == install_command("gpu", "nvidia-nvjpeg>=13.3,<14")
