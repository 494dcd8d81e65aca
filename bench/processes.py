"""Processes of benchmarks: each measures one thing, and prints one line of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from bench import datasets


def run_for_line(command: Sequence[str], limit_s: float, start: str = '{"') -> dict[str, Any]:
    """Runs a command; returns its last line of JSON, or `failed` with its last line of output.

    A printed line counts even if a library crashes at exit. Processes that the command leaves are killed, so that they
    cannot disturb the next one.

    Args:
        limit_s: seconds after which it is killed.
        start: how the line begins.
    """
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, start_new_session=True, cwd=datasets.REPOSITORY, **streams)
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        out, err = "", f"no answer within {limit_s} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for line in reversed(out.splitlines()):
        if line.startswith(start):
            return dict(json.loads(line))
    return {"failed": (err.strip().splitlines() or ["no output"])[-1]}
