"""Resolves the loader's argument ``device``: the destination device of batches, and the way they get there."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import ParamSpec, TypeVar

import torch

DECODERS = ("auto", "hardware", "cuda", "cpu")
EMULATED = "emulated"
_EMULATION = "the GPU path, emulated by threads of this machine"

P = ParamSpec("P")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Destination:
    """The device of the batches, and how they get there.

    Attributes:
        device: device of the tensors that the loader yields.
        way: ``"memory"``: made in this machine's memory; ``"fused"``: decoded images are uploaded and one kernel does
            the rest; ``"copy"``: made in pinned memory and copied.
        kind: the native module's name for the device, for ``"fused"``.
        decoder: JPEG decoder, for ``"fused"``: ``"cpu"``: all files (exact); ``"hardware"`` (JPEG engines) or
            ``"cuda"`` (nvJPEG on the GPU's cores): the files that it supports, the CPU decodes the rest.
        shared: whether CPU threads may take files that wait for the GPU's decoder.
        why: one sentence for ``explain()``.
        asked: the decoder that was asked for.
        refused: why it decodes no JPEG, if that is so; then the CPU does.
    """

    device: torch.device
    way: str
    kind: str = ""
    decoder: str = "cpu"
    shared: bool = True
    why: str = ""
    asked: str = "auto"
    refused: str = ""

    def require_decoder(self) -> None:
        """Raises RuntimeError if the decoder that was asked for decodes no JPEG."""
        if self.refused:
            raise RuntimeError(f"decoder={self.asked!r} is not available: {self.refused}")

    @property
    def is_emulated(self) -> bool:
        return self.kind == EMULATED

    @property
    def decodes_videos(self) -> bool:
        """Whether the device decodes videos: its decoder is not exact, so only where it was asked for."""
        return self.asked == "hardware"

    @property
    def of_videos(self) -> torch.device:
        """The device where videos are decoded."""
        return self.device if self.decodes_videos else torch.device("cpu")

    def for_videos(self) -> Destination:
        """Returns the same destination of frames of videos: no JPEG is decoded there."""
        why = self.why
        if self.is_emulated:
            why = _EMULATION + (", with torchcodec's CPU decoder in place of NVDEC" if self.decodes_videos else "")
        elif self.way == "fused":
            why = "CPU threads crop and resize as torch does tensors of bytes, one kernel does the rest"
        return replace(self, decoder="cpu", shared=True, why=why)


def resolve_destination(device: object, decoder: str, deterministic: bool = False) -> Destination:
    """Returns what `find_destination` does.

    Raises:
        RuntimeError: also if the decoder is not available for JPEGs; the message says why.
    """
    found = find_destination(device, decoder, deterministic)
    found.require_decoder()
    return found


def find_destination(device: object, decoder: str, deterministic: bool = False) -> Destination:
    """Returns the best way to `device` that this build and this machine support; see `Destination.require_decoder`.

    Args:
        device: None or ``"cpu"``; ``"cuda"``, ``"cuda:1"``, or such a ``torch.device``; ``"emulated"``: the GPU path on
            threads of this machine (slow, for checks).
        decoder: one of DECODERS.
        deterministic: use the same decoder for the same file in every run.

    Raises:
        TypeError: `device` is not a device.
        ValueError: the decoder or the kind of device is unknown.
        RuntimeError: there is no GPU; the message says what to do.
    """
    if decoder not in DECODERS:
        raise ValueError(f"decoder must be one of {', '.join(DECODERS)}, not {decoder!r}")
    if device is not None and not isinstance(device, (str, torch.device)):
        raise TypeError(f"device must be a name, a torch.device or None, not {device!r}")
    if device == EMULATED:
        return _resolve_emulated(decoder, deterministic)
    try:
        where = torch.device("cpu" if device is None else device)
    except RuntimeError as error:
        raise ValueError(f"device must be 'cpu', 'cuda', 'cuda:N' or 'emulated', not {device!r}") from error
    if where.type == "cpu":
        if decoder != "auto":
            raise ValueError(f"decoder={decoder!r} chooses a GPU's decoder: it needs device='cuda'")
        return Destination(where, "memory")
    if where.type != "cuda":
        raise ValueError(f"device must be 'cpu', 'cuda', 'cuda:N' or 'emulated', not {device!r}")
    return _resolve_cuda(where, decoder, deterministic)


def import_gpu_module() -> tuple[ModuleType | None, str]:
    """Returns the module `_gpu`, or None and the reason. It is imported only here: CPU users never pay for it."""
    try:
        return importlib.import_module("headrace._gpu"), ""
    except ImportError as error:
        return None, f"headrace's module _gpu does not load ({error})"


def require_gpu() -> ModuleType:
    """Returns the module `_gpu`. Raises RuntimeError if it cannot be imported."""
    module, why_not = import_gpu_module()
    if module is None:
        raise RuntimeError(why_not)
    return module


def current_stream(device: torch.device) -> int:
    """Returns the handle of the caller's current stream; 0 (the default stream) if the device has no streams.

    Raises:
        RuntimeError: the stream is being captured, and a batch cannot be replayed with a graph.
    """
    if device.type != "cuda":
        return 0
    with torch.cuda.device(device):  # is_current_stream_capturing() asks about the current GPU
        capturing = torch.cuda.is_current_stream_capturing()
    if capturing:
        raise RuntimeError("the current stream is being captured into a CUDA graph: take batches before or after that")
    return int(torch.cuda.current_stream(device).cuda_stream)


def bind_stream(device: torch.device, function: Callable[P, Made]) -> Callable[P, Made]:
    """Returns `function` wrapped to run on the caller's current stream in any thread: torch's is thread-local."""
    if device.type != "cuda":
        return function
    stream = torch.cuda.current_stream(device)

    def call_on_stream(*arguments: P.args, **options: P.kwargs) -> Made:
        with torch.cuda.stream(stream):
            return function(*arguments, **options)

    return call_on_stream


def nvjpeg_candidates() -> list[str]:
    """Returns paths of libnvjpeg to try: $HEADRACE_NVJPEG alone if set, or the package nvidia-nvjpeg, then the dynamic
    loader's search path."""
    if named := os.environ.get("HEADRACE_NVJPEG"):
        return [named]
    # `import nvidia` would not do: packages with a nvidia/__init__.py hide those without one.
    installed = [path for root in sys.path for path in Path(root).glob("nvidia/*/lib/libnvjpeg.so.1[0-9]")]
    newest_first = sorted(installed, key=lambda path: path.name, reverse=True)
    return [*map(str, newest_first), "libnvjpeg.so.13"]


def _resolve_emulated(decoder: str, deterministic: bool) -> Destination:
    module, why_not = import_gpu_module()
    if module is None:
        raise RuntimeError(f"device='emulated' is not available: {why_not}")
    used = "cpu" if decoder == "auto" else decoder
    why = _EMULATION + ("" if used == "cpu" else ", with a stand-in for nvJPEG")
    return Destination(torch.device("cpu"), "fused", EMULATED, used, not deterministic, why, decoder)


def _resolve_cuda(where: torch.device, decoder: str, deterministic: bool) -> Destination:
    where = _find_gpu(where)
    module, why_not = import_gpu_module()
    if module is not None and not module.cuda:
        why_not = "headrace was built without CUDA"
    elif module is not None:
        why_not = module.trouble()
    if why_not:
        refusal = why_not if decoder in ("hardware", "cuda") else ""
        why = f"made in pinned memory and copied, because {why_not}"
        return Destination(where, "copy", why=why, asked=decoder, refused=refusal)
    refused = []
    for kind in {"auto": ("hardware", "cuda"), "cpu": ()}.get(decoder, (decoder,)):
        try:
            how = _probe_nvjpeg(where.index, kind)
        except RuntimeError as error:
            refused.append(f"{kind}: {error}")
            continue
        shared = not deterministic and decoder == "auto"
        why = f"{how} decodes baseline files" + (" together with the CPU" if shared else "") + ", the CPU all others"
        return Destination(where, "fused", "cuda", kind, shared, "; ".join([why, *refused]), decoder)
    why = "; ".join(["CPU threads decode to planes, one kernel does the rest", *refused])
    refusal = "" if decoder == "auto" else "; ".join(refused)
    return Destination(where, "fused", "cuda", "cpu", why=why, asked=decoder, refused=refusal)


@functools.cache
def _probe_nvjpeg(index: int, decoder: str) -> str:
    """Returns a description of the nvJPEG that decodes; cached, because asking starts it. Raises RuntimeError if none
    does."""
    return str(require_gpu().nvjpeg(index, decoder, nvjpeg_candidates()))


def _find_gpu(where: torch.device) -> torch.device:
    """Returns the GPU with its index. Raises RuntimeError if there is none."""
    if not torch.cuda.is_available():
        reason = "this torch was built without CUDA" if torch.version.cuda is None else "torch finds no NVIDIA GPU"
        remedy = "install a CUDA build of torch" if torch.version.cuda is None else "check that nvidia-smi lists one"
        raise RuntimeError(f"device={str(where)!r}: {reason}; {remedy}, or leave device out")
    if where.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    if where.index >= torch.cuda.device_count():
        raise RuntimeError(f"device={str(where)!r}: this machine has {torch.cuda.device_count()} GPUs, counted from 0")
    return where
