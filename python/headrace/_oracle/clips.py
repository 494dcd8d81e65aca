"""The oracle of clips: torchcodec's frames, each made by Pillow and torch from the draws of its clip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from PIL import Image

from headrace._base.types import Array
from headrace._media.video.frame_times import WantedFrames
from headrace._oracle.reference import reference_sample
from headrace._recipe.steps.recipe import Recipe


class Clips(Protocol):
    """Which frames a sample has; see ``headrace.datasets.videos.clip_samplers``."""

    @property
    def num_clips(self) -> int: ...

    @property
    def drawn(self) -> int: ...

    def choose(self, video: Any, draws: Sequence[float], sample: int) -> WantedFrames: ...


def reference_clips(
    file: str | bytes,
    sample: int,
    clips: Clips,
    recipe: Recipe,
    draws_row: Array,
    order: str = "TCHW",
    device: torch.device | str = "cpu",
) -> torch.Tensor:
    """Returns one finished sample, (T, C, H, W), or (clips, T, C, H, W) if there are several clips.

    Args:
        file: path of the video, or its bytes.
        sample: its number in the dataset that the clips are chosen for.
        clips: chooses the frames.
        recipe: of a frame.
        draws_row: float64 (k,): the draws of each clip's images, clip by clip, then where each clip begins.
        order: "CTHW": a clip is (C, T, H, W).
        device: where torchcodec decodes.

    Raises:
        ValueError, RuntimeError: torchcodec's; or a frame is too small for a step.
    """
    from torchcodec.decoders import VideoDecoder

    decoder = VideoDecoder(file, dimension_order="NHWC", seek_mode="exact", device=device)
    images, begins = draws_row[: len(draws_row) - clips.drawn], draws_row[len(draws_row) - clips.drawn :]
    wanted = clips.choose(decoder.metadata, begins.tolist(), sample)
    if wanted.numbers is not None:
        frames = decoder.get_frames_at(wanted.numbers).data
    else:
        frames = decoder.get_frames_played_at(wanted.seconds).data
    made = []
    for number, of_clip in enumerate(frames.chunk(clips.num_clips)):
        draws = images.reshape(clips.num_clips, -1)[number]
        each = [reference_sample(Image.fromarray(frame.cpu().numpy()), recipe, draws) for frame in of_clip]
        made.append(torch.stack(each, 1 if order == "CTHW" else 0))
    return made[0] if clips.num_clips == 1 else torch.stack(made)
