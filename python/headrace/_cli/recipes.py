"""The transforms that commands know by name: of training and of evaluation; and the clip of videos."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from headrace import transforms

if TYPE_CHECKING:
    from headrace.datasets.videos.clip_samplers import ClipSampler

#: ImageNet's mean and standard deviation per channel, in units of [0, 1].
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CLIP_FRAMES, CLIP_STEP = 16, 4


def train(size: int = 224, min_scale: float = 0.08) -> transforms.Compose:
    """Returns a random resized crop with random flip; output: float32 (3, size, size), normalised."""
    return transforms.Compose(
        [
            transforms.RandomResizedCrop(size, scale=(min_scale, 1.0)),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )


def evaluation(size: int = 224) -> transforms.Compose:
    """Returns a resize of the shorter edge to 8/7 of `size` and a centre crop; float32 (3, size, size), normalised."""
    return transforms.Compose(
        [
            transforms.Resize(size * 8 // 7),
            transforms.CenterCrop(size),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, STD),
        ]
    )


def clip() -> ClipSampler:
    """Returns the clip that commands make of a video: 16 frames from a random one on, 4 apart."""
    from headrace.datasets.videos.clip_samplers import clips_at_random_indices

    return clips_at_random_indices(num_frames_per_clip=CLIP_FRAMES, num_indices_between_frames=CLIP_STEP)


def for_clips(name: str) -> Callable[[Any], object]:
    """Returns the transforms "train" or "eval" of clips, by torchvision; output: float32 (T, 3, 224, 224), normalised.

    Raises:
        ImportError: torchvision is not installed.
    """
    from torchvision.transforms import v2

    if name == "train":
        steps = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]
    else:
        steps = [v2.Resize(256, antialias=True), v2.CenterCrop(224)]
    made: Callable[[Any], object] = v2.Compose([*steps, v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
    return made


def denormalise(images: torch.Tensor) -> torch.Tensor:
    """Returns normalised images (n, 3, H, W) as uint8 again."""
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)
    return ((images.float() * std + mean) * 255).round().clamp(0, 255).to(torch.uint8)
