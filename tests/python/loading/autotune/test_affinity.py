"""The argument cpu_affinity: lists of cores, a GPU's node from synthetic files, and where threads run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from headrace import DataLoader
from headrace._loading.native.cpu_affinity import cores_near, numbers_in, resolve_cores, write_cores
from support import blobs

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("text", "cores"), [("0-3,8\n", {0, 1, 2, 3, 8}), ("5", {5}), ("", set()), ("0,2-3", {0, 2, 3})]
)
def test_lists_as_the_kernel_writes_them(text: str, cores: set[int]) -> None:
    assert numbers_in(text) == cores
    assert numbers_in(write_cores(cores)) == cores


def test_the_cores_near_a_device(tmp_path: Path) -> None:
    folder = tmp_path / "sys/bus/pci/devices/0000:3b:00.0"
    folder.mkdir(parents=True)
    (folder / "local_cpulist").write_text("16-31\n")
    assert cores_near("0000:3b:00.0", tmp_path) == set(range(16, 32))
    with pytest.raises(ValueError, match="does not tell which cores are near the GPU at 0000:af"):
        cores_near("0000:af:00.0", tmp_path)


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})
    assert resolve_cores(None, CPU) == ()
    assert resolve_cores([2, 0], CPU) == (0, 2)
    with pytest.raises(ValueError, match="may not run on core 7; choose from 0-2"):
        resolve_cores([0, 7], CPU)
    with pytest.raises(ValueError, match="is empty"):
        resolve_cores([], CPU)
    with pytest.raises(ValueError, match="must be a list of cores, 'gpu' or None, not 'near'"):
        resolve_cores("near", CPU)
    with pytest.raises(TypeError, match="must be a list of cores"):
        resolve_cores(3, CPU)
    with pytest.raises(TypeError, match="a core of cpu_affinity"):
        resolve_cores([0.5], CPU)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_its_cores_are_refused() -> None:
    with pytest.raises(ValueError, match="needs an NVIDIA GPU"):
        DataLoader(blobs(4), cpu_affinity="gpu")


def test_native_and_python_threads_run_there() -> None:
    last = max(os.sched_getaffinity(0))
    loader = DataLoader(blobs(64), 4, num_workers=3, seed=1, cpu_affinity=[last])
    with_steps = iter(loader)
    next(with_steps)
    assert loader._engine is not None
    counted = loader._engine.counters()
    assert len(counted.workers) == 3
    assert counted.python
    assert {tuple(os.sched_getaffinity(one)) for one in (*counted.workers, *counted.python)} == {(last,)}
    loader._engine.resize(5)
    next(with_steps)
    assert {tuple(os.sched_getaffinity(one)) for one in loader._engine.counters().workers} == {(last,)}
    assert os.sched_getaffinity(0) != {last} or len(os.sched_getaffinity(0)) == 1
    loader.close()


def test_torchs_workers_take_no_cores() -> None:
    with pytest.raises(TypeError, match=r"cpu_affinity=\[0\] needs headrace's native path"):
        DataLoader([1, 2, 3], cpu_affinity=[0])  # type: ignore[arg-type]
