"""When this process arrived at collectives of all ranks, as torch's flight recorder has noted them.

torch records the newest collectives of each process by default, 2,000 of them; headrace only reads them.
"""

from __future__ import annotations

import ctypes
import pickle
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch.distributed as dist

from headrace._reports.ranks.rank_figures import Arrivals

_MOST = 512  # that are published
_RELAXED = 2  # cudaStreamCaptureModeRelaxed
#: A dump holds the interpreter, on each rank, so all ranks do it at the same time: at multiples of a number of seconds.
#: That number is a power of two, and this many times what the dump took.
_RARELY = 1000
LONGEST_S = 64.0


def _recorders() -> list[tuple[str, Callable[..., bytes]]]:
    """The functions of torch that dump what was recorded, by backend; older versions have fewer of them."""
    from torch._C import _distributed_c10d as library

    found = [("gloo", "_dump_fr_trace")] + ([("nccl", "_dump_nccl_trace")] if _relaxes_captures() else [])
    return [(backend, getattr(library, name)) for backend, name in found if hasattr(library, name)]


def _relaxes_captures() -> bool:
    """Makes this thread one whose calls do not invalidate another thread's capture of a CUDA graph: reading NCCL's
    recorder asks for the state of events. Returns whether that worked. Not run on a GPU."""
    import torch

    if not (dist.is_nccl_available() and torch.cuda.is_initialized()):  # type: ignore[no-untyped-call]
        return False
    try:
        runtime = ctypes.CDLL(f"libcudart.so.{(torch.version.cuda or '').partition('.')[0]}")
        return runtime.cudaThreadExchangeStreamCaptureMode(ctypes.byref(ctypes.c_int(_RELAXED))) == 0  # type: ignore[no-any-return]
    except (OSError, AttributeError):
        return False


class CollectiveLog:
    """Reads the recorder, rarely. One thread at a time uses it.

    Args:
        window_s: how many seconds before a dump its arrivals may be.

    Attributes:
        cost_s: CPU seconds of the newest `newest` call.
    """

    def __init__(self, window_s: float) -> None:
        self.cost_s, self._window_s, self._began_s = 0.0, window_s, time.time()
        self._found = Arrivals()
        self._period_s, self._slice = 1.0, 0

    def newest(self, every_s: float) -> Arrivals:
        """Returns the newest arrivals; none if torch.distributed is not initialised, or this torch records none.

        Args:
            every_s: seconds between two readings, or more if they take long.
        """
        self.cost_s, self._period_s = 0.0, max(self._period_s, min(LONGEST_S, every_s))
        if not (dist.is_available() and dist.is_initialized()):
            self._found = Arrivals()
            return self._found
        now = int(time.time() / self._period_s)
        if now != self._slice:
            begin = time.thread_time()
            oldest_s = max(self._began_s, time.time() - self._window_s)
            self._found, dump_s = _read_recorders(round(1e9 * oldest_s))
            while self._period_s < min(LONGEST_S, _RARELY * dump_s):
                self._period_s *= 2
            self._found = replace(self._found, every_s=self._period_s)
            self.cost_s = time.thread_time() - begin
            self._slice = int(time.time() / self._period_s)
        return self._found


def _read_recorders(oldest_ns: int) -> tuple[Arrivals, float]:
    """Returns the arrivals, and the CPU seconds in which torch held the interpreter."""
    best, held_s = Arrivals(), 0.0
    for backend, dump in _recorders():
        try:  # all collectives, without the stacks of their callers
            begin = time.thread_time()
            dumped = dump(True, False, False)
            held_s += time.thread_time() - begin
            entries = pickle.loads(dumped).get("entries", [])
            entries = [one for one in entries if one["time_created_ns"] >= oldest_ns]
            found = arrivals_of(entries, dist.group.WORLD.group_name, backend)  # type: ignore[union-attr]
        except Exception:  # a private function of torch, whose form may change: then no arrivals are known
            continue
        if (found.times_us or [0])[-1] > (best.times_us or [0])[-1]:
            best = found
    return best, held_s


def arrivals_of(entries: list[dict[str, Any]], group: str, backend: str) -> Arrivals:
    """Returns the arrivals at the newest collectives of a process group.

    Args:
        entries: of a dump of torch's flight recorder.
        group: the name of the group.
        backend: the beginning of the operations' names.
    """
    found: dict[int, tuple[int, int]] = {}
    for one in entries[-4 * _MOST :]:
        ours = one["process_group"][0] == group and one["profiling_name"].startswith(f"{backend}:")
        if ours and not one.get("is_p2p"):
            device_ms = one.get("duration_ms")
            device_us = -1 if device_ms is None else round(1e3 * device_ms)
            # operations that torch joins to one have one number: the first is the arrival
            found.setdefault(one["collective_seq_id"], (one["time_created_ns"] // 1000, device_us))
    newest = sorted(found.items())[-_MOST:]
    return Arrivals(
        backend if newest else "",
        [number for number, _ in newest],
        [created for _, (created, _) in newest],
        [device for _, (_, device) in newest],
    )
