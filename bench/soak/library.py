"""Compiles the library of faults, and says where it is."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

_SOURCE = Path(__file__).with_name("faults.cpp")


def library() -> Path:
    """Returns the path of the library, compiled once a user and a source."""
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]
    path = Path(tempfile.gettempdir()) / f"headrace-soak-faults-{os.getuid()}-{digest}.so"
    if not path.exists():
        made = path.with_suffix(f".{os.getpid()}")
        options = ["-std=c++20", "-O1", "-shared", "-fPIC", "-U_FORTIFY_SOURCE"]
        subprocess.run([os.environ.get("CXX", "c++"), *options, "-o", made, _SOURCE, "-ldl"], check=True)
        made.rename(path)
    return path


def fail_allocations_of(part: str) -> None:
    """Names the loaded module whose allocations fail, by a part of its path. Raises RuntimeError if there is none, or
    if the library is not in LD_PRELOAD."""
    try:
        found = ctypes.CDLL(None).headrace_soak_module(part.encode())
    except AttributeError:
        raise RuntimeError("the library of faults is not in LD_PRELOAD") from None
    if not found:
        raise RuntimeError(f"no loaded module has {part} in its path")
