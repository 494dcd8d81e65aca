"""Loaders of videos and audio that come and go leave no descriptor, no thread and no memory.

HEADRACE_LOADERS: how many of them (1,000 for a full run).
"""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import pytest
from bench.soak.heap import trimmed

from audio_files import RATE, make_wav
from headrace import Audio, DataLoader, Fields, Videos
from headrace.datasets import clips_at_random_indices
from support import eventually, threads_of_ours
from torchvision_shim import import_torchvision
from video_files import INDEXED, PASSED_ON, make_video, why_no_torchcodec

pytest.importorskip("av", exc_type=ImportError)
if (reason := why_no_torchcodec()) is not None:
    pytest.skip(reason, allow_module_level=True)

pytestmark = pytest.mark.slow

v2 = import_torchvision().transforms.v2

LOADERS = int(os.environ.get("HEADRACE_LOADERS", "40"))
WARM = 30  # loaders after which nearly all that is kept once a process is there
#: Bytes that a loader may leave: less than its clip; of 1,000 loaders each leaves 80. Where torchcodec decodes, more:
#: its version 0.13 leaves 1,130 bytes of each VideoDecoder, and 570 of each AudioDecoder.
MOST = {"by index": 3000, "by torchcodec": 8000}


def fields_of(folder: Path, how: str) -> Fields:
    """A video that has an index, and a WAV of the wanted rate; or those that torchcodec decodes."""
    name, rate = ("x264.mp4", RATE) if how == "by index" else ("variable.mp4", 2 * RATE)
    video = make_video(folder / name, *{**INDEXED, **PASSED_ON}[name])
    (folder / "sound.wav").write_bytes(make_wav("s16", 2 * rate, rate=rate))
    clips, transform = clips_at_random_indices(num_frames_per_clip=2), v2.RandomResizedCrop(24, antialias=True)
    sound = Audio([folder / "sound.wav"] * 2, seconds=0.5, sample_rate=RATE)
    return Fields({"video": Videos([video] * 2, None, transform, clips=clips), "audio": sound})


def use_loader(number: int, fields: Fields, how: str, folder: Path) -> None:
    """A loader's life: an epoch or a part of one, and its end, by `close` or without."""
    options: dict[str, Any] = {"num_workers": number % 3, "video_index": folder if number % 2 else "auto"}
    if number % 3 == 2:
        options |= {"device": "emulated", "decoder": "cpu" if how == "by index" else "hardware"}
    loader = DataLoader(fields, seed=number, **options)
    batches = iter(loader)
    assert next(batches)["video"].shape == (1, 2, 3, 24, 24)
    if number % 4 == 0:
        assert len(list(batches)) == 1
    if number % 5:
        loader.close()


def held() -> tuple[int, int, int]:
    """Numbers of descriptors and of threads, and the bytes that are allocated."""
    gc.collect()
    assert eventually(lambda: not threads_of_ours())
    descriptors, tasks = (len(list(Path("/proc/self", name).iterdir())) for name in ("fd", "task"))
    return descriptors, tasks, trimmed() or 0


@pytest.mark.parametrize("how", MOST)
def test_loaders_leave_nothing(tmp_path: Path, how: str) -> None:
    fields, before = fields_of(tmp_path, how), (0, 0, 0)
    for number in range(WARM + LOADERS):
        if number == WARM:
            before = held()
        use_loader(number, fields, how, tmp_path / "indexes")
    descriptors, threads, each = (now - then for now, then in zip(held(), before, strict=True))
    assert descriptors <= 0 and threads <= 0 and each < MOST[how] * LOADERS, (descriptors, threads, each / LOADERS)


def test_what_is_left_is_seen(tmp_path: Path) -> None:
    before = held()
    kept = [(bytearray(MOST["by index"]), os.open(tmp_path, os.O_RDONLY)) for _ in range(LOADERS)]
    after = held()
    for _, descriptor in kept:
        os.close(descriptor)
    assert after[0] - before[0] == LOADERS
    assert not trimmed() or after[2] - before[2] >= MOST["by index"] * LOADERS
