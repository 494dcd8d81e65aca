"""Checks of the GPU: its driver, the module that uses it, and its JPEG decoders."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from headrace._base.messages import install_command
from headrace._cli.doctor.checks.finding import Finding, means
from headrace._engine import destination

_DRIVER = Path("/proc/driver/nvidia/version")


@means("torch and headrace use the GPU through it.")
def driver() -> Finding:
    try:
        found = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)", _DRIVER.read_text())
    except OSError:
        return Finding("ok", "GPU driver", "none of NVIDIA's is loaded")
    return Finding("ok", "GPU driver", f"NVIDIA {found[1] if found else '(version unknown)'}")


@means("Decodes JPEGs on the GPU, a few grey levels off; decoder='cpu' is exact.")
def nvjpeg() -> Finding:
    names = ("nvidia-nvjpeg", "nvidia-nvjpeg-cu13", "nvidia-nvjpeg-cu12")
    found = [f"{name} {number}" for name in names if (number := _version(name))]
    if found:
        return Finding("ok", "nvJPEG", ", ".join(found))
    if torch.cuda.is_available():
        return Finding("note", "nvJPEG", "no package of it is installed", _install_nvjpeg())
    return Finding("ok", "nvJPEG", "not installed, and not needed without a GPU")


def _install_nvjpeg() -> str:
    return install_command("gpu", "nvidia-nvjpeg>=13.3,<14")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@means("Where device='cuda' would decode and augment.")
def gpu() -> Finding:
    if not torch.cuda.is_available():
        return Finding("ok", "GPU", "none: only device='cpu' is available")
    where = destination.resolve_destination("cuda", "auto")
    text = f"{torch.cuda.get_device_name(where.device)}: {where.why}"
    if where.way == "copy":
        remedy = "install a wheel of headrace with CUDA, or build it where nvcc is on the PATH"
        return Finding("note", "GPU", text, remedy)
    if where.decoder == "cpu":
        return Finding("note", "GPU", text, f"{_install_nvjpeg()}; give containers the video capability")
    return Finding("ok", "GPU", text)
