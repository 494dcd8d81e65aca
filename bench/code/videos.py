"""Programs that decode clips by torchcodec's VideoDecoder, or by decord's VideoReader.

H.264 as Kinetics has it, 340 x 256 pixels, 10 s a file.
"""

from __future__ import annotations

import atexit
import functools
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset
from torchvision.transforms import v2

from bench.code import doors
from bench.contenders._common import SIZE

VIDEOS = 8  # different ones
_MOTION = "zoompan=z='min(zoom+0.002,1.6)':d=300:x='iw/2-(iw/zoom/2)+60*sin(on/17)':y='ih/2-(ih/zoom/2)+40*cos(on/23)'"
TRAIN = v2.Compose([v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip(), *doors.TO_FLOATS])


class Clips(Dataset[Any]):
    """Clips of 16 frames, 4 apart, of videos that show photographs, with noise, in motion; one for four paths."""

    def __init__(self, paths: list[Path], folder: Path, transform: Any = None, kind: str = "short.mp4") -> None:
        count = max(len(paths) // 4, VIDEOS)
        filters = f"scale=1360:1024,{_MOTION}:s=340x256:fps=30,noise=alls=6:allf=t"
        made = [make_video(path, kind, filters, 10) for path in paths[:VIDEOS]]
        self.paths, self.transform = [made[number % len(made)] for number in range(count)], transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        from torchcodec.decoders import VideoDecoder
        from torchcodec.samplers import clips_at_random_indices

        clips = clips_at_random_indices(
            VideoDecoder(self.paths[index]), num_frames_per_clip=16, num_indices_between_frames=4
        )
        return clips.data[0] if self.transform is None else self.transform(clips.data[0]), index


class Frames(Clips):
    """A frame of each video."""

    def __getitem__(self, index: int) -> Any:
        from torchcodec.decoders import VideoDecoder

        decoder = VideoDecoder(self.paths[index])
        return self.transform(decoder[int(torch.randint(len(decoder), ()))]), index


class ClipsOfDecord(Clips):
    """The same clips as VideoMAE reads them: an array of decord's, and a tensor of it.

    Args:
        threads: of decord's reader; 0: one for each core, decord's default.
    """

    def __init__(self, paths: list[Path], folder: Path, transform: Any = None, threads: int = 1) -> None:
        super().__init__(paths, folder, transform)
        self.threads = threads

    def __getitem__(self, index: int) -> Any:
        import decord

        reader = decord.VideoReader(self.paths[index], num_threads=self.threads, ctx=decord.cpu(0))
        begin = int(torch.randint(len(reader) - 60, ()))
        reader.seek(0)
        frames = torch.from_numpy(reader.get_batch(range(begin, begin + 61, 4)).asnumpy()).permute(0, 3, 1, 2)
        return self.transform(frames), index


@functools.cache
def folder_of_videos() -> Path:
    """A folder of this process: videos take longer to make than to decode."""
    made = tempfile.TemporaryDirectory()
    atexit.register(made.cleanup)
    return Path(made.name)


#: How a kind of file is encoded: with the encoder's defaults.
_ENCODERS = {
    "short.mp4": ["libx264"],
    "long.mp4": ["libx264"],
    "vp9.webm": ["libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8"],
    "mpeg4.avi": ["mpeg4", "-q:v", "4"],
}


@functools.cache
def make_video(photograph: Path, kind: str, filters: str, seconds: int) -> str:
    """Makes a video of a photograph by ffmpeg's filters, with its encoder's defaults.

    Args:
        kind: one of `_ENCODERS`.
    """
    path = folder_of_videos() / f"{photograph.stem}-{kind}"
    encoder = ["-t", str(seconds), "-pix_fmt", "yuv420p", "-c:v", *_ENCODERS[kind]]
    command = ["ffmpeg", "-v", "error", "-loop", "1", "-i", str(photograph), "-vf", filters, *encoder, str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return str(path)


def decode_clips(paths: list[Path], folder: Path) -> Clips:
    """Clips of bytes, cropped at the centre: nearly all of the time is decoding."""
    return Clips(paths, folder, v2.CenterCrop(SIZE))


def augment_clips(paths: list[Path], folder: Path) -> Clips:
    return Clips(paths, folder, TRAIN)


def decode_by_decord(paths: list[Path], folder: Path) -> ClipsOfDecord:
    """Clips of bytes, cropped at the centre."""
    return ClipsOfDecord(paths, folder, v2.CenterCrop(SIZE))


def augment_by_decord(paths: list[Path], folder: Path) -> ClipsOfDecord:
    return ClipsOfDecord(paths, folder, TRAIN)


def augment_by_decords_default(paths: list[Path], folder: Path) -> ClipsOfDecord:
    return ClipsOfDecord(paths, folder, TRAIN, threads=0)


def augment_others(kind: str) -> Callable[[list[Path], Path], Clips]:
    """Clips of files of another kind, of which less is known, or nothing."""
    return lambda paths, folder: Clips(paths, folder, TRAIN, kind)


def one_frame(paths: list[Path], folder: Path) -> Frames:
    return Frames(paths, folder, v2.CenterCrop(SIZE))
