"""AV1 in processes that have one library of videos: in a whole run both are loaded, where tests of AV1 are skipped.

With the libdav1d that decord brings, torchcodec crashes (`video_files.make_video`).
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from video_files import why_no_torchcodec

TESTS = Path(__file__).parents[2]
OF_TORCHCODEC = "datasets/videos/test_videos.py", "loading/doors/videos/test_torchcodec_videos.py"
OF_DECORD = ("loading/doors/videos/test_decord_videos.py",)

pytestmark = [pytest.mark.slow, pytest.mark.processes]


@pytest.mark.parametrize(("files", "count"), [(OF_TORCHCODEC, 4), (OF_DECORD, 2)])
def test_clips_of_av1(files: tuple[str, ...], count: int) -> None:
    pytest.importorskip("av", exc_type=ImportError)
    if shutil.which("ffmpeg") is None:
        pytest.skip("no ffmpeg")
    if files is OF_TORCHCODEC and (reason := why_no_torchcodec()) is not None:
        pytest.skip(reason)
    if files is OF_DECORD and importlib.util.find_spec("decord") is None:
        pytest.skip("no decord")
    chosen = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "av1", *(str(TESTS / one) for one in files)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *chosen], cwd=TESTS, capture_output=True, text=True, timeout=300, check=False
    )
    # A crash of FFmpeg's libraries ends that process, not this one.
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} passed" in done.stdout and "skipped" not in done.stdout, done.stdout
