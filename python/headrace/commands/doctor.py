"""Checks everything that affects pixels and speed, and reports problems with their remedies."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import PIL
import torch
from PIL import features

import headrace
from headrace.base import cores
from headrace.base.native import core
from headrace.demo.folder import PHOTOS
from headrace.engine import destination
from headrace.ops import functions as ops
from headrace.pixels import pillow_rule
from headrace.pixels.pillow_ops import open_rgb

_PILLOW = 10  # minimum in pyproject.toml; 9.5 makes the same pixels
_FEW_FILES = 256  # descriptors; torch's own loader and a training run together need more


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        level: ``"ok"``; ``"note"``: works, but could be better; ``"wrong"``: pixels or work are at risk.
        remedy: what to do about it, if anything.
    """

    level: str
    subject: str
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        line = f"{self.level:<6}{self.subject:<16}{self.text}"
        return line + (f"\n{'':<22}-> {self.remedy}" if self.remedy else "")


def findings() -> Iterator[Finding]:
    """Yields the findings of all checks, in the order of the report."""
    checks: tuple[Callable[[], Finding], ...] = (
        _versions,
        _torch,
        _pillow,
        _pillow_libjpeg,
        _pass_order,
        _decoding,
        _kernels,
        _cores,
        _huge_pages,
        _open_files,
        _torchvision,
        _gpu,
    )
    for check in checks:
        yield check()


def run() -> int:
    """Prints the report. Returns the exit status: 1 if anything is wrong, 0 otherwise."""
    found = []
    for finding in findings():
        print(finding, flush=True)
        found.append(finding)
    wrong = sum(one.level == "wrong" for one in found)
    print(f"\n{wrong} of {len(found)} checks failed." if wrong else "\nNothing is wrong.")
    return 1 if wrong else 0


def _versions() -> Finding:
    return Finding(
        "ok", "headrace", f"{headrace.__version__}, Python {platform.python_version()}, {platform.platform()}"
    )


def _torch() -> Finding:
    if not hasattr(torch, "accelerator"):
        return Finding("wrong", "torch", f"{torch.__version__} is older than 2.6", "pip install --upgrade torch")
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return Finding("ok", "torch", f"{torch.__version__}, accelerator: {accelerator or 'none'}")


def _pillow() -> Finding:
    if int(PIL.__version__.split(".")[0]) < _PILLOW:
        text = f"{PIL.__version__} is older than {_PILLOW}, which headrace requires; see resize and decode below"
        return Finding("note", "Pillow", text, "pip install --upgrade Pillow")
    return Finding("ok", "Pillow", PIL.__version__)


def _pillow_libjpeg() -> Finding:
    ours = core.libjpeg_version()
    if not features.check("jpg"):
        return Finding("wrong", "libjpeg-turbo", "this Pillow reads no JPEGs", "pip install --force-reinstall Pillow")
    if not features.check_feature("libjpeg_turbo"):
        text = f"headrace has {ours}, Pillow another libjpeg: its pixels may differ"
        return Finding("wrong", "libjpeg-turbo", text, "pip install --force-reinstall Pillow, from a wheel of PyPI")
    theirs = features.version_feature("libjpeg_turbo")
    return Finding("ok", "libjpeg-turbo", f"headrace has {ours}, Pillow has {theirs}")


def _pass_order() -> Finding:
    report = pillow_rule.probe()
    took = f"{report.cases} small resizes in {1e3 * report.seconds:.0f} ms"
    if report.expected in report.fitting:
        return Finding("ok", "resize", f"{report.order}, as Pillow {report.pillow} is known to do; proved by {took}")
    if report.fitting:
        text = f"Pillow {report.pillow} should resize {report.expected} but follows {report.order} ({took})"
        return Finding("note", "resize", text, "headrace follows it; loader.verify() proves that on your data")
    text = f"Pillow {report.pillow} follows no order of passes that headrace knows ({took})"
    return Finding(
        "wrong", "resize", text, f"pixels may differ by rounding: install a released Pillow, {_PILLOW} to 13"
    )


def _decoding() -> Finding:
    paths = sorted(PHOTOS.glob("*.jpg"))
    blobs = [path.read_bytes() for path in paths]
    natively = sum(core.jpeg_header(blob)["not_plain"] is None for blob in blobs)
    differ = [
        path.name
        for path, blob, image in zip(paths, blobs, ops.decode_jpeg(blobs), strict=True)
        if not np.array_equal(image.permute(1, 2, 0).numpy(), np.asarray(open_rgb(blob)))
    ]
    if differ:
        text = f"{len(differ)} of {len(paths)} photographs differ from Pillow's pixels, {differ[0]} first"
        return Finding(
            "wrong",
            "decode",
            text,
            "pip install --force-reinstall Pillow headrace; if that does not help, report a bug",
        )
    return Finding(
        "ok", "decode", f"{len(paths)} photographs, {natively} of them natively: 0 bytes differ from Pillow's"
    )


def _kernels() -> Finding:
    asked = os.environ.get("HEADRACE_ISA")
    chosen = core.instruction_set()
    if asked:
        return Finding("note", "kernels", f"{chosen}, because HEADRACE_ISA={asked}", "unset it for the fastest ones")
    if chosen == "scalar":
        return Finding(
            "note", "kernels", "scalar: this processor has neither AVX2 nor AVX-512; slower, the same pixels"
        )
    return Finding("ok", "kernels", chosen)


def _cores() -> Finding:
    allowed, present, quota = cores.allowed_cores(), os.cpu_count() or 1, cores.cpu_quota()
    if quota is not None and quota < allowed:
        text = f"{allowed} of {present} may be used, but the control group has a quota of {quota:g}"
        return Finding(
            "note", "cores", text, f"num_workers={cores.usable_cores()} is enough; more threads are throttled"
        )
    text = f"{allowed} of {present} may be used"
    return Finding("ok", "cores", f"{text}; num_workers={allowed} uses them all")


def _huge_pages() -> Finding:
    try:
        text = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    except OSError:
        return Finding("note", "huge pages", "not known to this kernel; batches use small pages")
    setting = text[text.index("[") + 1 : text.index("]")]
    if setting == "never":
        remedy = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
        return Finding("note", "huge pages", "never: batches use small pages, first epochs are slower", remedy)
    return Finding("ok", "huge pages", setting)


def _open_files() -> Finding:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _FEW_FILES:
        return Finding("note", "open files", f"at most {soft}; headrace opens one a thread", "ulimit -n 4096")
    shown = "any number" if soft == resource.RLIM_INFINITY else f"at most {soft}"
    return Finding("ok", "open files", f"{shown}; headrace opens one a thread")


def _torchvision() -> Finding:
    try:
        from importlib.metadata import version

        return Finding("ok", "torchvision", f"{version('torchvision')}: its datasets and transforms are recognised")
    except ImportError:
        return Finding("ok", "torchvision", "not installed, and not needed: headrace.transforms has the same names")


def _gpu() -> Finding:
    if not torch.cuda.is_available():
        return Finding("ok", "GPU", "none: only device='cpu' is available")
    where = destination.resolve("cuda", "auto")
    text = f"{torch.cuda.get_device_name(where.device)}: {where.why}"
    if where.way == "copy":
        remedy = "install a wheel of headrace with CUDA, or build it where nvcc is on the PATH"
        return Finding("note", "GPU", text, remedy)
    if where.decoder == "cpu":
        return Finding("note", "GPU", text, "pip install headrace[gpu], and give containers the video capability")
    return Finding("ok", "GPU", text)
