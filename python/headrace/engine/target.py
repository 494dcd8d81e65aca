"""Where batches are to be, and which way leads there: the argument ``device`` of the loader, resolved."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

DECODERS = ("auto", "hardware", "cuda", "cpu")
EMULATED = "emulated"


@dataclass(frozen=True)
class Target:
    """Where batches are to be, and how they get there.

    Attributes:
        device: of the tensors that the loader yields.
        way: ``"memory"``: made in this machine's memory; ``"fused"``: decoded images go to the device and its kernel
            does the rest; ``"copy"``: made in pinned memory and copied.
        kind: the native module's name of the device, for ``"fused"``.
        decoder: who decodes, for ``"fused"``: ``"cpu"`` alone (exact), or ``"hardware"`` (JPEG engines) or ``"cuda"``
            (nvJPEG on the GPU's cores) what these can, and the CPU the rest.
        shared: whether CPU threads may take over what the GPU's decoder has not begun.
        why: one sentence for ``explain()``.
    """

    device: torch.device
    way: str
    kind: str = ""
    decoder: str = "cpu"
    shared: bool = True
    why: str = ""


def resolve(device: Any, decoder: str, deterministic: bool = False) -> Target:
    """The way to `device`, the best one that this build and this machine have.

    Args:
        device: None or ``"cpu"``; ``"cuda"``, ``"cuda:1"``, or such a ``torch.device``; ``"emulated"``: the GPU path on
            threads of this machine, to look at what a GPU would deliver (slow).
        decoder: one of DECODERS.
        deterministic: the same decoder for the same file in every run.

    Raises:
        TypeError: not a device. ValueError: no such decoder, or no such kind of device. RuntimeError: no GPU; the
            message says what to do.
    """
    if decoder not in DECODERS:
        raise ValueError(f"decoder must be one of {', '.join(DECODERS)}, not {decoder!r}")
    if device is not None and not isinstance(device, (str, torch.device)):
        raise TypeError(f"device must be a name, a torch.device or None, not {device!r}")
    if device == EMULATED:
        return _emulated(decoder, deterministic)
    try:
        where = torch.device("cpu" if device is None else device)
    except RuntimeError as error:
        raise ValueError(f"device must be 'cpu', 'cuda', 'cuda:N' or 'emulated', not {device!r}") from error
    if where.type == "cpu":
        if decoder != "auto":
            raise ValueError(f"decoder={decoder!r} chooses a GPU's decoder: it needs device='cuda'")
        return Target(where, "memory")
    if where.type != "cuda":
        raise ValueError(f"device must be 'cpu', 'cuda', 'cuda:N' or 'emulated', not {device!r}")
    return _cuda(where, decoder, deterministic)


def native() -> tuple[Any, str]:
    """The module `_gpu`, or None and why it is not there. Imported here for the first time: a CPU's user never pays."""
    try:
        return importlib.import_module("headrace._gpu"), ""
    except ImportError as error:
        return None, f"headrace's module _gpu does not load ({error})"


def required() -> Any:
    """The module `_gpu`. Raises RuntimeError where it is not there."""
    module, why_not = native()
    if module is None:
        raise RuntimeError(why_not)
    return module


def current_stream(device: torch.device) -> int:
    """The handle of the caller's current stream; 0 (the default stream) where there are no streams.

    Raises:
        RuntimeError: the stream is being captured: a graph must not hold what happens once.
    """
    if device.type != "cuda":
        return 0
    with torch.cuda.device(device):  # the question is about the current GPU's stream
        capturing = torch.cuda.is_current_stream_capturing()
    if capturing:
        raise RuntimeError("the current stream is being captured into a CUDA graph: take batches before or after that")
    return int(torch.cuda.current_stream(device).cuda_stream)


def with_stream_of_caller(device: torch.device, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` as it would run here, for other threads: torch's current stream is a thread's own."""
    if device.type != "cuda":
        return function
    stream = torch.cuda.current_stream(device)

    def called(*arguments: Any) -> Any:
        with torch.cuda.stream(stream):
            return function(*arguments)

    return called


def nvjpeg_candidates() -> list[str]:
    """Where libnvjpeg may lie: $HEADRACE_NVJPEG alone, else the package nvidia-nvjpeg, else where the loader looks."""
    if named := os.environ.get("HEADRACE_NVJPEG"):
        return [named]
    # Not by importing `nvidia`: packages that bring a nvidia/__init__.py hide those that do not.
    installed = [path for root in sys.path for path in Path(root).glob("nvidia/*/lib/libnvjpeg.so.1[0-9]")]
    newest_first = sorted(installed, key=lambda path: path.name, reverse=True)
    return [*map(str, newest_first), "libnvjpeg.so.13"]


def _emulated(decoder: str, deterministic: bool) -> Target:
    module, why_not = native()
    if module is None:
        raise RuntimeError(f"device='emulated' is not to be had: {why_not}")
    decoder = "cpu" if decoder == "auto" else decoder
    why = "the GPU path, emulated by threads of this machine"
    if decoder != "cpu":
        why += ", with a stand-in for nvJPEG"
    return Target(torch.device("cpu"), "fused", EMULATED, decoder, not deterministic, why)


def _cuda(where: torch.device, decoder: str, deterministic: bool) -> Target:
    where = _existing(where)
    module, why_not = native()
    if module is not None and not module.cuda:
        why_not = "headrace was built without CUDA"
    elif module is not None:
        why_not = module.trouble()
    if why_not:
        if decoder not in ("auto", "cpu"):
            raise RuntimeError(f"decoder={decoder!r} is not to be had: {why_not}")
        return Target(where, "copy", why=f"made in pinned memory and copied, because {why_not}")
    refused = []
    for kind in {"auto": ("hardware", "cuda"), "cpu": ()}.get(decoder, (decoder,)):
        try:
            how = _nvjpeg(where.index, kind)
        except RuntimeError as error:
            refused.append(f"{kind}: {error}")
            continue
        shared = not deterministic and decoder == "auto"
        why = f"{how} decodes baseline files" + (" together with the CPU" if shared else "") + ", the CPU all others"
        return Target(where, "fused", "cuda", kind, shared, "; ".join([why, *refused]))
    if refused and decoder != "auto":
        raise RuntimeError(f"decoder={decoder!r} is not to be had: {'; '.join(refused)}")
    why = "CPU threads decode to planes, one kernel does the rest"
    return Target(where, "fused", "cuda", "cpu", why="; ".join([why, *refused]))


@functools.cache
def _nvjpeg(index: int, decoder: str) -> str:
    """Which nvJPEG decodes, in words; asked once, since it starts it. Raises RuntimeError where none does."""
    return str(required().nvjpeg(index, decoder, nvjpeg_candidates()))


def _existing(where: torch.device) -> torch.device:
    """The GPU with its number. Raises RuntimeError where there is none."""
    if not torch.cuda.is_available():
        reason = "this torch was built without CUDA" if torch.version.cuda is None else "torch finds no NVIDIA GPU"
        remedy = "install a CUDA build of torch" if torch.version.cuda is None else "look whether nvidia-smi lists one"
        raise RuntimeError(f"device={str(where)!r}: {reason}; {remedy}, or leave device out")
    if where.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    if where.index >= torch.cuda.device_count():
        raise RuntimeError(f"device={str(where)!r}: this machine has {torch.cuda.device_count()} GPUs, counted from 0")
    return where
