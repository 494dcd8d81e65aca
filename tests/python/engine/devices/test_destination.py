"""The way to a device: the choice, the refusals, and no cost for programs that use no GPU."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from headrace import DataLoader
from headrace._base.native import core
from headrace._engine import destination as destinations
from headrace._engine import device_engine
from headrace._engine.destination import Destination
from support import WATCHDOG_S, blobs, hard_files


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_no_gpu_is_one_sentence() -> None:
    with pytest.raises(RuntimeError, match=r"device='cuda': .*; .*, or leave device out"):
        DataLoader(blobs(), device="cuda")
    with pytest.raises(RuntimeError, match=r"device='cuda:3'"):
        DataLoader(blobs(), device=torch.device("cuda", 3))


def test_wrong_devices_and_decoders() -> None:
    with pytest.raises(ValueError, match="device must be"):
        DataLoader(blobs(), device="gpu")
    with pytest.raises(ValueError, match="device must be"):
        DataLoader(blobs(), device="mps")
    with pytest.raises(ValueError, match="decoder must be one of"):
        DataLoader(blobs(), decoder="nvjpeg")
    with pytest.raises(ValueError, match="needs device='cuda'"):
        DataLoader(blobs(), decoder="hardware")


def pretend_cuda(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(destinations, "import_gpu_module", lambda: module)
    destinations._probe_nvjpeg.cache_clear()


class _Module:
    def __init__(self, cuda: bool, trouble: str, decoders: tuple[str, ...] = ()) -> None:
        self.cuda, self.trouble, self._decoders = cuda, lambda: trouble, decoders

    def nvjpeg(self, index: int, decoder: str, candidates: list[str]) -> str:
        if decoder not in self._decoders:
            raise RuntimeError(f"no {decoder} here")
        return f"nvJPEG of {index}"


def test_the_way_to_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_cuda(monkeypatch, (None, "headrace's module _gpu does not load (no such file)"))
    assert destinations.resolve_destination("cuda", "auto").way == "copy"
    assert "no such file" in destinations.resolve_destination("cuda", "auto").why
    with pytest.raises(RuntimeError, match="decoder='hardware' is not available"):
        destinations.resolve_destination("cuda", "hardware")
    pretend_cuda(monkeypatch, (_Module(False, ""), ""))
    assert destinations.resolve_destination("cuda:0", "cpu").why.endswith("because headrace was built without CUDA")
    pretend_cuda(monkeypatch, (_Module(True, "CUDA does not start: driver too old"), ""))
    assert "driver too old" in destinations.resolve_destination("cuda:0", "cpu").why
    pretend_cuda(monkeypatch, (_Module(True, ""), ""))
    without = destinations.resolve_destination("cuda", "auto")
    assert (without.way, without.decoder, without.device) == ("fused", "cpu", torch.device("cuda", 1))
    assert without.why.endswith("hardware: no hardware here; cuda: no cuda here")
    with pytest.raises(RuntimeError, match="decoder='cuda' is not available: cuda: no cuda here"):
        destinations.resolve_destination("cuda", "cuda")
    pretend_cuda(monkeypatch, (_Module(True, "", ("cuda",)), ""))
    cores = destinations.resolve_destination("cuda", "auto")
    assert (cores.decoder, cores.shared) == ("cuda", True)
    assert "nvJPEG of 1 decodes baseline files together with the CPU" in cores.why and "no hardware here" in cores.why
    pretend_cuda(monkeypatch, (_Module(True, "", ("hardware", "cuda")), ""))
    assert destinations.resolve_destination("cuda", "auto").decoder == "hardware"
    assert not destinations.resolve_destination("cuda", "auto", deterministic=True).shared
    assert not destinations.resolve_destination("cuda", "hardware").shared
    assert destinations.resolve_destination("cuda", "cpu").decoder == "cpu"
    with pytest.raises(RuntimeError, match="2 GPUs"):
        destinations.resolve_destination("cuda:2", "auto")


@pytest.mark.processes
def test_who_has_no_gpu_pays_nothing() -> None:
    code = (
        "import sys, torch; from headrace import DataLoader, EncodedImages; "
        "assert 'headrace._gpu' not in sys.modules; print(torch.cuda.is_initialized())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WATCHDOG_S, check=True)
    assert done.stdout.strip() == "False"


def test_routes_of_hard_files(hard_dev: Path) -> None:
    """Each file is routed to the JPEG engines or has a reason why not; the routed files are baseline."""
    module, _ = destinations.import_gpu_module()
    assert module is not None
    reasons: dict[str | None, int] = {}
    for path in hard_files(hard_dev):
        data = path.read_bytes()
        reason = module.route(data)
        header = core.jpeg_header(data)
        if reason is None:
            assert header["not_plain"] is None and header["scans"] == 1 and not header["progressive"]
            assert len(header["components"]) in (1, 3)
        elif header["not_plain"] is not None:
            assert reason == header["not_plain"]
        reasons[reason] = reasons.get(reason, 0) + 1
    assert reasons[None] > 0 and reasons["progressive"] > 0 and len(reasons) > 5


def test_where_nvjpeg_is_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for place in ("nvidia/nvjpeg/lib/libnvjpeg.so.12", "nvidia/cu13/lib/libnvjpeg.so.13"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).touch()
    (tmp_path / "nvidia" / "__init__.py").touch()  # some of NVIDIA's packages contain it
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert destinations.nvjpeg_candidates() == [
        str(tmp_path / "nvidia/cu13/lib/libnvjpeg.so.13"),
        str(tmp_path / "nvidia/nvjpeg/lib/libnvjpeg.so.12"),
        "libnvjpeg.so.13",
    ]
    monkeypatch.setenv("HEADRACE_NVJPEG", "/my/libnvjpeg.so")
    assert destinations.nvjpeg_candidates() == ["/my/libnvjpeg.so"]


def test_pinning_what_is_on_a_device_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="pin_memory has no effect: batches are on cpu"):
        DataLoader(blobs(), device="emulated", pin_memory=True)


@pytest.mark.parametrize(
    "usable, wanted, threads", [(16, 16, 14), (16, 8, 8), (4, 4, 2), (2, 2, 1), (1, 4, 1), (8, 0, 0)]
)
def test_threads_that_share_files_with_the_engines_leave_them_cores(
    monkeypatch: pytest.MonkeyPatch, usable: int, wanted: int, threads: int
) -> None:
    monkeypatch.setattr(device_engine, "usable_cores", lambda: usable)
    gpu = Destination(torch.device("cuda", 0), "fused", "cuda", "hardware", shared=True)
    assert device_engine.decoding_threads(gpu, wanted) == threads
    for other in (replace(gpu, shared=False), replace(gpu, decoder="cpu"), replace(gpu, kind="emulated")):
        assert device_engine.decoding_threads(other, wanted) == wanted
