"""torchcodec's VideoDecoder in torch's workers: opened without a scan, and without frames that no wanted one needs."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._media.library_decoders import install_for_video
from headrace.pillow.recording.image_counts import Door, in_force
from headrace.pillow.recording.patches import Place, Replacements

if TYPE_CHECKING:
    from headrace._loading.doors.videos.indexed_videos import Created

VIDEO_DECODER = Door("torchcodec.decoders.VideoDecoder", "torchcodec")

NO_PYAV = f"without PyAV ({install_for_video()})"
_OWN_OPTIONS = {"seek_mode": "exact", "num_ffmpeg_threads": 1, "device": "cpu", "transforms": None}


def _creator(plain: Callable[..., Created]) -> Callable[..., Created]:
    """A version of the function that opens a video for a VideoDecoder."""

    @functools.wraps(plain)
    def create_video_decoder(**options: Any) -> Created:
        counts = in_force.here()
        if counts is None:
            return plain(**options)
        reason = _why_not(options)
        if not has_pyav():
            counts.count(reason or NO_PYAV, VIDEO_DECODER)
            return plain(**options)
        from headrace._loading.doors.videos.indexed_videos import hand_on, open_video  # imports av

        if reason is not None:
            counts.count(reason, VIDEO_DECODER)
            return hand_on(plain(**options), options, VIDEO_DECODER)
        return open_video(plain, options, counts, VIDEO_DECODER)

    return create_video_decoder


def _why_not(options: dict[str, Any]) -> str | None:
    """Returns why torchcodec opens a video itself; None: it need not."""
    if not isinstance(options.get("source"), (str, Path)) or not os.path.isfile(options["source"]):  # noqa: PTH113
        return "not a file of this machine"
    if any(options.get(name, usual) != usual for name, usual in _OWN_OPTIONS.items()):
        return "with other options than exact seeks, one thread and the CPU"
    if options.get("custom_frame_mappings") is not None:
        return "with frame mappings of the program's own"
    return None


@functools.cache
def has_pyav() -> bool:
    """Whether PyAV is installed."""
    return importlib.util.find_spec("av") is not None


STEPS = Replacements(
    [
        Place(
            "torchcodec.decoders._video_decoder",
            lambda module: module if hasattr(module, "create_video_decoder") else None,
            "create_video_decoder",
            _creator,
        )
    ]
)
