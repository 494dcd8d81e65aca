"""Programs that decode clips in a Dataset of their own, and the same samples as `headrace.Videos`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset
from torchvision.transforms import v2

import headrace
from bench.code import doors, videos
from bench.contenders._common import SIZE

CLIP = headrace.clips_at_random_indices(num_frames_per_clip=16, num_indices_between_frames=4)
TWO_CLIPS = headrace.clips_at_random_indices(num_clips=2, num_frames_per_clip=16, num_indices_between_frames=4)
SPREAD = headrace.uniform_frames(8)
SHOWN_TO_A_MODEL = v2.Compose([v2.Resize((SIZE, SIZE), antialias=True), *doors.TO_FLOATS])
_LONG = "zoompan=z='min(zoom+0.0004,1.6)':d=1800:x='iw/2-(iw/zoom/2)+160*sin(on/97)':y='ih/2-(ih/zoom/2)'"


class Clips(Dataset[Any]):
    """Clips decoded by torchcodec, each after `transform`, with a label.

    Args:
        mode: torchcodec's ``seek_mode``.
    """

    def __init__(self, paths: list[str], transform: Any, clips: Any, mode: str = "exact") -> None:
        self.paths, self.transform, self.clips, self.mode = paths, transform, clips, mode

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        from torchcodec.decoders import VideoDecoder

        frames = self.clips(VideoDecoder(self.paths[index], seek_mode=self.mode), index)
        made = [self.transform(clip) for clip in frames]
        return torch.stack(made) if len(made) > 1 else made[0], index


def _short(paths: list[Path], folder: Path) -> list[str]:
    return videos.Clips(paths, folder).paths


def one_clip_approximately(paths: list[Path], folder: Path) -> Clips:
    return Clips(_short(paths, folder), videos.TRAIN, CLIP, "approximate")


def two_clips(paths: list[Path], folder: Path) -> Clips:
    return Clips(_short(paths, folder), videos.TRAIN, TWO_CLIPS)


def spread_frames(paths: list[Path], folder: Path) -> Clips:
    """Eight frames of a video of 60 s; one sample for thirty-two paths."""
    long = videos.make_video(paths[0], "long.mp4", f"scale=2560:1440,{_LONG}:s=1280x720:fps=30,noise=alls=4:allf=t", 60)
    return Clips([long] * (len(paths) // 32), SHOWN_TO_A_MODEL, SPREAD)


def in_threads(clips: Any) -> Callable[[Any], Any]:
    """Makes of a program's dataset the same samples as `headrace.Videos`."""
    return lambda program: headrace.Videos(program.paths, range(len(program)), program.transform, clips=clips)
