"""Conversion of frames to RGB, in forked processes, too."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

av = pytest.importorskip("av", exc_type=ImportError)

from headrace._media.video.rgb_frames import to_rgb  # noqa: E402 - after the check


def convert(width: int, height: int) -> np.ndarray:
    frame = av.VideoFrame.from_ndarray(np.full((height * 3 // 2, width), 100, np.uint8), format="yuv420p")
    out = np.empty((1, height, width, 3), np.uint8)
    to_rgb([frame], out)
    return out


@pytest.mark.processes
def test_a_forked_process_converts_other_frames() -> None:
    """It drops what the parent's converter has, of this thread, and of one that it does not have."""
    there, ended = threading.Event(), threading.Event()

    def convert_elsewhere() -> None:
        convert(640, 480)
        there.set()
        ended.wait(60)

    other = threading.Thread(target=convert_elsewhere)
    other.start()
    assert there.wait(60)
    before = len(list(Path("/proc/self/task").iterdir()))
    expected = convert(640, 480)
    assert len(list(Path("/proc/self/task").iterdir())) == before  # FFmpeg has started no thread
    child = os.fork()
    if child == 0:
        convert(98, 66)
        os._exit(0 if np.array_equal(convert(640, 480), expected) else 1)
    ended.set()
    other.join()
    deadline = time.monotonic() + 60
    while (found := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    assert found[1] == 0
